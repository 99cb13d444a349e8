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
from dataclasses import dataclass, replace
from fractions import Fraction
from importlib import import_module
from typing import Any

import numpy as np

from alltoall.errors import InputError, MissingComponentError, TimeLimitError, how_to_install
from alltoall.flows.program import certify
from alltoall.ir.arrays import Floats, Ints, inner_index
from alltoall.ir.chunks import Chunks, chunks_of
from alltoall.ir.problem import Problem
from alltoall.ir.schedule import Schedule
from alltoall.ir.units import normal_units
from alltoall.paths.shortest import shortest_distances
from alltoall.settings import SolveSettings

LARGEST_DENOMINATOR = 1000
"""The largest denominator of sizes and capacities, or of their reciprocals, as fractions."""


def synthesise(
    problem: Problem,
    chunks: int = 1,
    steps: int | None = None,
    rounds: int | None = None,
    settings: SolveSettings | None = None,
) -> Schedule:
    """Return a schedule of `chunks` chunks per shard in the fewest rounds found.

    A round is the time of one chunk over the median link. `steps` defaults to the least possible
    number; with `rounds`, return any schedule within them. At a time limit, return the best
    schedule so far; raise TimeLimitError if there is none.
    """
    topology = problem.topology
    if chunks < 1:
        raise InputError(f"{chunks} chunks per shard; expected at least 1")
    if len(topology.terminals) < topology.nodes:
        raise InputError(
            f"{topology.name} has {topology.nodes - len(topology.terminals)} nodes that are not "
            "terminals; SCCL stores chunks at every node, choose another method"
        )
    units = normal_units(problem, demand=1.0)
    settings = settings or SolveSettings()
    return units.restored(_synthesise(units.problem, chunks, steps, rounds, settings))


def _synthesise(
    problem: Problem, chunks: int, steps: int | None, rounds: int | None, settings: SolveSettings
) -> Schedule:
    try:
        z3 = import_module("z3")
    except ImportError:
        raise MissingComponentError(
            f"schedule synthesis needs z3, which is not installed; {how_to_install('sccl')}"
        ) from None
    moves, certificate = _Moves.of(problem, chunks), certify(problem, [])
    least = int(moves.hops[moves.start, moves.end].max())
    if steps is not None and steps < least:
        raise InputError(f"{steps} steps; some pair is {least} hops apart, allow at least {least}")
    encoding = _Encoding(z3, moves, least if steps is None else steps, settings)
    if rounds is None:
        low = math.ceil(certificate.bound * chunks * (1 - 1e-9))
        model = _fewest_rounds(encoding, low, settings)
    else:
        model = _any_model(encoding, rounds, settings)
    step, chunk, link = np.array(encoding.sends(model), dtype=np.int64).T
    schedule = Schedule(
        problem=problem,
        chunks=Chunks.of_demand(problem.demand, chunks),
        steps=encoding.steps,
        step=step,
        source=moves.source[chunk],
        destination=moves.destination[chunk],
        chunk=moves.chunk[chunk],
        link=link,
        certificate=certificate,
        fractional_time=0.0,
        method="sccl",
    )
    # Chunks are whole from the start: there is no fractional schedule.
    return replace(schedule, fractional_time=schedule.time)


@dataclass(frozen=True, eq=False)
class _Moves:
    """All chunks with their ends and sizes, and the hop distances between all nodes."""

    problem: Problem
    source: Ints
    destination: Ints
    chunk: Ints
    size: list[Fraction]
    capacity: list[Fraction]
    hops: Floats

    @classmethod
    def of(cls, problem: Problem, chunks: int) -> "_Moves":
        terminals = problem.demand.terminals
        demand = problem.demand.table()
        counts = chunks_of(demand, chunks)
        pair = np.repeat(np.arange(terminals**2, dtype=np.int64), counts.ravel())
        source, destination = np.divmod(pair, terminals)
        size = demand[source, destination] * chunks / counts[source, destination]
        topology = problem.topology
        return cls(
            problem=problem,
            source=source,
            destination=destination,
            chunk=inner_index(counts.ravel()),
            size=[_fraction(each) for each in size],
            capacity=[_fraction(each) for each in topology.capacity],
            hops=shortest_distances(topology, np.ones(topology.links), np.arange(topology.nodes)),
        )

    @property
    def start(self) -> Ints:
        """The node at which each chunk starts."""
        return self.problem.topology.terminals[self.source]

    @property
    def end(self) -> Ints:
        """The node at which each chunk is wanted."""
        return self.problem.topology.terminals[self.destination]


