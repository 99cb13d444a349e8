"""From link flows to weighted paths, compiled: the pool that collects paths, and `peel`.

A flow without cycles is peeled path by path: from a destination walk back along the largest
inflow until the source, take off what fits, repeat. Every path empties a link or serves a
destination, so there are at most as many paths as links and destinations.
"""

from typing import TypeAlias

import numpy as np
from numba import njit

from a2aflow.ir.arrays import Floats, Ints
from a2aflow.ir.problem import Problem
from a2aflow.solve.candidates import Candidates

Pool: TypeAlias = tuple[Ints, Ints, Ints, Floats, Ints]
"""(paths and links used), owner and end of each path, its weight, and all paths' links."""

NEGLIGIBLE = 1e-9
"""What is left of a demand below this share of it is rounding, and goes with the last path."""


@njit(cache=True)
def new_pool() -> Pool:
    """Return a pool without paths."""
    size = 1024
    used = np.zeros(2, dtype=np.int64)
    owner, end = np.empty(size, dtype=np.int64), np.empty(size, dtype=np.int64)
    return used, owner, end, np.empty(size), np.empty(size, dtype=np.int64)


@njit(cache=True)
def store(pool: Pool, owner: int, weight: float, backwards: Ints) -> Pool:
    """Return the pool with one more path, whose links are given from its last to its first."""
    used, owners, ends, weights, links = pool
    paths, filled = used[0], used[1]
    if paths == len(owners):
        owners, ends = _doubled(owners), _doubled(ends)
        weights = np.append(weights, weights)
    while filled + len(backwards) > len(links):
        links = _doubled(links)
    for place in range(len(backwards)):
        links[filled + place] = backwards[-1 - place]
    owners[paths], ends[paths], weights[paths] = owner, filled + len(backwards), weight
    used[0], used[1] = paths + 1, filled + len(backwards)
    return used, owners, ends, weights, links


@njit(cache=True)
def _doubled(values: Ints) -> Ints:
    """Return an array of twice the size that begins with `values`."""
    larger = np.empty(2 * len(values), dtype=np.int64)
    larger[: len(values)] = values
    return larger


def pooled_paths(problem: Problem, pool: Pool) -> tuple[Candidates, Floats]:
    """Return the paths and weights of a pool; owners are `source * nodes + destination's node`."""
    (paths, filled), owner, end, weight, link = pool
    source, node = np.divmod(owner[:paths], problem.topology.nodes)
    destination = np.searchsorted(problem.topology.terminals, node).astype(np.int64)
    start = np.concatenate((np.zeros(1, np.int64), end[:paths]))
    return Candidates(source, destination, start, link[:filled]), weight[:paths]


@njit(cache=True)
def peel(
    pool: Pool,
    owner: int,
    flow: Floats,
    wanted: Floats,
    start: int,
    tail: Ints,
    into: tuple[Ints, Ints],
    parent: Ints,
) -> Pool:
    """Take an acyclic flow from `start` apart into paths; `flow` is used up.

    Path to node v gets the owner `owner + v`. `parent` is a tree of links from the start: where
    rounding has left a node without inflow, it serves the rest.
    """
    path = np.empty(len(wanted), dtype=np.int64)
    for node in range(len(wanted)):
        rest, least = wanted[node], NEGLIGIBLE * wanted[node]
        while rest > least:
            hops, amount = _walk_back(flow, least, node, start, tail, into, path)
            if hops == 0:
                hops, amount = _climb(parent, node, start, tail, path), rest
            amount = min(amount, rest)
            for link in path[:hops]:
                flow[link] = max(flow[link] - amount, 0.0)
            pool = store(pool, owner + node, amount, path[:hops])
            rest -= amount
        if wanted[node] > 0.0:
            pool[3][pool[0][0] - 1] += rest
    return pool


@njit(cache=True)
def _walk_back(
    flow: Floats,
    least: float,
    node: int,
    start: int,
    tail: Ints,
    into: tuple[Ints, Ints],
    path: Ints,
) -> tuple[int, float]:
    """Fill `path` from `node` back to `start` along the largest flows.

    Return its hops and its smallest flow; no hops if it does not get there.
    """
    hops, smallest = 0, np.inf
    while node != start:
        best = into[1][into[0][node]]
        for index in range(into[0][node] + 1, into[0][node + 1]):
            if flow[into[1][index]] > flow[best]:
                best = into[1][index]
        if flow[best] <= least or hops == len(path):
            return 0, 0.0
        smallest = min(smallest, flow[best])
        path[hops] = best
        hops += 1
        node = tail[best]
    return hops, smallest


@njit(cache=True)
def _climb(parent: Ints, node: int, start: int, tail: Ints, path: Ints) -> int:
    """Fill `path` from `node` back to `start` along a tree; return its hops."""
    hops = 0
    while node != start:
        path[hops] = parent[node]
        node = tail[path[hops]]
        hops += 1
    return hops
