"""Shortest paths for the producers: Dijkstra over arrays, compiled.

`check.flow` checks what is built on these with a different algorithm of its own.
"""

from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numba import njit, prange

from alltoall.ir.arrays import Floats, Ints, starts_of, writable
from alltoall.ir.topology import Topology
from alltoall.paths.kernels import run_in_turn


@dataclass(frozen=True, eq=False)
class Adjacency:
    """The links at each node, as (first, link): those of node v are link[first[v]:first[v + 1]]."""

    topology: Topology

    @cached_property
    def outgoing(self) -> tuple[Ints, Ints]:
        """The links that leave each node."""
        return _by_node(self.topology.tail, self.topology.out_degree)

    @cached_property
    def incoming(self) -> tuple[Ints, Ints]:
        """The links that enter each node."""
        return _by_node(self.topology.head, self.topology.in_degree)


def _by_node(ends: Ints, degree: Ints) -> tuple[Ints, Ints]:
    return starts_of(degree), np.argsort(ends, kind="stable").astype(np.int64)


def shortest_distances(topology: Topology, lengths: Floats, starts: Ints) -> Floats:
    """Return the distance from each start to each node, shape [starts, nodes]."""
    first, link = Adjacency(topology).outgoing
    distance: Floats = run_in_turn(
        _distances, topology.nodes, first, link, topology.head, lengths, writable(starts)
    )
    return distance


@njit(cache=True, parallel=True)
def _distances(
    nodes: int, first: Ints, link: Ints, head: Ints, lengths: Floats, starts: Ints
) -> Floats:
    distance = np.empty((len(starts), nodes))
    for row in prange(len(starts)):
        parent = np.empty(nodes, dtype=np.int64)
        order = np.empty(nodes, dtype=np.int64)
        shortest_tree(nodes, first, link, head, lengths, starts[row], distance[row], parent, order)
    return distance


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
