"""DOR: dimension-ordered routing on meshes, tori, hypercubes and HyperX.

Dally and Seitz, "Deadlock-free message routing in multiprocessor interconnection networks", IEEE
Trans. Comput. 1987: correct the coordinates one dimension after the other, each the shorter way
round. Half-way round a ring of even size both ways are as short; the pair then has two routes of
half the weight, one that goes up in every such dimension and one that goes down. The loads of a
dimension depend only on the direction taken in it, so two routes split the load of every dimension
evenly, and a torus of equal sides and capacities runs at its distance bound.
"""

import numpy as np

from alltoall.errors import InputError
from alltoall.flows.program import certify
from alltoall.ir.grid import Grid, grid_of, grid_of_shape
from alltoall.ir.paths import Paths
from alltoall.ir.problem import Problem
from alltoall.ir.routes import Routes
from alltoall.ir.topology import Topology
from alltoall.routes.dimension_order import grid_offsets, grid_walks
from alltoall.routes.weights import routes_from_weights
from alltoall.settings import RouteSettings


def route_dor(problem: Problem, settings: RouteSettings) -> Routes:
    """Return the dimension-ordered routes of a grid, of a given or detected shape.

    Of parallel links the first one is taken.
    """
    topology = problem.topology
    grid = _grid(topology, settings.shape)
    source, destination = problem.demand.pairs()
    begin, end = (topology.terminals[each] for each in (source, destination))
    offset, halfway = grid_offsets(grid, begin, end)
    tied = np.flatnonzero(halfway.any(axis=1))
    pair = np.concatenate((np.arange(len(source)), tied))
    moves = np.concatenate((offset, np.where(halfway, -offset, offset)[tied]))
    weight = problem.demand.of(source, destination)
    weight[tied] /= 2
    order = np.argsort(pair, kind="stable")
    pair, moves = pair[order], moves[order]
    start, link = grid_walks(topology, grid, begin[pair], moves)
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
            "there is one among its links, numbered row by row, give its sides: "
            "--method dor:shape=4x4"
        )
    return grid
