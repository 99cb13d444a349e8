"""Running threads, and the FIFOs between them."""

from collections import deque
from dataclasses import dataclass, field

import numpy as np

from alltoall.check.program.memory import Access, Bytes, Clock
from alltoall.ir.program import Instruction, Program, Thread


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
    waiting: list["Runner"] = field(default_factory=list)


@dataclass
class Runner:
    """A running thread: its next instruction, its progress, and its clock."""

    number: int
    rank: int
    index: int
    thread: Thread
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
        return self.at == len(self.thread.instructions)

    @property
    def instruction(self) -> Instruction:
        """The current or next instruction."""
        return self.thread.instructions[self.at]

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


def runners(program: Program) -> list[Runner]:
    """Return a runner for every thread, numbered through all ranks."""
    threads = sum(len(code.threads) for code in program.ranks)
    found: list[Runner] = []
    for rank, code in enumerate(program.ranks):
        for index, thread in enumerate(code.threads):
            clock = np.zeros(threads, dtype=np.int32)
            # A thread knows all of its own past, whatever its count.
            clock[len(found)] = np.iinfo(np.int32).max
            found.append(Runner(len(found), rank, index, thread, clock))
    return found
