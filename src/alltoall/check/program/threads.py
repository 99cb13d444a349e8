"""Threads under way, and the FIFOs between them."""

from collections import Counter, deque
from collections.abc import Iterator
from dataclasses import dataclass, field

import numpy as np

from alltoall.check.program.memory import Access, Bytes, Clock
from alltoall.ir.program import Program, Thread


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
    """A thread under way: its next instruction, the progress of that, and its clock."""

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
        """The instruction under way."""
        return Access(self.number, self.at + 1)

    @property
    def done(self) -> bool:
        """Whether all instructions have finished."""
        return self.at == len(self.thread.instructions)


def runners(program: Program) -> Iterator[Runner]:
    """Yield a runner for every thread, numbered through all ranks."""
    threads = sum(len(code.threads) for code in program.ranks)
    number = 0
    for rank, code in enumerate(program.ranks):
        for index, thread in enumerate(code.threads):
            clock = np.zeros(threads, dtype=np.int32)
            # A thread knows all of its own past, whatever its count.
            clock[number] = np.iinfo(np.int32).max
            yield Runner(number, rank, index, thread, clock)
            number += 1


def awaited(program: Program) -> Counter[tuple[int, int]]:
    """Count how many instructions wait for each one, by number of its thread and index."""
    counts: Counter[tuple[int, int]] = Counter()
    first = 0
    for code in program.ranks:
        counts.update(
            (first + step.thread, step.number)
            for thread in code.threads
            for instruction in thread.instructions
            for step in instruction.after
        )
        first += len(code.threads)
    return counts


def learn(runner: Runner, clock: Clock, other: Access) -> None:
    """Join what another thread knew, and that it had done `other`, into a thread's clock."""
    if runner.clock[other.thread] > other.tick:
        return
    joined = np.maximum(runner.clock, clock)
    joined[other.thread] = other.tick
    runner.clock = joined


def wait(runner: Runner, queue: FifoQueue, reason: str) -> bool:
    """Make a thread wait for a FIFO to change; return that it is not done."""
    runner.waits_for = reason
    queue.waiting.append(runner)
    return False
