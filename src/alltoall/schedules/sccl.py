"""SCCL: schedule synthesis by satisfiability modulo theories, for a handful of nodes.

Cai, Liu, Maleki, Musuvathi, Mytkowicz, Nelson and Saarikivi, "Synthesizing optimal collective
algorithms", PPoPP 2021. For every chunk c, node n, link l and step s:

    time[c, n]   the step after which c is at n: 0 at its source, at most S at its destination
    sent[c, l]   whether c crosses l
    rounds[s]    how long step s lasts

    c is at n != source by step S   iff   exactly one link into n sends it
    sent[c, l]                      =>    time[c, tail(l)] < time[c, head(l)] <= S
    sum over c sent on l with time[c, head(l)] = s of size[c]  <=  capacity[l] rounds[s]
    sum of rounds  <=  R

with as few steps S as the hop distances allow, and then as few rounds R as bisection finds between
a proven bound and the best schedule so far. Chunks have variables only for links that can be on a
path within S steps.

Needs z3: `pip install '.[sccl]'` in a clone.
"""

import math
from collections import defaultdict
from fractions import Fraction
from functools import partial
from importlib import import_module
from typing import Any

import numpy as np

from alltoall.errors import InputError, MissingComponentError, TimeLimitError, how_to_install
from alltoall.flows.program import certify
from alltoall.ir.problem import Problem
from alltoall.ir.schedule import Schedule
from alltoall.ir.units import normal_units
from alltoall.paths.shortest import shortest_distances
from alltoall.schedules.chunks import CutShards, require_hosts
from alltoall.settings import SolveSettings

LARGEST_DENOMINATOR = 1000
"""The largest denominator of sizes and capacities, or of their reciprocals, as fractions."""


def synthesise(
    problem: Problem,
    chunks: int = 1,
    steps: int | None = None,
    settings: SolveSettings | None = None,
) -> Schedule:
    """Return a schedule of `chunks` chunks per shard in the fewest rounds found.

    A round is the time of one chunk over the median link. `steps` defaults to the least possible
    number. At a time limit, return the best schedule so far; raise TimeLimitError if there is none.
    """
    if chunks < 1:
        raise InputError(f"{chunks} chunks per shard; expected at least 1")
    require_hosts(problem.topology, "SCCL")
    units = normal_units(problem, demand=1.0)
    problem = units.problem
    try:
        z3 = import_module("z3")
    except ImportError:
        raise MissingComponentError(
            f"schedule synthesis needs z3, which is not installed; {how_to_install('sccl')}"
        ) from None
    cut = CutShards.of(problem, chunks)
    encoding = _Encoding(z3, cut, chunks, steps, settings or SolveSettings())
    bound = certify(problem, []).bound
    model = encoding.fewest_rounds(math.ceil(bound * chunks * (1 - 1e-9)))
    step, chunk, link = np.array(encoding.sends(model), dtype=np.int64).T
    return units.restored(cut.schedule(step, chunk, link, "sccl"))


def _fraction(value: float) -> Fraction:
    """Return a simple fraction near a value, or the reciprocal of one if that is closer."""
    simple = Fraction(max(value, 1 / value)).limit_denominator(LARGEST_DENOMINATOR)
    return simple if value >= 1 else 1 / simple


