"""Weights as exact fractions: the fewest chunks per shard that carry the routes at no loss.

A solver's 0.500000000000004 stands for a half. Where all weights of some routes are near multiples
of 1/C, they are set to them, and the routes are kept if that costs no time. A vertex of a linear
program can have a large C though, and other optimal routes a small one: on a torus of 27 nodes one
chunk per shard does. So smaller numbers of chunks are tried in turn. A number can only do if whole
chunks can add up to the time; then the chunks look for paths that keep it, as in `route_chunks`.
"""

import math
from collections.abc import Callable

import numpy as np

from alltoall.ir.paths import Paths
from alltoall.ir.routes import Routes
from alltoall.routes.route_chunks import NEARLY_WHOLE, RouteChunks
from alltoall.routes.weights import NO_LOSS, routes_from_weights
from alltoall.settings import MOST_CHUNKS, RouteSettings

MOST_TRIED_PER_SHARD = 64
"""Chunks per shard beyond which none are looked for: the paths as they are will do."""

EXACT_CHUNKS_TRIED = 40_000
"""Chunks of all pairs that are looked for paths in all tries together; a few seconds at most."""

SOLVER_MISS = 1e-6
"""The share of the time by which a solver may miss the optimum that whole chunks have exactly."""


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
    """Return routes of the same time in the fewest chunks per shard that are found.

    They take the paths of the routes, the `others`, or, if `anywhere`, all that there are.
    """
    routes, late = exact_weights(routes), settings.begin().solve.out_of_time
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
        found = _at_no_loss(RouteChunks(routes, chunks, late, paths), time, reroute)
        if found is not None:
            return found
    return routes


def _may_do(routes: Routes, chunks: int, time: float) -> bool:
    """Whether all shards are whole chunks, and on some link chunks can add up to the time."""
    demand = routes.problem.demand
    shards = np.ones(1) if demand.uniform else demand.table()
    if (np.abs(shards * chunks - np.rint(shards * chunks)) > NEARLY_WHOLE).any():
        return False
    load = np.unique(routes.problem.topology.capacity) * chunks
    whole = np.floor(time * (1 + NO_LOSS) * load)
    return bool((whole >= routes.time * (1 - SOLVER_MISS) * load).any())


def _at_no_loss(cut: RouteChunks, time: float, reroute: bool) -> Routes | None:
    """Return routes of the chunks within a time, if they find paths for it."""
    first, target = cut.rounded(), time * (1 + NO_LOSS)
    places = first if cut.time(first) <= target else cut.on_own_paths(first, target)
    if places is not None:
        return cut.as_routes(places)
    return cut.on_any_paths(first, target) if reroute else None


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
