"""`single` and `few`: near-optimal routing with one route per pair, or a handful.

A shard is cut into C equal chunks, each on one route (C = 1 for `single`), so a pair has at most C
routes. Every link gets the budget that a target time gives it, and the chunks, which start on the
paths of the optimal fractional flow, negotiate until all budgets hold (`negotiate`). The target
starts at the certified bound, rounded up to what whole chunks can reach, and is raised until they
succeed. A vertex of the master program splits few pairs, so few chunks ever have to move.

This is also how weights become whole chunks: with the least increase of the largest load.
"""

from collections.abc import Iterator

import numpy as np

from a2aflow.errors import InputError
from a2aflow.ir.arrays import Floats, Ints
from a2aflow.ir.flow import Flow
from a2aflow.ir.problem import Problem
from a2aflow.ir.routes import Routes
from a2aflow.solve.candidates import Candidates
from a2aflow.solve.decomposed import solve_grouped
from a2aflow.solve.negotiate import NOTHING, Chunks, negotiate, trace_paths
from a2aflow.solve.route_settings import RouteSettings
from a2aflow.solve.routing import merge_equal, routes_from_weights

ROUNDS = 200
"""Rounds of negotiation for one try."""

TRIES = 8
"""Orders of the chunks tried for one target, each from its own seed."""

TRIED_CHUNKS = 40_000
"""With more chunks than this divided by `TRIES`, fewer orders are tried."""

FINEST = 1e-3
"""Targets rise by at least this share of the bound from one try to the next."""

MOST_TARGETS = 400
"""Targets that are tried before the problem is given up."""

MOST_ROUTES = 8
"""Routes per pair that `few` tries unless told otherwise: what the paper's card stores."""

LONGEST = 256
"""Links of a route at most, on networks of more nodes than this."""


def route_single(problem: Problem, settings: RouteSettings) -> Routes:
    """Return one route per pair."""
    return route_chunks(solve_grouped(problem, settings.solve), 1, settings, "single")


def route_few(problem: Problem, settings: RouteSettings) -> Routes:
    """Return the fewest routes per pair that lose no more than `loss` against the bound.

    If `max_routes` is reached first, the best found within it.
    """
    flow = solve_grouped(problem, settings.solve)
    tried: list[Routes] = []
    for chunks in range(1, (settings.max_routes or MOST_ROUTES) + 1):
        tried.append(route_chunks(flow, chunks, settings, "few"))
        if tried[-1].gap <= settings.loss or settings.solve.out_of_time():
            break
    return min(tried, key=lambda routes: routes.time)


def route_chunks(flow: Flow, chunks: int, settings: RouteSettings, method: str) -> Routes:
    """Return routes of whole chunks, each shard cut into `chunks`, guided by a flow per source."""
    problem = flow.problem
    pieces, source, destination = _pieces(problem, chunks)
    first = _first_paths(flow, pieces, np.searchsorted(flow.source, source))
    tries = max(1, min(TRIES, TRIED_CHUNKS // len(source)))
    for target in _targets(problem, flow.bound, chunks):
        settings.solve.report(f"{method}: {chunks} per pair, aiming at {target:.6g}")
        budget = target * problem.topology.capacity * (1 + 1e-12)
        for seed in range(settings.seed, settings.seed + tries):
            paths, fits = negotiate(problem.topology, pieces, first, budget, ROUNDS, seed)
            if fits:
                return _as_routes(flow, chunks, source, destination, paths, method)
    raise InputError(
        f"no {chunks} whole routes per pair within {MOST_TARGETS} targets above the bound "
        f"{flow.bound:g} on {problem.topology.name}; allow more routes per pair"
    )


def _pieces(problem: Problem, chunks: int) -> tuple[Chunks, Ints, Ints]:
    """Return all chunks, and the source and destination of each."""
    terminals = problem.topology.terminals
    source, destination = (np.repeat(each, chunks) for each in problem.demand.pairs())
    demand = problem.demand.rows(np.arange(len(terminals)))[source, destination]
    return Chunks(terminals[source], terminals[destination], demand / chunks), source, destination


def _first_paths(flow: Flow, pieces: Chunks, group: Ints) -> Ints:
    """Return a path per chunk along the volumes of the flow, where they last."""
    topology = flow.problem.topology
    volumes = np.zeros((flow.groups, topology.links))
    row = np.repeat(np.arange(flow.groups), np.diff(flow.start))
    volumes[row, flow.link] = flow.amount * flow.time
    return trace_paths(topology, pieces, volumes, group, min(topology.nodes, LONGEST))


def _targets(problem: Problem, bound: float, chunks: int) -> Iterator[float]:
    """Yield times to aim for: whole chunks over the widest link where all chunks are equal."""
    grid = FINEST * bound
    if problem.demand.uniform:
        unit = 1 / (chunks * float(problem.topology.capacity.max()))
        grid = unit * max(1, round(grid / unit))
        bound = np.ceil(bound / unit * (1 - 1e-9)) * unit
    for step in range(MOST_TARGETS):
        # Steps grow slowly, so that a hard problem is not approached forever.
        yield float(bound + grid * (step + step * step // 16))


def _as_routes(
    flow: Flow, chunks: int, source: Ints, destination: Ints, table: Ints, method: str
) -> Routes:
    """Return a route per distinct path, weighted by the chunks that take it."""
    taken = table != NOTHING
    start = np.concatenate(([0], np.cumsum(taken.sum(axis=1))))
    paths = Candidates(source, destination, start, table[taken])
    every = np.arange(len(flow.problem.topology.terminals))
    weight: Floats = flow.problem.demand.rows(every)[source, destination] / chunks
    if chunks > 1:
        paths, weight = merge_equal(paths, weight)
    whole = chunks if flow.problem.demand.uniform else None
    return routes_from_weights(flow.problem, paths, weight, flow.certificate, method, whole)
