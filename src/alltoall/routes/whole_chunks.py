"""Weights to chunks, and a bounded number of routes per pair, both at the least cost in time.

`RouteChunks` has all chunks of some routes, and searches paths on which they keep a time: one of
the paths of their pair (`placing.listed`), or any path at all (`placing.negotiate`).

The paper cuts shards by the highest common factor of all weights, which can be very small. Bounded,
a shard is cut into at most C chunks: by largest remainder first, then chunks negotiate between the
paths of their pair, and if that loses more than whole chunks have to, over all paths. What it
costs is reported.

Paths may change here, so layers are assigned afterwards. Routes with layers keep these, and their
chunks keep to the same paths.

A solver's 0.500000000000004 stands for a half. Where all weights of some routes are near multiples
of 1/C, they are set to them, and the routes are kept if that costs no time. A vertex of a linear
program can have a large C though, and other optimal routes a small one: on a torus of 27 nodes one
chunk per shard does. So smaller numbers of chunks are tried in turn. A number can only do if whole
chunks can add up to the time; then the chunks look for paths that keep it.
"""

import math
from collections.abc import Callable

import numpy as np

from alltoall.errors import InputError, UsageError
from alltoall.flows import sizes
from alltoall.ir.arrays import Floats
from alltoall.ir.chunks import chunks_of
from alltoall.ir.paths import Paths
from alltoall.ir.routes import Routes
from alltoall.lp.solve import solve_program
from alltoall.placing.chunks import Chunks, path_room
from alltoall.placing.listed import Choice, ListedChunks, first_found, negotiate_listed, phase_loads
from alltoall.placing.negotiate import negotiate
from alltoall.placing.network import any_path
from alltoall.routes.pmcf import path_program, weights_of
from alltoall.routes.weights import NO_LOSS, TARGETS, round_up_time, routes_from_weights, tries_for
from alltoall.settings import MOST_CHUNKS, Late, RouteSettings

NEARLY_WHOLE = 1e-7
"""Largest distance of a weight from whole chunks."""

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
        """Round to whole chunks by largest remainders."""
        ideal = self.weight / self.demand[self.row] * self.counts[self.row]
        whole = np.floor(ideal + NEARLY_WHOLE).astype(np.int64)
        left = self.counts - np.bincount(self.row, whole, len(self.counts)).astype(np.int64)
        order = np.lexsort((whole - ideal, self.row))
        rank = np.arange(len(order)) - self.first[self.row]
        whole[order] += rank < left[self.row]
        path = np.repeat(np.arange(len(whole)), whole)
        return Choice(path, np.zeros(len(path), dtype=np.int64))

    def targets(self, first: Choice) -> tuple[float, float, int]:
        """Return the lossless time, the step size, and the steps below the first try."""
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
        """Return placements on the pairs' own paths within a time, or None."""
        budget = np.array([target * (1 + 1e-12)])
        tried = (
            negotiate_listed(self.problem.topology, self.items, first, budget, seed, self.late)
            for seed in range(tries_for(len(self.size)))
        )
        return next((places for places, fits in tried if fits), None)

    def on_any_paths(self, first: Choice, target: float) -> Routes | None:
        """Return routes over any paths within a time, or None."""
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


MOST_TRIED_PER_SHARD = 64
"""Chunks per shard at most: beyond, the routes stay as they are."""

EXACT_CHUNKS_TRIED = sizes.NEGOTIATED_CHUNKS
"""Chunks of all tries together; they take a few seconds at most."""

SOLVER_MISS = 1e-6
"""Relative distance of a solver's time from the exact time of whole chunks."""


def exact_weights(routes: Routes) -> Routes:
    """Return the routes with weights as exact fractions, or as they are if they stand for none."""
    common = None if routes.denominator else common_factor_chunks(routes)
    if common is None:
        return routes
    units = np.rint(routes.weight * common)
    pair = routes.pair(len(routes.problem.topology.terminals))
    wanted = routes.problem.demand.table().ravel() * common
    carried = np.bincount(pair, units, len(wanted))
    missed = np.abs(carried - wanted) > NEARLY_WHOLE
    # However small a demand is, it is one.
    if (missed | ((carried == 0) & (wanted > 0))).any():
        return routes
    exact = routes_from_weights(
        routes.problem,
        routes,
        units / common,
        routes.certificate,
        routes.method,
        common,
        routes,
    )
    return exact if exact.time <= routes.time * (1 + NO_LOSS) else routes


def fewest_chunks(
    routes: Routes,
    settings: RouteSettings,
    others: Callable[[], Paths] | None = None,
    anywhere: bool = False,
) -> Routes:
    """Return routes of the same time in the fewest chunks per shard found.

    They take the paths of the routes, the `others`, or any paths if `anywhere`.
    """
    routes, late = exact_weights(routes), settings.solve.out_of_time
    time = max(routes.time, routes.bound * (1 + min(SOLVER_MISS, settings.solve.gap)))
    effort, paths = float(EXACT_CHUNKS_TRIED), None
    for chunks in range(1, min(routes.denominator or MOST_CHUNKS, MOST_TRIED_PER_SHARD + 1)):
        if late():
            break
        if not _may_do(routes, chunks, time):
            continue
        effort -= routes.problem.demand.total * chunks
        if effort < 0:
            break
        paths = others() if others is not None and paths is None else paths
        reroute = anywhere and chunks <= (settings.max_routes or chunks)
        cut = RouteChunks(routes, chunks, late, paths)
        first, target = cut.rounded(), time * (1 + NO_LOSS)
        places = first if cut.time(first) <= target else cut.on_own_paths(first, target)
        if places is not None:
            return cut.as_routes(places)
        rerouted = cut.on_any_paths(first, target) if reroute else None
        if rerouted is not None:
            return rerouted
    return routes


