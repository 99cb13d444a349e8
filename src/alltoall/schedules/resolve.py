"""`Solver`: one demand after the other on one topology, each in a fraction of a second.

A demand that changes with every call, such as that of experts, leaves no time for a search. So all
is done once, and coarsely: chunks are placed in a few rounds, whose loads and prices are nearly
optimal flows and lengths; list scheduling orders the chunks; and from the loads and prices the
first-order method raises a bound until it proves the loss, or that it is larger: then shards are
cut finer. Answers are routes or a schedule as any others, with their certificate.
"""

from collections.abc import Callable, Iterator
from dataclasses import replace
from functools import partial
from typing import TypeVar

import numpy as np

from alltoall.check.routes import check_routes
from alltoall.check.schedule import check_schedule
from alltoall.errors import UsageError
from alltoall.flows.first_order import raise_bound, search_from
from alltoall.flows.groups import by_source
from alltoall.flows.guess import Guess
from alltoall.flows.program import whole_program
from alltoall.ir.arrays import Floats
from alltoall.ir.certificate import Certificate
from alltoall.ir.problem import Problem
from alltoall.ir.routes import Routes
from alltoall.ir.schedule import Schedule
from alltoall.ir.topology import Topology
from alltoall.ir.units import normal_units, shard_unit
from alltoall.placing.chunks import Chunks, Table
from alltoall.placing.network import any_path, no_path
from alltoall.placing.place import LAST_STEEPNESS
from alltoall.placing.quick import place_quickly
from alltoall.routes.weights import routes_from_weights
from alltoall.schedules.orders import order_by_list
from alltoall.schedules.placed import Placed, per_shard, place_all
from alltoall.settings import SolveSettings

FINENESS = 0.22
"""The loss times the chunks of a shard of mean size, at first."""

FINER = (1.0, 1.5, 2.0)
"""How many times as many chunks and passes are tried, in turn, while the loss is too large."""

MOST_CHUNKS = 64
"""Chunks of a shard of mean size at most."""

PRICE_STEEPNESS = 6.0
"""What the loss times the last steepness of the prices is: a gap is about the inverse of that."""

PASSES = 5.0
"""Passes of best responses over the inverse root of the loss: 35 for two percent."""

TOGETHER = 4
"""Chunks of a pair that move as one in the first passes, at most."""

RESOLVED_QUOTAS = (12, 8)
"""Parts of the paths' time that steps are to take, in turn: the first does mostly, and the second
where few links are full."""

PROOF_SHARE = 0.1
"""The share of the loss asked for that the proof of the bound may take of it."""

MOST_PASSES = 100
"""Passes at most, however small the loss that is asked for."""

METHOD = "resolve"
"""Its name among the methods, which its answers carry."""

Answer = TypeVar("Answer", Routes, Schedule)
Draft = tuple[float, Callable[[Certificate], Answer]]
"""The time of an answer, and how to write it with a proof."""


def resolved_routes(problem: Problem, loss: float, settings: SolveSettings) -> Routes:
    """Return checked routes for a demand, quickly."""
    units = normal_units(problem)
    routes = units.restored(_first_or_best(units.problem, loss, settings.begin(), _routes))
    check_routes(routes)
    return routes


def resolved_schedule(problem: Problem, loss: float, settings: SolveSettings) -> Schedule:
    """Return a checked schedule for a demand, quickly."""
    units = normal_units(problem, shard_unit(problem))
    schedule = units.restored(_first_or_best(units.problem, loss, settings.begin(), _orders))
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
    best: Draft[Answer] | None = None
    proof: Certificate | None = None
    for finer in FINER:
        placed, lengths = _place(problem, loss, finer)
        for draft in drafts(placed):
            best = draft if best is None or draft[0] < best[0] else best
            proof = proof or _prove(placed, lengths, draft[0], loss, settings)
            wanted = (1 + loss) * proof.bound
            if best[0] <= wanted or settings.out_of_time():
                return best[1](proof)
            if placed.time > wanted:  # No order takes less than its paths.
                break
    assert best is not None
    assert proof is not None
    return best[1](proof)


def _place(problem: Problem, loss: float, finer: float) -> tuple[Placed, Floats]:
    """Put chunks on paths quickly; also return the lengths that this leads to."""
    coarse = min(MOST_CHUNKS / max(FINER), max(1.0, FINENESS / loss))
    rounds = min(MOST_PASSES, round(finer * PASSES / loss**0.5))
    steepness = min(LAST_STEEPNESS, max(10.0, PRICE_STEEPNESS / loss))
    lengths = np.empty(0)

    def spread(cut: Chunks) -> Table:
        nonlocal lengths
        found = place_quickly(any_path(problem.topology), cut, steepness, rounds, TOGETHER)
        if found is None:
            raise no_path(problem.topology)
        lengths = found.lengths
        return found.table

    return place_all(problem, per_shard(problem, round(coarse * finer)), spread), lengths


def _prove(
    placed: Placed, lengths: Floats, time: float, loss: float, settings: SolveSettings
) -> Certificate:
    """Prove that a time is within the loss, if it is, from the loads and prices of the paths."""
    program = whole_program(placed.problem, by_source(placed.problem))
    guess = Guess(program.volumes_of(placed.paths, placed.size), lengths / lengths.max())
    settings = replace(settings, gap=max(settings.gap, PROOF_SHARE * loss))
    return raise_bound(search_from(program, settings, guess), time / (1 + loss))


def _routes(placed: Placed) -> Iterator[Draft[Routes]]:
    paths, weight = placed.paths.merge_equal(placed.size)
    yield (
        placed.time,
        lambda proof: routes_from_weights(placed.problem, paths, weight, proof, METHOD),
    )


def _orders(placed: Placed) -> Iterator[Draft[Schedule]]:
    """Yield schedules of the chunks on their paths, of longer and shorter steps."""
    for parts in RESOLVED_QUOTAS:
        found = order_by_list(placed, placed.time / parts)
        if found is not None:
            yield found.time, partial(found.write, fractional_time=placed.time, method=METHOD)


def warm_up(topology: Topology) -> None:
    """Compile and load all that answers need, on the topology itself."""
    resolved_schedule(Problem.where_connected(topology), 0.5, SolveSettings())
