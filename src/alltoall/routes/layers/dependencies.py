"""Channel dependencies: the link that a route holds while it waits for another, and their order.

A route that goes over link a and then link b holds a while it waits for b. Routes that share a
virtual layer cannot deadlock if these dependencies have no cycle, that is, if the links can be
ordered so that every route goes forward. `fill_layer` keeps such an order while routes are added:
the dynamic topological order of Pearce and Kelly ("A dynamic topological sort algorithm for
directed acyclic graphs", JEA 2006), which only looks at the links between the two ends of a new
dependency that points backwards.

`layer_orders` finds orders of the links, one for each layer, in which as many routes as possible go
forward. Instead of adding routes one by one, it improves an order as a whole: a link is taken out
and put back where the routes over it gain most. Only its place among the few links before and after
it on these routes matters, and one look at the routes prices all its places, so a sweep over all
links costs about as much as reading all routes once. A route that goes backward at k places counts
`w ** k`, with w from `BACKWARD_WEIGHTS`.

Layers are filled in turn. The remaining routes are offered to every layer once more, then to new
ones. `benchmarks/layers.py` measures it.
"""

from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from alltoall import core
from alltoall.errors import InputError
from alltoall.ir.arrays import Floats, Ints
from alltoall.ir.routes import Routes
from alltoall.lp.settings import never
from alltoall.settings import Late, SolveSettings

Flags = NDArray[np.bool_]


@dataclass(frozen=True, eq=False)
class Dependencies:
    """The distinct dependencies of a set of routes; dependency t is of `held[t]` on `wanted[t]`.

    Route r has the dependencies `turn[start[r]:start[r + 1]]`, one less than it has links.
    Dependencies are sorted by the held link, then by the wanted one.
    """

    links: int
    held: Ints
    wanted: Ints
    start: Ints
    turn: Ints

    @property
    def routes(self) -> int:
        """The number of routes."""
        return len(self.start) - 1

    @property
    def count(self) -> int:
        """The number of distinct dependencies."""
        return len(self.held)

    @cached_property
    def turns(self) -> core.RouteTurns:
        """The dependencies as the compiled core takes them."""
        graph = core.Graph(self.links, self.held, self.wanted)
        return core.RouteTurns(graph, self.start, self.turn)

    @cached_property
    def length(self) -> Ints:
        """The number of dependencies of each route."""
        return np.diff(self.start)


def dependencies_of(routes: Routes) -> Dependencies:
    """Return the dependencies of all routes; a route of one link has none."""
    links = routes.problem.topology.links
    return dependencies_of_paths(links, routes.start, routes.link)


def dependencies_of_paths(links: int, start: Ints, link: Ints) -> Dependencies:
    """Return the dependencies of the paths `link[start[r]:start[r + 1]]`."""
    route = np.repeat(np.arange(len(start) - 1), np.diff(start))
    within = np.flatnonzero(route[1:] == route[:-1])
    keys, turn = np.unique(link[within] * links + link[within + 1], return_inverse=True)
    return Dependencies(
        links=links,
        held=keys // links,
        wanted=keys % links,
        start=start - np.arange(len(start)),
        turn=turn.astype(np.int64),
    )


def forward_routes(dependencies: Dependencies, rank: Floats | Ints) -> Flags:
    """Return whether each route goes forward in the order `rank` of the links."""
    forward = rank[dependencies.held] < rank[dependencies.wanted]
    backward = np.concatenate(([0], np.cumsum(~forward[dependencies.turn])))
    return np.asarray(backward[dependencies.start[1:]] == backward[dependencies.start[:-1]])


def circular_route() -> InputError:
    """Return the error for a route that no layer can hold."""
    return InputError(
        "a route waits for itself in a circle, so no layer can hold it; expected simple paths "
        "(check_routes names the routes that are not)"
    )


OFFERED_PER_CALL = 2_000
"""Routes offered to a layer in one call of the core, so that a time limit is heard in between."""


