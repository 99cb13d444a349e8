"""One rank's part of a schedule: the messages that it sends and receives, and what each waits for.

All chunks that one rank gives another in one step travel as one message. A message waits for
earlier messages of its own rank only:

- a send waits for the receives that bring the chunks it forwards;
- a receive waits for the sends that still read what it will overwrite in scratch, and for an
  earlier receive of it that nothing read.

Whatever a message waits for belongs to an earlier step, and its partner at the other rank belongs
to the same step. So by induction over the steps no order of execution that respects the waits can
deadlock, even if a send ends only once its receive is posted.
"""

from collections.abc import Iterator
from dataclasses import dataclass, fields
from functools import cached_property
from itertools import pairwise
from typing import Any

import numpy as np
from numpy.typing import NDArray

from a2aflow.errors import InputError
from a2aflow.ir.arrays import Ints, frozen, starts_of
from a2aflow.ir.program import Buffer
from a2aflow.ir.schedule import Schedule
from a2aflow.lowering.programs.placement import Placement, place
from a2aflow.lowering.programs.transfers import transfers_of


@dataclass(frozen=True, eq=False)
class Plan:
    """The messages of one rank by step, in each step receives first, then by peer.

    The pieces of message i are `first[i]:first[i + 1]`: one chunk each, in the order in which both
    ranks put them on the wire. `offset` counts chunks, as in `Placement`; `peer_buffer` and
    `peer_offset` say where the piece lies at the peer. Message i waits for the messages
    `waits[waits_first[i]:waits_first[i + 1]]`.
    """

    rank: int
    ranks: int
    chunks_per_shard: int
    steps: int
    scratch: int
    step: Ints
    peer: Ints
    sends: NDArray[np.bool_]
    first: Ints
    buffer: Ints
    offset: Ints
    peer_buffer: Ints
    peer_offset: Ints
    chunk: Ints
    waits_first: Ints
    waits: Ints

    def __post_init__(self) -> None:
        for each in fields(self):
            value = getattr(self, each.name)
            if isinstance(value, np.ndarray):
                object.__setattr__(self, each.name, frozen(value, value.dtype.type))

    @property
    def messages(self) -> int:
        """The number of messages, sent and received."""
        return len(self.step)

    @cached_property
    def by_step(self) -> list[range]:
        """The messages of each step."""
        cuts = np.searchsorted(self.step, np.arange(self.steps + 1)).tolist()
        return [range(begin, end) for begin, end in pairwise(cuts)]

    @cached_property
    def waiting(self) -> list[int]:
        """How many messages each message waits for."""
        return [int(count) for count in np.diff(self.waits_first)]

    @cached_property
    def followers(self) -> list[list[int]]:
        """The messages that wait for each message."""
        found: list[list[int]] = [[] for _ in range(self.messages)]
        waiting = np.repeat(np.arange(self.messages), np.diff(self.waits_first))
        for later, earlier in zip(waiting.tolist(), self.waits.tolist(), strict=True):
            found[earlier].append(later)
        return found


def plan_of(schedule: Schedule, rank: int) -> Plan:
    """Return what `rank` does in a schedule, with scratch space placed."""
    return plan_rank(placement_of(schedule), rank)


def placement_of(schedule: Schedule) -> Placement:
    """Place a schedule's chunks; refuse a schedule in which a chunk is lost on the way.

    Whether all chunks arrive is for `check.flow` to say, and for `a2aflow run` to find out.
    """
    transfers = transfers_of(schedule)
    lost = np.flatnonzero(transfers.receiver < 0)
    if len(lost):
        raise InputError(
            f"what rank {transfers.sender[lost[0]]} sends in step {transfers.step[lost[0]]} enters "
            "a switch and does not leave it in that step; run `a2aflow verify` on the schedule"
        )
    return place(transfers)


def plan_rank(placement: Placement, rank: int) -> Plan:
    """Return one rank's plan of a placement."""
    transfers = placement.transfers
    received = np.flatnonzero(transfers.receiver == rank)
    sent = np.flatnonzero(transfers.sender == rank)
    which = np.concatenate((received, sent))
    sends = np.repeat((False, True), (len(received), len(sent)))
    peer = np.where(sends, transfers.receiver[which], transfers.sender[which])
    # A stable sort: within a message both ranks keep the order of the transfers.
    order = np.lexsort((peer, sends, transfers.step[which]))
    which, sends, peer = which[order], sends[order], peer[order]
    step = transfers.step[which]
    buffer = np.where(sends, placement.from_buffer[which], placement.to_buffer[which])
    offset = np.where(sends, placement.from_offset[which], placement.to_offset[which])
    heads = _starts(step, sends, peer)
    message = np.repeat(np.arange(len(heads)), np.diff(np.append(heads, len(which))))
    waits = _waits(message, sends, buffer, offset, len(heads))
    return Plan(
        rank=rank,
        ranks=transfers.ranks,
        chunks_per_shard=transfers.chunks_per_shard,
        steps=transfers.steps,
        scratch=int(placement.scratch[rank]),
        step=step[heads],
        peer=peer[heads],
        sends=sends[heads],
        first=np.append(heads, len(which)),
        buffer=buffer,
        offset=offset,
        peer_buffer=np.where(sends, placement.to_buffer[which], placement.from_buffer[which]),
        peer_offset=np.where(sends, placement.to_offset[which], placement.from_offset[which]),
        chunk=transfers.chunk[which],
        waits_first=starts_of([len(each) for each in waits]),
        waits=np.array([each for row in waits for each in row], dtype=np.int64),
    )


def _starts(*keys: NDArray[np.generic]) -> Ints:
    """Return the positions at which any of the keys changes, and 0."""
    if not len(keys[0]):
        return np.zeros(0, dtype=np.int64)
    changed = np.any([key[1:] != key[:-1] for key in keys], axis=0)
    return np.append(0, np.flatnonzero(changed) + 1)


def _waits(
    message: Ints, sends: NDArray[np.bool_], buffer: Ints, offset: Ints, messages: int
) -> list[list[int]]:
    """Return what each message waits for, by following who wrote and who read each place."""
    waits: list[set[int]] = [set() for _ in range(messages)]
    writer: dict[tuple[int, int], int] = {}
    readers: dict[tuple[int, int], list[int]] = {}
    for one, sent, where, at in _accesses(message, sends, buffer, offset):
        place = (where, at)
        if sent:
            waits[one].add(writer[place])
            readers[place].append(one)
        else:
            waits[one].update(readers.get(place) or [writer[place]] if place in writer else [])
            writer[place], readers[place] = one, []
    return [sorted(each) for each in waits]


def _accesses(*columns: NDArray[Any]) -> Iterator[tuple[int, bool, int, int]]:
    """Go through message, whether it is sent, buffer and offset of all that is ever written."""
    written = np.flatnonzero(columns[2] != Buffer.INPUT)
    return zip(*(column[written].tolist() for column in columns), strict=True)
