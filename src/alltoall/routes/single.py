"""`single` and `few`: near-optimal routing with one route per pair, or a handful.

A shard is cut into C equal chunks, each on one route (C = 1 for `single`), so a pair has at most C
routes. The chunks are spread over all paths by best responses to prices (`placing.place`), which
comes within a chunk or two per link of the certified bound, rounded up to what whole chunks can
reach.

With few chunks, closing the remaining gap is affordable: a target time gives every link a budget,
and the chunks negotiate until all budgets hold (`negotiate`). They start from the placed paths, or
from those of the optimal fractional flow: a vertex of the master program splits few pairs. The
target starts at the bound, rounded up, and is raised until they succeed.
"""

from collections.abc import Iterator
from dataclasses import replace
from itertools import count

import numpy as np

from alltoall.flows import sizes
from alltoall.flows.methods import solve_master, solve_sources
from alltoall.ir.flow import Flow
from alltoall.ir.paths import Paths
from alltoall.ir.problem import Problem
from alltoall.ir.routes import Routes
from alltoall.placing.chunks import Chunks, Table, largest_load
from alltoall.placing.negotiate import negotiate, trace_paths
from alltoall.placing.network import any_path, no_path
from alltoall.placing.place import PlacementParams, place
from alltoall.routes.by_destination import route_by_destination
from alltoall.routes.weights import round_up_time, routes_from_weights, tries_for
from alltoall.settings import RouteSettings

COARSE_BOUND_GAP = 5e-4
"""The least certified gap where only the bound is needed; `benchmarks/scale_routes.py`."""

DEFAULT_ROUTES = 8
"""Routes per pair that `few` tries by default: as many as the paper's card stores."""


def route_single(problem: Problem, settings: RouteSettings) -> Routes:
    """Return one route per pair."""
    flow = _master(problem, settings)
    if settings.destination_based:
        return route_by_destination(problem, flow.certificate, settings)
    return route_chunks(flow, 1, settings, "single")


def route_few(problem: Problem, settings: RouteSettings) -> Routes:
    """Return the fewest routes per pair that lose no more than `loss` against the bound.

    If `max_routes` is reached first, the best found within it.
    """
    flow = _master(problem, settings)
    tried: list[Routes] = []
    for chunks in range(1, (settings.max_routes or DEFAULT_ROUTES) + 1):
        tried.append(route_chunks(flow, chunks, settings, "few"))
        if tried[-1].gap <= settings.loss or settings.solve.out_of_time():
            break
    return min(tried, key=lambda routes: routes.time)


def _master(problem: Problem, settings: RouteSettings) -> Flow:
    """Return the flow whose bound the routes aim at, and on whose paths few chunks can start.

    With very many chunks only the bound is needed, and no finer than whole chunks can follow it.
    """
    if len(problem.sources) * len(problem.topology.terminals) <= sizes.NEGOTIATED_CHUNKS:
        return solve_sources(problem, settings.solve)
    return solve_master(
        problem, replace(settings.solve, gap=max(settings.solve.gap, COARSE_BOUND_GAP))
    )


def route_chunks(flow: Flow, chunks: int, settings: RouteSettings, method: str) -> Routes:
    """Return routes of whole chunks, each shard cut into `chunks`, near the bound of a flow."""
    problem, terminals = flow.problem, flow.problem.topology.terminals
    source, destination = (np.repeat(each, chunks) for each in problem.demand.pairs())
    weight = problem.demand.of(source, destination) / chunks
    cut = Chunks(terminals[source], terminals[destination], weight)
    table = spread_chunks(flow, chunks, cut, settings, method)
    paths = Paths.from_table(source, destination, table)
    if chunks > 1:
        paths, weight = paths.merge_equal(weight)
    whole = chunks if problem.demand.uniform else None
    return routes_from_weights(problem, paths, weight, flow.certificate, method, whole)


def spread_chunks(
    flow: Flow,
    chunks: int,
    cut: Chunks,
    settings: RouteSettings,
    method: str,
    negotiable: int = sizes.NEGOTIATED_CHUNKS,
) -> Table:
    """Return a path per chunk, near the bound of a flow; shards of size 1 are cut in `chunks`.

    Where there are `negotiable` of them or fewer, they negotiate.
    """
    topology, solving = flow.problem.topology, settings.solve
    enough = flow.bound * (1 + solving.gap)
    goal = max(enough, next(_targets(flow, chunks)))
    above = goal / flow.bound - 1
    solving.report(f"{method}: {chunks} per pair, aiming at {above:.2%} above the bound")

    def report(index: int, time: float) -> None:
        solving.report(f"spreading chunks: pass {index}, {time / goal - 1:.2%} above the goal")

    params = PlacementParams(threads=solving.workers)
    placed = place(any_path(topology), cut, goal, params, late=solving.out_of_time, report=report)
    if placed is None:
        raise no_path(topology)
    table = placed.table
    reached = largest_load(topology, Paths.from_table(cut.start, cut.end, table), cut.size)
    if len(cut.start) > negotiable or reached <= enough:
        return table
    return _negotiated(flow, chunks, cut, table, reached * (1 - 1e-9), settings)


def _negotiated(
    flow: Flow, chunks: int, cut: Chunks, table: Table, reached: float, settings: RouteSettings
) -> Table:
    """Return paths for the least target that the chunks reach by negotiation, if below theirs.

    They start where they are and, in turn, on the paths of the flow: neither is always better.
    """
    topology = flow.problem.topology
    network, starts = any_path(topology), [table]
    # A flow that stands for its orbits has no volumes of its own.
    if flow.destination is None and flow.generators is None:
        volumes = np.zeros((flow.groups, topology.links))
        row = np.repeat(np.arange(flow.groups), np.diff(flow.start))
        volumes[row, flow.link] = flow.amount * flow.time
        group = np.searchsorted(topology.terminals[flow.source], cut.start)
        traced = trace_paths(topology, cut, volumes, group, table.shape[1])
        starts.insert(0, traced.astype(np.int32))
    for target in _targets(flow, chunks):
        if target >= reached:
            break
        above = target / flow.bound - 1
        settings.solve.report(f"{len(cut.start)} chunks negotiate: {above:.2%} above the bound")
        budget = target * topology.capacity * (1 + 1e-12)
        for attempt in range(tries_for(len(cut.start))):
            if settings.solve.out_of_time():
                return table
            start, seed = starts[attempt % len(starts)], settings.seed + attempt
            paths, fits = negotiate(network, cut, start, budget, seed, settings.solve.out_of_time)
            if fits:
                return paths
    return table


def _targets(flow: Flow, chunks: int) -> Iterator[float]:
    """Yield target times: whole chunks over the widest link if all chunks are equal."""
    problem, bound = flow.problem, flow.bound
    grid = COARSE_BOUND_GAP * bound
    if problem.demand.uniform:
        unit = 1 / (chunks * float(problem.topology.capacity.max()))
        grid = unit * max(1, round(grid / unit))
        bound = round_up_time(problem, bound, chunks)
    for step in count():
        # Steps grow slowly, so that hard problems end too.
        yield float(bound + grid * (step + step * step // 16))
