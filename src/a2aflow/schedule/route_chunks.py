"""Weights to chunks, and a bounded number of routes per pair, both at the least cost in time.

The paper cuts shards by the highest common factor of all weights, which can be very small. Bounded,
a shard is cut into at most C chunks: by largest remainder first, then chunks negotiate between the
paths of their pair (`settle`), and if that loses more than whole chunks have to, over all paths
(`solve.negotiate`). What it costs is reported.

Paths may change here, so layers are assigned afterwards: what is returned has none.
"""

import math

import numpy as np

from a2aflow.errors import UsageError
from a2aflow.ir.arrays import Floats, Ints
from a2aflow.ir.problem import Problem
from a2aflow.ir.routes import Routes
from a2aflow.ir.schedule import chunks_of
from a2aflow.lp import solve_program
from a2aflow.schedule.settle import Items, Places, first_found, loads, settle
from a2aflow.solve.candidates import Candidates
from a2aflow.solve.negotiate import NOTHING, Chunks, negotiate
from a2aflow.solve.path_mcf import path_program
from a2aflow.solve.route_settings import RouteSettings
from a2aflow.solve.routing import merge_equal, routes_from_weights, select_paths
from a2aflow.solve.settings import Late

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


def common_factor_chunks(routes: Routes, most: int = 4096) -> int | None:
    """Return the least C such that all weights are multiples of 1/C, or None if above `most`."""
    weights = np.unique(np.round(routes.weight, 12))
    common = 1
    while len(weights):
        if common > most:
            return None
        # The least denominator of each weight divides C, so C is their least common multiple.
        below = np.arange(1, most + 1)
        units = weights[0] * below
        whole = np.flatnonzero(np.abs(units - np.rint(units)) <= EXACT)
        if not len(whole):
            return None
        common = math.lcm(common, int(below[whole[0]]))
        units = weights * common
        weights = weights[np.abs(units - np.rint(units)) > EXACT]
    return common if common <= most else None


def bounded_chunks(routes: Routes, chunks: int, settings: RouteSettings) -> Routes:
    """Return routes of whole chunks, at most `chunks` per shard, of the least time found.

    A demand that is no whole number of chunks is cut into equal ones of about that size, and then
    the routes have no common denominator.
    """
    if chunks < 1:
        raise UsageError(f"{chunks} chunks per shard; expected at least 1")
    settings = settings.begin()
    pieces = _Pieces(routes, chunks, settings.solve.out_of_time)
    first = pieces.rounded()
    least, step, last = pieces.targets(first)
    found = first_found(last, lambda index: pieces.on_own_paths(first, least + index * step))
    best = pieces.as_routes(found or first)
    if best.time > least * (1 + 1e-9) and (settings.max_routes or chunks) >= chunks:
        last = min(last, math.ceil((best.time - least) / step) - 1)
        free = first_found(last, lambda index: pieces.on_any_paths(first, least + index * step))
        best = best if free is None else min(best, free, key=lambda each: each.time)
    loss = best.time / routes.time - 1
    settings.solve.report(f"{chunks} chunks per shard: time {best.time:.9g}, loss {loss:.4g}")
    return best


class _Pieces:
    """All chunks of the routes, each on one of the paths of its pair."""

    def __init__(self, routes: Routes, chunks: int, late: Late) -> None:
        self.problem, self.routes, self.chunks, self.late = routes.problem, routes, chunks, late
        terminals = len(self.problem.topology.terminals)
        pair = routes.source * terminals + routes.destination
        order = np.argsort(pair, kind="stable")
        self.paths = select_paths(_candidates(routes), order)
        self.weight = routes.weight[order]
        pairs, self.first, self.row = np.unique(pair[order], return_index=True, return_inverse=True)
        self.demand = _demand(self.problem).ravel()[pairs]
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
        worst = self._time(first)
        least, unit = self.routes.time, 0.0
        if self.problem.demand.uniform:
            unit = 1 / (self.chunks * float(self.problem.topology.capacity.max()))
            least = math.ceil(least / unit * (1 - 1e-9)) * unit
        span = max(0.0, worst - least)
        step = max(unit, span / TARGETS, 1e-12 * worst)
        return least, step, math.ceil(span / step * (1 - 1e-9)) - 1

    def _time(self, places: Places) -> float:
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
        """Return a route per path that carries chunks."""
        weight = np.bincount(places.path, self.size, self.paths.count)
        used = np.flatnonzero(weight)
        return self._merged(select_paths(self.paths, used), np.asarray(weight[used], np.float64))

    def _merged(self, paths: Candidates, weight: Floats) -> Routes:
        """Return routes of distinct paths, with weights that are exact multiples of their chunk."""
        paths, weight = merge_equal(paths, weight)
        units = weight * self.chunks
        whole = bool((np.abs(units - np.rint(units)) <= EXACT).all())
        return routes_from_weights(
            self.problem,
            paths,
            np.rint(units) / self.chunks if whole else weight,
            self.routes.certificate,
            self.routes.method,
            self.chunks if whole else None,
        )


def limit_routes(routes: Routes, most_per_pair: int, settings: RouteSettings) -> Routes:
    """Return routes with at most so many per pair, weighted anew by the path program.

    The paths are the heaviest ones of a vertex of that program, or those on which as many whole
    chunks go with the least loss; whichever is better.
    """
    if most_per_pair < 1:
        raise UsageError(f"{most_per_pair} routes per pair; expected at least 1")
    settings = settings.begin()
    if int(routes.routes_per_pair().max()) <= most_per_pair:
        return routes
    best = _reweighted(routes, _candidates(routes), settings)
    if int(best.routes_per_pair().max()) > most_per_pair:
        heaviest = select_paths(_candidates(best), _heaviest(best, most_per_pair))
        whole = bounded_chunks(routes, most_per_pair, settings)
        best = min(
            (_reweighted(routes, paths, settings) for paths in (heaviest, _candidates(whole))),
            key=lambda each: each.time,
        )
    loss = best.time / routes.time - 1
    report = f"at most {most_per_pair} routes per pair: time {best.time:.9g}, loss {loss:.4g}"
    settings.solve.report(report)
    return best


def _heaviest(routes: Routes, most: int) -> Ints:
    """Return the heaviest routes of every pair, at most so many, in order."""
    pair = routes.source * len(routes.problem.topology.terminals) + routes.destination
    order = np.lexsort((-routes.weight, pair))
    _, first, row = np.unique(pair[order], return_index=True, return_inverse=True)
    return np.asarray(order[np.arange(len(order)) - first[row] < most], dtype=np.int64)


def _reweighted(routes: Routes, paths: Candidates, settings: RouteSettings) -> Routes:
    """Return the best weights on some paths; equal ones if the solver ran out of time."""
    program, row = path_program(routes.problem, paths)
    result = solve_program(program, settings.solve.solver, settings.solve.lp_settings())
    weight = 1.0 / np.bincount(row)[row]
    if result.x is not None:
        weight = np.maximum(result.x[:-1], 0.0)
    return routes_from_weights(routes.problem, paths, weight, routes.certificate, routes.method)


def _candidates(routes: Routes) -> Candidates:
    return Candidates(routes.source, routes.destination, routes.start, routes.link)


def _demand(problem: Problem) -> Floats:
    return problem.demand.rows(np.arange(len(problem.topology.terminals), dtype=np.int64))
