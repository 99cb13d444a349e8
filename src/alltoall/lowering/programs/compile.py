"""`program_of`: a schedule through all passes, to a program.

MSCCL has one thread for an end that sends and one that receives. Each rank pairs its ends on a
channel, first those between which it forwards most. Within a shared thread instructions keep the
order of `dependencies`, which rules out deadlocks: what is sent goes ahead of what is received as
far as the FIFO holds it. A step that sends no more than that, or receives nothing, loses no time in
a shared thread. Elsewhere the receives of a step hold up some of its sends, so such ends are paired
only where a runtime has no room for threads of their own.

A receive and the send of the same chunks are fused to a forward, which stands where the receive
stood, if no other send comes between them and the FIFO has room for it by then, so that it too
waits for what comes before it only.
"""

from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from alltoall.errors import UsageError
from alltoall.ir.program import FIFO_SLOTS, Instruction, Op, Program, RankProgram
from alltoall.ir.schedule import Schedule
from alltoall.lowering.programs.dependencies import Stream, When, streams_of, threads_of, turns_of
from alltoall.lowering.programs.moves import ChunkMoves, balanced, duplicated, merged, spread
from alltoall.lowering.programs.transfers import place, transfers_of

Chunk = tuple[int, int, int]
"""Where a chunk lies: rank, buffer and offset."""


@dataclass(frozen=True)
class Forwards:
    """Which receive each send passes on, if it passes on exactly that, and when it arrives."""

    origin: dict[int, int]
    """The move that brought what a move takes on, both by number."""
    arrival: list[When]
    """When each move is received."""


def forwards_of(moves: ChunkMoves) -> Forwards:
    """Find the moves that take on exactly what one other move has brought."""
    columns = (moves.from_buffer, moves.from_offset, moves.to_buffer, moves.to_offset)
    rows = list(zip(*(column.tolist() for column in columns), strict=True))
    ends = list(zip(moves.sender.tolist(), moves.receiver.tolist(), strict=True))
    steps, counts = moves.step.tolist(), moves.count.tolist()
    writer: dict[Chunk, int] = {}
    origin: dict[int, int] = {}
    arrived = 0
    for move, (buffer, offset, *_) in enumerate(rows):
        while steps[arrived] < steps[move]:
            to_buffer, to_offset = rows[arrived][2:]
            for each in range(to_offset, to_offset + counts[arrived]):
                writer[ends[arrived][1], to_buffer, each] = arrived
            arrived += 1
        chunks = range(offset, offset + counts[move])
        brought = {writer.get((ends[move][0], buffer, each)) for each in chunks}
        found = brought.pop()
        if found is not None and not brought and counts[found] == counts[move]:
            origin[move] = found
    return Forwards(origin, turns_of(moves)[1])


@dataclass(frozen=True)
class Share:
    """How far threads are shared."""

    steps: int
    """The most instructions that a shared thread may have."""
    threads: int
    """How many threads a rank may have; with fewer, its copies have a thread of their own."""
    slower: bool = False
    """Whether ends that take more time together are paired too, until there are few enough."""


def shared(streams: list[Stream], forwards: Forwards, share: Share) -> list[Stream]:
    """Return the streams of a rank, as `streams_of` gives them, with ends paired.

    Moves must be no longer than a FIFO holds if they may be paired at the cost of time.
    """
    threads = _Threads(streams, forwards, share.steps)
    threads.pair(free=True)
    if len(threads) > share.threads:
        threads.fold_copies()
    if share.slower:
        threads.pair(free=False, until=share.threads)
    return threads.all()


class _Threads:
    """The threads of a rank, while their ends are being paired."""

    def __init__(self, streams: list[Stream], forwards: Forwards, steps: int) -> None:
        self._copies = streams[0]
        self._sends = [stream for stream in streams if stream.send_to is not None]
        self._receives = [stream for stream in streams if stream.receive_from is not None]
        self._pairs = list(_by_worth(self._sends, self._receives, forwards))
        self._forwards, self._steps = forwards, steps
        self._joined: dict[int, Stream] = {}
        self._taken: set[int] = set()
        self._folded = False

    def pair(self, free: bool, until: int = 0) -> None:
        """Pair ends, in order of worth, while there are more than `until` threads."""
        for sending, receiving in self._pairs:
            if len(self) <= until:
                break
            if sending in self._joined or receiving in self._taken:
                continue
            thread = joined(self._sends[sending], self._receives[receiving], self._forwards)
            if len(thread.instructions) <= self._steps and (is_free(thread) or not free):
                self._joined[sending] = thread
                self._taken.add(receiving)

    def __len__(self) -> int:
        copies = 0 if self._folded else 1
        return copies + len(self._sends) + len(self._receives) - len(self._joined)

    def fold_copies(self) -> None:
        """Let the copies of the own shard follow in a thread that does other things first."""
        self._folded = bool(self._sends or self._receives)

    def all(self) -> list[Stream]:
        """Return the thread of copies, those that send, then those that only receive."""
        threads = [self._joined.get(index, each) for index, each in enumerate(self._sends)]
        threads += [each for index, each in enumerate(self._receives) if index not in self._taken]
        if not self._folded:
            return [self._copies, *threads]
        shortest = min(threads, key=lambda each: len(each.instructions))
        for copy in self._copies.instructions:
            shortest.append(shortest.order[-1], copy)
        return threads


