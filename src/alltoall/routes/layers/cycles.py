"""`df-sssp`: begin with all routes in one layer and move those that close cycles to the next.

A depth-first search looks for a cycle of channel dependencies in the layer. Of the cycle's
dependencies, the one that fewest routes of the layer have is broken: all of these routes move to
the next layer. The search goes on where its path was broken, until the layer is acyclic; then the
next layer is searched. Ties go to the dependency that comes first along the cycle.
"""

from typing import TypeAlias

import numpy as np
from numba import njit

from alltoall.ir.arrays import Ints
from alltoall.ir.routes import Routes
from alltoall.lp.settings import never
from alltoall.routes.layers.dependencies import Dependencies, circular_route, dependencies_of
from alltoall.settings import Late

NEW, ON_PATH, FINISHED = 0, 1, 2
"""What a search knows of a link."""

MOST_CYCLES = 1_000
"""Cycles broken in one compiled call, so that a time limit is heard in between."""

Search: TypeAlias = tuple[Ints, Ints, Ints, Ints, Ints, Ints, Ints]
"""Routes per turn; state, next turn and place on the path of each link; the path: links, turns;
the root of the search and the depth of the path."""


def break_cycles(routes: Routes, _: int, late: Late = never) -> Ints:
    """Return a layer per route, by moving routes off cycles from layer to layer.

    Raise TimeoutError when it is `late`.
    """
    dependencies = dependencies_of(routes)
    users, users_first = _users(dependencies)
    layer = np.zeros(routes.count, dtype=np.int64)
    level = 0
    turns = (dependencies.start, dependencies.turn)
    while (layer == level).any():
        search = _new_search(level, turns, layer, dependencies.out_first, dependencies.count)
        done = False
        while not done:
            if late():
                raise TimeoutError
            done = _clear_layer(
                level,
                turns,
                (dependencies.out_first, dependencies.wanted),
                (users_first, users),
                layer,
                search,
            )
        if not (layer == level).any():
            raise circular_route()
        level += 1
    return layer


def _users(dependencies: Dependencies) -> tuple[Ints, Ints]:
    """Return the routes ordered by the dependencies that they have, and where each begins."""
    order = np.argsort(dependencies.turn, kind="stable")
    route = np.repeat(np.arange(dependencies.routes), dependencies.length)
    first = np.searchsorted(dependencies.turn[order], np.arange(dependencies.count + 1))
    return route[order].astype(np.int64), first.astype(np.int64)


def _new_search(
    level: int, routes: tuple[Ints, Ints], layer: Ints, first: Ints, turns: int
) -> Search:
    """Return the state of a search that has not begun."""
    links = len(first) - 1
    count: Ints = _count_users(level, routes, layer, turns)
    state, place = np.zeros((2, links), dtype=np.int64)
    path, taken = np.zeros((2, links + 1), dtype=np.int64)
    where = np.array([0, -1], dtype=np.int64)
    return count, state, first[:-1].copy(), place, path, taken, where


@njit(cache=True)
def _clear_layer(
    level: int,
    routes: tuple[Ints, Ints],
    graph: tuple[Ints, Ints],
    users: tuple[Ints, Ints],
    layer: Ints,
    search: Search,
) -> bool:
    """Move routes to the next layer until this one has no cycle; return whether that is so.

    After `MOST_CYCLES` cycles it stops, to go on from the same state.
    """
    first, wanted = graph
    count, state, cursor, place, path, turns, where = search
    broken, depth = 0, where[1]
    for root in range(where[0], len(first) - 1):
        if state[root] == NEW or depth >= 0:
            if depth < 0:
                path[0], place[root], state[root], depth = root, 0, ON_PATH, 0
            while depth >= 0:
                if broken == MOST_CYCLES:
                    where[0], where[1] = root, depth
                    return False
                link = path[depth]
                turn = cursor[link]
                if turn == first[link + 1]:
                    state[link] = FINISHED
                    depth -= 1
                elif count[turn] == 0 or state[wanted[turn]] == FINISHED:
                    cursor[link] += 1
                elif state[wanted[turn]] == NEW:
                    turns[depth] = turn
                    depth += 1
                    path[depth] = wanted[turn]
                    place[wanted[turn]], state[wanted[turn]] = depth, ON_PATH
                else:
                    turns[depth] = turn
                    bottom = place[wanted[turn]]
                    _move_users(
                        level, _rarest(turns, count, bottom, depth), routes, users, layer, count
                    )
                    depth = _broken_at(turns, count, path, state, depth)
                    broken += 1
    return True


@njit(cache=True)
def _count_users(level: int, routes: tuple[Ints, Ints], layer: Ints, turns: int) -> Ints:
    start, turn = routes
    count = np.zeros(turns, dtype=np.int64)
    for route in range(len(layer)):
        if layer[route] == level:
            for index in range(start[route], start[route + 1]):
                count[turn[index]] += 1
    return count


@njit(cache=True)
def _rarest(turns: Ints, count: Ints, bottom: int, top: int) -> int:
    """Return the dependency of the cycle turns[bottom..top] that fewest routes have."""
    best = turns[bottom]
    for depth in range(bottom + 1, top + 1):
        if count[turns[depth]] < count[best]:
            best = turns[depth]
    return int(best)


@njit(cache=True)
def _move_users(
    level: int,
    broken: int,
    routes: tuple[Ints, Ints],
    users: tuple[Ints, Ints],
    layer: Ints,
    count: Ints,
) -> None:
    """Move the routes of this layer that have the broken dependency to the next one."""
    start, turn = routes
    for index in range(users[0][broken], users[0][broken + 1]):
        route = users[1][index]
        if layer[route] == level:
            layer[route] = level + 1
            for each in turn[start[route] : start[route + 1]]:
                count[each] -= 1


@njit(cache=True)
def _broken_at(turns: Ints, count: Ints, path: Ints, state: Ints, top: int) -> int:
    """Shorten the path to its part before the first dependency that is gone; return its depth."""
    depth = 0
    while count[turns[depth]] > 0:
        depth += 1
    for above in range(depth + 1, top + 1):
        state[path[above]] = NEW
    return depth
