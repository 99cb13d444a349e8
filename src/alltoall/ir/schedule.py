"""`Schedule`: integer chunks, and per time step the chunks that each link carries."""

import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from alltoall.errors import InputError
from alltoall.ir.answer import SAME, Answer, Certificate
from alltoall.ir.arrays import Floats, Ints, freeze
from alltoall.ir.chunks import Chunks
from alltoall.ir.noun import Provenance
from alltoall.ir.problem import Problem


@dataclass(frozen=True, eq=False, repr=False)
class Schedule(Answer):
    """Send i moves chunk `chunk[i]` of the shard (`source[i]`, `destination[i]`) over `link[i]`.

    Its step is `step[i]`, and sends are ordered by step. Sources and destinations are positions in
    `topology.terminals`. A terminal stores chunks and may forward them from the next
    step on; other nodes (switches, NIC halves) store nothing: chunks leave them in the same step.

    The shard of a pair is cut into equal chunks, their number in `chunks`. `certificate` is the
    proof of `bound`, the least time of any all-to-all.
    """

    BRIEF = ("time", "gap", "steps", "chunks")

    problem: Problem
    chunks: Chunks
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
    learnt: Mapping[str, Any] = field(default_factory=dict, compare=False)

    def __post_init__(self) -> None:
        freeze(self, np.int64, "step", "source", "destination", "chunk", "link")
        _check_shape(self)

    @property
    def sends(self) -> int:
        """The number of sends: one chunk over one link each."""
        return len(self.step)

    @property
    def chunks_per_shard(self) -> int:
        """The chunks of a shard of size 1, the mean if demand is uneven."""
        if self.chunks.per_shard is not None:
            return self.chunks.per_shard
        return max(1, round(self.chunks.total / self.problem.demand.total))

    @property
    def time(self) -> float:
        """The sum over the steps of the largest load over capacity, in shards."""
        return float(self.step_times().sum())

    @property
    def loss(self) -> float:
        """The relative cost of whole chunks over the fractional schedule with equal steps."""
        if self.fractional_time <= 0:
            return math.inf
        return max(0.0, self.time / self.fractional_time - 1.0)

    @property
    def padding(self) -> float:
        """The additional data if all chunks are as large as the largest one, as a share."""
        chunk = float(self.sizes().max(initial=0.0))
        return self.chunks.total * chunk / self.problem.demand.total - 1.0

    def chunk_counts(self) -> Ints:
        """Return the number of chunks of each shard, shape [terminals, terminals]."""
        own = np.eye(self.chunks.ranks, dtype=np.bool_)
        return np.where(own, 0, self.chunks.of(*np.indices(own.shape)))

    def sizes(self) -> Floats:
        """Return the size of the chunk of each send, in shards."""
        pairs = self.source, self.destination
        return self.problem.demand.of(*pairs) / np.maximum(self.chunks.of(*pairs), 1)

    def loads(self) -> Floats:
        """Return the load of each link in each step, in shards, shape [steps, links]."""
        loads = np.zeros((self.steps, self.problem.topology.links))
        np.add.at(loads, (self.step, self.link), self.sizes())
        return loads

    def step_times(self) -> Floats:
        """Return the largest load over capacity of each step, without those that send nothing."""
        step, _, fullness = self._used()
        times = np.zeros(int(step[-1]) + 1 if len(step) else 0)
        np.maximum.at(times, step, fullness)
        return times

    def _used(self) -> tuple[Ints, Ints, Floats]:
        """Return step, link, and load over capacity where loads are not 0.

        Steps are numbered without those that send nothing.
        """
        links = self.problem.topology.links
        key = (np.cumsum(np.diff(self.step, prepend=-1) != 0) - 1) * links + self.link
        if self.steps * links <= self.sends:  # Sorting the sends takes longer than a table.
            load = np.bincount(key, self.sizes())
            used = np.flatnonzero(load)
            load = load[used]
        else:
            used, place = np.unique(key, return_inverse=True)
            load = np.bincount(place, self.sizes(), len(used))
        step, link = used // links, used % links
        return step, link, load / self.problem.topology.capacity[link]

    def _fullness(self) -> Floats:
        """Return the time of the steps in which each link is the fullest."""
        step, link, fullness = self._used()
        times = self.step_times()
        slowest = fullness >= times[step] * (1 - SAME)
        total = np.zeros(self.problem.topology.links)
        np.add.at(total, link[slowest], times[step[slowest]])
        return total

    def _facts(self) -> dict[str, str]:
        return {**super()._facts(), "steps": str(self.steps), "chunks": self.chunks.words()}

    def _columns(self) -> dict[str, Iterable[object]]:
        terminal = self.problem.topology.called(self.problem.topology.terminals)
        return {
            "step": self.step,
            "source": terminal[self.source],
            "destination": terminal[self.destination],
            "chunk": self.chunk,
            "link": self.link,
            "shards": self.sizes(),
        }


