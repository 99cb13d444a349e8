"""Negotiated congestion: whole chunks on timed paths, rerouted until no link is over its budget.

The idea is that of PathFinder, the router of field-programmable gate arrays: everyone takes its
cheapest path, links that are over their budget become dearer, now and for good, and those who pass
them look for another way. Starting from the optimal fractional flow, few chunks ever have to move.
"""

from dataclasses import dataclass
from typing import TypeAlias, TypeVar

import numpy as np
from numba import njit
from numpy.typing import NDArray

from a2aflow.ir.arrays import Floats, Ints
from a2aflow.ir.paths import NOTHING
from a2aflow.ir.topology import Topology
from a2aflow.lp.settings import never
from a2aflow.paths.shortest import Adjacency, shortest_tree
from a2aflow.settings import Late

Table: TypeAlias = NDArray[np.int32]
"""Paths, one a row: the links in order, then `NOTHING`. At a million paths half the size counts."""

Paths = TypeVar("Paths", Ints, Table)

ROUNDING = 1e-9
"""A load above its budget by less than this share of it is within it."""

STALE = 40
"""Rounds without progress after which a negotiation is given up."""

MOST_REROUTED = 1000
"""Chunks that are rerouted in one call of the compiled code."""


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
    graph: Topology,
    chunks: Chunks,
    paths: Paths,
    budget: Floats,
    rounds: int,
    seed: int,
    late: Late = never,
) -> tuple[Paths, bool]:
    """Return paths within the budgets of the links and True, or the last try and False.

    It ends early when it is `late`.

    A link with an infinite budget is free; any other costs 1 a chunk, and more when contended.
    """
    order = np.random.default_rng(seed).permutation(len(chunks.start)).astype(np.int64)
    table = paths.copy()
    first, link = Adjacency(graph).outgoing
    load, history = np.zeros(graph.links), np.zeros(graph.links)
    _add_all(load, table, chunks.size)
    pressure, least, stale = 0.5, np.inf, 0
    for _ in range(rounds):
        done = 0
        while done < len(order):
            # A part of a round at a time, so that Ctrl-C and the time limit are heard in between.
            if late():
                return table, False
            done = _reroute(
                (graph.nodes, first, link, graph.tail, graph.head),
                (chunks.start, chunks.end, chunks.size, order),
                (budget, history, pressure),
                done,
                table,
                load,
            )
        over = np.maximum(load - budget, 0.0)
        over[load <= budget * (1 + ROUNDING)] = 0.0
        excess = float(over.sum())
        if excess == 0.0 and bool((table[:, 0] != NOTHING).all()):
            return table, True
        history += 0.3 * np.minimum(3.0, over / chunks.size[0])
        stale = 0 if excess < least else stale + 1
        least = min(least, excess)
        if stale == STALE:
            return table, False
        pressure = min(pressure * 1.3, 1e3)
    return table, False


@njit(cache=True)
def _add_all(load: Floats, paths: Paths, size: Floats) -> None:
    for chunk in range(len(size)):
        _add(load, paths[chunk], size[chunk])


@njit(cache=True)
def _reroute(
    graph: tuple[int, Ints, Ints, Ints, Ints],
    chunks: tuple[Ints, Ints, Floats, Ints],
    prices: tuple[Floats, Floats, float],
    begin: int,
    paths: Paths,
    load: Floats,
) -> int:
    """Let the chunks from `order[begin]` on look for another way; return where it stopped.

    It stops after `MOST_REROUTED` or at the end.
    """
    nodes, first, link, tail, head = graph
    start, end, size, order = chunks
    cost, distance = np.empty(len(load)), np.empty(nodes)
    parent, settled = np.empty(nodes, dtype=np.int64), np.empty(nodes, dtype=np.int64)
    priced, rerouted = 0.0, 0
    for place in range(begin, len(order)):
        chunk = order[place]
        path, mine = paths[chunk], size[chunk]
        if not _needs_rerouting(path, load, prices[0]):
            continue
        if rerouted == MOST_REROUTED:
            return place
        rerouted += 1
        _add(load, path, -mine)
        if mine != priced:
            for each in range(len(load)):
                cost[each] = _cost(each, mine, load, prices)
            priced = mine
        else:
            _reprice(path, mine, load, prices, cost)
        shortest_tree(nodes, first, link, head, cost, start[chunk], distance, parent, settled)
        write_path(path, parent, tail, start[chunk], end[chunk])
        _add(load, path, mine)
        _reprice(path, mine, load, prices, cost)
    return len(order)


@njit(cache=True)
def _cost(link: int, size: float, load: Floats, prices: tuple[Floats, Floats, float]) -> float:
    """Return what a link costs a chunk."""
    budget, history, pressure = prices
    if budget[link] == np.inf:
        return 1e-3
    over = max(0.0, load[link] + size - budget[link]) / size
    return float((1.0 + history[link]) * (1.0 + pressure * over))


@njit(cache=True)
def _reprice(
    path: Paths,
    size: float,
    load: Floats,
    prices: tuple[Floats, Floats, float],
    cost: Floats,
) -> None:
    """Bring the costs of the links of a path up to date."""
    for link in path:
        if link == NOTHING:
            break
        cost[link] = _cost(link, size, load, prices)


@njit(cache=True)
def _needs_rerouting(path: Paths, load: Floats, budget: Floats) -> bool:
    if path[0] == NOTHING:
        return True
    for link in path:
        if link == NOTHING:
            break
        if load[link] > budget[link] * (1 + ROUNDING):
            return True
    return False


@njit(cache=True)
def _add(load: Floats, path: Paths, size: float) -> None:
    for link in path:
        if link == NOTHING:
            break
        load[link] += size


@njit(cache=True)
def write_path(path: Paths, parent: Ints, tail: Ints, start: int, end: int) -> None:
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
