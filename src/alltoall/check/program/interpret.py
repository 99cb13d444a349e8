"""The reference interpreter, which moves real bytes and so defines the meaning of a `Program`.

One process runs all ranks. Threads advance until they have to wait: for other instructions, for
a chunk to arrive, or for room in a FIFO. As FIFOs have one thread at each end and waits are fixed,
the result does not depend on the order in which threads advance, and one run with vector clocks
finds every deadlock, and a race if there is any.
"""

from collections import Counter, deque
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

import numpy as np

from alltoall.check.program.memory import Access, Bytes, Clock
from alltoall.check.program.threads import Execution, Machine, Runner
from alltoall.errors import InputError
from alltoall.ir.program import EFFECTS, Place, Program, Thread

Fifo = tuple[int | None, int | None, int]


def interpret(
    program: Program, inputs: Sequence[Bytes], fifo_slots: int | None = None
) -> Execution:
    """Execute a program on inputs of shape [chunks, bytes per chunk], one of each rank.

    `fifo_slots` is the number of chunks that a FIFO holds; the program's own if left out.
    """
    slots = program.fifo_slots if fifo_slots is None else fifo_slots
    if slots < 1:
        raise InputError(f"{slots} FIFO slots; expected at least 1")
    return _ProgramMachine(program, inputs, slots).execute()


@dataclass
class Message:
    """Chunks in a FIFO, with the clock of their sender; `last` ends an instruction."""

    data: Bytes
    sender: int
    tick: int
    last: bool
    clock: Clock
    depth: int


@dataclass
class FifoQueue:
    """One FIFO: its messages, their number of chunks, and the threads that wait for it."""

    messages: deque[Message] = field(default_factory=deque)
    chunks: int = 0
    waiting: list[Runner] = field(default_factory=list)


class _ProgramMachine(Machine):
    """The threads of a program, and the FIFOs between them."""

    def __init__(self, program: Program, inputs: Sequence[Bytes], slots: int) -> None:
        super().__init__(program, inputs)
        self._slots = slots
        self._threads = [thread for code in program.ranks for thread in code.threads]
        self._queues: dict[Fifo, FifoQueue] = {}
        for runner in self.runners:
            # A thread knows all of its own past, whatever its count.
            runner.clock = runner.clock.copy()
            runner.clock[runner.number] = np.iinfo(np.int32).max
        self._awaited = Counter(
            (runner.first + step.thread, step.number)
            for runner in self.runners
            for instruction in runner.code
            for step in instruction.after
        )
        self._finished: dict[tuple[int, int], tuple[Clock, int]] = {}

    def step(self, runner: Runner) -> bool:
        """Start an instruction once its dependencies have finished, and move its chunks."""
        if not self._start(runner) or not self._move(runner):
            return False
        if self._awaited[runner.number, runner.at]:
            self._finished[runner.number, runner.at] = (runner.clock, runner.depth)
        runner.moved, runner.started = 0, False
        return True

    def _start(self, runner: Runner) -> bool:
        after = () if runner.started else runner.instruction.after
        for step in after:
            other = self.runners[runner.first + step.thread]
            if other.at <= step.number:
                reason = f"step {step.number} of thread block {step.thread}"
                return runner.wait(other.waiting, reason)
        for step in after:
            key = (runner.first + step.thread, step.number)
            clock, depth = self._finished[key]
            runner.learn(clock, Access(key[0], key[1] + 1))
            runner.depth = max(runner.depth, depth)
            self._awaited[key] -= 1
            if not self._awaited[key]:
                del self._finished[key]
        runner.started = True
        return True

    def _move(self, runner: Runner) -> bool:
        """Move as many chunks as possible; return whether all are done."""
        instruction, thread = runner.instruction, self._threads[runner.number]
        effects = EFFECTS[instruction.op]
        if not (effects.reads or effects.writes):
            return True
        inward = self._queue(thread.receive_from, runner.rank, thread) if effects.receives else None
        outward = self._queue(runner.rank, thread.send_to, thread) if effects.sends else None
        while runner.moved < instruction.count:
            chunks = instruction.count - runner.moved
            if inward is not None:
                chunks = min(chunks, len(inward.messages[0].data) if inward.messages else 0)
                if not chunks:
                    return runner.wait(inward.waiting, f"a chunk from rank {thread.receive_from}")
            if outward is not None:
                chunks = min(chunks, self._slots - outward.chunks)
                if not chunks:
                    return runner.wait(outward.waiting, f"room to send to rank {thread.send_to}")
            self._transfer(runner, chunks, inward, outward)
            for queue in (inward, outward):
                if queue is not None:
                    self.wake(queue.waiting)
        return True

    def _transfer(
        self, runner: Runner, chunks: int, inward: FifoQueue | None, outward: FifoQueue | None
    ) -> None:
        instruction = runner.instruction
        source, target = (
            place and Place(place.buffer, place.offset + runner.moved)
            for place in (instruction.source, instruction.target)
        )
        if inward is not None:
            message = inward.messages[0]
            inward.chunks -= chunks
            data, message.data = message.data[:chunks], message.data[chunks:]
            empty = not len(message.data)
            if empty:
                inward.messages.popleft()
            # The sender's instruction is only known to be done with its last chunk.
            tick = message.tick + (empty and message.last)
            runner.learn(message.clock, Access(message.sender, tick))
            runner.depth = max(runner.depth, message.depth + 1)
        elif source is not None:
            data = self.memory.read(runner.rank, source, chunks, runner.access, runner.clock)
        if target is not None:
            self.memory.write(runner.rank, target, data, runner.access, runner.clock)
        runner.moved += chunks
        if outward is not None:
            last, peer = runner.moved == instruction.count, self._threads[runner.number].send_to
            message = Message(data, runner.number, runner.at, last, runner.clock, runner.depth)
            outward.messages.append(message)
            outward.chunks += len(data)
            if peer is not None:
                self.loads[runner.depth, runner.rank, peer] += len(data)

    def _queue(self, sender: int | None, receiver: int | None, thread: Thread) -> FifoQueue:
        return self._queues.setdefault((sender, receiver, thread.channel), FifoQueue())

    def left(self) -> Iterator[str]:
        """Yield the chunks in FIFOs."""
        for (sender, receiver, channel), queue in self._queues.items():
            if queue.chunks:
                yield (
                    f"rank {sender} sends {queue.chunks} chunks to rank {receiver} on channel "
                    f"{channel} that are never received"
                )
