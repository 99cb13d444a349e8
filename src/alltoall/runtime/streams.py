"""The instructions of programs and plans, executed by ranks that exchange real bytes.

A rank is a set of coroutines, one per thread of its file, which yield while they wait. Ranks
exchange packets: three numbers with the purpose, and chunks. Packets between two ranks keep their
order, which FIFOs and signals after puts require. FIFOs are unlimited here; `verify` checks that
those of a GPU suffice.
"""

from collections import Counter, deque
from collections.abc import Callable, Iterator, Sequence
from itertools import pairwise
from typing import Any, NamedTuple, Protocol

import numpy as np
from numpy.typing import NDArray

from alltoall.ir.chunks import Chunks, PerShard
from alltoall.ir.execution_plan import Copy, ExecutionPlan, Operation, PlanOp, joined_channels
from alltoall.ir.program import EFFECTS, Buffer, Instruction, Program, Thread
from alltoall.runtime.in_process import OneProcess
from alltoall.runtime.spans import slot_bytes

Bytes = NDArray[np.uint8]
Streams = Program | ExecutionPlan
"""Executable inputs: both have ranks, and chunks of pairs."""

Memory = list[Bytes]
"""Input, output and scratch of a rank, a row for every chunk."""


class Packet(NamedTuple):
    """A packet between ranks: three numbers with its purpose, and chunks."""

    source: int
    head: tuple[int, int, int]
    rows: Bytes


class Post(Protocol):
    """Transport between ranks; packets between two ranks keep their order."""

    def send(self, peer: int, head: tuple[int, int, int], rows: Bytes) -> None:
        """Send a packet; the rows may be overwritten once this returns."""

    def arrived(self) -> list[Packet]:
        """Return the packets received since the last call."""


class Player(Protocol):
    """A running rank."""

    def take(self, packet: Packet) -> None:
        """Take a packet in."""

    def threads(self) -> list[Iterator[None]]:
        """Return the threads, which yield while they wait."""


class ProgramRank:
    """A rank of a `Program`: packets are chunks of a FIFO, by channel."""

    def __init__(self, program: Program, rank: int, memory: Memory, post: Post) -> None:
        self._threads = program.ranks[rank].threads
        self._memory, self._post = memory, post
        self._done = [0] * len(self._threads)
        self._inbox: dict[tuple[int | None, int], deque[Bytes]] = {}

    def take(self, packet: Packet) -> None:
        """Append chunks to their FIFO."""
        self._fifo(packet.source, packet.head[0]).append(packet.rows)

    def threads(self) -> list[Iterator[None]]:
        """Return the threads of the program."""
        return [self._run(index, thread) for index, thread in enumerate(self._threads)]

    def _fifo(self, source: int | None, channel: int) -> deque[Bytes]:
        return self._inbox.setdefault((source, channel), deque())

    def _run(self, index: int, thread: Thread) -> Iterator[None]:
        for instruction in thread.instructions:
            while any(self._done[step.thread] <= step.number for step in instruction.after):
                yield
            yield from self._move(thread, instruction)
            self._done[index] += 1

    def _move(self, thread: Thread, instruction: Instruction) -> Iterator[None]:
        """Move the chunks of an instruction as they become available."""
        effects, moved = EFFECTS[instruction.op], 0
        while moved < instruction.count and (effects.reads or effects.writes):
            left = instruction.count - moved
            if effects.receives:
                rows = self._pop(self._fifo(thread.receive_from, thread.channel), left)
            elif instruction.source is not None:
                begin = instruction.source.offset + moved
                rows = self._memory[instruction.source.buffer][begin : begin + left]
            if not len(rows):
                yield
                continue
            if instruction.target is not None:
                begin = instruction.target.offset + moved
                self._memory[instruction.target.buffer][begin : begin + len(rows)] = rows
            if effects.sends and thread.send_to is not None:
                self._post.send(thread.send_to, (thread.channel, 0, 0), rows)
            moved += len(rows)

    def _pop(self, fifo: deque[Bytes], most: int) -> Bytes:
        """Pop at most `count` chunks from a FIFO."""
        if not fifo:
            return self._memory[Buffer.INPUT][:0]
        rows = fifo.popleft()
        if len(rows) > most:
            fifo.appendleft(rows[most:])
        return rows[:most]


class PlanRank:
    """A rank of an `ExecutionPlan`: packets are puts, by buffer and offset, and signals."""

    def __init__(self, plan: ExecutionPlan, rank: int, memory: Memory, post: Post) -> None:
        self._plan, self._rank = plan.ranks[rank], rank
        self._memory, self._post = memory, post
        self._ends = joined_channels(plan)
        self._signals: Counter[int] = Counter()
        self._waiting: Counter[int] = Counter()
        self._meetings: Counter[int] = Counter()
        self._handlers: dict[PlanOp, Callable[[Operation], Iterator[None]]] = {
            PlanOp.PUT: self._copy,
            PlanOp.COPY: self._copy,
            PlanOp.SIGNAL: self._signal,
            PlanOp.WAIT: self._wait,
            PlanOp.BARRIER: self._barrier,
            PlanOp.NOP: lambda _: iter(()),
        }

    def take(self, packet: Packet) -> None:
        """Write the chunks of a put, or count a signal."""
        is_put, place, offset = packet.head
        if is_put:
            self._memory[place][offset : offset + len(packet.rows)] = packet.rows
        else:
            self._signals[place] += 1

    def threads(self) -> list[Iterator[None]]:
        """Return the thread blocks of the plan."""
        return [self._run(block) for block in self._plan.blocks]

    def _run(self, block: Sequence[Operation]) -> Iterator[None]:
        for operation in block:
            yield from self._handlers[operation.op](operation)

    def _copy(self, operation: Operation) -> Iterator[None]:
        for copy in operation.copies:
            self._give(copy)
        return iter(())

    def _give(self, copy: Copy) -> None:
        begin = copy.source.offset
        rows = self._memory[copy.source.buffer][begin : begin + copy.chunks]
        head = (1, int(copy.target.buffer), copy.target.offset)
        if copy.rank == self._rank:
            self.take(Packet(self._rank, head, rows))
        else:
            self._post.send(copy.rank, head, rows)

    def _signal(self, operation: Operation) -> Iterator[None]:
        for channel in operation.channels:
            peer, theirs = self._ends[self._rank, channel]
            self._post.send(peer, (0, theirs, 0), self._memory[Buffer.INPUT][:0])
        return iter(())

    def _wait(self, operation: Operation) -> Iterator[None]:
        for channel in operation.channels:
            while not self._signals[channel]:
                yield
            self._signals[channel] -= 1

    def _barrier(self, operation: Operation) -> Iterator[None]:
        barrier = operation.barrier
        meeting = self._meetings[barrier]
        self._waiting[barrier] += 1
        if self._waiting[barrier] >= operation.parties:
            self._waiting[barrier] = 0
            self._meetings[barrier] += 1
        while self._meetings[barrier] == meeting:
            yield