def _check_shape(schedule: Schedule) -> None:
    """Refuse arrays that are not sends; `check.schedule` checks the rest."""
    topology = schedule.problem.topology
    if schedule.steps < 1:
        raise InputError(f"a schedule of {schedule.steps} steps; expected at least one")
    terminals = len(topology.terminals)
    _check_chunks(schedule, terminals)
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
        for send in np.flatnonzero((values < 0) | (values >= limit))[:1]:
            raise InputError(f"send {send} has {key} {values[send]}; expected 0..{limit - 1}")
    if schedule.certificate.lengths.shape != (topology.links,):
        raise InputError(f"{len(schedule.certificate.lengths)} lengths for {topology.links} links")
    if np.any(np.diff(schedule.step) < 0):
        raise InputError("the sends of the schedule are not ordered by step")
    counts = schedule.chunks.of(schedule.source, schedule.destination)
    counts = np.where(schedule.source == schedule.destination, 0, counts)
    for send in np.flatnonzero((schedule.chunk < 0) | (schedule.chunk >= counts))[:1]:
        raise InputError(
            f"send {send} has chunk {schedule.chunk[send]} of a shard with {counts[send]} chunks"
        )


def _check_chunks(schedule: Schedule, terminals: int) -> None:
    """Refuse chunks of pairs without a demand, and pairs with a demand but no chunks."""
    chunks, demand = schedule.chunks, schedule.problem.demand
    if chunks.ranks != terminals:
        raise InputError(f"chunks of {chunks.ranks} terminals; the topology has {terminals}")
    if demand.uniform and chunks.uniform:
        return
    wanted = demand.rows(np.arange(terminals, dtype=np.int64)) > 0
    wrong = np.argwhere((chunks.of(*np.indices(wanted.shape)) > 0) != wanted)
    if len(wrong):
        first = wrong[:1].T
        raise InputError(
            f"{chunks.of(*first)[0]} chunks {schedule.problem.topology.pair_name(*wrong[0])}, with "
            f"a demand of {demand.of(*first)[0]:g}; expected chunks where there is a demand, and "
            "nowhere else"
        )


def receivers_of(schedule: Schedule) -> Ints:
    """Return, for each send, the rank that its chunk reaches in the same step, behind switches.

    It is -1 where a chunk is left at a switch, which no checked schedule does.
    """
    topology = schedule.problem.topology
    terminals, most = len(topology.terminals), int(schedule.chunk.max(initial=0)) + 1
    shard = (schedule.step * terminals + schedule.source) * terminals + schedule.destination
    chunk = shard * most + schedule.chunk
    tail, head = topology.tail[schedule.link], topology.head[schedule.link]
    leaves, enters = chunk * topology.nodes + tail, chunk * topology.nodes + head
    order = np.argsort(leaves, kind="stable")
    place = np.searchsorted(leaves, enters, sorter=order)
    following = order[np.minimum(place, len(order) - 1)]
    receiver = topology.position[head]
    while True:
        switched = (receiver < 0) & (leaves[following] == enters) & (receiver[following] >= 0)
        if not switched.any():
            return receiver
        receiver = np.where(switched, receiver[following], receiver)


def operations_of(schedule: Schedule) -> Ints:
    """Return the number of messages that each rank sends and receives.

    All chunks that a rank sends to another one in a step are one message.
    """
    topology = schedule.problem.topology
    ranks = len(topology.terminals)
    sender, receiver = topology.position[topology.tail[schedule.link]], receivers_of(schedule)
    begins = sender >= 0
    message = np.unique(np.stack((schedule.step[begins], sender[begins], receiver[begins])), axis=1)
    return np.bincount(message[1], minlength=ranks) + np.bincount(message[2], minlength=ranks)
