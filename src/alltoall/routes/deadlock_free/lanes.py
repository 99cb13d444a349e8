"""Lanes: the channels of a fabric, one per link and layer, and orders of all of them.

A route that only ever goes from a channel to a later one in the order cannot deadlock, whatever
else is routed; conversely all routes that cannot deadlock go forward in some order. Where routes
may change layer, a path goes from a channel of any layer to one of any other. Where they may not,
every layer has nodes of its own, and a path begins at its source in any of them.

A search begins with one of these orders:

- `by_dimension`, on grids: dimension order, with datelines where routes may change layer.
- `up_down_orders`: towards a root and away from it again, in every layer. These connect all pairs
  where every link has one back, and send most of them past the root.
- `of_routes`: routes near the unrestricted optimum, and orders in which most of them go forward
  (`routes.layers.orders`). Where routes may change layer, the best of these orders is repeated.
"""

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from alltoall.ir.arrays import Ints
from alltoall.ir.grid import Grid, grid_of
from alltoall.ir.paths import Paths
from alltoall.ir.problem import Problem
from alltoall.paths.shortest import shortest_distances
from alltoall.placing.chunks import Chunks
from alltoall.placing.network import Network, any_path, in_order
from alltoall.placing.place import QUICK, place
from alltoall.routes.dimension_order import dateline_order, dimension_orders
from alltoall.routes.layers.dependencies import dependencies_of_paths
from alltoall.routes.layers.orders import layer_orders
from alltoall.settings import Late, SolveSettings


@dataclass(frozen=True, eq=False)
class Lanes:
    """Channel c is link `c % links` in layer `c // links`, from `tail[c]` to `head[c]`.

    Node v in copy k is `k * nodes + v`; there is one copy if routes may change layer, else one per
    layer.
    """

    problem: Problem
    layers: int
    change: bool

    @property
    def copies(self) -> int:
        """How many copies of the nodes there are."""
        return 1 if self.change else self.layers

    @property
    def link(self) -> Ints:
        """The link of each channel."""
        return np.tile(np.arange(self.problem.topology.links), self.layers)

    @property
    def layer(self) -> Ints:
        """The layer of each channel."""
        return np.repeat(np.arange(self.layers), self.problem.topology.links)

    @property
    def ends(self) -> tuple[Ints, Ints]:
        """The tail and the head of each channel, in its copy of the nodes."""
        topology = self.problem.topology
        copy = np.zeros_like(self.layer) if self.change else self.layer * topology.nodes
        return topology.tail[self.link] + copy, topology.head[self.link] + copy

    @property
    def terminals(self) -> Ints:
        """The terminals [copies, terminals] in each copy of the nodes."""
        topology = self.problem.topology
        return np.arange(self.copies)[:, None] * topology.nodes + topology.terminals


def forward_network(lanes: Lanes, order: Ints) -> Network:
    """Return the network of paths between terminals along channels of increasing rank."""
    capacity = lanes.problem.topology.capacity
    return in_order(capacity, lanes.ends, lanes.link, lanes.terminals, order)


def hop_layers(lanes: Lanes, order: Ints, start: Ints, link: Ints) -> Ints | None:
    """Return the layer of each hop of the paths `link[start[p]:start[p + 1]]`, None if some fail.

    A hop takes the first channel of its link that comes after the one before.
    """
    rank = np.argsort(order).reshape(lanes.layers, -1)
    layer, last = np.zeros(len(link), dtype=np.int64), np.full(len(start) - 1, -1)
    for hop in range(int(np.diff(start).max(initial=0))):
        path = np.flatnonzero(start[:-1] + hop < start[1:])
        place = rank[:, link[start[path] + hop]]
        later = np.where(place > last[path], place, rank.size)
        if (later == rank.size).all(axis=0).any():
            return None
        layer[start[path] + hop], last[path] = later.argmin(axis=0), later.min(axis=0)
    return layer


def first_orders(lanes: Lanes, settings: SolveSettings) -> Iterator[Ints]:
    """Yield orders to begin with; only the quick ones when time runs out.

    With a change of layer a way may go up and down as often as there are layers, over one root.
    """
    grid = grid_of(lanes.problem.topology)
    if grid is not None:
        yield by_dimension(lanes, grid)
    roots = up_down_orders(lanes.problem, 1 if lanes.change else lanes.layers)
    yield _one_after_the_other(lanes, roots)
    if not settings.out_of_time():
        yield from of_routes(lanes, settings.sharing().out_of_time)


def by_dimension(lanes: Lanes, grid: Grid) -> Ints:
    """Return an order in which routes in dimension order go forward, all or most of them."""
    topology, layers = lanes.problem.topology, lanes.layers
    if lanes.change:
        return dateline_order(topology, grid, layers)
    return _one_after_the_other(lanes, dimension_orders(topology, grid, layers))


def of_routes(lanes: Lanes, late: Late) -> Iterator[Ints]:
    """Yield orders in which most routes go forward that know of no order."""
    topology, demand = lanes.problem.topology, lanes.problem.demand
    source, destination = demand.pairs()
    begin, end = topology.terminals[source], topology.terminals[destination]
    chunks = Chunks(begin, end, demand.of(source, destination))
    placed = place(any_path(topology), chunks, 0.0, QUICK)
    if placed is None:
        return
    paths = Paths.from_table(source, destination, placed.table)
    dependencies = dependencies_of_paths(topology.links, paths.start, paths.link)
    ranks = layer_orders(dependencies, lanes.layers, 0, late).rank
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
    orders = np.empty((layers, topology.links), dtype=np.int64)
    for order, root in zip(orders, roots, strict=True):
        level = np.argsort(np.argsort(distance[root], kind="stable"))
        start, up = level[topology.tail], level[topology.head] < level[topology.tail]
        order[:] = np.lexsort((np.where(up, -start, start), ~up))
    return orders