class _Encoding:
    """The constraints of the module's docstring in z3, and its models as sends."""

    def __init__(
        self, z3: Any, cut: CutShards, per_shard: int, steps: int | None, settings: SolveSettings
    ) -> None:
        topology = cut.problem.topology
        self.z3, self.topology, self.settings = z3, topology, settings
        self.start, self.end = cut.ends
        self.size = [_fraction(each) for each in cut.size * per_shard]
        everywhere = np.arange(topology.nodes)
        self.hops = shortest_distances(topology, np.ones(topology.links), everywhere)
        least = int(self.hops[self.start, self.end].max())
        if steps is not None and steps < least:
            raise InputError(
                f"{steps} steps; some pair is {least} hops apart, allow at least {least}"
            )
        self.steps = least if steps is None else steps
        self.solver = z3.Solver()
        self.rounds = [z3.Int(f"rounds_{step}") for step in range(1, self.steps + 1)]
        self.time: dict[tuple[int, int], Any] = {}
        self.sent: dict[tuple[int, int], Any] = {}
        self.crossing: defaultdict[int, list[int]] = defaultdict(list)
        self.solver.add(*(each >= 0 for each in self.rounds))
        adds = [partial(self._add_chunk, chunk) for chunk in range(len(self.size))]
        adds += [partial(self._add_capacity, link) for link in range(topology.links)]
        for add in adds:  # Building the constraints can take longer than any limit.
            if settings.out_of_time():
                raise self._too_late()
            add()

    def _add_chunk(self, chunk: int) -> None:
        """Add the variables and moves of a chunk, on the links that can be on its path."""
        z3, topology = self.z3, self.topology
        start, end = int(self.start[chunk]), int(self.end[chunk])
        before, after = self.hops[start], self.hops[:, end]
        useful = before[topology.tail] + 1 + after[topology.head] <= self.steps
        useful &= (topology.head != start) & (topology.tail != end)
        entered = np.zeros_like(useful)
        while (entered != useful).any():  # Drop links that are reached only past the end.
            entered = useful
            useful = entered & np.isin(topology.tail, [start, *topology.head[entered].tolist()])
        links = np.flatnonzero(useful).tolist()
        for node in {start, *topology.head[links].tolist()}:
            self.time[chunk, node] = z3.Int(f"time_{chunk}_{node}")
            self.solver.add(self.time[chunk, node] >= int(before[node]))
        self.solver.add(self.time[chunk, start] == 0, self.time[chunk, end] <= self.steps)
        entering: dict[int, list[Any]] = {}
        for link in links:
            tail, head = int(topology.tail[link]), int(topology.head[link])
            sent = self.sent[chunk, link] = z3.Bool(f"sent_{chunk}_{link}")
            self.crossing[link].append(chunk)
            self.solver.add(z3.Implies(sent, self.time[chunk, tail] < self.time[chunk, head]))
            entering.setdefault(head, []).append(sent)
        for node, arrivals in entering.items():
            self.solver.add(z3.AtMost(*arrivals, 1))
            self.solver.add(z3.Or(*arrivals) == (self.time[chunk, node] <= self.steps))

    def _add_capacity(self, link: int) -> None:
        z3, head = self.z3, int(self.topology.head[link])
        crossing, capacity = self.crossing[link], _fraction(float(self.topology.capacity[link]))
        rounds_of = [_number(z3, self.size[chunk] / capacity) for chunk in crossing]
        for step, rounds in enumerate(self.rounds, start=1):
            load = [
                z3.If(z3.And(self.sent[chunk, link], self.time[chunk, head] == step), takes, 0)
                for chunk, takes in zip(crossing, rounds_of, strict=True)
            ]
            self.solver.add(z3.Sum(load) <= rounds)

    def solve(self, rounds: int | None) -> tuple[str, Any]:
        """Return the solver's verdict, and its model if that is `sat`."""
        seconds = self.settings.seconds_left()
        if seconds is not None:
            self.solver.set("timeout", max(1, int(1000 * seconds)))
        self.solver.push()
        if rounds is not None:
            self.solver.add(self.z3.Sum(self.rounds) <= rounds)
        verdict = str(self.solver.check())
        model = self.solver.model() if verdict == "sat" else None
        self.solver.pop()
        return verdict, model

    def used_rounds(self, model: Any) -> int:
        """Return the number of rounds of a model."""
        return sum(model.eval(each, model_completion=True).as_long() for each in self.rounds)

    def sends(self, model: Any) -> list[tuple[int, int, int]]:
        """Return (step, chunk, link) of every send on a chunk's path, sorted."""
        topology = self.topology
        into = {
            (chunk, int(topology.head[link])): link
            for (chunk, link), sent in self.sent.items()
            if self.z3.is_true(model.eval(sent))
        }
        found = []
        for chunk in range(len(self.size)):
            node = int(self.end[chunk])
            while node != self.start[chunk]:
                link = into[chunk, node]
                found.append((model.eval(self.time[chunk, node]).as_long() - 1, chunk, link))
                node = int(topology.tail[link])
        return sorted(found)

    def fewest_rounds(self, low: int) -> Any:
        """Return the model of fewest rounds found; `low` is a lower bound."""
        verdict, best = self.solve(None)
        if best is None:
            raise self._too_late()
        high = self.used_rounds(best)
        while low < high and not self.settings.out_of_time():
            self.settings.report(f"sccl: {self.steps} steps, {low} to {high} rounds")
            middle = (low + high) // 2
            verdict, model = self.solve(middle)
            if model is not None:
                best, high = model, self.used_rounds(model)
            elif verdict == "unsat":
                low = middle + 1
            else:
                break
        return best

    def _too_late(self) -> TimeLimitError:
        return TimeLimitError(
            f"{self.topology.name}: {self.settings.why_late()} came before any schedule of "
            f"{self.steps} steps; allow more time, or choose another method: SCCL is for a handful "
            "of nodes"
        )


def _number(z3: Any, value: Fraction) -> Any:
    """Return an integer if possible: z3 is faster with those."""
    return value.numerator if value.denominator == 1 else z3.Q(value.numerator, value.denominator)
