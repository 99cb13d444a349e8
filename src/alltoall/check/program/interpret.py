"""The reference interpreter, which moves real bytes and so defines the meaning of a `Program`.

One process runs all ranks. Threads advance until they have to wait: for other instructions, for
a chunk to arrive, or for room in a FIFO. As FIFOs have one thread at each end and waits are fixed,
the result does not depend on the order in which threads advance, and one run with vector clocks
finds every deadlock, and a race if there is any.
"""

from collections import Counter, deque
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np

from alltoall.check.program.memory import MAX_NAMED, Access, Bytes, Clock, Memory, check_threads
from alltoall.check.program.threads import FifoQueue, Message, Runner, runners
from alltoall.errors import InputError
from alltoall.ir.arrays import Ints
from alltoall.ir.program import EFFECTS, Buffer, Place, Program, Thread, spot

Fifo = tuple[int | None, int | None, int]


@dataclass(frozen=True, eq=False)
class Execution:
    """The output buffers, the loads of pairs of ranks by depth, and the violations.

    A send has depth 1 if its rank has received nothing before it, and else one more than the
    deepest receive that is ordered before it, or the depth of the deepest such send if larger; a
    receive has the depth of its send. `loads` counts chunks by (depth, sender, receiver).
    """

    outputs: tuple[Bytes, ...]
    loads: Counter[tuple[int, int, int]]
    violations: tuple[str, ...]

    @property
    def steps(self) -> int:
        """The depth of the deepest send: the length of the longest chain of transfers."""
        return max((depth for depth, *_ in self.loads), default=0)

    def sends(self, ranks: int) -> Ints:
        """Return the number of chunks sent from each rank to each rank."""
        matrix = np.zeros((ranks, ranks), dtype=np.int64)
        for (_, sender, receiver), chunks in self.loads.items():
            matrix[sender, receiver] += chunks
        return matrix


def interpret(
    program: Program, inputs: Sequence[Bytes], fifo_slots: int | None = None
) -> Execution:
    """Execute a program on inputs of shape [chunks, bytes per chunk], one of each rank.

    `fifo_slots` is the number of chunks that a FIFO holds; the program's own if left out.
    """
    slots = program.fifo_slots if fifo_slots is None else fifo_slots
    if slots < 1:
        raise InputError(f"{slots} FIFO slots; expected at least 1")
    found, expected = [len(each) for each in inputs], [code.input for code in program.ranks]
    if found != expected:
        raise InputError(f"inputs of {found} chunks; expected {expected}")
    check_threads(sum(len(code.threads) for code in program.ranks))
    machine = _Machine(program, inputs, slots)
    machine.run()
    return Execution(machine.memory.outputs(), machine.loads, tuple(machine.violations()))


class _Machine:
    """All ranks at once."""

    def __init__(self, program: Program, inputs: Sequence[Bytes], slots: int) -> None:
        self.program, self.slots = program, slots
        self.loads: Counter[tuple[int, int, int]] = Counter()
        self._queues: dict[Fifo, FifoQueue] = {}
        self._runners = runners(program)
        self._ready = deque(self._runners)
        self._awaited = Counter(
            (runner.first + step.thread, step.number)
            for runner in self._runners
            for instruction in runner.thread.instructions
            for step in instruction.after
        )
        self._finished: dict[tuple[int, int], tuple[Clock, int]] = {}
        sizes = [[code.size(buffer) for buffer in Buffer] for code in program.ranks]
        self.memory = Memory(sizes, inputs, self._spot)

    def run(self) -> None:
        """Let every thread advance until none can."""
        while self._ready:
            runner = self._ready.popleft()
            while not runner.done and self._start(runner) and self._move(runner):
                if self._awaited[runner.number, runner.at]:
                    self._finished[runner.number, runner.at] = (runner.clock, runner.depth)
                runner.at, runner.moved, runner.started = runner.at + 1, 0, False
                self._wake(runner.waiting)

    def _start(self, runner: Runner) -> bool:
        """Start the next instruction, if its dependencies have finished."""
        after = () if runner.started else runner.instruction.after
        for step in after:
            other = self._runners[runner.first + step.thread]
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

    def _wake(self, waiting: list[Runner]) -> None:
        self._ready.extend(waiting)
        waiting.clear()

    def _move(self, runner: Runner) -> bool:
        """Move as many chunks as possible; return whether all are done."""
        instruction, thread = runner.instruction, runner.thread
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
                chunks = min(chunks, self.slots - outward.chunks)
                if not chunks:
                    return runner.wait(outward.waiting, f"room to send to rank {thread.send_to}")
            self._transfer(runner, chunks, inward, outward)
            for queue in (inward, outward):
                if queue is not None:
                    self._wake(queue.waiting)
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
            self._push(runner, outward, data, last=runner.moved == instruction.count)

    def _push(self, runner: Runner, queue: FifoQueue, data: Bytes, last: bool) -> None:
        message = Message(data, runner.number, runner.at, last, runner.clock, runner.depth)
        queue.messages.append(message)
        queue.chunks += len(data)
        if runner.thread.send_to is not None:
            self.loads[runner.depth, runner.rank, runner.thread.send_to] += len(data)

    def _queue(self, sender: int | None, receiver: int | None, thread: Thread) -> FifoQueue:
        return self._queues.setdefault((sender, receiver, thread.channel), FifoQueue())

    def violations(self) -> Iterator[str]:
        """Yield races, reads of empty chunks, deadlocks and chunks left in FIFOs."""
        yield from self.memory.violations()
        stuck = [runner for runner in self._runners if not runner.done]
        for runner in stuck[:MAX_NAMED]:
            instruction = f"{runner.instruction.op.value} of {runner.instruction.count}"
            yield (
                f"deadlock: {spot(runner.rank, runner.index, runner.at)} ({instruction}) waits for "
                f"{runner.waits_for}, which never comes"
            )
        if len(stuck) > MAX_NAMED:
            yield f"deadlock: {len(stuck) - MAX_NAMED} more thread blocks are blocked"
        for (sender, receiver, channel), queue in self._queues.items():
            if queue.chunks and not stuck:
                yield (
                    f"rank {sender} sends {queue.chunks} chunks to rank {receiver} on channel "
                    f"{channel} that are never received"
                )

    def _spot(self, access: Access) -> str:
        runner = self._runners[access.thread]
        return spot(runner.rank, runner.index, access.tick - 1)
