"""Negotiated congestion: whole chunks on timed paths, rerouted until no link is over its budget.

The idea is that of PathFinder, the router of field-programmable gate arrays: everyone takes its
cheapest path, links that are over their budget become dearer, now and for good, and those who pass
them look for another way. Starting from the optimal fractional flow, few chunks ever have to move.
"""

from dataclasses import dataclass

import numpy as np
from numba import njit

from a2aflow.ir.arrays import Floats, Ints
from a2aflow.ir.topology import Topology
from a2aflow.solve.paths import Adjacency, shortest_tree

NOTHING = -1
"""Marks the end of a path in the kernels' path table."""

STALE = 40
"""Rounds without progress after which a negotiation is given up."""


@dataclass(frozen=True, eq=False)
class Chunks:
    """Chunks to route on a graph: from node `start` to node `end`, each of a `size`."""

    start: Ints
    end: Ints
    size: Floats


def trace_paths(graph: Topology, chunks: Chunks, volumes: Floats, row: Ints, hops: int) -> Ints:
    """Return a path per chunk [chunks, hops] that follows the volumes of its row, where it can.

    Each chunk walks back from its end along the largest remaining volume and takes its size out of
    it. A chunk that finds no volume left gets no path.
    """
    first, into = Adjacency(graph).incoming
    paths = np.full((len(chunks.start), hops), NOTHING, dtype=np.int64)
    remaining = np.array(volumes)
    _trace(first, into, graph.tail, chunks.start, chunks.end, chunks.size, remaining, row, paths)
    return paths


@njit(cache=True)
def _trace(
    first: Ints,
    into: Ints,
    tail: Ints,
    start: Ints,
    end: Ints,
    size: Floats,
    remaining: Floats,
    row: Ints,
    paths: Ints,
) -> None:
    walk = np.empty(paths.shape[1], dtype=np.int64)
    for chunk in range(len(start)):
        volume = remaining[row[chunk]]
        node, length = end[chunk], 0
        while node != start[chunk] and length < len(walk):
            best = NOTHING
            for index in range(first[node], first[node + 1]):
                if best == NOTHING or volume[into[index]] > volume[best]:
                    best = into[index]
            if best == NOTHING or volume[best] < 0.25 * size[chunk]:
                break
            walk[length] = best
            length += 1
            node = tail[best]
        if node == start[chunk]:
            for hop in range(length):
                paths[chunk, hop] = walk[length - 1 - hop]
                volume[walk[hop]] -= size[chunk]


def negotiate(
    graph: Topology, chunks: Chunks, paths: Ints, budget: Floats, rounds: int, seed: int
) -> tuple[Ints, bool]:
    """Return paths within the budgets of the links and True, or the last try and False.

    A link with an infinite budget is free; any other costs 1 a chunk, and more when contended.
    """
    order = np.random.default_rng(seed).permutation(len(chunks.start)).astype(np.int64)
    table = np.array(paths)
    done = _negotiate(
        graph.nodes,
        Adjacency(graph).outgoing,
        (graph.tail, graph.head),
        chunks.start,
        chunks.end,
        chunks.size,
        order,
        budget,
        rounds,
        table,
    )
    return table, bool(done)


@njit(cache=True)
def _negotiate(
    nodes: int,
    out: tuple[Ints, Ints],
    ends: tuple[Ints, Ints],
    start: Ints,
    end: Ints,
    size: Floats,
    order: Ints,
    budget: Floats,
    rounds: int,
    paths: Ints,
) -> bool:
    tail, head = ends
    load = np.zeros(len(budget))
    for chunk in range(len(start)):
        _add(load, paths[chunk], size[chunk])
    history = np.zeros(len(budget))
    cost = np.empty(len(budget))
    distance = np.empty(nodes)
    parent = np.empty(nodes, dtype=np.int64)
    settled = np.empty(nodes, dtype=np.int64)
    pressure = 0.5
    least, stale = np.inf, 0
    for _ in range(rounds):
        for chunk in order:
            if not _needs_rerouting(paths[chunk], load, budget):
                continue
            _add(load, paths[chunk], -size[chunk])
            for link in range(len(budget)):
                cost[link] = 1e-3
                if budget[link] < np.inf:
                    over = max(0.0, load[link] + size[chunk] - budget[link]) / size[chunk]
                    cost[link] = (1.0 + history[link]) * (1.0 + pressure * over)
            shortest_tree(
                nodes, out[0], out[1], head, cost, start[chunk], distance, parent, settled
            )
            _write_path(paths[chunk], parent, tail, start[chunk], end[chunk])
            _add(load, paths[chunk], size[chunk])
        settled_all = True
        for chunk in range(len(start)):
            settled_all &= paths[chunk, 0] != NOTHING
        excess = 0.0
        for link in range(len(budget)):
            over = load[link] - budget[link]
            if over > 1e-9:
                history[link] += 0.3 * min(3.0, over / size[0])
                excess += over
                settled_all = False
        if settled_all:
            return True
        stale = 0 if excess < least else stale + 1
        least = min(least, excess)
        if stale == STALE:
            return False
        pressure = min(pressure * 1.3, 1e3)
    return False


@njit(cache=True)
def _needs_rerouting(path: Ints, load: Floats, budget: Floats) -> bool:
    if path[0] == NOTHING:
        return True
    for link in path:
        if link == NOTHING:
            break
        if load[link] > budget[link] + 1e-9:
            return True
    return False


@njit(cache=True)
def _add(load: Floats, path: Ints, size: float) -> None:
    for link in path:
        if link == NOTHING:
            break
        load[link] += size


@njit(cache=True)
def _write_path(path: Ints, parent: Ints, tail: Ints, start: int, end: int) -> None:
    """Write the tree's path from start to end; one that does not fit the table stays unwritten."""
    length, node = 0, end
    while node != start:
        node = tail[parent[node]]
        length += 1
    path[:] = NOTHING
    if length > len(path):
        return
    node = end
    while node != start:
        length -= 1
        path[length] = parent[node]
        node = tail[parent[node]]
