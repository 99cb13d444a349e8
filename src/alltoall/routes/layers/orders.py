"""Orders of the links, one for each layer, in which as many routes as possible go forward.

A layer is acyclic if and only if its routes go forward in some order of the links, so instead of
adding routes one by one, an order is improved as a whole: a link is taken out and put back where
the routes over it gain most. Only its place among the few links before and after it on these routes
matters, and one look at the routes prices all its places, so a sweep over all links costs about
as much as reading all routes once. A route that goes backward at k places counts `w ** k`, with w
from `BACKWARD_WEIGHTS`.

Layers are filled one after the other; then each order in turn is improved for the routes that no
other layer takes, and routes that none takes weigh more from round to round. What is left in the
end is offered to every layer once more, and then to new ones.
"""

from dataclasses import dataclass

import numpy as np
from numba import njit
from numpy.typing import NDArray

from alltoall.ir.arrays import Floats, Ints
from alltoall.lp.settings import never
from alltoall.routes.layers.dependencies import (
    Dependencies,
    Flags,
    circular_route,
    fill_layer,
    forward_routes,
    turn_weights,
)
from alltoall.settings import Late, SolveSettings

Small = NDArray[np.int32]

BACKWARD_WEIGHTS = (0.5, 0.4, 0.3, 0.2, 0.1, 0.05)
"""What a backward place leaves of a route's weight, sweep by sweep, when an order is new."""

LATER_WEIGHTS = (0.3, 0.05)
"""The same when an order is improved again."""

IMPROVING_ROUNDS = 12
"""How often each order is improved again."""

MISSED_RISE = 1.15
"""By what the weight of a route that no layer takes grows in each round."""

IMPROVING_SHARE = 0.5
"""The share of the time left for which orders are improved; the rest is for what they miss."""

PLACED_PER_CALL = 100
"""Links that are put in their place in one compiled call: a time limit is heard in between."""

REST_SHARE = 1e-3
"""No new order is made for less than this share of the routes until the others are improved."""


@dataclass(frozen=True, eq=False)
class Orders:
    """A place for each link in each layer, and a flag for each route that goes forward in it."""

    rank: list[Floats]
    forward: list[Flags]

    def missed(self, dependencies: Dependencies) -> Flags:
        """Return a flag for each route that waits for anything and goes forward in no layer."""
        missed = dependencies.length > 0
        for flags in self.forward:
            missed = missed & ~flags
        return missed


def pack_by_orders(
    dependencies: Dependencies, seed: int, settings: SolveSettings | None = None
) -> Ints:
    """Return a layer per route, found by improving the orders of the links.

    With a time limit, orders are improved for half of the time left; raise TimeoutError if the
    other half is too short for what they miss.
    """
    settings = settings or SolveSettings()
    rest = int(REST_SHARE * dependencies.routes)
    enough = settings.sharing(IMPROVING_SHARE).out_of_time
    orders = layer_orders(dependencies, dependencies.routes, rest, seed, enough)
    layer = np.full(dependencies.routes, -1, dtype=np.int64)
    layer[dependencies.length == 0] = 0
    for level, flags in enumerate(orders.forward):
        layer[(layer < 0) & flags] = level
    level, left = 0, np.flatnonzero(layer < 0)
    while len(left):
        before = np.flatnonzero((layer == level) & (dependencies.length > 0))
        offered = np.concatenate((before, left))
        taken, _ = fill_layer(dependencies, offered, settings.out_of_time)
        layer[left[taken[left]]] = level
        if not (layer == level).any():
            raise circular_route()
        level, left = level + 1, np.flatnonzero(layer < 0)
    # Layers that others have emptied are not counted.
    return np.unique(layer, return_inverse=True)[1].astype(np.int64)


def layer_orders(
    dependencies: Dependencies, most_orders: int, rest: int, seed: int, late: Late = never
) -> Orders:
    """Return improved orders, until at most `rest` routes go forward in none.

    There are at most `most_orders`; fewer, and less improved ones, if it is `late` before.
    """
    rng = np.random.default_rng(seed)
    orders = Orders([], [])
    missed = orders.missed(dependencies)
    while missed.any() and len(orders.rank) < most_orders:
        if orders.rank and (missed.sum() <= rest or late()):
            break
        try:
            rank = _first_order(dependencies, missed, late)
        except TimeoutError:
            break
        which = np.flatnonzero(missed)
        weight = _hardness(dependencies)[which]
        rank = _sifted(dependencies, which, weight, rank, BACKWARD_WEIGHTS, rng, late)
        orders.rank.append(rank)
        orders.forward.append(forward_routes(dependencies, rank))
        if not (orders.forward[-1] & missed).any():
            break
        missed = missed & ~orders.forward[-1]
    _improve(dependencies, orders, rng, late)
    return orders