def player(work: Streams, rank: int, memory: Memory, post: Post) -> Player:
    """Return the player of a rank."""
    if isinstance(work, Program):
        return ProgramRank(work, rank, memory, post)
    return PlanRank(work, rank, memory, post)


def advance(threads: list[Iterator[None]]) -> list[Iterator[None]]:
    """Advance every thread; return the unfinished ones."""
    ended = object()
    return [each for each in threads if next(each, ended) is not ended]


class ChunkLayout:
    """Places of a rank's chunks in the caller's byte buffers, for given shard sizes.

    All chunks are as wide as the widest. Where that is the width of each, and they lie one after
    the other, the caller's own memory is used.
    """

    def __init__(self, work: Streams, rank: int, shard: PerShard) -> None:
        self.width = max(1, slot_bytes(work.chunks, shard))
        self._scratch = work.ranks[rank].scratch
        ranks = np.arange(shard.ranks)
        here = np.full(shard.ranks, rank)
        ways = ((here, ranks), shard.in_input), ((ranks, here), shard.in_output)
        self._cells = [
            _cells(work.chunks, shard, ends, begins, self.width) for ends, begins in ways
        ]

    def memory(self, send: Bytes, recv: Bytes) -> Memory:
        """Return the buffers of a rank, only the input filled."""
        held: Memory = []
        for cells, data in zip(self._cells, (send, recv), strict=True):
            if cells is None:
                held.append(data.reshape(-1, self.width))
            else:
                held.append(np.zeros((len(cells), self.width), dtype=np.uint8))
        for row, (begin, size) in enumerate(self._cells[0] or []):
            held[0][row, :size] = send[begin : begin + size]
        return [*held, np.zeros((self._scratch, self.width), dtype=np.uint8)]

    def deliver(self, memory: Memory, recv: Bytes) -> None:
        """Copy the output to the caller's buffer, if needed."""
        for row, (begin, size) in enumerate(self._cells[1] or []):
            recv[begin : begin + size] = memory[Buffer.OUTPUT][row, :size]


def _cells(
    chunks: Chunks, shard: PerShard, ends: tuple[Any, Any], begins: Callable[..., Any], width: int
) -> list[tuple[int, int]] | None:
    """Return the offset and bytes of each chunk, None if chunks are equal rows."""
    found: list[tuple[int, int]] = []
    rows = (begins(*ends), shard.of(*ends), chunks.of(*ends))
    for begin, size, count in zip(*(row.tolist() for row in rows), strict=True):
        cuts = [begin + each * size // max(count, 1) for each in range(count + 1)]
        found += [(cut, end - cut) for cut, end in pairwise(cuts)]
    alike = all(cell == (row * width, width) for row, cell in enumerate(found))
    return None if alike and len(found) * width == int(rows[1].sum()) else found


class _Desk:
    """Transport within this process, with a mailbox per rank."""

    def __init__(self, boxes: list[list[Packet]], rank: int) -> None:
        self._boxes, self._rank = boxes, rank

    def send(self, peer: int, head: tuple[int, int, int], rows: Bytes) -> None:
        """Put a copy into the mailbox of a rank."""
        self._boxes[peer].append(Packet(self._rank, head, rows.copy()))

    def arrived(self) -> list[Packet]:
        """Empty the mailbox of this rank."""
        found, self._boxes[self._rank] = self._boxes[self._rank], []
        return found


class StreamsEndpoint(OneProcess):
    """Ranks that execute the instructions of a file."""

    def __init__(self, work: Streams) -> None:
        name = "reference, one process, by the instructions of the file"
        super().__init__(len(work.ranks), work.chunks.demand(), name)
        self._work = work

    def exchange(self, send: list[Bytes], recv: list[Bytes], shard: PerShard) -> None:
        """Exchange by the instructions; `verify` has proven that they end."""
        boxes: list[list[Packet]] = [[] for _ in self.here]
        desks = [_Desk(boxes, rank) for rank in self.here]
        layouts = [ChunkLayout(self._work, rank, shard) for rank in self.here]
        memories = [layout.memory(*ends) for layout, *ends in zip(layouts, send, recv, strict=True)]
        players = [player(self._work, rank, memories[rank], desks[rank]) for rank in self.here]
        threads = [each.threads() for each in players]
        while any(threads):
            for rank in self.here:
                for packet in desks[rank].arrived():
                    players[rank].take(packet)
                threads[rank] = advance(threads[rank])
        for layout, memory, taken in zip(layouts, memories, recv, strict=True):
            layout.deliver(memory, taken)
