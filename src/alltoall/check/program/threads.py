"""The machine of both interpreters: threads that run as far as they can, with vector clocks.

The clock of a thread has, for every thread, the last instruction that it knows to be done.
"""

from collections import Counter, deque
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from alltoall.check.program.memory import MAX_NAMED, Access, Bytes, Clock, Memory, check_threads
from alltoall.errors import InputError
from alltoall.ir.arrays import Ints
from alltoall.ir.program import Buffer, Executable, spot


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
