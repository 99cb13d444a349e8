"""Numba versions of two kernels, for kernels of other rooms that call them from compiled code."""

from typing import TypeAlias

import numpy as np
from numba import njit

import alltoall.paths.kernels  # noqa: F401 (time limits pause while these are compiled)
from alltoall.ir.arrays import Floats, Ints
from alltoall.paths.pool import longer

NEGLIGIBLE_REST = 1e-10
"""A share of the demand below which what is left, or what an inflow carries, is rounding."""

Csr: TypeAlias = tuple[Ints, Ints, Floats]
"""(start, item, value) in compressed rows: links and amounts, or end nodes and demands."""

Workspace: TypeAlias = tuple[Ints, Ints, Floats, Ints, Ints, Ints, Ints]
"""Per node: first inflow, age, bound, best inflow, place on the walk, the walk; next inflow."""

UNREACHED = -1
"""For a node: no inflow, or not on the walk."""


@njit(cache=True)
def shortest_tree(
    nodes: int,
    first: Ints,
    link: Ints,
    head: Ints,
    lengths: Floats,
    start: int,
    distance: Floats,
    parent: Ints,
    order: Ints,
) -> int:
    """Fill distances, the link into each node, and the order of settling; return how many settle.

    `parent` is meaningful for settled nodes other than the start only. Links may have length 0.
    """
    capacity = first[-1] + 1
    keys = np.empty(capacity)
    items = np.empty(capacity, dtype=np.int64)
    settled = np.zeros(nodes, dtype=np.bool_)
    distance[:] = np.inf
    distance[start] = 0.0
    keys[0], items[0] = 0.0, start
    size, count = 1, 0
    while size > 0:
        node = items[0]
        size -= 1
        _sift_down(keys, items, size, keys[size], items[size])
        if settled[node]:
            continue
        settled[node] = True
        order[count] = node
        count += 1
        for index in range(first[node], first[node + 1]):
            arc = link[index]
            reach = distance[node] + lengths[arc]
            if reach < distance[head[arc]]:
                distance[head[arc]] = reach
                parent[head[arc]] = arc
                _sift_up(keys, items, size, reach, head[arc])
                size += 1
    return count


