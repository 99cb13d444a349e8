"""DOR: dimension-ordered routing on meshes, tori, hypercubes and HyperX.

Dally and Seitz, "Deadlock-free message routing in multiprocessor interconnection networks", IEEE
Trans. Comput. 1987: correct the coordinates one dimension after the other, each the shorter way
round. Half-way round a ring of even size both ways are as short; the pair then has two routes of
half the weight, one that goes up in every such dimension and one that goes down. What a dimension's
links carry depends on nothing but the way that is taken in it, so two routes split the load of
every dimension evenly, and a torus of equal sides and capacities runs at its distance bound.
"""

import numpy as np
from numba import njit
from numpy.typing import NDArray

from a2aflow.errors import InputError
from a2aflow.flows.certificate import certify
from a2aflow.ir.arrays import Ints, starts_of
from a2aflow.ir.find_grid import grid_of, grid_of_shape
from a2aflow.ir.grid import Grid, Line
from a2aflow.ir.paths import Paths
from a2aflow.ir.problem import Problem
from a2aflow.ir.routes import Routes
from a2aflow.ir.topology import Topology
from a2aflow.routes.weights import routes_from_weights
from a2aflow.settings import RouteSettings


def route_dor(problem: Problem, settings: RouteSettings) -> Routes:
    """Return the dimension-ordered routes of a grid, which is found, or of the shape that is told.

    Of parallel links the first one is taken.
    """
    topology = problem.topology
    grid = _grid(topology, settings.shape)
    source, destination = problem.demand.pairs()
    begin, end = (grid.place[topology.terminals[each]] for each in (source, destination))
    offset, halfway = _offsets(grid, begin, end)
    tied = np.flatnonzero(halfway.any(axis=1))
    pair = np.concatenate((np.arange(len(source)), tied))
    moves = np.concatenate((offset, np.where(halfway, -offset, offset)[tied]))
    weight = problem.demand.of(source, destination)
    weight[tied] /= 2
    order = np.argsort(pair, kind="stable")
    pair, moves = pair[order], moves[order]
    jumps = np.array([line is Line.CLIQUE for line in grid.lines])
    hops = np.where(jumps, moves != 0, np.abs(moves)).sum(axis=1)
    start = starts_of(hops)
    tail, head = np.empty((2, int(start[-1])), dtype=np.int64)
    _walk(begin[pair], moves, jumps, np.array(grid.shape), start, tail, head)
    link = _first_links(topology, grid.node[tail], grid.node[head])
    paths = Paths(source[pair], destination[pair], start, link)
    return routes_from_weights(problem, paths, weight[pair], certify(problem, []), "dor")


def _grid(topology: Topology, shape: tuple[int, ...] | None) -> Grid:
    if shape is not None:
        return grid_of_shape(topology, shape)
    grid = grid_of(topology)
    if grid is None:
        raise InputError(
            f"{topology.name}: its links are not those of a grid; dimension-ordered routing is "
            "defined for a whole torus, mesh, hypercube or HyperX. Choose another method, or, if "
            "there is one among its links, numbered row by row, give its sides: --shape 4x4"
        )
    return grid


def _offsets(grid: Grid, begin: Ints, end: Ints) -> tuple[Ints, NDArray[np.bool_]]:
    """Return signed hops per pair and dimension, and where the other way is as short.

    In a dimension whose lines are complete, one hop makes the whole move.
    """
    side = np.array(grid.shape)
    around = np.array([line is Line.CYCLE for line in grid.lines])
    here, there = (np.stack(np.unravel_index(at, grid.shape), axis=1) for at in (begin, end))
    offset = (there - here).astype(np.int64)
    up = offset % side
    shorter = np.where(2 * up > side, up - side, up)
    return np.where(around, shorter, offset), around & (2 * up == side)


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
