"""Walks over a grid that correct one coordinate after the other: the ways of dimension order."""

import numpy as np
from numba import njit
from numpy.typing import NDArray

from alltoall.ir.arrays import Ints, starts_of
from alltoall.ir.grid import Grid, Line
from alltoall.ir.topology import Topology


def grid_offsets(grid: Grid, begin: Ints, end: Ints) -> tuple[Ints, NDArray[np.bool_]]:
    """Return signed hops from node to node per dimension, and where the other way is as short.

    In a dimension whose lines are complete, one hop makes the whole move.
    """
    side = np.array(grid.shape)
    around = np.array([line is Line.CYCLE for line in grid.lines])
    offset = grid.coordinates[end] - grid.coordinates[begin]
    up = offset % side
    shorter = np.where(2 * up > side, up - side, up)
    return np.where(around, shorter, offset), around & (2 * up == side)


def grid_walks(topology: Topology, grid: Grid, begin: Ints, moves: Ints) -> tuple[Ints, Ints]:
    """Return where each walk starts, and the links of all, for the moves [walks, dimensions].

    Of parallel links the first one is taken.
    """
    jumps = np.array([line is Line.CLIQUE for line in grid.lines])
    hops = np.where(jumps, moves != 0, np.abs(moves)).sum(axis=1)
    start = starts_of(hops)
    tail, head = np.empty((2, int(start[-1])), dtype=np.int64)
    _walk(grid.place[begin], moves, jumps, np.array(grid.shape), start, tail, head)
    return start, _first_links(topology, grid.node[tail], grid.node[head])


def _first_links(topology: Topology, tail: Ints, head: Ints) -> Ints:
    """Return the first link between every two nodes, which must be neighbours."""
    keys = topology.tail * topology.nodes + topology.head
    known, first = np.unique(keys, return_index=True)
    return np.asarray(first[np.searchsorted(known, tail * topology.nodes + head)], dtype=np.int64)


@njit(cache=True)
def _walk(
    begin: Ints,
    moves: Ints,
    jumps: NDArray[np.bool_],
    side: Ints,
    start: Ints,
    tail: Ints,
    head: Ints,
) -> None:
    """Fill in the places of the hops that make these moves, one dimension after the other."""
    for path in range(len(begin)):
        place, hop = begin[path], start[path]
        stride = side.prod()
        for axis in range(len(side)):
            stride //= side[axis]
            move = moves[path, axis]
            if move == 0:
                continue
            by = move if jumps[axis] else (1 if move > 0 else -1)
            for _ in range(abs(move) // abs(by)):
                here = place // stride % side[axis]
                tail[hop] = place
                place += ((here + by) % side[axis] - here) * stride
                head[hop] = place
                hop += 1