def _improve(
    dependencies: Dependencies, orders: Orders, rng: np.random.Generator, late: Late
) -> None:
    """Improve each order for the routes that no other takes, round after round."""
    weight = _hardness(dependencies)
    takers = np.zeros(dependencies.routes, dtype=np.int64)
    for flags in orders.forward:
        takers += flags
    waits = dependencies.length > 0
    for _ in range(IMPROVING_ROUNDS):
        if takers[waits].all():
            break
        for level in range(len(orders.rank)):
            if late():
                return
            others = takers - orders.forward[level]
            which = np.flatnonzero(waits & (others == 0))
            rank = orders.rank[level]
            rank = _sifted(dependencies, which, weight[which], rank, LATER_WEIGHTS, rng, late)
            flags = forward_routes(dependencies, rank)
            orders.rank[level], orders.forward[level] = rank, flags
            takers = others + flags
        weight[takers == 0] *= MISSED_RISE


def _hardness(dependencies: Dependencies) -> Floats:
    """Return a weight per route: the longer, the harder to place among those that are left."""
    return dependencies.length.astype(np.float64) ** 2


def _first_order(dependencies: Dependencies, which: Flags, late: Late) -> Floats:
    """Return an order in which the dependencies of most routes go forward, greedily."""
    popular = turn_weights(dependencies, which.astype(np.float64))
    each = np.arange(dependencies.count, dtype=np.int64)
    alone = Dependencies(
        dependencies.links,
        dependencies.held,
        dependencies.wanted,
        np.arange(dependencies.count + 1, dtype=np.int64),
        each,
    )
    _, rank = fill_layer(alone, each[np.argsort(-popular, kind="stable")], late)
    return rank.astype(np.float64)


def _turn_forward(dependencies: Dependencies, rank: Floats) -> Flags:
    return np.asarray(rank[dependencies.held] < rank[dependencies.wanted])


def _sifted(
    dependencies: Dependencies,
    which: Ints,
    weight: Floats,
    rank: Floats,
    backward_weights: tuple[float, ...],
    rng: np.random.Generator,
    late: Late,
) -> Floats:
    """Return an order improved for some routes of some weight; less so if it is `late` before."""
    turns = (dependencies.held, dependencies.wanted)
    around = (dependencies.out_first, dependencies.into_first, dependencies.into)
    slot = np.empty(dependencies.count, dtype=np.int64)
    slot[dependencies.into] = np.arange(dependencies.count)
    slot -= dependencies.into_first[dependencies.wanted]
    routes = (dependencies.start, dependencies.turn)
    visits = _visits(routes, turns, around, slot, which)
    back = _backward(routes, _turn_forward(dependencies, rank), which)
    longest = int(dependencies.length[which].max(initial=0))
    for share in backward_weights:
        order = rng.permutation(dependencies.links)
        # What so many backward places leave of a route's weight.
        powers = share ** np.arange(longest + 2.0)
        for begin in range(0, len(order), PLACED_PER_CALL):
            if late():
                break
            part = order[begin : begin + PLACED_PER_CALL]
            _sweep(part, visits, (*turns, *around), rank, back, weight, powers)
        # Whole places again, before halving the distances between them runs out of digits.
        rank = np.argsort(np.argsort(rank, kind="stable")).astype(np.float64)
    return rank


@njit(cache=True)
def _backward(routes: tuple[Ints, Ints], forward: Flags, which: Ints) -> Small:
    """Return at how many places each of some routes goes backward."""
    start, turn = routes
    back = np.zeros(len(which), dtype=np.int32)
    for place in range(len(which)):
        for index in range(start[which[place]], start[which[place] + 1]):
            back[place] += not forward[turn[index]]
    return back