def _fraction(value: float) -> Fraction:
    """Return a simple fraction near a value, or the reciprocal of one if that is closer."""
    simple = Fraction(max(value, 1 / value)).limit_denominator(LARGEST_DENOMINATOR)
    return simple if value >= 1 else 1 / simple


class _Encoding:
    """The constraints of the module's docstring in z3, and its models as sends."""

    def __init__(self, z3: Any, moves: _Moves, steps: int, settings: SolveSettings) -> None:
        self.z3, self.moves, self.steps = z3, moves, steps
        self.solver = z3.Solver()
        self.rounds = [z3.Int(f"rounds_{step}") for step in range(1, steps + 1)]
        self.time: dict[tuple[int, int], Any] = {}
        self.sent: dict[tuple[int, int], Any] = {}
        self.crossing: defaultdict[int, list[int]] = defaultdict(list)
        self.solver.add(*(each >= 0 for each in self.rounds))
        for chunk in range(len(moves.chunk)):
            self._require_time(settings)
            self._add_chunk(chunk)
        for link in range(moves.problem.topology.links):
            self._require_time(settings)
            self._add_capacity(link)

    def _require_time(self, settings: SolveSettings) -> None:
        """Raise if time is up: building the constraints can take longer than any limit."""
        if settings.out_of_time():
            raise _too_late(self, settings)

    def _add_chunk(self, chunk: int) -> None:
        """Add the variables and moves of a chunk, on the links that can be on its path."""
        z3, topology = self.z3, self.moves.problem.topology
        start, end = int(self.moves.start[chunk]), int(self.moves.end[chunk])
        before, after = self.moves.hops[start], self.moves.hops[:, end]
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
        z3, head = self.z3, int(self.moves.problem.topology.head[link])
        crossing = self.crossing[link]
        rounds_of = [_number(z3, self.moves.size[c] / self.moves.capacity[link]) for c in crossing]
        for step, rounds in enumerate(self.rounds, start=1):
            load = [
                z3.If(z3.And(self.sent[chunk, link], self.time[chunk, head] == step), takes, 0)
                for chunk, takes in zip(crossing, rounds_of, strict=True)
            ]
            self.solver.add(z3.Sum(load) <= rounds)

    def solve(self, rounds: int | None, seconds: float | None) -> tuple[str, Any]:
        """Return the solver's verdict, and its model if that is `sat`."""
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
        topology = self.moves.problem.topology
        into = {
            (chunk, int(topology.head[link])): link
            for (chunk, link), sent in self.sent.items()
            if self.z3.is_true(model.eval(sent))
        }
        found = []
        for chunk in range(len(self.moves.chunk)):
            node = int(self.moves.end[chunk])
            while node != self.moves.start[chunk]:
                link = into[chunk, node]
                found.append((model.eval(self.time[chunk, node]).as_long() - 1, chunk, link))
                node = int(topology.tail[link])
        return sorted(found)


def _number(z3: Any, value: Fraction) -> Any:
    """Return an integer if possible: z3 is faster with those."""
    return value.numerator if value.denominator == 1 else z3.Q(value.numerator, value.denominator)


def _fewest_rounds(encoding: _Encoding, low: int, settings: SolveSettings) -> Any:
    """Return the model of fewest rounds found; `low` is a lower bound."""
    best = _any_model(encoding, None, settings)
    high = encoding.used_rounds(best)
    while low < high and not settings.out_of_time():
        settings.report(f"sccl: {encoding.steps} steps, {low} to {high} rounds")
        middle = (low + high) // 2
        verdict, model = encoding.solve(middle, settings.seconds_left())
        if model is not None:
            best, high = model, encoding.used_rounds(model)
        elif verdict == "unsat":
            low = middle + 1
        else:
            break
    return best


def _any_model(encoding: _Encoding, rounds: int | None, settings: SolveSettings) -> Any:
    """Return any model within so many rounds."""
    verdict, model = encoding.solve(rounds, settings.seconds_left())
    if verdict == "unsat":
        raise InputError(f"no schedule of {encoding.steps} steps takes {rounds} rounds; allow more")
    if model is None:
        raise _too_late(encoding, settings)
    return model


def _too_late(encoding: _Encoding, settings: SolveSettings) -> TimeLimitError:
    name = encoding.moves.problem.topology.name
    return TimeLimitError(
        f"{name}: {settings.why_late()} came before any schedule of {encoding.steps} steps; allow "
        "more time, or choose another method: SCCL is for a handful of nodes"
    )