def is_free(thread: Stream) -> bool:
    """Whether all that a shared thread sends in a step goes before what it receives in it.

    Then no chunk goes in a later step than its schedule has it.
    """
    received = -1
    for when, instruction in zip(thread.order, thread.instructions, strict=True):
        if instruction.op is not Op.SEND:
            received = when.step
        elif when.step == received:
            return False
    return True


def _by_worth(
    sends: list[Stream], receives: list[Stream], forwards: Forwards
) -> Iterator[tuple[int, int]]:
    """Yield the pairs of ends on one channel, first those that forward most chunks."""
    brought = {when.move: index for index, each in enumerate(receives) for when in each.order}
    worth: Counter[tuple[int, int]] = Counter()
    for index, stream in enumerate(sends):
        found = (brought.get(forwards.origin.get(when.move, -1)) for when in stream.order)
        worth.update((index, receiving) for receiving in found if receiving is not None)
    pairs = (
        (sending, receiving)
        for sending, stream in enumerate(sends)
        for receiving, other in enumerate(receives)
        if other.channel == stream.channel
    )
    # A peer to which a rank sends what it does not forward is best served by its own answers.
    yield from sorted(
        pairs,
        key=lambda pair: (
            -worth[pair],
            sends[pair[0]].send_to != receives[pair[1]].receive_from,
            pair,
        ),
    )


def joined(send: Stream, receive: Stream, forwards: Forwards) -> Stream:
    """Return one thread that sends and receives, with receives and sends fused where legal."""
    thread = _Joined(forwards)
    thread.take(
        sorted(
            [
                *zip(send.order, send.instructions, strict=True),
                *zip(receive.order, receive.instructions, strict=True),
            ],
            key=lambda row: row[0],
        )
    )
    return Stream(
        send.channel, send.send_to, receive.receive_from, thread.instructions, thread.order
    )


class _Joined:
    """A shared thread under construction."""

    def __init__(self, forwards: Forwards) -> None:
        self.instructions: list[Instruction] = []
        self.order: list[When] = []
        self._forwards = forwards
        self._received: dict[int, int] = {}
        """Where in the thread each move is received."""
        self._sent: list[tuple[When, int]] = []
        """When each move that has been sent arrives, and its chunks."""
        self._last_sent = -1

    def take(self, rows: Iterable[tuple[When, Instruction]]) -> None:
        """Add instructions in their order."""
        for when, instruction in rows:
            if instruction.op is Op.RECEIVE:
                self._received[when.move] = len(self.instructions)
            elif self._fuse(when, instruction.count):
                continue
            else:
                self._last_sent = len(self.instructions)
                self._note(when, instruction.count)
            self.instructions.append(instruction)
            self.order.append(when)

    def _fuse(self, when: When, count: int) -> bool:
        """Let the receive of what a send sends send it too, if that is legal."""
        origin = self._forwards.origin.get(when.move, -1)
        at = self._received.get(origin, -1)
        if at <= self._last_sent or not self._has_room(self.order[at], count):
            return False
        receive = self.instructions[at]
        self.instructions[at] = Instruction(Op.FORWARD, count, target=receive.target)
        self._last_sent = at
        self._note(when, count)
        return True

    def _has_room(self, when: When, count: int) -> bool:
        """Whether the FIFO has room for so many chunks once all before `when` has been done."""
        under_way = sum(chunks for arrival, chunks in self._sent if arrival >= when)
        return under_way + count <= FIFO_SLOTS

    def _note(self, when: When, count: int) -> None:
        self._sent.append((self._forwards.arrival[when.move], count))


MAX_CHANNELS = 128
MAX_ENDS = 31
"""FIFO ends that a rank has on one channel: MSCCL takes 32 thread blocks, one is for its copies."""


def moves_of(
    schedule: Schedule,
    channels: int = 1,
    most: int | None = None,
    parts: int = 1,
    reuse: bool = True,
) -> ChunkMoves:
    """Return what the ranks give each other.

    The schedule runs on `channels` parallel channels, in moves of at most `most` chunks; the moves
    of a FIFO are dealt out to `parts` FIFOs. Scratch space is used again unless `reuse` is off.
    """
    if not 1 <= channels <= MAX_CHANNELS:
        raise UsageError(f"{channels} channels; expected 1 to {MAX_CHANNELS}")
    placement = place(transfers_of(schedule), reuse)
    return spread(merged(duplicated(placement, channels), most), parts)


def program_of(
    schedule: Schedule,
    channels: int = 1,
    most: int | None = None,
    parts: int = 1,
    share: Share | None = None,
) -> Program:
    """Return the program of a schedule; see `moves_of` for the first parameters."""
    longest = FIFO_SLOTS if share is not None and share.slower else most
    moves = balanced(moves_of(schedule, channels, longest, parts), MAX_ENDS)
    streams = streams_of(moves, most)
    if share is not None:
        forwards = forwards_of(moves)
        streams = [shared(each, forwards, share) for each in streams]
    inputs, outputs = moves.chunks.inputs().tolist(), moves.chunks.outputs().tolist()
    ranks = tuple(
        RankProgram(inputs[rank], outputs[rank], int(moves.scratch[rank]), threads_of(each))
        for rank, each in enumerate(streams)
    )
    return Program(schedule.problem.topology.name, moves.chunks, ranks)
