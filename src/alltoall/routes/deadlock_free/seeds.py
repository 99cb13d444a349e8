"""Orders of channels to begin a search with.

- `by_dimension`, on grids: dimension order, with datelines where routes may change layer.
- `up_down`: towards a root and away from it again, in every layer. It connects all pairs where
  every link has one back, and sends most of them past the root.
- `of_routes`: routes near the unrestricted optimum are made, and orders in which most of them go
  forward (`routes.layers.orders`). Where routes may change layer, the best of these orders is
  repeated: who goes backward once in it goes on in the next layer.
"""

from collections.abc import Iterator

import numpy as np

from alltoall.ir.arrays import Floats, Ints
from alltoall.ir.grid import Grid, grid_of
from alltoall.ir.paths import Paths
from alltoall.ir.problem import Problem
from alltoall.paths.shortest import shortest_distances
from alltoall.placing.chunks import Chunks
from alltoall.placing.network import any_path
from alltoall.placing.quick import place_quickly
from alltoall.routes.deadlock_free.lanes import Lanes
from alltoall.routes.dimension_order import dateline_order, dimension_orders
from alltoall.routes.layers.dependencies import dependencies_of_paths
from alltoall.routes.layers.orders import layer_orders
from alltoall.settings import Late, SolveSettings

FREE_STEEPNESS, FREE_PASSES = 50.0, 8
"""How steep prices become, and in how many passes, for routes that know of no order."""

ORDERING_SHARE = 0.2
"""The share of the time left for orders of such routes."""


def first_orders(lanes: Lanes, settings: SolveSettings) -> Iterator[Ints]:
    """Yield orders to begin with; only the quick ones when time runs out."""
    grid = grid_of(lanes.problem.topology)
    if grid is not None:
        yield by_dimension(lanes, grid)
    yield up_down(lanes)
    if not settings.out_of_time():
        yield from of_routes(lanes, settings.sharing(ORDERING_SHARE).out_of_time)


def by_dimension(lanes: Lanes, grid: Grid) -> Ints:
    """Return an order in which routes in dimension order go forward, all or most of them."""
    topology, layers = lanes.problem.topology, lanes.layers
    if lanes.change:
        return dateline_order(topology, grid, layers)
    return _one_after_the_other(lanes, dimension_orders(topology, grid, layers))


def up_down(lanes: Lanes) -> Ints:
    """Return up*/down* orders, one layer after the other, each from a root of its own.

    With a change of layer a way may go up and down as often as there are layers, over one root.
    """
    orders = up_down_orders(lanes.problem, 1 if lanes.change else lanes.layers)
    return _one_after_the_other(lanes, orders)


def of_routes(lanes: Lanes, late: Late) -> Iterator[Ints]:
    """Yield orders in which most routes go forward that know of no order."""
    topology, demand = lanes.problem.topology, lanes.problem.demand
    source, destination = demand.pairs()
    begin, end = topology.terminals[source], topology.terminals[destination]
    chunks = Chunks(begin, end, demand.of(source, destination))
    placed = place_quickly(any_path(topology), chunks, FREE_STEEPNESS, FREE_PASSES)
    if placed is None:
        return
    paths = Paths.from_table(source, destination, placed.table)
    dependencies = dependencies_of_paths(topology.links, paths.start, paths.link)
    ranks = layer_orders(dependencies, lanes.layers, 0, 0, late).rank
    if not ranks:
        return
    orders = np.stack([np.argsort(rank) for rank in ranks])
    yield _one_after_the_other(lanes, orders)
    if lanes.change:
        yield _one_after_the_other(lanes, orders[:1])


def _one_after_the_other(lanes: Lanes, orders: Ints) -> Ints:
    """Return an order of all channels, layer by layer, from some orders of the links in turn."""
    links = lanes.problem.topology.links
    layer = np.arange(lanes.layers)[:, None]
    return np.asarray((layer * links + np.resize(orders, (lanes.layers, links))).ravel())


def up_down_orders(problem: Problem, layers: int) -> Ints:
    """Return up*/down* orders from as many roots.

    Links up, to a node nearer to the root, come before links down; each kind in the order in which
    a route can take them. If every link has one back, all pairs are connected over the root. Roots
    are those with the shortest distances to all others, in this order.
    """
    topology = problem.topology
    every = np.arange(topology.nodes, dtype=np.int64)
    distance = shortest_distances(topology, np.ones(topology.links), every)
    roots = np.resize(np.argsort(distance.sum(axis=1), kind="stable"), layers)
    return np.stack([_up_down(problem, distance[root]) for root in roots])


def _up_down(problem: Problem, distance: Floats) -> Ints:
    tail, head = problem.topology.tail, problem.topology.head
    level = np.argsort(np.argsort(distance, kind="stable"))
    up = level[head] < level[tail]
    return np.lexsort((np.where(up, -level[tail], level[tail]), ~up)).astype(np.int64)
