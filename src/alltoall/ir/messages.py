"""`Messages`: the sends and receives of each rank, in chunks of pairs.

The meaning, which `check.program.messages` executes:

- A rank has an input, an output and a scratch buffer. Shards lie in the input by destination and in
  the output by source; scratch has slots of one chunk each, large enough for any.
- All chunks from one rank to another in one step are one message, identified by sender, receiver
and step. It moves ranges of chunks, each from a place at its sender to one at its receiver, in the
same order at both ends.
- A message starts when the messages it waits for, all of its own rank, have ended, and ends only
after its other end has started.

A message waits only for messages of earlier steps, and its other end is in the same step. So, by
induction over the steps, no order that respects the waits can deadlock.
"""

from collections.abc import Iterator
from dataclasses import dataclass, field, fields, replace
from functools import cached_property
from itertools import pairwise
from typing import Any

import numpy as np
from numpy.typing import NDArray

from alltoall.errors import InputError
from alltoall.ir.arrays import Ints, frozen
from alltoall.ir.chunks import Chunks
from alltoall.ir.demand import Demand
from alltoall.ir.noun import Noun
from alltoall.ir.program import Buffer, check_rank_count, check_space, scratch_words

RANGE = (
    *("source", "destination", "chunk", "count"),
    *("from_buffer", "from_slot", "to_buffer", "to_slot"),
)
"""The fields of every range."""


@dataclass(frozen=True, eq=False, repr=False)
class RankMessages(Noun):
    """The messages of one rank by step, in each step receives first, then by peer.

    The ranges of message i are `first[i]:first[i + 1]`: `count` chunks from `chunk` on of the shard
    from `source` to `destination`. They lie where their shard does in the input (`from_buffer`) and
    the output (`to_buffer`), or from a slot of scratch on; a slot is 0 where there is none. Message
    i waits for the messages `waits[waits_first[i]:waits_first[i + 1]]`. `chunks` and `demand` are
    those of all ranks: a range has its share of its pair's bytes.
    """

    BRIEF = ("messages", "steps", "scratch")

    rank: int
    steps: int
    chunks: Chunks
    demand: Demand
    scratch: int
    step: Ints
    peer: Ints
    sends: NDArray[np.bool_]
    first: Ints
    source: Ints
    destination: Ints
    chunk: Ints
    count: Ints
    from_buffer: Ints
    from_slot: Ints
    to_buffer: Ints
    to_slot: Ints
    waits_first: Ints
    waits: Ints

    def __post_init__(self) -> None:
        for each in fields(self):
            value = getattr(self, each.name)
            if isinstance(value, np.ndarray):
                object.__setattr__(self, each.name, frozen(value, value.dtype.type))
        for problem in _problems(self):
            raise InputError(f"rank {self.rank}: {problem}")

    @property
    def messages(self) -> int:
        """The number of messages, sent and received."""
        return len(self.step)

    @cached_property
    def message_of_range(self) -> Ints:
        """The message of each range."""
        return np.repeat(np.arange(self.messages), np.diff(self.first))

    @cached_property
    def by_step(self) -> list[range]:
        """The messages of each step."""
        cuts = np.searchsorted(self.step, np.arange(self.steps + 1)).tolist()
        return [range(begin, end) for begin, end in pairwise(cuts)]

    @cached_property
    def waiting(self) -> list[int]:
        """The number of messages that each message waits for."""
        counts: list[int] = np.diff(self.waits_first).tolist()
        return counts

    @cached_property
    def next_alike(self) -> list[int | None]:
        """The next message to, or from, the same peer after each one; None if there is none."""
        found: list[int | None] = []
        following: dict[tuple[bool, int], int] = {}
        ends = list(zip(self.sends.tolist(), self.peer.tolist(), strict=True))
        for message in range(self.messages - 1, -1, -1):
            found.append(following.get(ends[message]))
            following[ends[message]] = message
        return found[::-1]

    @cached_property
    def followers(self) -> list[list[int]]:
        """The messages that wait for each message."""
        found: list[list[int]] = [[] for _ in range(self.messages)]
        for message, (begin, end) in enumerate(pairwise(self.waits_first.tolist())):
            for awaited in self.waits[begin:end].tolist():
                found[awaited].append(message)
        return found

    def _title(self) -> str:
        return f"of rank {self.rank}"

    def _facts(self) -> dict[str, str]:
        return {
            "messages": f"{self.messages:,}",
            "steps": f"{self.steps:,}",
            "scratch": f"{self.scratch:,} slots",
            "chunks": self.chunks.words(),
        }

    def _columns(self) -> dict[str, NDArray[Any]]:
        message = self.message_of_range
        ends = {key: getattr(self, key)[message] for key in ("step", "sends", "peer")}
        return {"message": message} | ends | {key: getattr(self, key) for key in RANGE}