def fill_layer(dependencies: Dependencies, order: Ints, late: Late = never) -> tuple[Flags, Ints]:
    """Fill an empty layer with routes that close no cycle, in the given order.

    Return a flag per route that fits, and the place of each link in an order in which all of these
    go forward. Raise TimeoutError when `late`.
    """
    taken = np.zeros(dependencies.routes, dtype=np.bool_)
    layer = core.LayerFilling(dependencies.turns)
    for begin in range(0, len(order), OFFERED_PER_CALL):
        if late():
            raise TimeoutError
        offered = order[begin : begin + OFFERED_PER_CALL]
        taken[offered] = layer.offer(offered)
    return taken, layer.rank


def link_orders(dependencies: Dependencies, layer: Ints) -> Ints:
    """Return, for each layer, an order of the links in which all of its routes go forward."""
    levels = (np.flatnonzero(layer == level) for level in range(int(layer.max()) + 1))
    return np.stack([np.argsort(fill_layer(dependencies, mine)[1]) for mine in levels])


def turn_weights(dependencies: Dependencies, weight: Floats) -> Floats:
    """Return the weight of the routes that have each dependency."""
    spread = np.repeat(weight, dependencies.length)
    return np.bincount(dependencies.turn, spread, dependencies.count).astype(np.float64)


BACKWARD_WEIGHTS = (0.15, 0.1)
"""Factors on a route's weight per backward place, for the sweeps over a new order."""

PLACED_PER_CALL = 100
"""Links moved per compiled call; the time limit is checked between calls."""


def pack_by_orders(
    dependencies: Dependencies, seed: int, settings: SolveSettings | None = None
) -> Ints:
    """Return a layer per route, found by improving the orders of the links.

    With a time limit, orders are improved for half of the remaining time; raise TimeoutError if the
    other half is too short for the remaining routes.
    """
    settings = settings or SolveSettings()
    ranks = layer_orders(dependencies, dependencies.routes, seed, settings.sharing().out_of_time)
    layer = np.full(dependencies.routes, -1, dtype=np.int64)
    layer[dependencies.length == 0] = 0
    for level, rank in enumerate(ranks):
        layer[(layer < 0) & forward_routes(dependencies, rank)] = level
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
) -> list[Floats]:
    """Return places of the links in orders, until every route goes forward in some of them.

    Return at most `most_orders`; fewer, less improved ones if `late` first.
    """
    rng, missed = np.random.default_rng(seed), dependencies.length > 0
    ranks: list[Floats] = []
    held, wanted = dependencies.held, dependencies.wanted
    every = np.arange(dependencies.count + 1, dtype=np.int64)
    alone = Dependencies(dependencies.links, held, wanted, every, every[:-1])
    while missed.any() and len(ranks) < most_orders and not (ranks and late()):
        # At first the dependencies of most routes go forward, greedily.
        popular = turn_weights(dependencies, missed.astype(np.float64))
        try:
            _, first = fill_layer(alone, np.argsort(-popular, kind="stable"), late)
        except TimeoutError:
            break
        which = np.flatnonzero(missed)
        # The longer a route, the harder it is to place among those that are left.
        weight = dependencies.length[which].astype(np.float64) ** 2
        sifting = core.LinkSifting(dependencies.turns, which, weight, first.astype(np.float64))
        for share in BACKWARD_WEIGHTS:
            links = rng.permutation(dependencies.links)
            # The share of a route's weight that so many backward places leave.
            powers = share ** np.arange(dependencies.length[which].max() + 2.0)
            for begin in range(0, len(links), PLACED_PER_CALL):
                if late():
                    break
                sifting.place(links[begin : begin + PLACED_PER_CALL], powers)
            sifting.renumber()
        ranks.append(sifting.rank)
        forward = forward_routes(dependencies, ranks[-1])
        if not (forward & missed).any():
            break
        missed = missed & ~forward
    return ranks