def _may_do(routes: Routes, chunks: int, time: float) -> bool:
    """Return whether shards are whole chunks and some link's chunks can add up to the time."""
    demand = routes.problem.demand
    shards = np.ones(1) if demand.uniform else demand.table()
    if (np.abs(shards * chunks - np.rint(shards * chunks)) > NEARLY_WHOLE).any():
        return False
    load = np.unique(routes.problem.topology.capacity) * chunks
    whole = np.floor(time * (1 + NO_LOSS) * load)
    return bool((whole >= routes.time * (1 - SOLVER_MISS) * load).any())


def common_factor_chunks(routes: Routes, most_chunks: int = MOST_CHUNKS) -> int | None:
    """Return the least C such that all weights are multiples of 1/C, None above `most_chunks`."""
    weights = np.unique(np.round(routes.weight, 12))
    below = np.arange(1, most_chunks + 1)
    common = 1
    while len(weights) and common <= most_chunks:
        # The least denominator of each weight divides C, so C is their least common multiple.
        units = weights[0] * below
        whole = np.flatnonzero(np.abs(units - np.rint(units)) <= NEARLY_WHOLE)
        if not len(whole):
            return None
        common = math.lcm(common, int(below[whole[0]]))
        units = weights[1:] * common
        weights = weights[1:][np.abs(units - np.rint(units)) > NEARLY_WHOLE]
    return common if common <= most_chunks else None


ANY_PATHS = ("extp", "single", "few", "fptas")
"""Methods whose routes may take any path; other methods promise a path set."""


def bounded_chunks(routes: Routes, chunks: int, settings: RouteSettings) -> Routes:
    """Return the fastest routes found with whole chunks, at most `chunks` per shard.

    Other demands than whole numbers of chunks are cut into equal ones of about that size; then the
    routes have no common denominator.
    """
    if chunks < 1:
        raise UsageError(f"{chunks} chunks per shard; expected at least 1")
    cut = RouteChunks(routes, chunks, settings.solve.out_of_time)
    best = _placed(cut, settings)
    loss = best.time / routes.time - 1
    settings.solve.report(f"{chunks} chunks per shard: time {best.time:.9g}, loss {loss:.4g}")
    return best


def _placed(cut: RouteChunks, settings: RouteSettings) -> Routes:
    """Return the fastest routes found for the chunks, over other paths if faster.

    They may take others if the method promises none, they have no layers, and no pair gets more
    routes than are allowed.
    """
    routes, most = cut.routes, int(cut.counts.max())
    columns = routes.method == "pmcf" and settings.paths == "columns"
    promises_none = columns or routes.method in ANY_PATHS
    may_reroute = promises_none and routes.layers is None and most <= (settings.max_routes or most)
    first = cut.rounded()
    least, step, last = cut.targets(first)
    found = first_found(last, lambda index: cut.on_own_paths(first, least + index * step))
    best = cut.as_routes(found or first)
    if best.time > least * (1 + 1e-9) and may_reroute:
        last = min(last, math.ceil((best.time - least) / step) - 1)
        free = first_found(last, lambda index: cut.on_any_paths(first, least + index * step))
        best = best if free is None else min(best, free, key=lambda each: each.time)
    return best


def limit_routes(routes: Routes, most_per_pair: int, settings: RouteSettings) -> Routes:
    """Return routes with a limit per pair, reweighted by the path program.

    The paths are the heaviest ones of a vertex of that program, or those on which as many whole
    chunks go with the least loss; whichever is better.
    """
    if most_per_pair < 1:
        raise UsageError(f"{most_per_pair} routes per pair; expected at least 1")
    if int(routes.routes_per_pair().max()) <= most_per_pair:
        return routes
    best = _reweighted(routes, routes, settings)
    if int(best.routes_per_pair().max()) > most_per_pair:
        pair = best.pair(len(best.problem.topology.terminals))
        order = np.lexsort((-best.weight, pair))
        _, first, row = np.unique(pair[order], return_index=True, return_inverse=True)
        heaviest = best.select(order[np.arange(len(order)) - first[row] < most_per_pair])
        late = settings.solve.out_of_time
        whole = _placed(RouteChunks(routes, most_per_pair, late, each=True), settings)
        best = min(
            (_reweighted(routes, paths, settings) for paths in (heaviest, whole)),
            key=lambda each: each.time,
        )
    loss = best.time / routes.time - 1
    report = f"at most {most_per_pair} routes per pair: time {best.time:.9g}, loss {loss:.4g}"
    settings.solve.report(report)
    return fewest_chunks(best, settings)


def _reweighted(routes: Routes, paths: Paths, settings: RouteSettings) -> Routes:
    """Return the best weights on some paths; equal ones if the solver ran out of time."""
    program, row = path_program(routes.problem, paths)
    result = solve_program(program, settings.solve.solver, settings.solve.lp_settings())
    weight = weights_of(result, row)
    return routes_from_weights(routes.problem, paths, weight, routes.certificate, routes.method)