@dataclass(frozen=True, eq=False, repr=False)
class Messages(Noun):
    """The messages of all ranks, with the semantics above."""

    TITLE = "name"
    BRIEF = ("ranks", "messages", "steps", "chunks")

    name: str = field(compare=False)
    ranks: tuple[RankMessages, ...]

    def __post_init__(self) -> None:
        check_rank_count("messages", len(self.ranks))
        check_space(self.chunks.stored, [part.scratch for part in self.ranks])

    @property
    def chunks(self) -> Chunks:
        """The chunks of every pair."""
        return self.ranks[0].chunks

    @property
    def demand(self) -> Demand:
        """The relative sizes of shards."""
        return self.ranks[0].demand

    @property
    def steps(self) -> int:
        """The number of steps."""
        return self.ranks[0].steps

    @property
    def messages(self) -> int:
        """The number of messages, each counted at its sender."""
        return int(sum(np.count_nonzero(part.sends) for part in self.ranks))

    def among(self, members: Ints) -> "Messages":
        """Return the messages of some ranks, which send to no others; they become 0, 1, ..."""
        inside, number = np.ix_(members, members), np.full(len(self.ranks), -1)
        number[members] = np.arange(len(members))
        counts = self.chunks.of(*inside).copy()
        alike = counts[~np.eye(len(members), dtype=np.bool_)]
        chunks = Chunks(len(members), counts=counts)
        demand = Demand(len(members), self.demand.of(*inside))
        if np.all(alike == alike[0]) and len(np.unique(demand.of(*np.nonzero(counts)))) == 1:
            chunks, demand = Chunks(len(members), int(alike[0])), Demand(len(members))
        renamed = ("peer", "source", "destination")
        parts = (self.ranks[member] for member in members.tolist())
        return Messages(
            self.name,
            tuple(
                replace(
                    part,
                    **{key: number[getattr(part, key)] for key in renamed},
                    rank=int(number[part.rank]),
                    chunks=chunks,
                    demand=demand,
                )
                for part in parts
            ),
        )

    def _facts(self) -> dict[str, str]:
        return {
            "ranks": f"{len(self.ranks):,}",
            "messages": f"{self.messages:,}",
            "steps": f"{self.steps:,}",
            "chunks": self.chunks.words(),
            "scratch": scratch_words(part.scratch for part in self.ranks),
        }


def _problems(part: RankMessages) -> Iterator[str]:
    """Yield faults in the shape of messages; `check.program.messages` executes them."""
    ranks = part.chunks.ranks
    if not 0 <= part.rank < ranks or part.demand.terminals != ranks:
        yield f"chunks of {ranks} ranks and a demand between {part.demand.terminals}"
    columns = (part.step, part.peer, part.sends, part.first[:-1], part.waits_first[:-1])
    if len({len(column) for column in columns}) > 1 or part.steps < 1 or part.scratch < 0:
        yield "messages without a step, a peer, ranges or waits; expected one of each"
        return
    for name, values, limit in (("step", part.step, part.steps), ("peer", part.peer, ranks)):
        if _outside(values, 0, limit):
            yield f"a message has a {name} that is not in 0..{limit - 1}"
    order = (part.step * 2 + part.sends) * ranks + part.peer
    if np.any(part.peer == part.rank) or np.any(np.diff(order) < 1):
        yield "messages are not with other ranks, or not by step, receives before sends, and peer"
    yield from _range_problems(part)
    counts = np.diff(part.waits_first)
    if part.waits_first[0] != 0 or part.waits_first[-1] != len(part.waits) or np.any(counts < 0):
        yield f"messages do not share out {len(part.waits)} waits"
    elif _outside(part.waits, 0, max(part.messages, 1)):
        yield "a message waits for one that does not exist"
    elif np.any(part.step[part.waits] >= np.repeat(part.step, counts)):
        yield "a message waits for one that is not of an earlier step"


def _outside(values: Ints, least: int, limit: int) -> bool:
    return bool(np.any((values < least) | (values >= limit)))


def _range_problems(part: RankMessages) -> Iterator[str]:
    ranks, ranges = part.chunks.ranks, len(part.source)
    if any(len(getattr(part, key)) != ranges for key in RANGE):
        yield "ranges that are not fully described"
        return
    if part.first[0] != 0 or part.first[-1] != ranges or np.any(np.diff(part.first) < 1):
        yield f"messages do not share out {ranges} ranges, at least one each"
        return
    if _outside(part.source, 0, ranks) or _outside(part.destination, 0, ranks):
        yield f"a range is of a pair that is not among the {ranks} ranks"
        return
    most = part.chunks.of(part.source, part.destination)
    wrong = (part.chunk < 0) | (part.count < 1) | (part.count > most - part.chunk)
    if np.any(wrong | (part.source == part.destination)):
        yield "a range has chunks that its pair has not"
    sends, peer = part.sends[part.message_of_range], part.peer[part.message_of_range]
    sender, receiver = np.where(sends, part.rank, peer), np.where(sends, peer, part.rank)
    from_buffer = np.where(sender == part.destination, Buffer.OUTPUT, Buffer.SCRATCH)
    from_buffer = np.where(sender == part.source, Buffer.INPUT, from_buffer)
    to_buffer = np.where(receiver == part.destination, Buffer.OUTPUT, Buffer.SCRATCH)
    if np.any(from_buffer != part.from_buffer) or np.any(to_buffer != part.to_buffer):
        yield (
            "a range is not read from the input of its source, written to the output of its "
            "destination, or else in scratch"
        )
    ends = ((from_buffer, part.from_slot, sends), (to_buffer, part.to_slot, ~sends))
    for buffer, slot, here in ends:
        used = buffer == Buffer.SCRATCH
        beyond = used & here & (slot > part.scratch - part.count)
        if np.any((slot < 0) | (slot > 0) & ~used | beyond):
            yield f"a range is outside of the scratch buffer of {part.scratch} slots"