@njit(cache=True)
def _visits(
    routes: tuple[Ints, Ints],
    turns: tuple[Ints, Ints],
    around: tuple[Ints, Ints, Ints],
    slot: Ints,
    which: Ints,
) -> tuple[Ints, Small, Small, Small]:
    """Return, by link, the routes over it and the slots of the turns into and out of it.

    Slots count from the link's first turn; -1 means that the route begins or ends with the link.
    """
    start, turn = routes
    held, wanted = turns
    first = np.zeros(len(around[0]), dtype=np.int64)
    for route in which:
        first[held[turn[start[route]]] + 1] += 1
        for index in range(start[route], start[route + 1]):
            first[wanted[turn[index]] + 1] += 1
    first = np.cumsum(first)
    cursor = first[:-1].copy()
    who = np.empty(first[-1], dtype=np.int32)
    into, out = np.empty_like(who), np.empty_like(who)
    for place in range(len(which)):
        begin, end = start[which[place]], start[which[place] + 1]
        for index in range(begin - 1, end):
            link = held[turn[begin]] if index < begin else wanted[turn[index]]
            entry = cursor[link]
            cursor[link] += 1
            who[entry] = place
            into[entry] = slot[turn[index]] if index >= begin else -1
            out[entry] = turn[index + 1] - around[0][link] if index + 1 < end else -1
    return first, who, into, out


@njit(cache=True)
def _sweep(
    order: Ints,
    visits: tuple[Ints, Small, Small, Small],
    turns: tuple[Ints, Ints, Ints, Ints, Ints],
    rank: Floats,
    back: Small,
    weight: Floats,
    powers: Floats,
) -> None:
    """Put each link, in the given order, where the routes over it gain most."""
    held, wanted, out_first, into_first, into = turns
    for link in order:
        if visits[0][link] == visits[0][link + 1]:
            continue
        before = rank[held[into[into_first[link] : into_first[link + 1]]]]
        after = rank[wanted[out_first[link] : out_first[link + 1]]]
        here = rank[link]
        tally = _tally(link, here, visits, before, after, back, weight, powers)
        there = _best_place(here, before, after, tally, powers[1])
        if there != here:
            rank[link] = there
            _, who, inward, outward = visits
            for entry in range(visits[0][link], visits[0][link + 1]):
                mine, slot = who[entry], inward[entry]
                if slot >= 0:
                    back[mine] += int(before[slot] >= there) - int(before[slot] >= here)
                slot = outward[entry]
                if slot >= 0:
                    back[mine] += int(after[slot] <= there) - int(after[slot] <= here)


@njit(cache=True)
def _tally(
    link: int,
    here: float,
    visits: tuple[Ints, Small, Small, Small],
    before: Floats,
    after: Floats,
    back: Small,
    weight: Floats,
    powers: Floats,
) -> Floats:
    """Return the weight of the routes by the turns into and out of the link, the last for none.

    Places where a route goes backward count unless they are at this link.
    """
    first, who, inward, outward = visits
    tally = np.zeros((len(before) + 1, len(after) + 1))
    for entry in range(first[link], first[link + 1]):
        mine, near, far = who[entry], inward[entry], outward[entry]
        others = back[mine]
        if near >= 0 and before[near] >= here:
            others -= 1
        if far >= 0 and after[far] <= here:
            others -= 1
        # Slot -1, no turn, is the last row or column.
        tally[near, far] += weight[mine] * powers[others]
    return tally


@njit(cache=True)
def _best_place(
    here: float, before: Floats, after: Floats, tally: Floats, backward_weight: float
) -> float:
    """Return the place in which the routes weigh most, the present one unless another is better."""
    entering = np.full(len(before) + 1, backward_weight)
    entering[-1] = 1.0
    leaving = np.ones(len(after) + 1)
    steps = np.concatenate((before, after))
    order = np.argsort(steps)
    value = (entering.reshape(-1, 1) * tally).sum()
    best, gap, present = value, 0, value
    for passed in range(1, len(order) + 1):
        step = order[passed - 1]
        if step < len(before):
            value += (1.0 - backward_weight) * (tally[step] * leaving).sum()
            entering[step] = 1.0
        else:
            step -= len(before)
            value -= (1.0 - backward_weight) * (tally[:, step] * entering).sum()
            leaving[step] = backward_weight
        if steps[order[passed - 1]] < here:
            present = value
        if value > best:
            best, gap = value, passed
    if best <= present * (1.0 + 1e-9):
        return here
    if gap == 0:
        return float(steps[order[0]] - 1.0)
    if gap == len(order):
        return float(steps[order[-1]] + 1.0)
    low, high = steps[order[gap - 1]], steps[order[gap]]
    middle = 0.5 * (low + high)
    return float(middle) if low < middle < high else here
