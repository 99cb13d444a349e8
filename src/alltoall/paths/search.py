"""Compiled searches for many paths of one pair: link-disjoint ones, and simple ones by length.

Both write paths into flat buffers and return how many entries they used, or a negative number if
the buffer was too small: the caller then tries again with a larger one.
"""

import numpy as np
from numba import njit

from alltoall.ir.arrays import Floats, Ints
from alltoall.paths.pool import longer
from alltoall.paths.shortest import shortest_tree

BUFFER_FULL = -1
"""Returned when the buffers are too small."""


@njit(cache=True)
def disjoint_paths(
    nodes: int,
    out: tuple[Ints, Ints],
    into: tuple[Ints, Ints],
    ends: tuple[Ints, Ints],
    start: int,
    goals: Ints,
    lengths: Ints,
    links: Ints,
    goal_of: Ints,
) -> tuple[int, int]:
    """Find for each goal a largest set of link-disjoint paths with the fewest links in total.

    Successive shortest augmenting paths on unit capacities: a link in use may be given back, at
    the gain of its length. Returns the numbers of paths and of entries, BUFFER_FULL for the first.
    """
    tail, head = ends
    used = np.zeros(len(tail), dtype=np.bool_)
    paths, entries = 0, 0
    for goal in goals:
        used[:] = False
        while _augment(nodes, out, into, ends, used, start, goal):
            pass
        while True:
            if paths == len(lengths) or entries + nodes > len(links):
                return BUFFER_FULL, 0
            length = _take_path(out, head, used, start, goal, links[entries:])
            if length == 0:
                break
            lengths[paths], goal_of[paths] = length, goal
            paths, entries = paths + 1, entries + length
    return paths, entries


@njit(cache=True)
def _augment(
    nodes: int,
    out: tuple[Ints, Ints],
    into: tuple[Ints, Ints],
    ends: tuple[Ints, Ints],
    used: Ints,
    start: int,
    goal: int,
) -> bool:
    """Flip the links of a shortest augmenting path; return whether there was one."""
    tail, head = ends
    distance = np.full(nodes, len(tail) + 1)
    reached_by = np.full(nodes, -1)
    queue = np.empty(nodes + 1, dtype=np.int64)
    waiting = np.zeros(nodes, dtype=np.bool_)
    queue[0], front, size = start, 0, 1
    distance[start] = 0
    while size > 0:
        node = queue[front]
        front, size = (front + 1) % len(queue), size - 1
        waiting[node] = False
        for side in range(2):
            first, arcs = out if side == 0 else into
            for index in range(first[node], first[node + 1]):
                arc = arcs[index]
                if used[arc] == (side == 0):
                    continue
                other = head[arc] if side == 0 else tail[arc]
                reach = distance[node] + (1 if side == 0 else -1)
                if reach < distance[other]:
                    distance[other], reached_by[other] = reach, arc
                    if not waiting[other]:
                        queue[(front + size) % len(queue)] = other
                        size, waiting[other] = size + 1, True
    if reached_by[goal] < 0:
        return False
    node = goal
    while node != start:
        arc = reached_by[node]
        used[arc] = not used[arc]
        node = tail[arc] if used[arc] else head[arc]
    return True


@njit(cache=True)
def _take_path(
    out: tuple[Ints, Ints], head: Ints, used: Ints, start: int, goal: int, path: Ints
) -> int:
    """Follow used links from start to goal, free them and write them down; return how many."""
    node, length = start, 0
    while node != goal:
        found = False
        for index in range(out[0][node], out[0][node + 1]):
            arc = out[1][index]
            if used[arc]:
                used[arc], path[length], found = False, arc, True
                length += 1
                node = head[arc]
                break
        if not found:
            return 0
    return length


@njit(cache=True)
def simple_paths(
    nodes: int,
    out: tuple[Ints, Ints],
    head: Ints,
    start: int,
    goals: Ints,
    to_goal: Floats,
    slack: int,
    most_paths: int,
    lengths: Ints,
    links: Ints,
    goal_of: Ints,
) -> tuple[int, int]:
    """Find for each goal its `most_paths` first simple paths, shortest first.

    They are at most `slack` longer than a shortest one. Depth-first search for each exact length,
    cut where the goal is too far for the hops left; `to_goal[g, v]` is the distance from v to goal
    g.
    """
    paths, entries = 0, 0
    on_path = np.zeros(nodes, dtype=np.bool_)
    cursor = np.empty(nodes + 1, dtype=np.int64)
    walk = np.empty(nodes + 1, dtype=np.int64)
    for row in range(len(goals)):
        shortest, found = int(to_goal[row, start]), 0
        for length in range(shortest, min(shortest + slack, nodes - 1) + 1):
            depth, node = 0, start
            on_path[:] = False
            on_path[start], cursor[0] = True, out[0][start]
            while depth >= 0 and found < most_paths:
                if node == goals[row] and depth == length:
                    if paths == len(lengths) or entries + length > len(links):
                        return BUFFER_FULL, 0
                    links[entries : entries + length] = walk[:length]
                    lengths[paths], goal_of[paths] = length, goals[row]
                    paths, entries, found = paths + 1, entries + length, found + 1
                    cursor[depth] = out[0][node + 1]
                if cursor[depth] == out[0][node + 1] or depth == length:
                    on_path[node] = False
                    depth -= 1
                    if depth >= 0:
                        node = start if depth == 0 else head[walk[depth - 1]]
                    continue
                arc = out[1][cursor[depth]]
                cursor[depth] += 1
                target = head[arc]
                if on_path[target] or depth + 1 + to_goal[row, target] > length:
                    continue
                if target == goals[row] and depth + 1 < length:
                    continue
                walk[depth] = arc
                depth += 1
                node = target
                on_path[node], cursor[depth] = True, out[0][node]
            if found >= most_paths:
                break
    return paths, entries


@njit(cache=True)
def tree_paths(
    nodes: int,
    out: tuple[Ints, Ints],
    ends: tuple[Ints, Ints],
    lengths: Floats,
    begin: Ints,
    finish: Ints,
) -> tuple[Ints, Ints]:
    """Return a shortest path per pair of nodes, as starts and links; pairs are ordered by begin."""
    tail, head = ends
    distance, order = np.empty(nodes), np.empty(nodes, dtype=np.int64)
    parent = np.empty(nodes, dtype=np.int64)
    start = np.zeros(len(begin) + 1, dtype=np.int64)
    links = np.empty(16 * len(begin) + nodes, dtype=np.int64)
    used, root = 0, -1
    for pair in range(len(begin)):
        if begin[pair] != root:
            root = begin[pair]
            shortest_tree(nodes, out[0], out[1], head, lengths, root, distance, parent, order)
        if used + nodes > len(links):
            links = longer(links, 2 * len(links) + nodes)
        hops, node = 0, finish[pair]
        while node != root:
            hops += 1
            node = tail[parent[node]]
        node = finish[pair]
        for back in range(hops):
            links[used + hops - 1 - back] = parent[node]
            node = tail[parent[node]]
        used += hops
        start[pair + 1] = used
    return start, links[:used]
