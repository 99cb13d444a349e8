"""Shortest paths from many starts at once: Bellman and Ford's algorithm, a lane for each start.

Where paths have few hops, as on the networks that this project is for, a few rounds over the links
settle all starts of a block, and each relaxation is done for all its lanes at once: many times
faster than a queue per start. Where they do not settle soon, Dijkstra's algorithm takes over.
"""

import numpy as np
from numba import njit, prange
from numpy.typing import NDArray

from alltoall.ir.arrays import Floats, Ints, writable
from alltoall.ir.topology import Topology
from alltoall.paths.kernels import run_in_turn
from alltoall.paths.shortest import Adjacency, shortest_tree

LANES = 64
"""Starts of a block."""

MOST_ROUNDS = 60
"""Times that a link is looked at, in the mean, before Dijkstra's algorithm is the faster one."""


def distance_sums(topology: Topology, lengths: Floats, starts: Ints, wanted: Floats) -> Floats:
    """Return, for each start, the sum over the nodes of what they want times their distance."""
    first, link = Adjacency(topology).outgoing
    ends = (first, link, topology.head)
    sums: Floats = run_in_turn(_distance_sums, *ends, writable(lengths), starts, wanted)
    return sums


@njit(cache=True, parallel=True)
def _distance_sums(
    first: Ints, link: Ints, head: Ints, lengths: Floats, starts: Ints, wanted: Floats
) -> Floats:
    sums = np.zeros(len(starts))
    nodes = wanted.shape[1]
    for block in prange((len(starts) + LANES - 1) // LANES):
        low, high = block * LANES, min((block + 1) * LANES, len(starts))
        distance = np.empty((nodes, high - low))
        parent = np.empty((nodes, high - low), dtype=np.int32)
        shortest_trees((first, link), head, lengths, starts[low:high], distance, parent)
        for lane in range(high - low):
            total = 0.0
            for node in range(nodes):
                if wanted[low + lane, node] > 0.0:
                    total += wanted[low + lane, node] * distance[node, lane]
            sums[low + lane] = total
    return sums


@njit(cache=True)
def shortest_trees(
    out: tuple[Ints, Ints],
    head: Ints,
    lengths: Floats,
    starts: Ints,
    distance: Floats,
    parent: NDArray[np.int32],
) -> None:
    """Fill distances and the link into each node, [nodes, starts]; links may have length 0.

    `parent` is meaningful where the distance is finite and the node is not the start.
    """
    first, link = out
    nodes, width = distance.shape
    distance[:] = np.inf
    waiting = np.zeros(nodes, dtype=np.bool_)
    for lane in range(width):
        distance[starts[lane], lane] = 0.0
        waiting[starts[lane]] = True
    looked, most, going = 0, MOST_ROUNDS * len(head), True
    while going and looked <= most:
        going = False
        for node in range(nodes):
            if waiting[node]:
                waiting[node], going = False, True
                looked += first[node + 1] - first[node]
                for index in range(first[node], first[node + 1]):
                    arc = link[index]
                    if _relax(distance[node], distance[head[arc]], parent[head[arc]], lengths, arc):
                        waiting[head[arc]] = True
    if going:
        _one_by_one(out, head, lengths, starts, distance, parent)


@njit(cache=True)
def _relax(
    here: Floats, there: Floats, parent: NDArray[np.int32], lengths: Floats, arc: int
) -> bool:
    """Reach a node over a link in all lanes; return whether that is shorter in any of them."""
    length, name, shorter = lengths[arc], np.int32(arc), 0
    for lane in range(len(here)):
        shorter |= here[lane] + length < there[lane]
    if shorter:
        for lane in range(len(here)):
            reach = here[lane] + length
            parent[lane] = name if reach < there[lane] else parent[lane]
            there[lane] = min(reach, there[lane])
    return shorter != 0


@njit(cache=True)
def _one_by_one(
    out: tuple[Ints, Ints],
    head: Ints,
    lengths: Floats,
    starts: Ints,
    distance: Floats,
    parent: NDArray[np.int32],
) -> None:
    nodes = len(distance)
    far, into = np.empty(nodes), np.empty(nodes, dtype=np.int64)
    order = np.empty(nodes, dtype=np.int64)
    for lane in range(len(starts)):
        shortest_tree(nodes, out[0], out[1], head, lengths, starts[lane], far, into, order)
        for node in range(nodes):
            distance[node, lane] = far[node]
            if node != starts[lane] and far[node] < np.inf:
                parent[node, lane] = into[node]


@njit(cache=True)
def leaves_first(root: int, into: Ints, tail: Ints, order: Ints, children: Ints) -> int:
    """Fill in the nodes of a tree so that each comes before its parent; return how many there are.

    `into` has the link into each node, or a negative number where there is none; the root, which is
    left out, has none. `children` is for counting.
    """
    children[:] = 0
    for node in range(len(into)):
        if into[node] >= 0:
            children[tail[into[node]]] += 1
    count = 0
    for leaf in range(len(into)):
        node = leaf
        # What has lost its last child goes next, unless its own turn as a leaf is still to come.
        while node != root and into[node] >= 0 and children[node] == 0:
            order[count] = node
            count += 1
            children[node] = -1
            node = tail[into[node]]
            children[node] -= 1
            if node > leaf:
                break
    return count
