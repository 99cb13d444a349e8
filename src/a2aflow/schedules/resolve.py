"""`Solver`: one demand after the other on one topology, each in a fraction of a second.

A demand that changes with every call, such as that of experts, leaves no time for a search. So here
all is done once, and coarsely: chunks get paths by a few passes of best responses, whose loads and
prices are nearly optimal flows and lengths; from these the first-order method proves a bound within
a few steps; and list scheduling orders the chunks. If that misses the loss asked for, shards are
cut finer. What comes out are routes or a schedule as any others, with their certificate.
"""

from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import TypeVar

import numpy as np

from a2aflow.check.routes import check_routes
from a2aflow.check.schedule import check_schedule
from a2aflow.errors import UsageError
from a2aflow.flows.first_order import Guess, solve_by_steps
from a2aflow.flows.groups import by_source
from a2aflow.flows.program import whole_program
from a2aflow.ir.arrays import Floats
from a2aflow.ir.certificate import Certificate
from a2aflow.ir.problem import Problem
from a2aflow.ir.routes import Routes
from a2aflow.ir.schedule import Schedule
from a2aflow.ir.topology import Topology
from a2aflow.ir.units import normal_units
from a2aflow.paths.any_path import Chunks, Table
from a2aflow.routes.best_response import LAST_STEEPNESS, quick_paths
from a2aflow.routes.weights import routes_from_weights
from a2aflow.schedules.by_list import SHORTEST_STEP, Placed, per_shard, place_all, write_schedule
from a2aflow.schedules.serve import serve, ways_of
from a2aflow.settings import SolveSettings

FINENESS = 0.24
"""What the loss times the chunks of a shard of mean size is at first."""

FINER = (1, 2)
"""How many times as many chunks are tried, in turn, until the loss is what was asked for."""

MOST_CHUNKS = 64
"""Chunks of a shard of mean size at most."""

PRICE_STEEPNESS = 4.0
"""What the loss times the last steepness of the prices is: a gap is about the inverse of that."""

PASSES = 2.8
"""Passes of best responses over the inverse root of the loss: 20 for two percent."""

RESOLVED_QUOTAS = (8, 6, 12)
"""Parts of the paths' time that steps are to take, in turn."""

PROOF_SHARE = 0.2
"""The share of the loss asked for that the proof of the bound may take of it."""

MOST_PASSES = 100
"""Passes at most, however small the loss that is asked for."""

METHOD = "resolve"
"""Its name among the methods, which its answers carry."""

Answer = TypeVar("Answer", Routes, Schedule)


@dataclass(frozen=True, eq=False)
class Resolver:
    """A problem in normal units, and how near to its bound an answer is to be."""

    problem: Problem
    loss: float
    settings: SolveSettings

    def routes(self) -> Routes:
        """Return the first routes within the loss, or the best."""
        found = (self._as_routes(placed, proof) for placed, proof in self._finer())
        return _first_or_best(found, self.loss)

    def schedule(self) -> Schedule:
        """Return the first schedule within the loss, or the best."""
        found = (each for placed, proof in self._finer() for each in self._ordered(placed, proof))
        return _first_or_best(found, self.loss)

    def _finer(self) -> Iterator[tuple[Placed, Certificate]]:
        """Yield more and more chunks on their paths, with the proof that the first ones led to."""
        proof: Certificate | None = None
        coarse = min(MOST_CHUNKS // max(FINER), max(1, round(FINENESS / self.loss)))
        for chunks in (coarse * each for each in FINER):
            if proof is not None and self.settings.out_of_time():
                return
            lengths: list[Floats] = []
            placed = self._placed(chunks, lengths)
            proof = proof or self._proof(placed, lengths[0])
            yield placed, proof

    def _placed(self, chunks: int, lengths: list[Floats]) -> Placed:
        """Put chunks on paths quickly; also append the lengths that this leads to."""

        def spread(cut: Chunks) -> Table:
            passes = min(MOST_PASSES, round(PASSES / self.loss**0.5))
            steepness = min(LAST_STEEPNESS, max(10.0, PRICE_STEEPNESS / self.loss))
            table, found = quick_paths(self.problem.topology, cut, steepness, passes)
            lengths.append(found)
            return table

        return place_all(self.problem, per_shard(self.problem, chunks), spread)

    def _proof(self, placed: Placed, lengths: Floats) -> Certificate:
        """Prove a bound by the first-order method, from the loads and prices of the paths."""
        program = whole_program(self.problem, by_source(self.problem))
        row = np.searchsorted(program.groups.source, placed.paths.source)
        volumes = np.zeros((len(program.weight), self.problem.topology.links))
        path = placed.paths.path_of_link
        np.add.at(volumes, (row[path], placed.paths.link), placed.size[path])
        settings = replace(self.settings, gap=max(self.settings.gap, PROOF_SHARE * self.loss))
        start = Guess(volumes, lengths / lengths.max())
        return solve_by_steps(self.problem, program, settings, METHOD, start).certificate

    def _as_routes(self, placed: Placed, proof: Certificate) -> Routes:
        paths, weight = placed.paths.merge_equal(placed.size)
        return routes_from_weights(self.problem, paths, weight, proof, METHOD)

    def _ordered(self, placed: Placed, proof: Certificate) -> Iterator[Schedule]:
        """Yield schedules of the chunks on their paths, unless even these take too long."""
        topology = self.problem.topology
        ways = ways_of(topology, placed.paths, placed.size)
        for parts in RESOLVED_QUOTAS:
            served = serve(topology, ways, placed.time / parts, SHORTEST_STEP)
            if served is not None:
                schedule = write_schedule(placed, ways, served, proof, placed.time)
                yield replace(schedule, method=METHOD)
            if placed.time > (1 + self.loss) * proof.bound or self.settings.out_of_time():
                return


def _first_or_best(found: Iterator[Answer], loss: float) -> Answer:
    best = next(found)
    while best.gap > loss:
        other = next(found, None)
        if other is None:
            break
        best = min(best, other, key=lambda each: each.time)
    return best


def resolved_routes(problem: Problem, loss: float, settings: SolveSettings) -> Routes:
    """Return checked routes for a demand, quickly."""
    units = normal_units(problem)
    routes = units.restored(Resolver(units.problem, loss, settings.begin()).routes())
    check_routes(routes)
    return routes


def resolved_schedule(problem: Problem, loss: float, settings: SolveSettings) -> Schedule:
    """Return a checked schedule for a demand, quickly."""
    units = normal_units(problem, demand=False)
    schedule = units.restored(Resolver(units.problem, loss, settings.begin()).schedule())
    check_schedule(schedule)
    return schedule


def require_loss(loss: float) -> None:
    """Raise unless a loss can be meant."""
    if not 0 < loss < 1:
        raise UsageError(f"loss {loss:g}; expected a share above 0 and below 1")


def warm_up(topology: Topology) -> None:
    """Compile and load all that answers need, on the topology itself."""
    resolved_schedule(Problem.all_to_all(topology), 0.5, SolveSettings())
