"""Which nodes can be reached from a node, by breadth-first search over arrays."""

import numpy as np
from numpy.typing import NDArray

from a2aflow.ir.arrays import Ints, inner_index


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
