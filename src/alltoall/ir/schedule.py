"""`Schedule`: integer chunks, and per time step the chunks that each link carries."""

import math
from collections.abc import Iterable
from dataclasses import dataclass, field

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

    It does so in step `step[i]`, and sends are ordered by step. Sources and destinations are
    positions in `topology.terminals`. A terminal stores what reaches it and may forward it from
    the next step on; other nodes (switches, NIC halves) store nothing: what enters one leaves it
    in the same step.

    The shard of a pair is cut into as many equal chunks as `chunks` says: a chunk of a pair is its
    demand over its count. `certificate` is the proof of `bound`, the least time of any all-to-all.
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

    def __post_init__(self) -> None:
        freeze(self, np.int64, "step", "source", "destination", "chunk", "link")
        _check_shape(self)

    @property
    def sends(self) -> int:
        """The number of sends: one chunk over one link each."""
        return len(self.step)

    @property
    def chunks_per_shard(self) -> int:
        """The chunks of a shard of size 1; of an uneven demand, as many as that is on average."""
        if self.chunks.per_shard is not None:
            return self.chunks.per_shard
        return max(1, round(self.chunks.total / self.problem.demand.total))

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

    @property
    def padding(self) -> float:
        """What it adds to the data if all chunks are made as large as the largest one."""
        chunk = float(self.sizes().max(initial=0.0))
        return self.chunks.total * chunk / self.problem.demand.total - 1.0

    def chunk_counts(self) -> Ints:
        """Return the number of chunks of each shard, shape [terminals, terminals]."""
        own = np.eye(self.chunks.ranks, dtype=np.bool_)
        return np.where(own, 0, self.chunks.of(*np.indices(own.shape)))

    def sizes(self) -> Floats:
        """Return the size of what each send moves, in shards."""
        demand = self.problem.demand.of(self.source, self.destination)
        return demand / np.maximum(self.chunks.of(self.source, self.destination), 1)

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
    """Refuse arrays that do not describe sends at all; `check.schedule` judges what they say."""
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
        wrong = np.flatnonzero((values < 0) | (values >= limit))
        if len(wrong):
            found = values[wrong[0]]
            raise InputError(f"send {wrong[0]} has {key} {found}; expected 0..{limit - 1}")
    if schedule.certificate.lengths.shape != (topology.links,):
        raise InputError(f"{len(schedule.certificate.lengths)} lengths for {topology.links} links")
    if np.any(np.diff(schedule.step) < 0):
        raise InputError("the sends of the schedule are not ordered by step")
    counts = schedule.chunks.of(schedule.source, schedule.destination)
    counts = np.where(schedule.source == schedule.destination, 0, counts)
    wrong = np.flatnonzero((schedule.chunk < 0) | (schedule.chunk >= counts))
    if len(wrong):
        send = int(wrong[0])
        raise InputError(
            f"send {send} has chunk {schedule.chunk[send]} of a shard with {counts[send]} chunks"
        )


def _check_chunks(schedule: Schedule, terminals: int) -> None:
    """Refuse chunks of other pairs than those that have a demand."""
    chunks, demand = schedule.chunks, schedule.problem.demand
    if chunks.ranks != terminals:
        raise InputError(f"chunks of {chunks.ranks} terminals; the topology has {terminals}")
    if demand.uniform and chunks.uniform:
        return
    wanted = demand.rows(np.arange(terminals, dtype=np.int64)) > 0
    wrong = np.argwhere((chunks.of(*np.indices(wanted.shape)) > 0) != wanted)
    if len(wrong):
        source, destination = (int(each) for each in wrong[0])
        named = schedule.problem.topology.terminal_name
        count = int(chunks.of(np.array(source), np.array(destination)))
        raise InputError(
            f"{count} chunks from node {named(source)} to node {named(destination)}, with a "
            f"demand of {demand.of(wrong[:1, 0], wrong[:1, 1])[0]:g}; expected chunks where there "
            "is a demand, and nowhere else"
        )


def receivers_of(schedule: Schedule) -> Ints:
    """Return, for each send, the rank that its chunk reaches in the same step, behind switches.

    It is -1 where a chunk is left at a switch, which no checked schedule does.
    """
    topology = schedule.problem.topology
    receiver = topology.position[topology.head[schedule.link]]
    terminals = len(topology.terminals)
    shard = schedule.source * terminals + schedule.destination
    where = (
        (schedule.step * terminals**2 + shard) * int(schedule.chunk.max(initial=0) + 1)
    ) + schedule.chunk
    tail, head = topology.tail[schedule.link], topology.head[schedule.link]
    next_send = {(key, int(node)): i for i, (key, node) in enumerate(zip(where, tail, strict=True))}
    for send in np.flatnonzero(receiver < 0):
        hop = int(send)
        for _ in range(topology.nodes):
            if receiver[hop] >= 0:
                break
            hop = next_send.get((where[hop], int(head[hop])), hop)
        receiver[send] = receiver[hop]
    return receiver


def operations_of(schedule: Schedule) -> Ints:
    """Return how many messages each rank sends and receives, one per step and neighbour.

    All that a rank gives another one in a step is one message: runtimes are told it at once.
    """
    topology = schedule.problem.topology
    ranks = len(topology.terminals)
    sender, receiver = topology.position[topology.tail[schedule.link]], receivers_of(schedule)
    begins = sender >= 0
    message = np.unique(np.stack((schedule.step[begins], sender[begins], receiver[begins])), axis=1)
    return np.bincount(message[1], minlength=ranks) + np.bincount(message[2], minlength=ranks)
