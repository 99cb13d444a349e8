"""`Schedule`: integer chunks, and per time step the chunks that each link carries."""

import math
from dataclasses import dataclass, field

import numpy as np

from a2aflow.errors import InputError
from a2aflow.ir.answer import Answer
from a2aflow.ir.arrays import Floats, Ints, frozen
from a2aflow.ir.bottleneck import SAME
from a2aflow.ir.certificate import Certificate
from a2aflow.ir.problem import Problem
from a2aflow.ir.provenance import Provenance


@dataclass(frozen=True, eq=False, repr=False)
class Schedule(Answer):
    """Send i moves chunk `chunk[i]` of the shard (`source[i]`, `destination[i]`) over `link[i]`.

    It does so in step `step[i]`, and sends are ordered by step. Sources and destinations are
    positions in `topology.terminals`. A terminal stores what reaches it and may forward it from
    the next step on; other nodes (switches, NIC halves) store nothing: what enters one leaves it
    in the same step.

    A shard of demand D is cut into `chunks_of(D)` equal chunks: `chunks_per_shard` for a shard of
    size 1. `certificate` is the proof of `bound`, the least time of any all-to-all.
    """

    BRIEF = ("time", "gap", "steps", "chunks")

    problem: Problem
    chunks_per_shard: int
    steps: int
    step: Ints
    source: Ints
    destination: Ints
    chunk: Ints
    link: Ints
    certificate: Certificate
    fractional_time: float
    method: str
    provenance: Provenance | None = field(default=None, compare=False)

    def __post_init__(self) -> None:
        for key in ("step", "source", "destination", "chunk", "link"):
            object.__setattr__(self, key, frozen(getattr(self, key), np.int64))
        _check_shape(self)

    @property
    def sends(self) -> int:
        """The number of sends: one chunk over one link each."""
        return len(self.step)

    @property
    def time(self) -> float:
        """The sum over the steps of the largest load over capacity, in shards."""
        return float(self.step_times().sum())

    @property
    def loss(self) -> float:
        """What whole chunks cost against the fractional schedule of as many steps."""
        if self.fractional_time <= 0:
            return math.inf
        return max(0.0, self.time / self.fractional_time - 1.0)

    def chunk_counts(self) -> Ints:
        """Return the number of chunks of each shard, shape [terminals, terminals]."""
        return chunks_of(self.problem.demand.table(), self.chunks_per_shard)

    def sizes(self) -> Floats:
        """Return the size of what each send moves, in shards."""
        demand = self.problem.demand.of(self.source, self.destination)
        return demand / np.maximum(chunks_of(demand, self.chunks_per_shard), 1)

    def loads(self) -> Floats:
        """Return the load of each link in each step, in shards, shape [steps, links]."""
        links = self.problem.topology.links
        flat = np.zeros(self.steps * links)
        np.add.at(flat, self.step * links + self.link, self.sizes())
        return flat.reshape(self.steps, links)

    def step_times(self) -> Floats:
        """Return the time of each step in which anything is sent: its largest load over capacity.

        A step that is claimed and never used takes no time, and here no memory either.
        """
        step, _, fullness = self._used()
        times = np.zeros(int(step[-1]) + 1 if len(step) else 0)
        np.maximum.at(times, step, fullness)
        return times

    def _used(self) -> tuple[Ints, Ints, Floats]:
        """Return each link in each step that uses it: step, link, and load over capacity.

        Steps are numbered among those in which anything is sent.
        """
        links = self.problem.topology.links
        key = (np.cumsum(np.diff(self.step, prepend=-1) != 0) - 1) * links + self.link
        used, place = np.unique(key, return_inverse=True)
        load = np.bincount(place, self.sizes(), len(used))
        step, link = used // links, used % links
        return step, link, load / self.problem.topology.capacity[link]

    def _fullness(self) -> Floats:
        """Return the time of the steps in which each link is the fullest."""
        step, link, fullness = self._used()
        times = self.step_times()
        slowest = fullness >= times[step] * (1 - SAME)
        return np.bincount(link[slowest], times[step[slowest]], self.problem.topology.links).astype(
            np.float64
        )

    def _facts(self) -> dict[str, str]:
        chunks = f"{self.chunks_per_shard} per shard"
        return {**super()._facts(), "steps": str(self.steps), "chunks": chunks}

    def _columns(self) -> dict[str, Ints | Floats]:
        node = self.problem.topology.terminals
        return {
            "step": self.step,
            "source": node[self.source],
            "destination": node[self.destination],
            "chunk": self.chunk,
            "link": self.link,
            "shards": self.sizes(),
        }


def chunks_of(demand: Floats, chunks_per_shard: int) -> Ints:
    """Return into how many chunks shards of these sizes are cut: at least one where any demand."""
    counts = np.maximum(np.rint(demand * chunks_per_shard), 1)
    return np.where(demand > 0, counts, 0).astype(np.int64)


def _check_shape(schedule: Schedule) -> None:
    """Refuse arrays that do not describe sends at all; `check.schedule` judges what they say."""
    topology = schedule.problem.topology
    if schedule.chunks_per_shard < 1 or schedule.steps < 1:
        raise InputError(
            f"{schedule.chunks_per_shard} chunks per shard in {schedule.steps} steps; "
            "expected at least one of each"
        )
    terminals = len(topology.terminals)
    for key, limit in (
        ("step", schedule.steps),
        ("source", terminals),
        ("destination", terminals),
        ("link", topology.links),
    ):
        values = getattr(schedule, key)
        if values.shape != (schedule.sends,):
            raise InputError(
                f"the schedule has {len(values)} entries of {key} for {schedule.sends}"
            )
        wrong = np.flatnonzero((values < 0) | (values >= limit))
        if len(wrong):
            found = values[wrong[0]]
            raise InputError(f"send {wrong[0]} has {key} {found}; expected 0..{limit - 1}")
    if schedule.certificate.lengths.shape != (topology.links,):
        raise InputError(f"{len(schedule.certificate.lengths)} lengths for {topology.links} links")
    if np.any(np.diff(schedule.step) < 0):
        raise InputError("the sends of the schedule are not ordered by step")
    demand = schedule.problem.demand.of(schedule.source, schedule.destination)
    counts = chunks_of(demand, schedule.chunks_per_shard)
    wrong = np.flatnonzero((schedule.chunk < 0) | (schedule.chunk >= counts))
    if len(wrong):
        send = int(wrong[0])
        raise InputError(
            f"send {send} has chunk {schedule.chunk[send]} of a shard with {counts[send]} chunks"
        )
