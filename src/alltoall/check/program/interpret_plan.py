"""The reference interpreter of `ExecutionPlan`: one-sided puts, signals, waits and barriers.

Blocks run one after another as far as they can; the clock of a block has the operations that it
knows to be complete, its own only after a `NOP` or `BARRIER`.
"""

from collections import deque
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

import numpy as np

from alltoall.check.program.alltoall import AllToAllReport, numbered_inputs, report
from alltoall.check.program.interpret import Execution, Machine, Runner
from alltoall.check.program.memory import Bytes, Clock
from alltoall.ir.execution_plan import End, ExecutionPlan, Operation, PlanOp, joined_channels
from alltoall.ir.program import Buffer, Place, spot


def check_plan(plan: ExecutionPlan) -> AllToAllReport:
    """Execute a plan on numbered chunks, and compare byte by byte."""
    return report(interpret_plan(plan, numbered_inputs(plan.chunks)), plan.chunks)


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
