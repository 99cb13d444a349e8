"""The reference interpreters, which move real bytes and so define what lowered code means.

One process runs all ranks. The threads of a `Program` advance until they have to wait: for other
instructions, for a chunk to arrive, or for room in a FIFO. As FIFOs have one thread at each end and
waits are fixed, the result does not depend on the order in which threads advance, and one run with
vector clocks finds every deadlock, and a race if there is any.

An `ExecutionPlan` has one-sided puts, signals, waits and barriers. Blocks run one after another as
far as they can; the clock of a block has the operations that it knows to be complete, its own only
after a `NOP` or `BARRIER`.
"""

from collections import Counter, deque
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from alltoall.check.program.memory import MAX_NAMED, Access, Bytes, Clock, Memory, check_threads
from alltoall.errors import InputError
from alltoall.ir.arrays import Ints
from alltoall.ir.execution_plan import End, ExecutionPlan, Operation, PlanOp, joined_channels
from alltoall.ir.program import EFFECTS, Buffer, Executable, Place, Program, Thread, spot


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


@dataclass
class Runner:
    """A running thread: its next instruction, its progress, and its clock."""

    number: int
    rank: int
    index: int
    code: Sequence[Any]
    clock: Clock
    at: int = 0
    moved: int = 0
    started: bool = False
    depth: int = 1
    waits_for: str = ""
    waiting: list["Runner"] = field(default_factory=list)

    @property
    def access(self) -> Access:
        """The current instruction."""
        return Access(self.number, self.at + 1)

    @property
    def done(self) -> bool:
        """Whether all instructions have finished."""
        return self.at == len(self.code)

    @property
    def instruction(self) -> Any:
        """The current or next instruction."""
        return self.code[self.at]

    @property
    def first(self) -> int:
        """The number of the first thread of this rank."""
        return self.number - self.index

    def wait(self, waiting: list["Runner"], reason: str) -> bool:
        """Wait in a list; return that the instruction is not done."""
        self.waits_for = reason
        waiting.append(self)
        return False

    def learn(self, clock: Clock, other: Access) -> None:
        """Join the clock of another thread, with its instruction `other` done."""
        if self.clock[other.thread] <= other.tick:
            self.clock = np.maximum(self.clock, clock)
            self.clock[other.thread] = other.tick


class Machine:
    """All ranks at once; each kind of code moves a thread on by one instruction."""

    def __init__(self, code: Executable, inputs: Sequence[Bytes]) -> None:
        check_threads(sum(len(own.code) for own in code.ranks))
        found, expected = [len(each) for each in inputs], [own.input for own in code.ranks]
        if found != expected:
            raise InputError(f"inputs of {found} chunks; expected {expected}")
        self.loads: Counter[tuple[int, int, int]] = Counter()
        self.faults: list[str] = []
        self.runners: list[Runner] = []
        nothing: Clock = np.zeros(sum(len(own.code) for own in code.ranks), dtype=np.int32)
        # It is replaced, never written to.
        nothing.setflags(write=False)
        for rank, own in enumerate(code.ranks):
            for index, block in enumerate(own.code):
                self.runners.append(Runner(len(self.runners), rank, index, block, nothing))
        self.ready = deque(self.runners)
        sizes = [[own.size(buffer) for buffer in Buffer] for own in code.ranks]
        self.memory = Memory(sizes, inputs, self._spot)

    def execute(self) -> Execution:
        """Let every thread advance until none can."""
        while self.ready:
            runner = self.ready.popleft()
            while not runner.done and self.step(runner):
                runner.at += 1
                self.wake(runner.waiting)
        self.finish()
        return Execution(self.memory.outputs(), self.loads, tuple(self._violations()))

    def step(self, runner: Runner) -> bool:
        """Move an instruction on; return whether it is done."""
        raise NotImplementedError

    def finish(self) -> None:
        """Read the outputs, where that needs an order, too."""

    def left(self) -> Iterator[str]:
        """Yield what nobody has received although all threads have ended."""
        raise NotImplementedError

    def wake(self, waiting: list[Runner]) -> None:
        """Make the threads of a list ready."""
        self.ready.extend(waiting)
        waiting.clear()

    def _violations(self) -> Iterator[str]:
        """Yield races, reads of empty chunks, deadlocks, and what is left over."""
        yield from self.memory.violations()
        yield from self.faults[:MAX_NAMED]
        stuck = [runner for runner in self.runners if not runner.done]
        for runner in stuck[:MAX_NAMED]:
            op, count = runner.instruction.op.value, runner.instruction.count
            yield (
                f"deadlock: {spot(runner.rank, runner.index, runner.at)} "
                f"({f'{op} of {count}' if count else op}) waits for {runner.waits_for}, which "
                "never comes"
            )
        if len(stuck) > MAX_NAMED:
            yield f"deadlock: {len(stuck) - MAX_NAMED} more thread blocks are blocked"
        if not stuck:
            yield from self.left()

    def _spot(self, access: Access) -> str:
        runner = self.runners[access.thread]
        if access.tick > len(runner.code):
            return f"the end of rank {runner.rank}"
        return spot(runner.rank, runner.index, access.tick - 1)


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


