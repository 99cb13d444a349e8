"""Check that messages are an all-to-all: ends agree, waits order conflicts, and bytes arrive.

Ranks run at any pace, held only by their waits. It is enough to execute one order, that of the
steps: if every message waits for all messages that it conflicts with, all orders do the same.
"""

from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from alltoall.check.program.alltoall import AllToAllReport, first_wrong
from alltoall.check.program.memory import MAX_NAMED
from alltoall.ir.arrays import Ints, inner_index
from alltoall.ir.messages import RANGE, Messages, RankMessages
from alltoall.ir.program import Buffer

Ends = tuple[int, int, int]
"""The name of a message: its step, its sender and its receiver."""


@dataclass(frozen=True, eq=False)
class MessagesReport(AllToAllReport):
    """The result of executing messages, which have steps and sizes of shards."""

    sizes: Mapping[Ends, float]

    def shards(self) -> Mapping[Ends, float]:
        """Return the shards by step, sender and receiver."""
        return self.sizes


def check_messages(messages: Messages) -> MessagesReport:
    """Execute messages on numbered chunks, and find unordered conflicts."""
    sent, received = _by_ends(messages, sends=True), _by_ends(messages, sends=False)
    violations = list(_unmatched(messages, sent, received))
    for part in messages.ranks:
        violations += _unordered(part)
    loads: Counter[Ends] = Counter()
    shards: dict[Ends, float] = {}
    sizes = []
    for part in messages.ranks:
        of = part.source, part.destination
        sizes.append(part.count * part.demand.of(*of) / np.maximum(part.chunks.of(*of), 1))
    for ends, (rank, message) in sent.items():
        part = messages.ranks[rank]
        some = slice(int(part.first[message]), int(part.first[message + 1]))
        loads[ends] = int(part.count[some].sum())
        shards[ends] = float(sizes[rank][some].sum())
    memory = _NumberedBuffers(messages)
    if not violations:
        violations += memory.run(messages)
    pairs = np.zeros((len(messages.ranks),) * 2, dtype=np.int64)
    for (_, sender, receiver), chunks in loads.items():
        pairs[sender, receiver] += chunks
    return MessagesReport(
        chunks=messages.chunks,
        wrong=None if violations else first_wrong(memory.outputs(), messages.chunks),
        violations=tuple(violations[:MAX_NAMED]),
        steps=len({step for step, *_ in loads}),
        sends=pairs,
        loads=loads,
        sizes=shards,
    )


def _by_ends(messages: Messages, sends: bool) -> dict[Ends, tuple[int, int]]:
    """Return the rank and number of every message that is sent, or received, by its ends."""
    found: dict[Ends, tuple[int, int]] = {}
    for part in messages.ranks:
        for number in np.flatnonzero(part.sends == sends).tolist():
            peer, step = int(part.peer[number]), int(part.step[number])
            ends = (part.rank, peer) if sends else (peer, part.rank)
            found[step, *ends] = (part.rank, number)
    return found


def _unmatched(
    messages: Messages,
    sent: dict[Ends, tuple[int, int]],
    received: dict[Ends, tuple[int, int]],
) -> Iterator[str]:
    """Return messages with one end only, or with different ends."""
    for step, sender, receiver in sorted(sent.keys() ^ received.keys()):
        does = "sends" if (step, sender, receiver) in sent else "does not send"
        other = "does not receive" if does == "sends" else "receives"
        yield f"step {step}: rank {sender} {does} a message that rank {receiver} {other}"
    for ends in sorted(sent.keys() & received.keys()):
        told = [_ranges(messages.ranks[r], number) for r, number in (sent[ends], received[ends])]
        if told[0] != told[1]:
            step, sender, receiver = ends
            yield (
                f"step {step}: rank {sender} and rank {receiver} do not tell the same of what goes "
                "from the one to the other"
            )


def _ranges(part: RankMessages, message: int) -> list[list[int]]:
    some = slice(int(part.first[message]), int(part.first[message + 1]))
    return [getattr(part, key)[some].tolist() for key in RANGE]


