"""Lanes: the channels of a fabric, one per link and layer, and orders of all of them.

Routes that go forward in an order of the channels cannot deadlock; conversely, deadlock-free routes
go forward in some order. If routes may change layer, a path may join channels of any layers. If
not, every layer has its own copy of the nodes, and a path begins at its source in any of them.

A search begins with one of these orders:

- `by_dimension`, on grids: dimension order, with datelines where routes may change layer.
- `up_down_orders`: towards a root and away from it again, in every layer. These connect all pairs
  where every link has one back, and send most of them past the root.
- `of_routes`: routes near the unrestricted optimum, and orders in which most of them go forward
  (`layer_orders`). Where routes may change layer, the best of these orders is repeated.

Chunks are placed quickly in the first orders, so that a time limit always finds an answer. From the
best of them on, the order and the routes answer each other: channels are moved to where the
shortest paths of all pairs gain most (`core/channel_order.h`), then chunks spread over the paths
forward. Lengths are those that prove the unrestricted bound and, a little, what the fullest links
cost the chunks. The best order seen is improved again, with other draws.
`benchmarks/deadlock_free.py` measures all numbers below.
"""

from collections.abc import Iterator
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from alltoall import core
from alltoall.ir.answer import Certificate
from alltoall.ir.arrays import Floats, Ints
from alltoall.ir.grid import Grid, grid_of
from alltoall.ir.paths import Paths
from alltoall.ir.problem import Problem
from alltoall.ir.routes import Routes
from alltoall.ir.words import ProgressMessage
from alltoall.paths.shortest import shortest_distances
from alltoall.placing.chunks import Chunks
from alltoall.placing.network import Network, any_path, in_order
from alltoall.placing.place import DEFAULTS, QUICK, Placement, PlacementParams, place
from alltoall.routes.dimension_order import dateline_order, dimension_orders
from alltoall.routes.layers.dependencies import dependencies_of_paths, layer_orders
from alltoall.routes.single import DEFAULT_ROUTES
from alltoall.routes.weights import round_up_time
from alltoall.settings import Late, RouteSettings, SolveSettings


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
        """The number of copies of the nodes."""
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
    """Yield starting orders; only quick ones if time is short.

    If routes may change layer, all layers have one root, and a path may go up and down once per
    layer.
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
    """Yield orders in which most unrestricted routes go forward."""
    topology, demand = lanes.problem.topology, lanes.problem.demand
    source, destination = demand.pairs()
    begin, end = topology.terminals[source], topology.terminals[destination]
    chunks = Chunks(begin, end, demand.of(source, destination))
    placed = place(any_path(topology), chunks, 0.0, QUICK)
    if placed is None:
        return
    paths = Paths.from_table(source, destination, placed.table)
    dependencies = dependencies_of_paths(topology.links, paths.start, paths.link)
    ranks = layer_orders(dependencies, lanes.layers, 0, late)
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
    """Return one up*/down* order per root.

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


Singles = NDArray[np.float32]

ROUNDS = 30
"""Most rounds in which the order and the routes respond to each other."""

PATIENT_ROUNDS = 10
"""Rounds in turn without a better answer after which the search ends."""

WORTHWHILE = 2e-4
"""Least share by which a sweep must shorten all paths to be followed by another."""

READ_PER_CALL = 100_000_000
"""Distances read in one call of the core, so that a time limit is heard in between."""

LEAST_PRICE = 0.05
"""Least length of a link, as a share of the mean: an order must suit all links a little."""

PRICED = (0.1, 0.3)
"""Weights of the saturated links in the lengths, besides the proving lengths.

Starts take turns: the smaller share is better where the bound is near, the larger where it is not.
"""

ALL_CHUNKS = 10_000
"""Most chunks of all pairs together: with many pairs, whole shards are fine enough."""


@dataclass(frozen=True, eq=False)
class TriedOrder:
    """An order, chunks on its forward paths, and their cost.

    The cost is the time or, if some pairs have no path, the sum of distances.
    """

    order: Ints
    placed: Placement | None
    worth: tuple[float, float]


