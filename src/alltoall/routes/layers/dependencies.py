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
from numba import njit
from numpy.typing import NDArray

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
    def out_first(self) -> Ints:
        """The first dependency of each held link, and the end of the last one's."""
        return np.searchsorted(self.held, np.arange(self.links + 1)).astype(np.int64)

    @cached_property
    def into(self) -> Ints:
        """All dependencies, ordered by the wanted link."""
        return np.argsort(self.wanted, kind="stable").astype(np.int64)

    @cached_property
    def into_first(self) -> Ints:
        """The position in `into` of each wanted link's first dependency, and the end."""
        ordered = self.wanted[self.into]
        return np.searchsorted(ordered, np.arange(self.links + 1)).astype(np.int64)

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
    flags: Flags = _all_of(dependencies.start, dependencies.turn, forward)
    return flags


@njit(cache=True)
def _all_of(start: Ints, turn: Ints, forward: Flags) -> Flags:
    flags = np.ones(len(start) - 1, dtype=np.bool_)
    for route in range(len(flags)):
        for index in range(start[route], start[route + 1]):
            flags[route] &= forward[turn[index]]
    return flags


def circular_route() -> InputError:
    """Return the error for routes of which no layer can hold some."""
    return InputError(
        "a route waits for itself in a circle, so no layer can hold it; expected simple paths "
        "(check_routes names the routes that are not)"
    )


OFFERED_PER_CALL = 2_000
"""Routes offered to a layer in one compiled call, so that a time limit is heard in between."""


def fill_layer(dependencies: Dependencies, order: Ints, late: Late = never) -> tuple[Flags, Ints]:
    """Offer routes to an empty layer, in the given order; it takes what closes no cycle.

    Return a flag for every route that it took, and the place of each link in an order of the links
    in which all of these go forward. Raise TimeoutError when it is `late`.
    """
    taken = np.zeros(dependencies.routes, dtype=np.bool_)
    rank = np.arange(dependencies.links, dtype=np.int64)
    present, closed = np.zeros((2, dependencies.count), dtype=np.bool_)
    for begin in range(0, len(order), OFFERED_PER_CALL):
        if late():
            raise TimeoutError
        _fill(
            order[begin : begin + OFFERED_PER_CALL],
            (dependencies.start, dependencies.turn),
            (dependencies.held, dependencies.wanted),
            (dependencies.out_first, dependencies.into_first, dependencies.into),
            (present, closed),
            taken,
            rank,
        )
    return taken, rank


def link_orders(dependencies: Dependencies, layer: Ints, late: Late = never) -> Ints:
    """Return, for each layer, an order of the links in which all of its routes go forward.

    Raise TimeoutError when it is `late`.
    """
    levels = (np.flatnonzero(layer == level) for level in range(int(layer.max()) + 1))
    return np.stack([np.argsort(fill_layer(dependencies, mine, late)[1]) for mine in levels])


@njit(cache=True)
def _fill(
    order: Ints,
    routes: tuple[Ints, Ints],
    ends: tuple[Ints, Ints],
    around: tuple[Ints, Ints, Ints],
    turns: tuple[Flags, Flags],
    taken: Flags,
    rank: Ints,
) -> None:
    """Offer some routes; `turns` are present, or would close a cycle with those that are."""
    start, turn = routes
    present, closed = turns
    seen = np.zeros(len(rank), dtype=np.int64)
    for route in order:
        mine = turn[start[route] : start[route + 1]]
        if closed[mine].any():
            continue
        before = present[mine]
        taken[route] = True
        for each in mine:
            if not present[each] and not insert_turn(each, ends, around, present, rank, seen):
                taken[route] = False
                present[mine] = before
                closed[each] = not insert_turn(each, ends, around, present, rank, seen)
                break
            present[each] = True


@njit(cache=True)
def insert_turn(
    turn: int,
    ends: tuple[Ints, Ints],
    around: tuple[Ints, Ints, Ints],
    present: Flags,
    rank: Ints,
    seen: Ints,
) -> bool:
    """Reorder the links so that one more dependency goes forward; return False if none does so.

    `seen` holds 0 everywhere, before and after.
    """
    held, wanted = ends
    lowest, highest = rank[wanted[turn]], rank[held[turn]]
    if lowest > highest:
        return True
    after = _reach_forward(wanted[turn], highest, wanted, around[0], present, rank, seen)
    acyclic = seen[held[turn]] == 0
    seen[after] = 0
    if acyclic:
        before = _reach_back(held[turn], lowest, held, around[1:], present, rank, seen)
        seen[before] = 0
        _reorder(before, after, rank)
    return bool(acyclic)


@njit(cache=True)
def _reach_forward(
    begin: int, highest: int, wanted: Ints, first: Ints, present: Flags, rank: Ints, seen: Ints
) -> Ints:
    """Return the links that `begin` leads to and that are placed at most at `highest`."""
    stack = [begin]
    found = [begin]
    seen[begin] = 1
    while len(stack) > 0:
        link = stack.pop()
        for turn in range(first[link], first[link + 1]):
            target = wanted[turn]
            if present[turn] and seen[target] == 0 and rank[target] <= highest:
                seen[target] = 1
                stack.append(target)
                found.append(target)
    return np.array(found)


@njit(cache=True)
def _reach_back(
    begin: int,
    lowest: int,
    held: Ints,
    into: tuple[Ints, Ints],
    present: Flags,
    rank: Ints,
    seen: Ints,
) -> Ints:
    """Return the links that lead to `begin` and that are placed at least at `lowest`."""
    first, turns = into
    stack = [begin]
    found = [begin]
    seen[begin] = 1
    while len(stack) > 0:
        link = stack.pop()
        for index in range(first[link], first[link + 1]):
            target = held[turns[index]]
            if present[turns[index]] and seen[target] == 0 and rank[target] >= lowest:
                seen[target] = 1
                stack.append(target)
                found.append(target)
    return np.array(found)


@njit(cache=True)
def _reorder(before: Ints, after: Ints, rank: Ints) -> None:
    """Give the places of both sets to `before`, then `after`, each in the order it had."""
    links = np.concatenate((before[np.argsort(rank[before])], after[np.argsort(rank[after])]))
    rank[links] = np.sort(rank[links])


def turn_weights(dependencies: Dependencies, weight: Floats) -> Floats:
    """Return the weight of the routes that have each dependency."""
    spread = np.repeat(weight, dependencies.length)
    return np.bincount(dependencies.turn, spread, dependencies.count).astype(np.float64)
