"""`Solver`: successive demands on one topology, each in a fraction of a second.

A demand that changes with every call, such as that of experts, leaves no time for a search. So
chunks are placed in a few rounds, whose loads and prices are nearly optimal flows and lengths; list
scheduling orders the chunks; and from the loads and prices the first-order method raises the bound
until it proves the loss, or a larger one: then shards are cut finer. Answers are certified routes
or schedules like any others.
"""

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from functools import partial
from typing import TypeVar

import numpy as np

from alltoall.check.routes import check_routes
from alltoall.check.schedule import check_schedule
from alltoall.errors import UsageError
from alltoall.flows.exact import by_source
from alltoall.flows.first_order import raise_bound, search_from
from alltoall.flows.guess import Guess
from alltoall.flows.program import whole_program
from alltoall.ir.answer import Certificate
from alltoall.ir.arrays import Floats, inner_index
from alltoall.ir.problem import Problem
from alltoall.ir.routes import Routes
from alltoall.ir.schedule import Schedule
from alltoall.ir.units import normal_units, shard_unit
from alltoall.placing.chunks import Chunks, Table
from alltoall.placing.network import any_path, no_path
from alltoall.placing.place import LAST_STEEPNESS, PlacementParams, place
from alltoall.routes.weights import routes_from_weights
from alltoall.schedules.orders import Placed, orders_of, per_shard, place_all
from alltoall.settings import USUAL_MOST_CHUNKS, ScheduleSettings, SolveSettings


@dataclass(frozen=True)
class ResolveParams:
    """Effort of quick answers: each moves the losses or seconds of benchmarks/resolve.py.

    Attributes:
        fineness: the loss times the chunks of a shard of mean size.
        merged: chunks of a pair that move together in the first rounds.
        steepness: the loss times the last steepness of prices, about the inverse of the gap.
        rounds: rounds of best responses times the root of the loss: 35 for 2 %.
        early: the share of these rounds in which merged chunks move.
        proof: the gap of the bound, as a share of the loss.

    """

    fineness: float = 0.22
    merged: int = 4
    steepness: float = 6.0
    rounds: float = 5.0
    early: float = 0.7
    proof: float = 0.1


Answer = TypeVar("Answer", Routes, Schedule)
Draft = tuple[float, Callable[[Certificate], Answer]]
"""The time of an answer, and a function that adds its certificate."""


def resolved_routes(problem: Problem, loss: float, settings: SolveSettings) -> Routes:
    """Return checked routes for a demand, quickly."""
    units = normal_units(problem)
    routes = units.restored(_first_or_best(units.problem, loss, settings, _routes))
    check_routes(routes)
    return routes


def resolved_schedule(problem: Problem, loss: float, settings: SolveSettings) -> Schedule:
    """Return a checked schedule for a demand, quickly."""
    units = normal_units(problem, shard_unit(problem))
    schedule = units.restored(_first_or_best(units.problem, loss, settings, _orders))
    check_schedule(schedule)
    return schedule


def _first_or_best(
    problem: Problem,
    loss: float,
    settings: SolveSettings,
    drafts: Callable[[Placed], Iterator[Draft[Answer]]],
) -> Answer:
    """Return the first answer within the loss, or the best."""
    if not 0 < loss < 1:
        raise UsageError(f"loss {loss:g}; expected a share above 0 and below 1")
    params = ResolveParams()
    best: Draft[Answer] | None = None
    proof: Certificate | None = None
    for placed, lengths in _placements(problem, loss, params):
        for draft in drafts(placed):
            best = draft if best is None or draft[0] < best[0] else best
            if proof is None:
                # Of a time within the loss if possible, from the loads and prices of the paths.
                program = whole_program(problem, by_source(problem))
                volumes = program.volumes_of(placed.paths, placed.size)
                coarse = replace(settings, gap=max(settings.gap, params.proof * loss))
                search = search_from(program, coarse, Guess(volumes, lengths / lengths.max()))
                proof = raise_bound(search, draft[0] / (1 + loss))
            wanted = (1 + loss) * proof.bound
            if best[0] <= wanted or settings.out_of_time():
                return best[1](proof)
            if placed.time > wanted:  # No order takes less than its paths.
                break
    assert best is not None
    assert proof is not None
    return best[1](proof)


def _placements(
    problem: Problem, loss: float, params: ResolveParams
) -> Iterator[tuple[Placed, Floats]]:
    """Yield placed chunks and their link lengths; then finer chunks.

    At first prices are gentle, and a few large chunks are placed; finer ones start on their paths.
    """
    network = any_path(problem.topology)
    chunks = min(4 * USUAL_MOST_CHUNKS, max(1.0, params.fineness / loss))
    last = min(LAST_STEEPNESS, max(10.0, params.steepness / loss))
    rounds = min(PlacementParams.rounds, round(params.rounds / loss**0.5))
    early = round(params.early * rounds)
    middle = PlacementParams.first * (last / PlacementParams.first) ** params.early
    gentle = PlacementParams(last=middle, rounds=early, last_share=0.0)
    steep = PlacementParams(middle, last, rounds - early, last_share=0.0)
    start: Table | None = None
    counts = np.zeros(0, dtype=np.int64)
    for many, prices in ((chunks / params.merged, gentle), (chunks, steep), (2 * chunks, steep)):
        lengths = np.empty(0)

        def spread(cut: Chunks, prices: PlacementParams = prices) -> Table:
            nonlocal start, counts, lengths
            fewer = counts
            other = (np.diff(cut.start) != 0) | (np.diff(cut.end) != 0)
            counts = np.diff(np.flatnonzero(np.concatenate(([True], other, [True]))))
            first = None
            if start is not None:  # each chunk on the path of the coarser one that contains it
                mine = inner_index(counts) * np.repeat(fewer, counts) // np.repeat(counts, counts)
                first = start[np.repeat(np.cumsum(fewer) - fewer, counts) + mine]
            found = place(network, cut, 0.0, prices, first)
            if found is None:
                raise no_path(problem.topology)
            start, lengths = found.table, found.lengths
            return start

        placed = place_all(problem, per_shard(problem, round(many)), spread)
        if prices is steep:
            yield placed, lengths


def _routes(placed: Placed) -> Iterator[Draft[Routes]]:
    paths, weight = placed.paths.merge_equal(placed.size)
    write = partial(routes_from_weights, placed.problem, paths, weight, method="resolve")
    yield placed.time, write


def _orders(placed: Placed) -> Iterator[Draft[Schedule]]:
    """Yield schedules of the placed chunks, in longer and shorter steps."""
    for found in orders_of(placed, ScheduleSettings()):
        yield found.time, partial(found.write, fractional_time=placed.time, method="resolve")