@dataclass(frozen=True, eq=False)
class OrderSearch:
    """A search for orders of lanes; the certificate proves the bound without layers."""

    lanes: Lanes
    certificate: Certificate
    settings: RouteSettings

    def best_orders(self, starts: int = 1) -> list[TriedOrder]:
        """Return the orders found from several starts, the best first.

        Every other start is a random order, the others the best of the first orders.
        """
        solve, seed = self.settings.solve, self.settings.seed
        firsts = (self._try(each, QUICK) for each in first_orders(self.lanes, solve))
        first = min(firsts, key=lambda tried: tried.worth)
        found = [first]
        for number in range(starts):
            if self._is_good(min(found, key=lambda tried: tried.worth)) or solve.out_of_time():
                break
            rng = np.random.default_rng(seed + number)
            begin = first
            if number % 2 == 1:
                begin = self._try(rng.permutation(len(first.order)), QUICK)
            priced = PRICED[number // 2 % len(PRICED)]
            found.append(self._improve_rounds(begin, rng, priced))
        return sorted(found, key=lambda tried: tried.worth)

    def _is_good(self, tried: TriedOrder) -> bool:
        return tried.worth[0] <= self._goal * (1 + 1e-9)

    def _improve_rounds(
        self, best: TriedOrder, rng: np.random.Generator, priced: float
    ) -> TriedOrder:
        """Return the best order found by alternating orders and routes."""
        proof = self._scaled(self.certificate.lengths)
        prices, stale = [proof], 0
        for _ in range(ROUNDS):
            late = self.settings.solve.out_of_time()
            if self._is_good(best) or stale == PATIENT_ROUNDS or late:
                break
            order = best.order.copy()
            lengths = (1 - priced) * proof + priced * np.mean(prices, axis=0)
            self._improve(order, self._scaled(lengths), rng)
            tried = self._try(order, DEFAULTS)
            if tried.placed is not None:
                prices.append(tried.placed.lengths)
            stale = 0 if tried.worth < best.worth else stale + 1
            best = tried if tried.worth <= best.worth else best
        return best

    def _try(self, order: Ints, params: PlacementParams) -> TriedOrder:
        """Place all chunks on forward paths of an order."""
        late = self.settings.solve.out_of_time
        network = forward_network(self.lanes, order)
        placed = place(network, self._chunks, self._goal, params, late=late)
        if placed is None:
            proof = self._scaled(self.certificate.lengths)
            distance = core.improve_order(order, *self._game(proof), 0, 0)
            return TriedOrder(order, None, (np.inf, distance))
        above, solve = placed.time / self.certificate.bound - 1, self.settings.solve
        text = f"an order tried: {above:.2%} above the bound without layers"
        solve.report(ProgressMessage.of_gap(text, above, solve.gap))
        return TriedOrder(order, placed, (placed.time, 0.0))

    @property
    def _per_shard(self) -> int:
        """The number of chunks of a shard."""
        pairs = len(self.lanes.problem.demand.pairs()[0])
        return min(DEFAULT_ROUTES, max(1, ALL_CHUNKS // pairs))

    @cached_property
    def _chunks(self) -> Chunks:
        """The chunks of all pairs, from terminal to terminal."""
        demand = self.lanes.problem.demand
        source, destination = (np.repeat(each, self._per_shard) for each in demand.pairs())
        return Chunks(source, destination, demand.of(source, destination) / self._per_shard)

    @cached_property
    def _goal(self) -> float:
        """The target time: the bound, rounded up to whole chunks."""
        return round_up_time(self.lanes.problem, self.certificate.bound, self._per_shard)

    def _scaled(self, lengths: Floats) -> Floats:
        """Return normalised lengths, none too short, whose products with capacity sum to 1."""
        capacity = self.lanes.problem.topology.capacity
        least = LEAST_PRICE * float(lengths @ capacity) / len(lengths)
        longer = np.maximum(lengths, least / capacity)
        return np.asarray(longer / float(longer @ capacity))

    def _game(self, lengths: Floats) -> tuple[core.Graph, Ints, Singles, Singles]:
        """Return the channels of an order: their graph, terminals, lengths and demands."""
        lanes = self.lanes
        wanted = np.ascontiguousarray(lanes.problem.demand.table().T, dtype=np.float32)
        single = lengths[lanes.link].astype(np.float32)
        nodes = lanes.copies * lanes.problem.topology.nodes
        graph = core.Graph(nodes, *lanes.ends)
        return graph, lanes.terminals, single / single.mean(), wanted

    def _improve(self, order: Ints, lengths: Floats, rng: np.random.Generator) -> None:
        """Move channels, in place, until sweeps gain too little."""
        late = self.settings.solve.sharing().out_of_time
        terminals, game = self.lanes.terminals.shape[1], self._game(lengths)
        per_call = 1 + READ_PER_CALL // (2 * terminals * (len(order) + 4 * terminals))
        before = core.improve_order(order, *game, 0, 0)
        while True:
            for first in range(0, len(order), per_call):
                if late():
                    return
                moves = min(per_call, len(order) - first)
                after = core.improve_order(order, *game, moves, int(rng.integers(2**63)))
            if after > before * (1 - WORTHWHILE):
                return
            before = after

    def routes(self, tried: TriedOrder, method: str) -> Routes | None:
        """Return a route per distinct path of channels, weighted by the chunks that take it."""
        if tried.placed is None:
            return None
        chunks = self._chunks
        paths = Paths.from_table(chunks.start, chunks.end, tried.placed.table)
        merged = paths.merge_equal(chunks.size)
        routes = routes_of_channels(self.lanes, *merged, self.certificate, method)
        whole = self._per_shard if self.lanes.problem.demand.uniform else None
        return replace(routes, denominator=whole)


def routes_of_channels(
    lanes: Lanes, paths: Paths, weight: Floats, certificate: Certificate, method: str
) -> Routes:
    """Return weighted paths of channels as routes, without counting unused layers."""
    return Routes(
        problem=lanes.problem,
        source=paths.source,
        destination=paths.destination,
        start=paths.start,
        link=lanes.link[paths.link],
        weight=weight,
        certificate=certificate,
        method=method,
        hop_layer=np.unique(lanes.layer[paths.link], return_inverse=True)[1],
    )
