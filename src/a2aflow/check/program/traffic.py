"""Whether traffic can be an all-to-all: all sends meet their receives, it ends, and sizes suffice.

Traffic has sizes and no content, so this is what must hold of any all-to-all and not all that makes
one: every rank sends at least what it has for others and receives at least what others have for it.
Held against a schedule, every two ranks have to give each other exactly what the schedule says.
"""

from bisect import bisect
from collections import deque
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from itertools import pairwise

import numpy as np

from a2aflow.check.program.memory import MAX_NAMED
from a2aflow.ir.arrays import Ints
from a2aflow.ir.chunks import PerShard, shards_of
from a2aflow.ir.schedule import Schedule
from a2aflow.ir.traffic import RankTraffic, Traffic

Ends = tuple[int, int, int]
"""A step, a sender and a receiver."""


@dataclass(frozen=True, eq=False)
class TrafficReport:
    """The result of executing traffic: bytes by step, sender and receiver, and what is wrong.

    The step of a message is its tag where all that comes before it has smaller ones; where tags
    mean something else, it is 1 more than the longest chain of messages that it comes after.
    """

    unit: int
    loads: Mapping[Ends, int]
    sends: Ints
    violations: tuple[str, ...]

    @property
    def correct(self) -> bool:
        """Whether nothing is wrong that sizes can tell."""
        return not self.violations

    @property
    def steps(self) -> int:
        """The number of steps in which anything goes."""
        return len({step for step, *_ in self.loads})

    def shards(self) -> Mapping[Ends, float]:
        """Return what goes by step, sender and receiver, in shards of size 1."""
        return {ends: size / self.unit for ends, size in self.loads.items()}

    def problems(self) -> list[str]:
        """Return everything that is wrong, in words."""
        return list(self.violations)


def check_traffic(traffic: Traffic, schedule: Schedule | None = None) -> TrafficReport:
    """Execute traffic, and hold what went against its shards, and a schedule if there is one."""
    machine = _Machine(traffic)
    violations = list(machine.unmatched())
    if not violations:
        machine.run()
        violations += machine.stuck()
    sends = _sent(traffic)
    if traffic.shard is not None:
        violations += _too_little(sends, traffic.shard)
    if schedule is not None:
        violations += _differences(sends, schedule, traffic.unit or 1)
    steps = machine.steps()
    loads: dict[Ends, int] = {}
    for part in traffic.ranks:
        for operation in np.flatnonzero(part.sends).tolist():
            ends = (steps[machine.first[part.rank] + operation], part.rank)
            key = (*ends, int(part.peer[operation]))
            loads[key] = loads.get(key, 0) + int(part.bytes[operation])
    return TrafficReport(traffic.unit or 1, loads, sends, tuple(violations[:MAX_NAMED]))


class _Machine:
    """All operations of all ranks, numbered through."""

    def __init__(self, traffic: Traffic) -> None:
        self._traffic = traffic
        counts = [part.operations for part in traffic.ranks]
        self.first: list[int] = np.append(0, np.cumsum(counts)).tolist()
        self._tag: list[int] = np.concatenate([part.tag for part in traffic.ranks]).tolist()
        self._sends: list[bool] = np.concatenate([part.sends for part in traffic.ranks]).tolist()
        self._after = self._edges("after")
        self._beside = self._edges("beside")
        self._partner: list[int | None] = [None] * self.first[-1]
        self._ended = [False] * self.first[-1]
        self._depth = [1] * self.first[-1]

    def _edges(self, kind: str) -> list[list[int]]:
        """Return what every operation comes after, or beside."""
        found: list[list[int]] = []
        for part, base in zip(self._traffic.ranks, self.first, strict=False):
            first = getattr(part, f"{kind}_first").tolist()
            others = (getattr(part, kind) + base).tolist()
            found += [others[a:b] for a, b in pairwise(first)]
        return found

    def unmatched(self) -> Iterator[str]:
        """Let every send meet its receive; name what has no other end, or another size there."""
        queues = (self._queues(sends=True), self._queues(sends=False))
        for key in sorted(queues[0].keys() | queues[1].keys()):
            (sender, receiver, tag), ends = key, [queue.get(key, []) for queue in queues]
            here = f"rank {sender} to rank {receiver}, tag {tag}"
            if len(ends[0]) != len(ends[1]):
                yield f"{here}: {len(ends[0])} sends and {len(ends[1])} receives"
                continue
            for send, receive in zip(*ends, strict=True):
                self._partner[send], self._partner[receive] = receive, send
                sizes = (self._bytes(sender, send), self._bytes(receiver, receive))
                if sizes[0] != sizes[1]:
                    yield f"{here}: {sizes[0]} bytes are sent and {sizes[1]} received"

    def _bytes(self, rank: int, operation: int) -> int:
        return int(self._traffic.ranks[rank].bytes[operation - self.first[rank]])

    def _queues(self, sends: bool) -> dict[Ends, list[int]]:
        """Return the operations by sender, receiver and tag, in their order."""
        found: dict[Ends, list[int]] = {}
        for part in self._traffic.ranks:
            for each in np.flatnonzero(part.sends == sends).tolist():
                peer, tag = int(part.peer[each]), int(part.tag[each])
                ends = (part.rank, peer) if sends else (peer, part.rank)
                found.setdefault((*ends, tag), []).append(self.first[part.rank] + each)
        return found

    def run(self) -> None:
        """Start whatever can start, until nothing can."""
        left = [len(one) + len(two) for one, two in zip(self._after, self._beside, strict=True)]
        started = [False] * len(left)
        on_end, on_start = _followers(self._after), _followers(self._beside)
        ready = deque(each for each, count in enumerate(left) if not count)
        while ready:
            each = ready.popleft()
            started[each] = True
            released = list(on_start[each])
            partner = self._partner[each]
            if partner is not None and started[partner]:
                self._end(each, partner)
                released += on_end[each] + on_end[partner]
            for later in released:
                left[later] -= 1
                if not left[later]:
                    ready.append(later)

    def _end(self, one: int, other: int) -> None:
        """Let a message end; its depth is beyond all receives that it comes after."""
        before = [each for end in (one, other) for each in self._after[end] + self._beside[end]]
        depth = max((self._depth[each] + (not self._sends[each]) for each in before), default=1)
        for end in (one, other):
            self._ended[end], self._depth[end] = True, depth

    def stuck(self) -> Iterator[str]:
        """Name the first operation that never ends."""
        count = self._ended.count(False)
        if not count:
            return
        stuck = self._ended.index(False)
        part = self._traffic.ranks[bisect(self.first, stuck) - 1]
        each = stuck - self.first[part.rank]
        does = "send to" if part.sends[each] else "receive from"
        yield (
            f"deadlock: {count} operations never end, the first is operation {each} of rank "
            f"{part.rank}, the {does} rank {part.peer[each]} with tag {part.tag[each]}"
        )

    def steps(self) -> list[int]:
        """Return the step of every operation."""
        edges = zip(self._after, self._beside, strict=True)
        if all(
            self._tag[before] < self._tag[each]
            for each, (after, beside) in enumerate(edges)
            for before in (*after, *beside)
        ):
            return self._tag
        return self._depth


