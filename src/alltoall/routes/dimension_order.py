"""Dimension order on grids: one route per pair, and orders of the links in which these go forward.

Coordinates are corrected one after the other, each the shorter way round, so that links of a
dimension never wait for those of an earlier one. Meshes, hypercubes and HyperX then need one
virtual layer. On a ring, routes deadlock unless no route passes through some node: a break, one for
each line and direction of a layer. A route takes a layer in which it passes no break.

Half-way round an even ring both directions are equally short. The choice decides the load and the
layers:

- Sides of which half is even: up from nodes whose coordinates have an even sum, down from the
  others. Link loads are equal, and no half-way route passes through an even node (upward), where
  the breaks are: on sides of four, whose only routes of two links are these, breaks cost nothing.
  This is e-cube order on the hypercube that the torus is, Gray-coded.
- Other even sides: every node sends half of its half-way routes either way, by the parity of the
  other coordinates of both ends.

Two placements of the breaks suffice. Spread evenly around the ring, a layer each, a route passes at
most one per dimension if their distance is at least its length; then one layer more than dimensions
is enough. Otherwise two breaks on opposite sides, of which no shortest route passes both, in all
combinations of the dimensions.

If routes may change layer, a break is a dateline: a route that reaches it continues in the next
layer, and no shortest path passes it twice. Two layers are enough for any grid.

`dor`: Dally and Seitz, "Deadlock-free message routing in multiprocessor interconnection networks",
IEEE Trans. Comput. 1987. Half-way round a ring of even size a pair has two routes of half the
weight, one that goes up in every such dimension and one that goes down. The loads of a dimension
depend only on the direction taken in it, so two routes split the load of every dimension evenly,
and a torus of equal sides and capacities runs at its distance bound.
"""

import numpy as np
from numpy.typing import NDArray

from alltoall.errors import InputError
from alltoall.flows.program import certify
from alltoall.ir.answer import Certificate
from alltoall.ir.arrays import Ints, inner_index, starts_of
from alltoall.ir.grid import Grid, Line, grid_of, grid_of_shape
from alltoall.ir.paths import Paths
from alltoall.ir.problem import Problem
from alltoall.ir.routes import Routes
from alltoall.ir.topology import Topology
from alltoall.routes.layers.dependencies import Dependencies, forward_routes
from alltoall.routes.weights import routes_from_weights
from alltoall.settings import RouteSettings

FREE_SIDE = 4
"""Rings up to this side need one layer: no route passes their breaks."""


def route_by_dimension(
    problem: Problem, grid: Grid, certificate: Certificate, method: str
) -> Routes:
    """Return one route per pair in dimension order, under the name of a method."""
    topology = problem.topology
    source, destination = problem.demand.pairs()
    begin, end = (topology.terminals[each] for each in (source, destination))
    offset, halfway = grid_offsets(grid, begin, end)
    # Which way half-way routes go, by pair and dimension: see the rules above.
    here, there = grid.coordinates[begin], grid.coordinates[end]
    corrected = np.cumsum(there, axis=1) - there
    left = here.sum(axis=1, keepdims=True) - np.cumsum(here, axis=1) + here
    others = there.sum(axis=1, keepdims=True) - there + here.sum(axis=1, keepdims=True)
    even_half = np.array([side % 4 == 0 for side in grid.shape])
    goes_down = np.where(even_half, corrected + left, others) % 2 == 1
    moves = np.where(halfway & goes_down, -offset, offset)
    start, link = grid_walks(topology, grid, begin, moves)
    paths = Paths(source, destination, start, link)
    weight = problem.demand.of(source, destination)
    whole = 1 if problem.demand.uniform else None
    return routes_from_weights(problem, paths, weight, certificate, method, whole)


def dimension_orders(topology: Topology, grid: Grid, layers: int) -> Ints:
    """Return an order of the links for each layer, in which dimension-ordered routes go forward.

    All do if there are at least `enough_layers`.
    """
    axis, places = _places(topology, grid, _breaks(grid, layers))
    return np.stack([np.lexsort((place, axis)) for place in places]).astype(np.int64)


def dateline_order(topology: Topology, grid: Grid, layers: int) -> Ints:
    """Return an order of all channels: link l in layer k is `k * links + l`.

    With two layers or more all routes in dimension order go forward, if they may change layer.
    """
    axis, place = _places(topology, grid, np.zeros((1, len(grid.shape)), dtype=np.int64))
    layer = np.repeat(np.arange(layers), topology.links)
    order = np.lexsort((np.tile(place[0], layers), layer, np.tile(axis, layers)))
    return np.asarray(order, dtype=np.int64)


