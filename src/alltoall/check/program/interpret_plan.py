"""The reference interpreter of `ExecutionPlan`: one-sided puts, signals, waits and barriers.

Blocks run one after another as far as they can; the clock of a block has the operations that it
knows to be complete, its own only after a `NOP` or `BARRIER`.
"""

from collections import Counter, deque
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

import numpy as np

from alltoall.check.program.alltoall import AllToAllReport, numbered_inputs, report
from alltoall.check.program.interpret import Execution
from alltoall.check.program.memory import MAX_NAMED, Access, Bytes, Clock, Memory, check_threads
from alltoall.ir.execution_plan import End, ExecutionPlan, Operation, PlanOp, joined_channels
from alltoall.ir.program import Buffer, Place, spot


def check_plan(plan: ExecutionPlan) -> AllToAllReport:
    """Execute a plan on numbered chunks, and compare byte by byte."""
    return report(interpret_plan(plan, numbered_inputs(plan.chunks)), plan.chunks)


def interpret_plan(plan: ExecutionPlan, inputs: Sequence[Bytes]) -> Execution:
    """Execute a plan on inputs of shape [chunks, bytes per chunk], one of each rank."""
    check_threads(sum(len(own.blocks) for own in plan.ranks))
    machine = _PlanMachine(plan, inputs)
    machine.run()
    return Execution(machine.memory.outputs(), machine.loads, tuple(machine.violations()))


@dataclass
class _PlanBlock:
    """A running thread block; its next `NOP` or `BARRIER` joins the clock `pending`."""

    number: int
    rank: int
    index: int
    operations: tuple[Operation, ...]
    clock: Clock
    pending: Clock
    at: int = 0
    depth: int = 1
    arrived: bool = False
    waits_for: str = ""

    @property
    def done(self) -> bool:
        """Whether all operations have started."""
        return self.at == len(self.operations)

    @property
    def next(self) -> Operation:
        """The current or next operation."""
        return self.operations[self.at]

    def settle(self) -> None:
        """Complete all operations so far, and join the pending clock."""
        self.clock = np.maximum(self.clock, self.pending)
        self.clock[self.number] = self.at


@dataclass
class _Inbox:
    """Signals received over a channel, and the blocks that wait for one."""

    signals: deque[tuple[Clock, int]] = field(default_factory=deque)
    waiting: list[_PlanBlock] = field(default_factory=list)