def _unordered(part: RankMessages) -> Iterator[str]:
    """Name messages that touch a place of scratch or output without a wait for the one before."""
    writer: dict[tuple[int, int], int] = {}
    readers: dict[tuple[int, int], set[int]] = {}
    cuts = part.waits_first.tolist()
    sends = part.sends[part.message_of_range]
    (one, begin), (other, to) = (_begins(part, each) for each in (True, False))
    buffer, first = np.where(sends, one, other), np.where(sends, begin, to)
    found: list[list[tuple[int, int]]] = [[] for _ in range(part.messages)]
    columns = (part.message_of_range, buffer, first, part.count)
    rows = zip(*(column.tolist() for column in columns), strict=True)
    for number, where, at, count in rows:
        if where != Buffer.INPUT:
            found[number] += [(where, place) for place in range(at, at + count)]
    for message, places in enumerate(found):
        awaited = set(part.waits[cuts[message] : cuts[message + 1]].tolist())
        for place in places:
            written = {writer[place]} if place in writer else set()
            here = (
                f"rank {part.rank}, message {message}: {Buffer(place[0]).name.lower()} {place[1]}"
            )
            if part.sends[message]:
                missing = written - awaited
                readers.setdefault(place, set()).add(message)
            else:
                missing = (readers.get(place) or written) - awaited
                writer[place], readers[place] = message, set()
            if message in missing:
                yield f"{here} is written twice"
            elif missing:
                yield f"{here} is touched without a wait for message {min(missing)}, which did too"


def _begins(part: RankMessages, sends: bool) -> tuple[Ints, Ints]:
    """Return buffer and offset of the first chunk of every range, at its sender or receiver."""
    buffer = part.from_buffer if sends else part.to_buffer
    slot = part.from_slot if sends else part.to_slot
    ends = (part.source, part.destination)
    shard = np.where(
        buffer == Buffer.INPUT, part.chunks.in_input(*ends), part.chunks.in_output(*ends)
    )
    return buffer, np.where(buffer == Buffer.SCRATCH, slot, shard + part.chunk)


class _NumberedBuffers:
    """The buffers of all ranks one after another, with the number of the chunk in each place."""

    def __init__(self, messages: Messages) -> None:
        chunks = messages.chunks
        scratch = np.array([part.scratch for part in messages.ranks])
        sizes = np.stack((chunks.inputs(), chunks.outputs(), scratch), axis=1)
        self._base = (np.cumsum(sizes) - sizes.ravel()).reshape(sizes.shape)
        self._sizes = sizes
        self._data = np.zeros(int(sizes.sum()), dtype="<i8")
        self._first = 1 + np.cumsum(sizes[:, 0]) - sizes[:, 0]
        for rank in range(chunks.ranks):
            # Give the chunks of an input their numbers, from 1 on through all ranks; keep its own.
            at, size = self._base[rank, Buffer.INPUT], self._sizes[rank, Buffer.INPUT]
            self._data[at : at + size] = self._first[rank] + np.arange(size)
            own = (np.array(rank), np.array(rank))
            begin = at + chunks.in_input(*own)
            to = self._base[rank, Buffer.OUTPUT] + chunks.in_output(*own)
            kept = int(chunks.of(*own))
            self._data[to : to + kept] = self._data[begin : begin + kept]

    def run(self, messages: Messages) -> Iterator[str]:
        """Execute every step: read all its chunks, then write them; name the missing ones."""
        parts = [self._moves(part) for part in messages.ranks]
        table = np.concatenate(parts, axis=1)
        table = table[:, np.argsort(table[0], kind="stable")]
        for now in np.split(table, np.flatnonzero(np.diff(table[0])) + 1, axis=1):
            step, rank, source, target, expected = now
            moved = self._data[source]
            wrong = np.flatnonzero(moved != expected)
            if len(wrong):
                yield (
                    f"step {step[0]}: {len(wrong)} chunks are not where they are read, the first "
                    f"at rank {rank[wrong[0]]}"
                )
            self._data[target] = moved

    def _moves(self, part: RankMessages) -> Ints:
        """Return step, rank, source, target and number of every chunk that a rank sends.

        Both ends agree, so those of the sender are enough.
        """
        sent = np.flatnonzero(part.sends[part.message_of_range])
        message = part.message_of_range[sent]
        step, peer = part.step[message], part.peer[message]
        (from_buffer, begin), (to_buffer, to) = (_begins(part, sends) for sends in (True, False))
        columns = (
            self._base[part.rank, from_buffer[sent]] + begin[sent],
            self._base[peer, to_buffer[sent]] + to[sent],
            self._first[part.source[sent]]
            + part.chunks.in_input(part.source[sent], part.destination[sent])
            + part.chunk[sent],
        )
        count = part.count[sent]
        inner = inner_index(count)
        spread = [np.repeat(column, count) + inner for column in columns]
        steps = np.repeat(step, count)
        return np.stack((steps, np.full(len(steps), part.rank), *spread))

    def outputs(self) -> list[NDArray[np.uint8]]:
        """Return the output buffer of each rank."""
        pairs = zip(self._base[:, 1], self._sizes[:, 1], strict=True)
        return [self._data[at : at + size].view(np.uint8).reshape(-1, 8) for at, size in pairs]
