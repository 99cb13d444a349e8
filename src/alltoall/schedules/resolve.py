"""`Solver`: one demand after the other on one topology, each in a fraction of a second.

A demand that changes with every call, such as that of experts, leaves no time for a search. So here
all is done once, and coarsely: chunks get paths by a few passes of best responses, whose loads and
prices are nearly optimal flows and lengths; list scheduling orders the chunks; and from the loads
and prices the first-order method raises a bound until it proves that the loss is what was asked
for, or that it is not: then shards are cut finer. What comes out are routes or a schedule as any
others, with their certificate.
"""

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from functools import partial
from itertools import chain, islice
from typing import Generic, TypeVar

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
from alltoall.schedules.orders import Ordered, order_by_list
from alltoall.schedules.placed import Placed, per_shard, place_all
from alltoall.settings import SolveSettings

FINENESS = 0.22
"""What the loss times the chunks of a shard of mean size is at first."""

FINER = (1.5, 2.0)
"""How many times as many chunks and passes are tried then, in turn, if the loss is too large."""

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


@dataclass(frozen=True, eq=False)
class Found(Generic[Answer]):
    """An answer that is not written out yet: its time, and how to write it with a proof."""

    time: float
    write: Callable[[Certificate], Answer]


Answers = Callable[[Placed], Iterator[Found[Answer]]]
"""What makes one answer or several of chunks on their paths, one after the other."""


@dataclass(frozen=True, eq=False)
class Resolver:
    """A problem in normal units, and how near to its bound an answer is to be."""

    problem: Problem
    loss: float
    settings: SolveSettings

    def routes(self) -> Routes:
        """Return the first routes within the loss, or the best."""
        return self._first_or_best(self._as_routes)

    def schedule(self) -> Schedule:
        """Return the first schedule within the loss, or the best."""
        return self._first_or_best(self._ordered)

    def _first_or_best(self, answers: Answers[Answer]) -> Answer:
        """Return the first answer within the loss, or the best."""
        placed, lengths = self._placed(1.0)
        several = answers(placed)
        best = next(several)
        proof = self._proof(placed, lengths, best.time)
        wanted = (1 + self.loss) * proof.bound
        others = chain(several if placed.time <= wanted else (), self._finer(answers, wanted))
        while best.time > wanted and not self.settings.out_of_time():
            found = next(others, None)
            if found is None:
                break
            best = min(best, found, key=lambda each: each.time)
        return best.write(proof)

    def _finer(self, answers: Answers[Answer], wanted: float) -> Iterator[Found[Answer]]:
        """Yield answers of more chunks: one only where the paths alone take more than is wanted."""
        for finer in FINER:
            placed, _ = self._placed(finer)
            yield from answers(placed) if placed.time <= wanted else islice(answers(placed), 1)

    def _placed(self, finer: float) -> tuple[Placed, Floats]:
        """Put chunks on paths quickly; also return the lengths that this leads to."""
        coarse = min(MOST_CHUNKS / max(FINER), max(1.0, FINENESS / self.loss))
        chunks = per_shard(self.problem, round(coarse * finer))
        lengths = np.empty(0)

        def spread(cut: Chunks) -> Table:
            nonlocal lengths
            passes = min(MOST_PASSES, round(finer * PASSES / self.loss**0.5))
            steepness = min(LAST_STEEPNESS, max(10.0, PRICE_STEEPNESS / self.loss))
            network = any_path(self.problem.topology)
            found = place_quickly(network, cut, steepness, passes, TOGETHER)
            if found is None:
                raise no_path(self.problem.topology)
            lengths = found.lengths
            return found.table

        return place_all(self.problem, chunks, spread), lengths

    def _proof(self, placed: Placed, lengths: Floats, time: float) -> Certificate:
        """Prove what a time needs, if it can be, from the loads and prices of the paths."""
        program = whole_program(self.problem, by_source(self.problem))
        volumes = program.volumes_of(placed.paths, placed.size)
        settings = replace(self.settings, gap=max(self.settings.gap, PROOF_SHARE * self.loss))
        guess = Guess(volumes, lengths / lengths.max())
        return raise_bound(search_from(program, settings, guess), time / (1 + self.loss))

    def _as_routes(self, placed: Placed) -> Iterator[Found[Routes]]:
        paths, weight = placed.paths.merge_equal(placed.size)

        def write(proof: Certificate) -> Routes:
            return routes_from_weights(self.problem, paths, weight, proof, METHOD)

        yield Found(placed.time, write)

    def _ordered(self, placed: Placed) -> Iterator[Found[Schedule]]:
        """Yield schedules of the chunks on their paths, of longer and shorter steps."""
        for parts in RESOLVED_QUOTAS:
            found = order_by_list(placed, placed.time / parts)
            if found is not None:
                yield Found(found.time, partial(_written, found))


def _written(found: Ordered, proof: Certificate) -> Schedule:
    return found.write(proof, found.placed.time, METHOD)


def resolved_routes(problem: Problem, loss: float, settings: SolveSettings) -> Routes:
    """Return checked routes for a demand, quickly."""
    units = normal_units(problem)
    routes = units.restored(Resolver(units.problem, loss, settings.begin()).routes())
    check_routes(routes)
    return routes


def resolved_schedule(problem: Problem, loss: float, settings: SolveSettings) -> Schedule:
    """Return a checked schedule for a demand, quickly."""
    units = normal_units(problem, shard_unit(problem))
    schedule = units.restored(Resolver(units.problem, loss, settings.begin()).schedule())
    check_schedule(schedule)
    return schedule


def require_loss(loss: float) -> None:
    """Raise unless a loss can be meant."""
    if not 0 < loss < 1:
        raise UsageError(f"loss {loss:g}; expected a share above 0 and below 1")


def warm_up(topology: Topology) -> None:
    """Compile and load all that answers need, on the topology itself."""
    resolved_schedule(Problem.where_connected(topology), 0.5, SolveSettings())