def _places(topology: Topology, grid: Grid, breaks: Ints) -> tuple[Ints, Ints]:
    """Return the dimension of each link, and its distance after each break [breaks, links]."""
    tail, head = grid.coordinates[topology.tail], grid.coordinates[topology.head]
    axis = np.argmax(tail != head, axis=1)
    every = np.arange(topology.links)
    side, here = np.array(grid.shape)[axis], tail[every, axis]
    around = np.array([line is Line.CYCLE for line in grid.lines])[axis]
    step = head[every, axis] - here
    down = np.where(around, step % side != 1, step < 0)
    others = tail.sum(axis=1) - here + down
    # Upward breaks are at nodes of one parity, downward ones at those of the other.
    begin = np.where(around, breaks[:, axis] + others % 2, 0)
    return axis, np.asarray(np.where(down, begin - here, here - begin) % side)


def enough_layers(grid: Grid) -> int:
    """Return a number of layers in which all dimension-ordered routes find room."""
    return 1 << len(_long_rings(grid))


def _long_rings(grid: Grid) -> list[int]:
    kinds = enumerate(zip(grid.shape, grid.lines, strict=True))
    return [axis for axis, (side, line) in kinds if line is Line.CYCLE and side > FREE_SIDE]


def _breaks(grid: Grid, layers: int) -> Ints:
    """Return the breaks of the rings of each dimension, shape [layers, dimensions]."""
    side, layer = np.array(grid.shape), np.arange(layers)[:, None]
    if layers < enough_layers(grid):
        return np.asarray(layer * side // layers)
    far = np.zeros((layers, len(side)), dtype=np.int64)
    for bit, axis in enumerate(_long_rings(grid)):
        far[:, axis] = layer[:, 0] >> bit & 1
    return np.asarray(far * (side // 2))


def grid_offsets(grid: Grid, begin: Ints, end: Ints) -> tuple[Ints, NDArray[np.bool_]]:
    """Return signed hops between nodes per dimension, and where both directions are equal.

    In a dimension whose lines are complete, one hop makes the whole move.
    """
    side = np.array(grid.shape)
    around = np.array([line is Line.CYCLE for line in grid.lines])
    offset = grid.coordinates[end] - grid.coordinates[begin]
    up = offset % side
    shorter = np.where(2 * up > side, up - side, up)
    return np.where(around, shorter, offset), around & (2 * up == side)


def grid_walks(topology: Topology, grid: Grid, begin: Ints, moves: Ints) -> tuple[Ints, Ints]:
    """Return the starts of walks, and all their links, for the moves [walks, dimensions].

    Of parallel links the first one is taken.
    """
    side = np.array(grid.shape)
    stride = np.append(np.cumprod(side[:0:-1])[::-1], 1)
    jumps = np.array([line is Line.CLIQUE for line in grid.lines])
    hops = np.where(jumps, moves != 0, np.abs(moves))
    here = grid.place[begin][:, None] // stride % side
    there = (here + moves) % side
    # In each dimension those before it are at their ends, and those after it where they began.
    corrected = np.cumsum(there * stride, axis=1) - there * stride
    left = (here * stride).sum(axis=1, keepdims=True) - np.cumsum(here * stride, axis=1)
    counts = hops.ravel()
    walk, axis = np.divmod(np.repeat(np.arange(len(counts)), counts), len(side))
    step = np.where(jumps, moves, np.sign(moves))[walk, axis]
    done, base = inner_index(counts) * step, (corrected + left)[walk, axis]
    tail, head = (
        base + (here[walk, axis] + moved) % side[axis] * stride[axis]
        for moved in (done, done + step)
    )
    keys = topology.tail * topology.nodes + topology.head
    known, first = np.unique(keys, return_index=True)
    link = first[np.searchsorted(known, grid.node[tail] * topology.nodes + grid.node[head])]
    return starts_of(hops.sum(axis=1)), link.astype(np.int64)


def pack_by_dimension(
    topology: Topology, grid: Grid, dependencies: Dependencies, most_layers: int
) -> tuple[Ints, Ints] | None:
    """Return a layer per route and an order of the links in each, with few layers.

    Return None if some route goes forward in none of these orders, or if too many layers are
    needed. Routes in dimension order always go forward in one.
    """
    for layers in range(1, min(most_layers, enough_layers(grid)) + 1):
        orders = dimension_orders(topology, grid, layers)
        forward = np.stack([forward_routes(dependencies, np.argsort(each)) for each in orders])
        if forward.any(axis=0).all():
            return np.argmax(forward, axis=0).astype(np.int64), orders
    return None


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
