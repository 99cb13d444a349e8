"""Orders of the links, one for each layer, in which as many routes as possible go forward.

A layer is acyclic if and only if its routes go forward in some order of the links, so instead of
adding routes one by one, an order is improved as a whole: a link is taken out and put back where
the routes over it gain most. Only its place among the few links before and after it on these routes
matters, and one look at the routes prices all its places, so a sweep over all links costs about
as much as reading all routes once. A route that goes backward at k places counts `w ** k`, with w
from `BACKWARD_WEIGHTS`.

Layers are filled in turn; then each order is improved for the routes that no other layer takes, and
the weight of routes without a layer grows with every round. The remaining routes are offered to
every layer once more, and then to new ones. `benchmarks/layers.py` measures it.
"""

from dataclasses import dataclass

import numpy as np

from alltoall import core
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

BACKWARD_WEIGHTS = (0.3, 0.1)
"""Factors on a route's weight per backward place, for the sweeps over a new order.

Later improvements use the last factor.
"""

IMPROVING_ROUNDS = 12
"""How often each order is improved again."""

MISSED_RISE = 1.15
"""Growth per round of the weight of a route without a layer."""

PLACED_PER_CALL = 100
"""Links that are put in their place in one compiled call: a time limit is heard in between."""


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

    With a time limit, orders are improved for half of the remaining time; raise TimeoutError if the
    other half is too short for the remaining routes.
    """
    settings = settings or SolveSettings()
    enough = settings.sharing().out_of_time
    orders = layer_orders(dependencies, dependencies.routes, seed, enough)
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
    # Number the layers anew: some are empty.
    return np.unique(layer, return_inverse=True)[1].astype(np.int64)


def layer_orders(
    dependencies: Dependencies, most_orders: int, seed: int, late: Late = never
) -> Orders:
    """Return improved orders until every route goes forward in some, `most_orders` at most.

    Return fewer, less improved orders if `late` first.
    """
    rng = np.random.default_rng(seed)
    orders = Orders([], [])
    missed = orders.missed(dependencies)
    while missed.any() and len(orders.rank) < most_orders:
        if orders.rank and late():
            break
        try:
            rank = _first_order(dependencies, missed, late)
        except TimeoutError:
            break
        which = np.flatnonzero(missed)
        weight = _hardness(dependencies)[which]
        rank = _sift(dependencies, which, weight, rank, BACKWARD_WEIGHTS, rng, late)
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
            rank = _sift(dependencies, which, weight[which], rank, BACKWARD_WEIGHTS[-1:], rng, late)
            flags = forward_routes(dependencies, rank)
            orders.rank[level], orders.forward[level] = rank, flags
            takers = others + flags
        weight[takers == 0] *= MISSED_RISE


def _hardness(dependencies: Dependencies) -> Floats:
    """Return a weight per route that grows with its length, as a measure of difficulty."""
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


def _sift(
    dependencies: Dependencies,
    which: Ints,
    weight: Floats,
    rank: Floats,
    backward_weights: tuple[float, ...],
    rng: np.random.Generator,
    late: Late,
) -> Floats:
    """Return an order improved for weighted routes; stop early if `late`."""
    sifting = core.LinkSifting(dependencies.turns, which, weight, rank)
    longest = int(dependencies.length[which].max(initial=0))
    for share in backward_weights:
        order = rng.permutation(dependencies.links)
        # The share of a route's weight that so many backward places leave.
        powers = share ** np.arange(longest + 2.0)
        for begin in range(0, len(order), PLACED_PER_CALL):
            if late():
                break
            sifting.place(order[begin : begin + PLACED_PER_CALL], powers)
        sifting.renumber()
    return sifting.rank
