"""All chunks of some routes, and the search for paths on which they keep a time.

A chunk takes one of the paths of its pair (`placing.listed`), or any path at all
(`placing.negotiate`).
"""

import math

import numpy as np

from alltoall.errors import InputError
from alltoall.ir.arrays import Floats
from alltoall.ir.chunks import chunks_of
from alltoall.ir.paths import Paths
from alltoall.ir.routes import Routes
from alltoall.placing.chunks import Chunks, path_room
from alltoall.placing.listed import Choice, ListedChunks, negotiate_listed, phase_loads
from alltoall.placing.negotiate import negotiate
from alltoall.placing.network import any_path
from alltoall.routes.weights import TARGETS, round_up_time, routes_from_weights, tries_for
from alltoall.settings import Late

NEARLY_WHOLE = 1e-7
"""How far from a whole number of chunks a weight may be and still count as one."""

MOST_ROUTE_CHUNKS = 20_000_000
"""Chunks of all shards together, at most."""


class RouteChunks:
    """All chunks of the routes, each on one of the paths of its pair.

    The paths are those of the routes, in their layers if they have any, and those of `others`. A
    shard of size 1 is cut into `chunks`, or every shard if they are for `each`.
    """

    def __init__(
        self,
        routes: Routes,
        chunks: int,
        late: Late,
        others: Paths | None = None,
        each: bool = False,
    ) -> None:
        self.problem, self.routes, self.chunks, self.late = routes.problem, routes, chunks, late
        paths: Paths = routes
        weight, layered = routes.weight, routes.layers is not None and others is None
        if others is not None:
            joined = Paths.join([routes, others])
            paths, weight = joined.merge_equal(np.append(weight, np.zeros(others.count)))
        pair = paths.pair(len(self.problem.topology.terminals))
        order = np.argsort(pair, kind="stable")
        self.paths, self.weight = paths.select(order), weight[order]
        self.layered = routes.select(order) if layered else None
        _, self.first, self.row = np.unique(pair[order], return_index=True, return_inverse=True)
        self.demand = self.problem.demand.of(
            self.paths.source[self.first], self.paths.destination[self.first]
        )
        self.counts = chunks_of(np.ones_like(self.demand) if each else self.demand, chunks)
        # More of them than can be counted, too, are refused before any is made.
        total = float(self.counts.sum(dtype=np.float64))
        if total > MOST_ROUTE_CHUNKS:
            raise InputError(
                f"{total:.4g} chunks of all shards; expected at most {MOST_ROUTE_CHUNKS:,}: use "
                "fewer chunks per shard, or a demand in larger units"
            )
        owner = np.repeat(np.arange(len(self.first)), self.counts)
        after = np.append(self.first[1:], len(order))
        self.size = (self.demand / self.counts)[owner]
        self.items = ListedChunks(
            self.paths.start, self.paths.link, self.first[owner], after[owner], self.size
        )

    def rounded(self) -> Choice:
        """Give every path its whole chunks, and those left over to the largest remainders."""
        ideal = self.weight / self.demand[self.row] * self.counts[self.row]
        whole = np.floor(ideal + NEARLY_WHOLE).astype(np.int64)
        left = self.counts - np.bincount(self.row, whole, len(self.counts)).astype(np.int64)
        order = np.lexsort((whole - ideal, self.row))
        rank = np.arange(len(order)) - self.first[self.row]
        whole[order] += rank < left[self.row]
        path = np.repeat(np.arange(len(whole)), whole)
        return Choice(path, np.zeros(len(path), dtype=np.int64))

    def targets(self, first: Choice) -> tuple[float, float, int]:
        """Return the time without a loss, a step from there, and the steps below the first try."""
        worst = self.time(first)
        least, unit = round_up_time(self.problem, self.routes.time, self.chunks), 0.0
        if self.problem.demand.uniform:
            unit = 1 / (self.chunks * float(self.problem.topology.capacity.max()))
        span = max(0.0, worst - least)
        step = max(unit, span / TARGETS, 1e-12 * worst)
        return least, step, math.ceil(span / step * (1 - 1e-9)) - 1

    def time(self, places: Choice) -> float:
        """Return the largest load over capacity of chunks in their places."""
        return float(phase_loads(self.problem.topology, self.items, places, 1).max())

    def on_own_paths(self, first: Choice, target: float) -> Choice | None:
        """Return places on the pairs' own paths within a time, if they are found."""
        budget = np.array([target * (1 + 1e-12)])
        tried = (
            negotiate_listed(self.problem.topology, self.items, first, budget, seed, self.late)
            for seed in range(tries_for(len(self.size)))
        )
        return next((places for places in tried if places is not None), None)

    def on_any_paths(self, first: Choice, target: float) -> Routes | None:
        """Return routes over any paths within a time, if they are found."""
        topology = self.problem.topology
        ends = (self.paths.source[first.path], self.paths.destination[first.path])
        chunks = Chunks(topology.terminals[ends[0]], topology.terminals[ends[1]], self.size)
        budget, network = target * topology.capacity * (1 + 1e-12), any_path(topology)
        room = path_room(int(self.paths.hops.max()), topology.nodes)
        start = self.paths.table(room)[first.path]
        for seed in range(tries_for(len(self.size))):
            if self.late():
                break
            table, fits = negotiate(network, chunks, start, budget, seed, self.late)
            if fits:
                merged = Paths.from_table(*ends, table).merge_equal(self.size)
                return self._weighted(*merged)
        return None

    def as_routes(self, places: Choice) -> Routes:
        """Return a route per path that carries chunks, in the layer of that path."""
        weight = np.bincount(places.path, self.size, self.paths.count).astype(np.float64)
        used = np.flatnonzero(weight)
        paths, weight = self.paths.select(used), weight[used]
        if self.layered is None:
            return self._weighted(*paths.merge_equal(weight))
        return self._weighted(paths, weight, self.layered.select(used))

    def _weighted(self, paths: Paths, weight: Floats, layered: Routes | None = None) -> Routes:
        """Return routes whose weights are exact multiples of their chunk."""
        units = weight * self.chunks
        whole = bool((np.abs(units - np.rint(units)) <= NEARLY_WHOLE).all())
        return routes_from_weights(
            self.problem,
            paths,
            np.rint(units) / self.chunks if whole else weight,
            self.routes.certificate,
            self.routes.method,
            self.chunks if whole else None,
            layered,
        )
