"""Which nodes can be reached from a node, by breadth-first search over arrays."""

import numpy as np
from numpy.typing import NDArray

from alltoall.ir.arrays import Ints, inner_index


def reachable(nodes: int, tail: Ints, head: Ints, start: int | Ints) -> NDArray[np.bool_]:
    """Return a mask of the nodes that `start`, a node or several, reaches, itself included."""
    order = np.argsort(tail, kind="stable")
    first = np.searchsorted(tail[order], np.arange(nodes + 1))
    successors = head[order]
    seen = np.zeros(nodes, dtype=np.bool_)
    seen[start] = True
    frontier = np.unique(np.asarray(start, dtype=np.int64))
    while len(frontier):
        degrees = (first[frontier + 1] - first[frontier]).astype(np.int64)
        arcs = np.repeat(first[frontier], degrees) + inner_index(degrees)
        frontier = np.unique(successors[arcs])
        frontier = frontier[~seen[frontier]]
        seen[frontier] = True
    return seen


def connected_pairs(nodes: int, tail: Ints, head: Ints, ends: Ints) -> NDArray[np.bool_]:
    """Return which of some nodes each of them reaches, itself included, shape [ends, ends].

    A bit for each of them spreads over all links at once, until nothing changes.
    """
    seen = np.packbits(np.arange(nodes)[:, None] == ends, axis=1)
    order = np.argsort(head, kind="stable")
    entered, first = np.unique(head[order], return_index=True)
    while True:
        found = seen[entered] | np.bitwise_or.reduceat(seen[tail[order]], first, axis=0)
        if np.array_equal(found, seen[entered]):
            return np.unpackbits(seen[ends], axis=1, count=len(ends)).T.astype(np.bool_)
        seen[entered] = found
