"""From moves to the threads of a rank: instructions, their order, and the waits between them.

There is one thread per end of a FIFO, and one for the rank's own shard. Within a step of the
schedule, a move whose last chunk is number `b` of its FIFO in that step is sent in turn
`2 * max(0, b - FIFO_SLOTS)`, and one whose first chunk is number `a` is received in turn
`2 * a + 1`. So a send comes after exactly the receives that make room for it. As chunks leave a
rank in later steps than they came in, the instructions that another waits for come before it in the
order of (step, turn), and nothing can deadlock: not even if the sends and receives of a rank share
threads, as long as each thread keeps that order and moves have at most `FIFO_SLOTS` chunks. In
threads of their own, they may have more.

An instruction waits for those that it conflicts with: a read waits for the writer of the place
(RAW), and a write for its readers (WAR) or, without any, for its writer (WAW). Waits implied by the
order within a thread, or by other waits, are left out.
"""

from collections.abc import Hashable, Iterable, Iterator
from dataclasses import dataclass, field, replace
from itertools import starmap
from typing import Generic, NamedTuple, TypeVar

import numpy as np

from alltoall.ir.arrays import rows, run_starts
from alltoall.ir.chunks import Chunks
from alltoall.ir.program import FIFO_SLOTS, Buffer, Instruction, Op, Place, Step, Thread
from alltoall.lowering.programs.moves import ChunkMoves

Who = TypeVar("Who", bound=Hashable)
Spot = tuple[int, int]
"""A buffer and an offset in it."""


class Hazards(Generic[Who]):
    """The last writer of each place, and its readers since."""

    def __init__(self) -> None:
        self._writer: dict[Spot, Who] = {}
        self._readers: dict[Spot, list[Who]] = {}

    def touch(self, who: Who, reads: Iterable[Spot], writes: Iterable[Spot]) -> set[Who]:
        """Return the conflicts of `who`, and record its reads and writes."""
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
    own: list[list[Stream]] = []
    for rank in range(moves.ranks):
        stream = Stream(channel=0)
        for offset, to, count in own_shard(moves.chunks, rank, most):
            source, target = Place(Buffer.INPUT, offset), Place(Buffer.OUTPUT, to)
            stream.append(When(-1, 0, -1), Instruction(Op.COPY, count, source, target))
        own.append([stream] if stream.order else [])
    sends: dict[tuple[int, int, int], Stream] = {}
    receives: dict[tuple[int, int, int], Stream] = {}
    ends = (moves.sender, moves.receiver, moves.channel, moves.count)
    places = (moves.from_buffer, moves.from_offset, moves.to_buffer, moves.to_offset)
    for move, sent, received in zip(rows(*ends, *places), *turns_of(moves), strict=True):
        sender, receiver, channel, count, from_, at, to, where = move
        send = sends.setdefault((sender, channel, receiver), Stream(channel, send_to=receiver))
        send.append(sent, Instruction(Op.SEND, count, source=Place(Buffer(from_), at)))
        fifo = (receiver, channel, sender)
        receive = receives.setdefault(fifo, Stream(channel, receive_from=sender))
        receive.append(received, Instruction(Op.RECEIVE, count, target=Place(Buffer(to), where)))
    for streams in (sends, receives):
        for rank, channel, peer in sorted(streams):
            own[rank].append(streams[rank, channel, peer])
    return own


def turns_of(moves: ChunkMoves) -> tuple[list[When], list[When]]:
    """Return the send and receive order of each move."""
    # Chunks that go through the FIFO of each move before it, in its step; moves are in order.
    begins = run_starts(moves.step, moves.channel, moves.sender, moves.receiver)
    before = np.cumsum(moves.count) - moves.count
    before -= before[begins][np.cumsum(begins) - 1]
    sent = 2 * np.maximum(0, before + moves.count - FIFO_SLOTS)
    numbers = np.arange(len(before))
    times = (rows(moves.step, turn, numbers) for turn in (sent, 2 * before + 1))
    first, second = (list(starmap(When, each)) for each in times)
    return first, second


def own_shard(chunks: Chunks, rank: int, most: int | None = None) -> Iterator[tuple[int, int, int]]:
    """Yield input offset, output offset and count of the copies of a rank's own shard."""
    here = (np.array(rank), np.array(rank))
    count, begin, to = (int(f(*here)) for f in (chunks.of, chunks.in_input, chunks.in_output))
    for done in range(0, count, most or max(count, 1)):
        yield begin + done, to + done, min(most or count, count - done)


Clock = dict[int, int]
"""The index of the last instruction of each thread that is known to have finished."""


def threads_of(streams: list[Stream]) -> tuple[Thread, ...]:
    """Return one rank's threads, each instruction with the least set of steps to wait for."""
    hazards, clocks = Hazards[Step](), _Clocks(len(streams))
    after: dict[Step, tuple[Step, ...]] = {}
    numbered = list(enumerate(streams))
    steps = (Step(thread, at) for thread, stream in numbered for at in range(len(stream.order)))
    for step in sorted(steps, key=lambda step: (streams[step.thread].order[step.number], step)):
        instruction = streams[step.thread].instructions[step.number]
        spots = [_spots(at, instruction.count) for at in (instruction.source, instruction.target)]
        after[step] = clocks.needed(step, hazards.touch(step, *spots))
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


def _spots(place: Place | None, count: int) -> list[Spot]:
    return [(place.buffer, place.offset + each) for each in range(count)] if place else []


class _Clocks:
    """The vector clock of each instruction: all that has finished when it finishes."""

    def __init__(self, threads: int) -> None:
        self._at: list[list[Clock]] = [[] for _ in range(threads)]

    def needed(self, step: Step, conflicts: set[Step]) -> tuple[Step, ...]:
        """Return the conflicts that `step` must wait for explicitly."""
        line = self._at[step.thread]
        clock = dict(line[-1]) if line else {}
        chosen: list[Step] = []
        # The latest first: its clock covers many of the earlier ones.
        for other in sorted(conflicts, key=lambda each: (len(self._clock(each)), each))[::-1]:
            if clock.get(other.thread, -1) < other.number:
                chosen.append(other)
                for thread, index in self._clock(other).items():
                    clock[thread] = max(index, clock.get(thread, -1))
        chosen = [each for each in chosen if not self._implied(each, chosen)]
        clock[step.thread] = step.number
        line.append(clock)
        return tuple(sorted(chosen))

    def _clock(self, step: Step) -> Clock:
        return self._at[step.thread][step.number]

    def _implied(self, step: Step, chosen: list[Step]) -> bool:
        others = (self._clock(other) for other in chosen if other != step)
        return any(clock.get(step.thread, -1) >= step.number for clock in others)
