"""From moves to the threads of a rank: who runs which instruction, in which order, after what.

There is one thread per end of a FIFO, and one for what a rank keeps. What a rank does in a step of
the schedule takes its turns: a move whose last chunk is number `b` of its FIFO in that step is sent
in turn `2 * max(0, b - FIFO_SLOTS)`, and one whose first chunk is number `a` is received in turn
`2 * a + 1`. So a send comes after the receives, and only those, that make the room which it needs.
As chunks leave a rank in later steps than they came in, whatever an instruction waits for comes
before it in the order of (step, turn), and nothing from here can deadlock: not even if the sends
and receives of a rank share threads, as long as each thread keeps that order and moves have at most
`FIFO_SLOTS` chunks. In threads of their own, they may have more.

An instruction waits for those that it conflicts with: what reads a place waits for its writer
(RAW), and what writes waits for those that read what was there (WAR) or, if nobody did, for what
wrote it (WAW). A wait is left out where the order within a thread, or other waits, imply it.
"""

from collections.abc import Hashable, Iterable, Iterator
from dataclasses import dataclass, field, replace
from typing import Generic, NamedTuple, TypeVar

import numpy as np

from alltoall.ir.arrays import Ints
from alltoall.ir.chunks import Chunks
from alltoall.ir.program import FIFO_SLOTS, Buffer, Instruction, Op, Place, Step, Thread
from alltoall.lowering.programs.moves import ChunkMoves

Who = TypeVar("Who", bound=Hashable)
Spot = tuple[int, int]
"""A buffer and an offset in it."""


class Hazards(Generic[Who]):
    """Who last wrote each place, and who has read it since."""

    def __init__(self) -> None:
        self._writer: dict[Spot, Who] = {}
        self._readers: dict[Spot, list[Who]] = {}

    def touch(self, who: Who, reads: Iterable[Spot], writes: Iterable[Spot]) -> set[Who]:
        """Return what `who` conflicts with, and remember what it touches."""
        conflicts: set[Who] = set()
        for place in reads:
            if place in self._writer:
                conflicts.add(self._writer[place])
            self._readers.setdefault(place, []).append(who)
        for place in writes:
            readers = self._readers.pop(place, [])
            # The readers have waited for the writer already.
            conflicts.update(readers or ([self._writer[place]] if place in self._writer else []))
            self._writer[place] = who
        return conflicts


class When(NamedTuple):
    """The place of an instruction in the order of all: step, turn, and the number of its move."""

    step: int
    turn: int
    move: int


@dataclass
class Stream:
    """A thread before its dependencies are known; `order` places its instructions in time."""

    channel: int
    send_to: int | None = None
    receive_from: int | None = None
    instructions: list[Instruction] = field(default_factory=list)
    order: list[When] = field(default_factory=list)

    def append(self, order: When, instruction: Instruction) -> None:
        """Add an instruction; `order` must not decrease."""
        self.order.append(order)
        self.instructions.append(instruction)


def streams_of(moves: ChunkMoves, most: int | None = None) -> list[list[Stream]]:
    """Return the streams of each rank: its own shard, what it sends, then what it receives."""
    own = [list(_own_shard(moves, rank, most)) for rank in range(moves.ranks)]
    sends: dict[tuple[int, int, int], Stream] = {}
    receives: dict[tuple[int, int, int], Stream] = {}
    rows = zip(*(getattr(moves, key).tolist() for key in _COLUMNS), strict=True)
    times = zip(*turns_of(moves), strict=True)
    for (sender, receiver, channel, from_, at, to, where, count), (first, last) in zip(
        rows, times, strict=True
    ):
        send = sends.setdefault((sender, channel, receiver), Stream(channel, send_to=receiver))
        send.append(first, Instruction(Op.SEND, count, source=Place(Buffer(from_), at)))
        receive = receives.setdefault(
            (receiver, channel, sender), Stream(channel, receive_from=sender)
        )
        receive.append(last, Instruction(Op.RECEIVE, count, target=Place(Buffer(to), where)))
    for streams in (sends, receives):
        for (rank, *_), stream in sorted(streams.items(), key=lambda item: item[0]):
            own[rank].append(stream)
    return own


_COLUMNS = (
    "sender",
    "receiver",
    "channel",
    "from_buffer",
    "from_offset",
    "to_buffer",
    "to_offset",
    "count",
)