def interpret_plan(plan: ExecutionPlan, inputs: Sequence[Bytes]) -> Execution:
    """Execute a plan on inputs of shape [chunks, bytes per chunk], one of each rank."""
    return _PlanMachine(plan, inputs).execute()


@dataclass
class _Inbox:
    """Signals received over a channel, and the blocks that wait for one."""

    signals: deque[tuple[Clock, int]] = field(default_factory=deque)
    waiting: list[Runner] = field(default_factory=list)


class _PlanMachine(Machine):
    """Blocks whose next `NOP` or `BARRIER` joins their clock in `_pending`."""

    def __init__(self, plan: ExecutionPlan, inputs: Sequence[Bytes]) -> None:
        super().__init__(plan, inputs)
        self.plan = plan
        self._pending = [runner.clock for runner in self.runners]
        self._partner = joined_channels(plan)
        self._inbox: dict[End, _Inbox] = {
            (rank, channel): _Inbox()
            for rank, own in enumerate(plan.ranks)
            for channel in range(len(own.channels))
        }
        self._meeting: dict[tuple[int, int], list[Runner]] = {}
        self._handlers = {
            PlanOp.PUT: self._copy,
            PlanOp.COPY: self._copy,
            PlanOp.SIGNAL: self._signal,
            PlanOp.WAIT: self._wait,
            PlanOp.BARRIER: self._barrier,
            PlanOp.NOP: self._nop,
        }

    def step(self, runner: Runner) -> bool:
        """Run the next operation of a block."""
        return self._handlers[runner.instruction.op](runner, runner.instruction)

    def _settle(self, block: Runner) -> None:
        """Complete all operations so far, and join the pending clock."""
        block.clock = np.maximum(block.clock, self._pending[block.number])
        block.clock[block.number] = block.at

    def finish(self) -> None:
        """Read the outputs as their owners do when their own blocks have ended.

        By then they must know that all puts of other ranks have arrived.
        """
        if not all(block.done for block in self.runners):
            return
        for rank, own in enumerate(self.plan.ranks):
            blocks = [block for block in self.runners if block.rank == rank]
            for block in blocks:
                self._settle(block)
            if blocks:
                clock = np.maximum.reduce([block.clock for block in blocks])
                place = Place(Buffer.OUTPUT, 0)
                self.memory.read(rank, place, own.output, blocks[-1].access, clock)

    def _copy(self, block: Runner, operation: Operation) -> bool:
        for copy in operation.copies:
            data = self.memory.read(block.rank, copy.source, copy.chunks, block.access, block.clock)
            self.memory.write(copy.rank, copy.target, data, block.access, block.clock)
            if copy.rank != block.rank:
                self.loads[block.depth, block.rank, copy.rank] += copy.chunks
        return True

    def _signal(self, block: Runner, operation: Operation) -> bool:
        told = np.zeros_like(block.clock) if operation.relaxed else block.clock.copy()
        if operation.ordered:
            told[block.number] = block.at
        for channel in operation.channels:
            partner = self._partner.get((block.rank, channel))
            if partner is None:
                here = spot(block.rank, block.index, block.at)
                self.faults.append(f"{here} signals on channel {channel}, which has no partner")
                continue
            inbox = self._inbox[partner]
            depth = 0 if operation.relaxed else block.depth
            inbox.signals.append((told, depth))
            self.wake(inbox.waiting)
        return True

    def _wait(self, block: Runner, operation: Operation) -> bool:
        inboxes = [self._inbox[block.rank, channel] for channel in operation.channels]
        for channel, inbox in zip(operation.channels, inboxes, strict=True):
            if not inbox.signals:
                peer = self.plan.ranks[block.rank].channels[channel]
                return block.wait(inbox.waiting, f"a signal from rank {peer} on channel {channel}")
        for inbox in inboxes:
            told, depth = inbox.signals.popleft()
            self._pending[block.number] = np.maximum(self._pending[block.number], told)
            block.depth = max(block.depth, depth + 1)
        return True

    def _barrier(self, block: Runner, operation: Operation) -> bool:
        if block.started:
            block.started = False
            return True
        meeting = self._meeting.setdefault((block.rank, operation.barrier), [])
        meeting.append(block)
        block.started = True
        if len(meeting) < operation.parties:
            block.waits_for = f"{operation.parties} thread blocks at barrier {operation.barrier}"
            return False
        del self._meeting[block.rank, operation.barrier]
        for each in meeting:
            self._settle(each)
        clock = np.maximum.reduce([each.clock for each in meeting])
        depth = max(each.depth for each in meeting)
        for each in meeting:
            each.clock, each.depth = clock.copy(), depth
        self.ready.extend(each for each in meeting if each is not block)
        block.started = False
        return True

    def _nop(self, block: Runner, _: Operation) -> bool:
        self._settle(block)
        return True

    def left(self) -> Iterator[str]:
        """Yield the signals that nobody waits for."""
        for (rank, channel), inbox in self._inbox.items():
            if inbox.signals:
                yield (
                    f"rank {rank} never waits for {len(inbox.signals)} signals on its channel "
                    f"{channel}; every signal needs a wait"
                )