@njit(cache=True)
def _sift_up(keys: Floats, items: Ints, hole: int, key: float, item: int) -> None:
    while hole > 0 and keys[(hole - 1) // 2] > key:
        keys[hole], items[hole] = keys[(hole - 1) // 2], items[(hole - 1) // 2]
        hole = (hole - 1) // 2
    keys[hole], items[hole] = key, item


@njit(cache=True)
def _sift_down(keys: Floats, items: Ints, size: int, key: float, item: int) -> None:
    hole = 0
    while True:
        child = 2 * hole + 1
        if child >= size:
            break
        if child + 1 < size and keys[child + 1] < keys[child]:
            child += 1
        if keys[child] >= key:
            break
        keys[hole], items[hole] = keys[child], items[child]
        hole = child
    keys[hole], items[hole] = key, item


@njit(cache=True, nogil=True)
def split_flows(
    nodes: int, ends: tuple[Ints, Ints], begin: Ints, flow: Csr, wanted: Csr
) -> tuple[int, Ints, Floats, Ints, Ints]:
    """Return a pair that cannot be served or -1, and pair, width, start and links of all paths."""
    room = len(flow[1]) + len(wanted[1])  # a path empties a link or serves a destination
    pair, width = np.empty(room, dtype=np.int64), np.empty(room)
    start = np.zeros(room + 1, dtype=np.int64)
    link = np.empty(8 * len(wanted[1]) + nodes, dtype=np.int64)
    left, work = flow[2].copy(), _workspace(nodes, len(flow[1]))
    paths, age = 0, 0
    for group in range(len(begin)):
        first, last = flow[0][group], flow[0][group + 1]
        _enter(work, ends[1], flow[1], first, last)
        for each in range(wanted[0][group], wanted[0][group + 1]):
            widest, rest, least = paths, wanted[2][each], NEGLIGIBLE_REST * wanted[2][each]
            while rest > least or paths == widest:
                age += 1
                node = wanted[1][each]
                take = _widen(node, begin[group], age, ends[0], flow[1], left, work)
                if take <= least:
                    if paths > widest:
                        break
                    take = rest
                    if not _fewest(node, begin[group], ends, flow[1], work):
                        return each, pair[:0], width[:0], start[:1], link[:0]
                take = min(take, rest)
                used = start[paths]
                if used + nodes > len(link):
                    link = longer(link, 2 * len(link) + nodes)
                hops = _take(node, begin[group], take, ends[0], flow[1], left, work, link[used:])
                pair[paths], width[paths], start[paths + 1] = each, take, used + hops
                rest -= take
                paths += 1
            width[widest] += rest
        _leave(work, ends[1], flow[1], first, last)
    return -1, pair[:paths], width[:paths], start[: paths + 1], link[: start[paths]]


@njit(cache=True, nogil=True)
def _workspace(nodes: int, entries: int) -> Workspace:
    first = np.full(nodes, UNREACHED, dtype=np.int64)
    age, best = np.zeros(nodes, dtype=np.int64), np.empty(nodes, dtype=np.int64)
    place = np.full(nodes, UNREACHED, dtype=np.int64)
    walk = np.empty(nodes + 1, dtype=np.int64)
    after = np.empty(entries, dtype=np.int64)
    return first, age, np.full(nodes, np.inf), best, place, walk, after


@njit(cache=True, nogil=True)
def _enter(work: Workspace, head: Ints, link: Ints, begin: int, end: int) -> None:
    """List the inflows of each node of a group; its widths are unknown."""
    first, after, bound = work[0], work[6], work[2]
    for entry in range(end - 1, begin - 1, -1):
        node = head[link[entry]]
        after[entry], first[node], bound[node] = first[node], entry, np.inf


@njit(cache=True, nogil=True)
def _leave(work: Workspace, head: Ints, link: Ints, begin: int, end: int) -> None:
    """Forget the inflows of a group."""
    for entry in range(begin, end):
        work[0][head[link[entry]]] = UNREACHED


@njit(cache=True, nogil=True)
def _widen(
    goal: int, begin: int, now: int, tail: Ints, link: Ints, left: Floats, work: Workspace
) -> float:
    """Make the width of the goal true, and with it the best inflows back to `begin`; return it."""
    first, age, bound, best, place, walk, after = work
    depth, walk[0], place[goal] = 0, goal, 0
    while depth >= 0:
        node = walk[depth]
        entry, width, chosen = first[node], 0.0, UNREACHED
        while entry >= 0:
            source = tail[link[entry]]
            reach = left[entry] if source == begin else min(bound[source], left[entry])
            if reach > width:
                width, chosen = reach, entry
            entry = after[entry]
        source = tail[link[chosen]] if chosen >= 0 else begin
        best[node] = chosen
        if source == begin or age[source] == now:
            bound[node], age[node], place[node] = width, now, UNREACHED
            depth -= 1
        elif place[source] >= 0:
            depth = _cancel(place[source], depth, left, work)
        else:
            depth += 1
            walk[depth], place[source] = source, depth
    return float(bound[goal])


@njit(cache=True, nogil=True)
def _cancel(bottom: int, top: int, left: Floats, work: Workspace) -> int:
    """Cancel the cycle of best inflows of walk[bottom..top]; return where the walk resumes."""
    best, place, walk = work[3], work[4], work[5]
    smallest = np.inf
    for depth in range(bottom, top + 1):
        smallest = min(smallest, left[best[walk[depth]]])
    for depth in range(bottom, top + 1):
        left[best[walk[depth]]] -= smallest
    for depth in range(bottom + 1, top + 1):
        place[walk[depth]] = UNREACHED
    return bottom


@njit(cache=True, nogil=True)
def _fewest(goal: int, begin: int, ends: tuple[Ints, Ints], link: Ints, work: Workspace) -> bool:
    """Set best inflows from the goal back to `begin` over fewest links; return if there are any.

    Links count whether or not anything is left on them: only rounding is.
    """
    first, best, after = work[0], work[3], work[6]
    onwards = np.full(len(first), UNREACHED, dtype=np.int64)  # the inflow by which to leave a node
    queue = [goal]
    for node in queue:
        entry = first[node]
        while entry >= 0 and onwards[begin] < 0:
            source = ends[0][link[entry]]
            if onwards[source] < 0 and source != goal:
                onwards[source] = entry
                queue.append(source)
            entry = after[entry]
    if onwards[begin] < 0:
        return False
    node = begin
    while node != goal:
        entry = onwards[node]
        node = ends[1][link[entry]]
        best[node] = entry
    return True


@njit(cache=True, nogil=True)
def _take(
    goal: int,
    begin: int,
    amount: float,
    tail: Ints,
    link: Ints,
    left: Floats,
    work: Workspace,
    path: Ints,
) -> int:
    """Take an amount off the best inflows back to `begin`; write their links; return how many."""
    best = work[3]
    hops, node = 0, goal
    while node != begin:
        entry = best[node]
        left[entry] = max(0.0, left[entry] - amount)
        path[hops] = link[entry]
        hops += 1
        node = tail[link[entry]]
    for index in range(hops // 2):
        path[index], path[hops - 1 - index] = path[hops - 1 - index], path[index]
    return hops
