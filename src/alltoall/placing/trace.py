"""Whole chunks on the paths of a fractional flow: where negotiations begin."""

import numpy as np
from numba import njit

from alltoall.ir.arrays import Floats, Ints
from alltoall.ir.paths import NOTHING
from alltoall.ir.topology import Topology
from alltoall.paths.shortest import Adjacency
from alltoall.placing.chunks import Chunks


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