class _PlanMachine:
    """All ranks at once."""

    def __init__(self, plan: ExecutionPlan, inputs: Sequence[Bytes]) -> None:
        self.plan = plan
        self.loads: Counter[tuple[int, int, int]] = Counter()
        self._blocks = list(_blocks(plan))
        self._partner = joined_channels(plan)
        self._inbox: dict[End, _Inbox] = {
            (rank, channel): _Inbox()
            for rank, own in enumerate(plan.ranks)
            for channel in range(len(own.channels))
        }
        self._meeting: dict[tuple[int, int], list[_PlanBlock]] = {}
        self._unpaired: list[str] = []
        sizes = [[own.size(buffer) for buffer in Buffer] for own in plan.ranks]
        self.memory = Memory(sizes, inputs, self._spot)
        self._handlers = {
            PlanOp.PUT: self._copy,
            PlanOp.COPY: self._copy,
            PlanOp.SIGNAL: self._signal,
            PlanOp.WAIT: self._wait,
            PlanOp.BARRIER: self._barrier,
            PlanOp.NOP: self._nop,
        }

    def run(self) -> None:
        """Let every block advance until none can."""
        self._ready = deque(self._blocks)
        while self._ready:
            block = self._ready.popleft()
            while not block.done and self._handlers[block.next.op](block, block.next):
                block.at += 1
        if all(block.done for block in self._blocks):
            # Read the outputs as their owners do when their own blocks have ended.
            # By then they must know that all puts of other ranks have arrived.
            for rank, own in enumerate(self.plan.ranks):
                blocks = [block for block in self._blocks if block.rank == rank]
                for block in blocks:
                    block.settle()
                if blocks:
                    clock = np.maximum.reduce([block.clock for block in blocks])
                    end = Access(blocks[-1].number, blocks[-1].at + 1)
                    self.memory.read(rank, Place(Buffer.OUTPUT, 0), own.output, end, clock)

    def _copy(self, block: _PlanBlock, operation: Operation) -> bool:
        access = Access(block.number, block.at + 1)
        for copy in operation.copies:
            data = self.memory.read(block.rank, copy.source, copy.chunks, access, block.clock)
            self.memory.write(copy.rank, copy.target, data, access, block.clock)
            if copy.rank != block.rank:
                self.loads[block.depth, block.rank, copy.rank] += copy.chunks
        return True

    def _signal(self, block: _PlanBlock, operation: Operation) -> bool:
        told = np.zeros_like(block.clock) if operation.relaxed else block.clock.copy()
        if operation.ordered:
            told[block.number] = block.at
        for channel in operation.channels:
            partner = self._partner.get((block.rank, channel))
            if partner is None:
                here = spot(block.rank, block.index, block.at)
                self._unpaired.append(f"{here} signals on channel {channel}, which has no partner")
                continue
            inbox = self._inbox[partner]
            depth = 0 if operation.relaxed else block.depth
            inbox.signals.append((told, depth))
            self._ready.extend(inbox.waiting)
            inbox.waiting.clear()
        return True

    def _wait(self, block: _PlanBlock, operation: Operation) -> bool:
        inboxes = [self._inbox[block.rank, channel] for channel in operation.channels]
        for channel, inbox in zip(operation.channels, inboxes, strict=True):
            if not inbox.signals:
                peer = self.plan.ranks[block.rank].channels[channel]
                block.waits_for = f"a signal from rank {peer} on channel {channel}"
                inbox.waiting.append(block)
                return False
        for inbox in inboxes:
            told, depth = inbox.signals.popleft()
            block.pending = np.maximum(block.pending, told)
            block.depth = max(block.depth, depth + 1)
        return True

    def _barrier(self, block: _PlanBlock, operation: Operation) -> bool:
        if block.arrived:
            block.arrived = False
            return True
        meeting = self._meeting.setdefault((block.rank, operation.barrier), [])
        meeting.append(block)
        block.arrived = True
        if len(meeting) < operation.parties:
            block.waits_for = f"{operation.parties} thread blocks at barrier {operation.barrier}"
            return False
        del self._meeting[block.rank, operation.barrier]
        for each in meeting:
            each.settle()
        clock = np.maximum.reduce([each.clock for each in meeting])
        depth = max(each.depth for each in meeting)
        for each in meeting:
            each.clock, each.depth = clock.copy(), depth
        self._ready.extend(each for each in meeting if each is not block)
        block.arrived = False
        return True

    def _nop(self, block: _PlanBlock, _: Operation) -> bool:
        block.settle()
        return True

    def violations(self) -> Iterator[str]:
        """Yield races, reads of empty chunks, deadlocks and unused signals."""
        yield from self.memory.violations()
        yield from self._unpaired[:MAX_NAMED]
        stuck = [block for block in self._blocks if not block.done]
        for block in stuck[:MAX_NAMED]:
            here = f"{spot(block.rank, block.index, block.at)} ({block.next.op.value})"
            yield f"deadlock: {here} waits for {block.waits_for}, which never comes"
        for (rank, channel), inbox in self._inbox.items():
            if inbox.signals and not stuck:
                yield (
                    f"rank {rank} never waits for {len(inbox.signals)} signals on its channel "
                    f"{channel}; every signal needs a wait"
                )

    def _spot(self, access: Access) -> str:
        block = self._blocks[access.thread]
        if access.tick > len(block.operations):
            return f"the end of rank {block.rank}"
        return spot(block.rank, block.index, access.tick - 1)


def _blocks(plan: ExecutionPlan) -> Iterator[_PlanBlock]:
    blocks = sum(len(own.blocks) for own in plan.ranks)
    nothing: Clock = np.zeros(blocks, dtype=np.int32)  # replaced, never written to
    nothing.setflags(write=False)
    number = 0
    for rank, own in enumerate(plan.ranks):
        for index, operations in enumerate(own.blocks):
            yield _PlanBlock(number, rank, index, operations, nothing, nothing)
            number += 1