def turns_of(moves: ChunkMoves) -> tuple[list[When], list[When]]:
    """Return when each move is sent, and when it is received."""
    begin = _chunks_before(moves)
    sent = 2 * np.maximum(0, begin + moves.count - FIFO_SLOTS)
    numbers, steps = range(len(begin)), moves.step.tolist()
    return (
        list(map(When, steps, sent.tolist(), numbers)),
        list(map(When, steps, (2 * begin + 1).tolist(), numbers)),
    )


def _chunks_before(moves: ChunkMoves) -> Ints:
    """Return how many chunks go through the FIFO of each move before it, in its step."""
    keys = np.stack((moves.step, moves.channel, moves.sender, moves.receiver))
    # Moves are in the order of these keys already.
    begins = np.append(True, np.any(np.diff(keys, axis=1) != 0, axis=0))[: keys.shape[1]]
    before = np.cumsum(moves.count) - moves.count
    return np.asarray(before - before[begins][np.cumsum(begins) - 1])


def _own_shard(moves: ChunkMoves, rank: int, most: int | None) -> Iterator[Stream]:
    """Yield the thread of a rank's own shard, if it has any."""
    stream = Stream(channel=0)
    for offset, to, count in own_shard(moves.chunks, rank, most):
        source, target = Place(Buffer.INPUT, offset), Place(Buffer.OUTPUT, to)
        stream.append(When(-1, 0, -1), Instruction(Op.COPY, count, source=source, target=target))
    if stream.order:
        yield stream


def own_shard(chunks: Chunks, rank: int, most: int | None = None) -> Iterator[tuple[int, int, int]]:
    """Yield input offset, output offset and count of the copies of a rank's own shard."""
    here = (np.array(rank), np.array(rank))
    count = int(chunks.of(*here))
    begin, to = int(chunks.in_input(*here)), int(chunks.in_output(*here))
    for done in range(0, count, most or max(count, 1)):
        yield begin + done, to + done, min(most or count, count - done)


Clock = dict[int, int]
"""For each thread of the rank, the index of its last instruction known to have finished."""


def threads_of(streams: list[Stream]) -> tuple[Thread, ...]:
    """Return one rank's threads, each instruction with the least set of steps to wait for."""
    hazards, clocks = Hazards[Step](), _Clocks(len(streams))
    after: dict[Step, tuple[Step, ...]] = {}
    for step in _in_order(streams):
        instruction = streams[step.thread].instructions[step.number]
        places = [_chunks(at, instruction.count) for at in (instruction.source, instruction.target)]
        after[step] = clocks.needed(step, hazards.touch(step, *places))
    return tuple(
        Thread(
            stream.channel,
            stream.send_to,
            stream.receive_from,
            tuple(
                replace(instruction, after=after[Step(thread, index)])
                for index, instruction in enumerate(stream.instructions)
            ),
        )
        for thread, stream in enumerate(streams)
    )


def _in_order(streams: list[Stream]) -> list[Step]:
    steps = [
        (order, Step(thread, index))
        for thread, stream in enumerate(streams)
        for index, order in enumerate(stream.order)
    ]
    return [step for _, step in sorted(steps)]


def _chunks(place: Place | None, count: int) -> list[Spot]:
    if place is None:
        return []
    return [(place.buffer, place.offset + each) for each in range(count)]


class _Clocks:
    """What each instruction knows to have finished when it finishes."""

    def __init__(self, threads: int) -> None:
        self._at: list[list[Clock]] = [[] for _ in range(threads)]

    def needed(self, step: Step, conflicts: set[Step]) -> tuple[Step, ...]:
        """Return which conflicts `step` has to wait for itself."""
        line = self._at[step.thread]
        clock = dict(line[-1]) if line else {}
        chosen: list[Step] = []
        # The latest first: what it knows covers many of the earlier ones.
        for other in sorted(conflicts, key=self._rank_of, reverse=True):
            if clock.get(other.thread, -1) < other.number:
                chosen.append(other)
                _join(clock, self._at[other.thread][other.number])
        chosen = [each for each in chosen if not self._implied(each, chosen)]
        clock[step.thread] = step.number
        line.append(clock)
        return tuple(sorted(chosen))

    def _implied(self, step: Step, chosen: list[Step]) -> bool:
        return any(
            other != step
            and self._at[other.thread][other.number].get(step.thread, -1) >= step.number
            for other in chosen
        )

    def _rank_of(self, step: Step) -> tuple[int, Step]:
        return len(self._at[step.thread][step.number]), step


def _join(clock: Clock, other: Clock) -> None:
    for thread, index in other.items():
        if clock.get(thread, -1) < index:
            clock[thread] = index
