"""Weights to chunks, and a bounded number of routes per pair, both at the least cost in time.

The paper cuts shards by the highest common factor of all weights, which can be very small. Bounded,
a shard is cut into at most C chunks: by largest remainder first, then chunks negotiate between the
paths of their pair (`listed`), and if that loses more than whole chunks have to, over all paths
(`negotiate`, in `paths`). What it costs is reported.

Paths may change here, so layers are assigned afterwards. Routes that have layers keep them, and
their chunks keep to the paths that there are.
"""

import math

import numpy as np

from alltoall.errors import UsageError
from alltoall.ir.arrays import Ints
from alltoall.ir.paths import Paths
from alltoall.ir.routes import Routes
from alltoall.lp.solve import solve_program
from alltoall.placing.listed import first_found
from alltoall.routes.exact import fewest_chunks
from alltoall.routes.pmcf import path_program
from alltoall.routes.route_chunks import RouteChunks
from alltoall.routes.weights import routes_from_weights
from alltoall.settings import RouteSettings

ANY_PATHS = ("extp", "single", "few", "fptas")
"""Methods whose routes may be any paths; those of others are what their name says."""


def bounded_chunks(routes: Routes, chunks: int, settings: RouteSettings) -> Routes:
    """Return routes of whole chunks, at most `chunks` per shard, of the least time found.

    A demand that is no whole number of chunks is cut into equal ones of about that size, and then
    the routes have no common denominator.
    """
    if chunks < 1:
        raise UsageError(f"{chunks} chunks per shard; expected at least 1")
    settings = settings.begin()
    cut = RouteChunks(routes, chunks, settings.solve.out_of_time)
    best = _placed(cut, settings)
    loss = best.time / routes.time - 1
    settings.solve.report(f"{chunks} chunks per shard: time {best.time:.9g}, loss {loss:.4g}")
    return best


def _placed(cut: RouteChunks, settings: RouteSettings) -> Routes:
    """Return routes of the chunks of the least time found, over other paths if that helps."""
    first = cut.rounded()
    least, step, last = cut.targets(first)
    found = first_found(last, lambda index: cut.on_own_paths(first, least + index * step))
    best = cut.as_routes(found or first)
    if best.time > least * (1 + 1e-9) and _may_reroute(cut, settings):
        last = min(last, math.ceil((best.time - least) / step) - 1)
        free = first_found(last, lambda index: cut.on_any_paths(first, least + index * step))
        best = best if free is None else min(best, free, key=lambda each: each.time)
    return best


def _may_reroute(cut: RouteChunks, settings: RouteSettings) -> bool:
    """Whether chunks may take other paths: the method promises none, and no limit is broken.

    No layer is lost, and no pair gets more routes than are allowed.
    """
    routes, most = cut.routes, int(cut.counts.max())
    free = routes.method in ANY_PATHS or (routes.method == "pmcf" and settings.paths == "columns")
    return free and routes.layers is None and most <= (settings.max_routes or most)


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
    best = _reweighted(routes, routes, settings)
    if int(best.routes_per_pair().max()) > most_per_pair:
        heaviest = best.select(_heaviest(best, most_per_pair))
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


def _heaviest(routes: Routes, most_per_pair: int) -> Ints:
    """Return the heaviest routes of every pair, at most so many, in order."""
    pair = routes.pair(len(routes.problem.topology.terminals))
    order = np.lexsort((-routes.weight, pair))
    _, first, row = np.unique(pair[order], return_index=True, return_inverse=True)
    return np.asarray(order[np.arange(len(order)) - first[row] < most_per_pair], dtype=np.int64)


def _reweighted(routes: Routes, paths: Paths, settings: RouteSettings) -> Routes:
    """Return the best weights on some paths; equal ones if the solver ran out of time."""
    program, row = path_program(routes.problem, paths)
    result = solve_program(program, settings.solve.solver, settings.solve.lp_settings())
    weight = 1.0 / np.bincount(row)[row]
    if result.x is not None:
        weight = np.maximum(result.x[:-1], 0.0)
    return routes_from_weights(routes.problem, paths, weight, routes.certificate, routes.method)
