"""All chunks of some routes, and the search for paths on which they keep a time.

A chunk takes one of the paths of its pair (`paths.listed`), or any path at all (`paths.negotiate`).
"""

import math

import numpy as np

from a2aflow.ir.arrays import Floats, Ints
from a2aflow.ir.chunks import chunks_of
from a2aflow.ir.problem import Problem
from a2aflow.ir.routes import Routes
from a2aflow.paths.candidates import Candidates
from a2aflow.paths.listed import Items, Places, loads, settle
from a2aflow.paths.negotiate import NOTHING, Chunks, negotiate
from a2aflow.routes.weights import concatenated, merge_equal, routes_from_weights, select_paths
from a2aflow.settings import Late

EXACT = 1e-7
"""How far from a whole number of chunks a weight may be and still count as one."""

ROUNDS = 150
"""Rounds of negotiation for one try."""

TRIES = 4
"""Orders of the chunks that are tried, each from its own seed."""

REROUTES = 100
"""Rounds of negotiation over all paths for one try."""

EFFORT = 10_000
"""Chunks that are rerouted in all tries for one target together."""

MOST_TRIES = 8
"""Orders of the chunks that are tried over all paths, if the effort allows."""

TARGETS = 24
"""Times that are told apart between no loss and that of the first rounding."""


class Pieces:
    """All chunks of the routes, each on one of the paths of its pair.

    The paths are those of the routes, in their layers if they have any, and those of `others`.
    """

    def __init__(
        self, routes: Routes, chunks: int, late: Late, others: Candidates | None = None
    ) -> None:
        self.problem, self.routes, self.chunks, self.late = routes.problem, routes, chunks, late
        paths, weight, layer = paths_of(routes), routes.weight, routes.layer
        if others is not None:
            paths, weight = merge_equal(
                concatenated([paths, others]), np.append(weight, np.zeros(others.count))
            )
            layer = None
        pair = paths.source * len(self.problem.topology.terminals) + paths.destination
        order = np.argsort(pair, kind="stable")
        self.paths, self.weight = select_paths(paths, order), weight[order]
        self.layer = None if layer is None else layer[order]
        pairs, self.first, self.row = np.unique(pair[order], return_index=True, return_inverse=True)
        self.demand = demand_of(self.problem).ravel()[pairs]
        self.counts = chunks_of(self.demand, chunks)
        piece = np.repeat(np.arange(len(pairs)), self.counts)
        after = np.append(self.first[1:], len(order))
        self.size = (self.demand / self.counts)[piece]
        self.items = Items(
            self.paths.start, self.paths.link, self.first[piece], after[piece], self.size
        )

    def rounded(self) -> Places:
        """Give every path its whole chunks, and those left over to the largest remainders."""
        ideal = self.weight / self.demand[self.row] * self.counts[self.row]
        whole = np.floor(ideal + EXACT).astype(np.int64)
        left = self.counts - np.bincount(self.row, whole, len(self.counts)).astype(np.int64)
        order = np.lexsort((whole - ideal, self.row))
        rank = np.arange(len(order)) - self.first[self.row]
        whole[order] += rank < left[self.row]
        path = np.repeat(np.arange(len(whole)), whole)
        return Places(path, np.zeros(len(path), dtype=np.int64))

    def targets(self, first: Places) -> tuple[float, float, int]:
        """Return the time without a loss, a step from there, and the steps below the first try."""
        worst = self.time(first)
        least, unit = self.routes.time, 0.0
        if self.problem.demand.uniform:
            unit = 1 / (self.chunks * float(self.problem.topology.capacity.max()))
            least = math.ceil(least / unit * (1 - 1e-9)) * unit
        span = max(0.0, worst - least)
        step = max(unit, span / TARGETS, 1e-12 * worst)
        return least, step, math.ceil(span / step * (1 - 1e-9)) - 1

    def time(self, places: Places) -> float:
        """Return the largest load over capacity of chunks in their places."""
        return float(loads(self.problem.topology, self.items, places, 1).max())

    def on_own_paths(self, first: Places, target: float) -> Places | None:
        """Return places on the pairs' own paths within a time, if they are found."""
        budget = np.array([target * (1 + 1e-12)])
        tries = (
            settle(self.problem.topology, self.items, first, budget, ROUNDS, seed, self.late)
            for seed in range(TRIES)
        )
        return next((places for places in tries if places is not None), None)

    def on_any_paths(self, first: Places, target: float) -> Routes | None:
        """Return routes over any paths within a time, if they are found."""
        topology = self.problem.topology
        ends = (self.paths.source[first.path], self.paths.destination[first.path])
        pieces = Chunks(topology.terminals[ends[0]], topology.terminals[ends[1]], self.size)
        budget = target * topology.capacity * (1 + 1e-12)
        for seed in range(min(MOST_TRIES, max(1, EFFORT // len(self.size)))):
            if self.late():
                break
            table, fits = negotiate(
                topology, pieces, self._table(first), budget, REROUTES, seed, self.late
            )
            if fits:
                taken = table != NOTHING
                start = np.concatenate(([0], np.cumsum(taken.sum(axis=1))))
                return self._merged(Candidates(*ends, start, table[taken]), self.size)
        return None

    def _table(self, places: Places) -> Ints:
        """Return the links of every piece, a row each, with room for longer paths."""
        hops = np.diff(self.paths.start)
        room = min(self.problem.topology.nodes, 2 * int(hops.max()) + 4)
        table = np.full((self.paths.count, room), NOTHING, dtype=np.int64)
        row = np.repeat(np.arange(self.paths.count), hops)
        table[row, np.arange(len(row)) - self.paths.start[row]] = self.paths.link
        return table[places.path]

    def as_routes(self, places: Places) -> Routes:
        """Return a route per path that carries chunks, in the layer of that path."""
        weight = np.bincount(places.path, self.size, self.paths.count).astype(np.float64)
        used = np.flatnonzero(weight)
        paths, weight = select_paths(self.paths, used), weight[used]
        if self.layer is None:
            return self._merged(paths, weight)
        return self._weighted(paths, weight, self.layer[used])

    def _merged(self, paths: Candidates, weight: Floats) -> Routes:
        return self._weighted(*merge_equal(paths, weight))

    def _weighted(self, paths: Candidates, weight: Floats, layer: Ints | None = None) -> Routes:
        """Return routes with weights that are exact multiples of their chunk."""
        units = weight * self.chunks
        whole = bool((np.abs(units - np.rint(units)) <= EXACT).all())
        return routes_from_weights(
            self.problem,
            paths,
            np.rint(units) / self.chunks if whole else weight,
            self.routes.certificate,
            self.routes.method,
            self.chunks if whole else None,
            layer,
        )


def paths_of(routes: Routes) -> Candidates:
    """Return the paths of routes, in their order."""
    return Candidates(routes.source, routes.destination, routes.start, routes.link)


def demand_of(problem: Problem) -> Floats:
    """Return the demand of every pair, by source and destination."""
    every = np.arange(len(problem.topology.terminals), dtype=np.int64)
    return problem.demand.rows(every)