def _followers(edges: list[list[int]]) -> list[list[int]]:
    found: list[list[int]] = [[] for _ in edges]
    for later, before in enumerate(edges):
        for each in before:
            found[each].append(later)
    return found


def _sent(traffic: Traffic) -> Ints:
    """Return the bytes that every rank sends to every other."""
    ranks = len(traffic.ranks)
    return np.stack([_row(part, ranks) for part in traffic.ranks])


def _row(part: RankTraffic, ranks: int) -> Ints:
    row = np.zeros(ranks, dtype=np.int64)
    np.add.at(row, part.peer[part.sends], part.bytes[part.sends])
    return row


def _too_little(sends: Ints, shard: PerShard) -> Iterator[str]:
    """Name ranks that send or receive less than there is for others, or from them."""
    every = np.arange(shard.ranks)
    own = shard.of(every, every)
    for word, found, least in (
        ("sends", sends.sum(axis=1), shard.inputs() - own),
        ("receives", sends.sum(axis=0), shard.outputs() - own),
    ):
        for rank in np.flatnonzero(found < least).tolist():
            yield f"rank {rank} {word} {found[rank]} bytes; its shards have {least[rank]}"


def _differences(sends: Ints, schedule: Schedule, unit: int) -> Iterator[str]:
    """Name what goes between terminals otherwise than by a schedule.

    Where a link enters a switch, the schedule does not say by itself where it leaves: what goes
    in and out of every terminal is compared then.
    """
    expected, ranks = _scheduled(schedule, unit), len(sends)
    if expected.shape == sends.shape:
        for sender, receiver in np.argwhere(sends != expected).tolist():
            yield (
                f"{sends[sender, receiver]} bytes from rank {sender} to rank {receiver}; the "
                f"schedule has {expected[sender, receiver]}"
            )
        return
    found, wanted = (
        np.stack((table.sum(axis=1)[:ranks], table.sum(axis=0)[:ranks])).T
        for table in (sends, expected)
    )
    wrong = np.flatnonzero(np.any(found != wanted, axis=1)).tolist()
    if wrong:
        (out, into), (due_out, due_into) = found[wrong[0]], wanted[wrong[0]]
        yield (
            f"ranks {wrong} send or receive otherwise than by the schedule: rank {wrong[0]} has "
            f"{out} bytes out and {into} in, of {due_out} and {due_into}"
        )


def _scheduled(schedule: Schedule, unit: int) -> Ints:
    """Return the bytes that a schedule sends from terminal to terminal; switches are the last."""
    topology, ends = schedule.problem.topology, (schedule.source, schedule.destination)
    terminals = len(topology.terminals)
    size = shards_of(schedule.problem.demand, unit).of(*ends).astype(object)
    chunks = schedule.chunks.of(*ends).astype(object)
    amount = (schedule.chunk + 1) * size // chunks - schedule.chunk * size // chunks
    rank = np.full(topology.nodes, terminals, dtype=np.int64)
    rank[topology.terminals] = np.arange(terminals)
    table = np.zeros((terminals + 1, terminals + 1), dtype=np.int64)
    tail, head = rank[topology.tail[schedule.link]], rank[topology.head[schedule.link]]
    np.add.at(table, (tail, head), amount.astype(np.int64))
    return table if terminals < topology.nodes else table[:terminals, :terminals]
