"""Channel dependencies: which link a route holds while it waits for which, and how to order them.

A route that goes over link a and then link b holds a while it waits for b. Routes that share a
virtual layer cannot deadlock if these dependencies have no cycle, that is, if the links can be
ordered so that every route goes forward. `fill_layer` keeps such an order while routes are added:
the dynamic topological order of Pearce and Kelly ("A dynamic topological sort algorithm for
directed acyclic graphs", JEA 2006), which only looks at the links between the two ends of a new
dependency that points backwards.
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
from alltoall.settings import Late

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
        return core.RouteTurns(self.links, self.held, self.wanted, self.start, self.turn)

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
    """Return a flag for each route that goes forward where link l has the place `rank[l]`."""
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


def link_orders(dependencies: Dependencies, layer: Ints, late: Late = never) -> Ints:
    """Return, for each layer, an order of the links in which all of its routes go forward.

    Raise TimeoutError when it is `late`.
    """
    levels = (np.flatnonzero(layer == level) for level in range(int(layer.max()) + 1))
    return np.stack([np.argsort(fill_layer(dependencies, mine, late)[1]) for mine in levels])


def turn_weights(dependencies: Dependencies, weight: Floats) -> Floats:
    """Return the weight of the routes that have each dependency."""
    spread = np.repeat(weight, dependencies.length)
    return np.bincount(dependencies.turn, spread, dependencies.count).astype(np.float64)
