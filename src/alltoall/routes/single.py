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
from alltoall.ir.arrays import Floats, Ints
from alltoall.ir.flow import Flow
from alltoall.ir.paths import Paths
from alltoall.ir.problem import Problem
from alltoall.ir.routes import Routes
from alltoall.ir.topology import Topology
from alltoall.placing.chunks import Chunks, Table, largest_load
from alltoall.placing.negotiate import negotiate, trace_paths
from alltoall.placing.network import any_path, no_path
from alltoall.placing.place import PlacementParams, place
from alltoall.routes.by_destination import route_by_destination
from alltoall.routes.weights import round_up_time, routes_from_weights, tries_for
from alltoall.settings import RouteSettings, SolveSettings

COARSE_BOUND_GAP = 5e-4
"""The least certified gap where only the bound is needed; `benchmarks/scale_routes.py`."""

DEFAULT_ROUTES = 8
"""Routes per pair that `few` tries by default: as many as the paper's card stores."""


def route_single(problem: Problem, settings: RouteSettings) -> Routes:
    """Return one route per pair."""
    settings = settings.begin()
    flow = _master(problem, settings)
    if settings.destination_based:
        return route_by_destination(problem, flow.certificate, settings)
    return route_chunks(flow, 1, settings, "single")


def route_few(problem: Problem, settings: RouteSettings) -> Routes:
    """Return the fewest routes per pair that lose no more than `loss` against the bound.

    If `max_routes` is reached first, the best found within it.
    """
    settings = settings.begin()
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
    cut, source, destination = _cut(flow.problem, chunks)
    table = spread_chunks(flow, chunks, cut, settings, method)
    return _as_routes(flow, chunks, source, destination, table, method)


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
    problem = flow.problem
    enough = flow.bound * (1 + settings.solve.gap)
    goal = max(enough, next(_targets(problem, flow.bound, chunks)))
    above = goal / flow.bound - 1
    settings.solve.report(f"{method}: {chunks} per pair, aiming at {above:.2%} above the bound")
    table = _best_response(problem.topology, cut, goal, settings.solve)
    if len(cut.start) > negotiable or _time(problem.topology, cut, table) <= enough:
        return table
    return _negotiated(flow, chunks, cut, table, settings)


def _best_response(topology: Topology, cut: Chunks, goal: float, settings: SolveSettings) -> Table:
    """Return a path per chunk by best responses to link prices."""

    def report(index: int, time: float) -> None:
        settings.report(f"spreading chunks: pass {index}, {time / goal - 1:.2%} above the goal")

    params = PlacementParams(threads=settings.workers)
    placed = place(any_path(topology), cut, goal, params, late=settings.out_of_time, report=report)
    if placed is None:
        raise no_path(topology)
    return placed.table


def _negotiated(
    flow: Flow, chunks: int, cut: Chunks, table: Table, settings: RouteSettings
) -> Table:
    """Return paths for the least target that the chunks reach by negotiation, if below theirs.

    They start where they are and, in turn, on the paths of the flow: neither is always better.
    """
    topology = flow.problem.topology
    network, reached = any_path(topology), _time(topology, cut, table) * (1 - 1e-9)
    starts = [*_flow_paths(flow, cut, table.shape[1]), table]
    for target in _targets(flow.problem, flow.bound, chunks):
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


def _flow_paths(flow: Flow, cut: Chunks, hops: int) -> list[Table]:
    """Return a path per chunk along the volumes of a flow per source, as far as they suffice.

    A flow under symmetry has no volumes per source.
    """
    topology = flow.problem.topology
    if flow.destination is not None or flow.generators is not None:
        return []
    volumes = np.zeros((flow.groups, topology.links))
    row = np.repeat(np.arange(flow.groups), np.diff(flow.start))
    volumes[row, flow.link] = flow.amount * flow.time
    group = np.searchsorted(topology.terminals[flow.source], cut.start)
    return [trace_paths(topology, cut, volumes, group, hops).astype(np.int32)]


def _time(topology: Topology, cut: Chunks, table: Table) -> float:
    return largest_load(topology, Paths.from_table(cut.start, cut.end, table), cut.size)


def _cut(problem: Problem, chunks: int) -> tuple[Chunks, Ints, Ints]:
    """Return all chunks, and the source and destination of each."""
    terminals = problem.topology.terminals
    source, destination = (np.repeat(each, chunks) for each in problem.demand.pairs())
    size = problem.demand.of(source, destination) / chunks
    return Chunks(terminals[source], terminals[destination], size), source, destination


def _targets(problem: Problem, bound: float, chunks: int) -> Iterator[float]:
    """Yield times to aim for: whole chunks over the widest link where all chunks are equal."""
    grid = COARSE_BOUND_GAP * bound
    if problem.demand.uniform:
        unit = 1 / (chunks * float(problem.topology.capacity.max()))
        grid = unit * max(1, round(grid / unit))
        bound = round_up_time(problem, bound, chunks)
    for step in count():
        # Steps grow slowly, so that hard problems end too.
        yield float(bound + grid * (step + step * step // 16))


def _as_routes(
    flow: Flow, chunks: int, source: Ints, destination: Ints, table: Table, method: str
) -> Routes:
    """Return a route per distinct path, weighted by the chunks that take it."""
    paths = Paths.from_table(source, destination, table)
    weight: Floats = flow.problem.demand.of(source, destination) / chunks
    if chunks > 1:
        paths, weight = paths.merge_equal(weight)
    whole = chunks if flow.problem.demand.uniform else None
    return routes_from_weights(flow.problem, paths, weight, flow.certificate, method, whole)
