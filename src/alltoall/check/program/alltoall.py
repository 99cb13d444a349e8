"""Whether a program is an all-to-all: run it on numbered chunks and check where each one ends."""

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from alltoall.check.program.interpret import Execution, interpret, interpret_plan
from alltoall.check.program.memory import Bytes
from alltoall.ir.arrays import Ints, inner_index
from alltoall.ir.chunks import Chunks
from alltoall.ir.execution_plan import ExecutionPlan
from alltoall.ir.program import Program

NUMBER_BYTES = 8


@dataclass(frozen=True, eq=False)
class AllToAllReport:
    """The result of executing a program; `wrong` is the first wrong chunk, in words."""

    chunks: Chunks
    wrong: str | None
    violations: tuple[str, ...]
    steps: int
    sends: Ints
    loads: Counter[tuple[int, int, int]]

    @property
    def correct(self) -> bool:
        """Whether this is an all-to-all without races, deadlocks or leftovers."""
        return self.wrong is None and not self.violations

    def shards(self) -> Mapping[tuple[int, int, int], float]:
        """Return the shards by step, sender and receiver, where all chunks are equal.

        A program does not know the sizes of shards: the one of most chunks is taken as 1.
        """
        return {ends: chunks / self.chunks.most for ends, chunks in self.loads.items()}

    def problems(self) -> list[str]:
        """Return all violations in words."""
        return [*self.violations, *([self.wrong] if self.wrong else [])]


def check_all_to_all(program: Program, fifo_slots: int | None = None) -> AllToAllReport:
    """Execute a program on numbered chunks, and compare byte by byte."""
    execution = interpret(program, numbered_inputs(program.chunks), fifo_slots)
    return report(execution, program.chunks)


def check_plan(plan: ExecutionPlan) -> AllToAllReport:
    """Execute a plan on numbered chunks, and compare byte by byte."""
    return report(interpret_plan(plan, numbered_inputs(plan.chunks)), plan.chunks)


def report(execution: Execution, chunks: Chunks) -> AllToAllReport:
    """Judge the execution of a program or plan on numbered inputs."""
    return AllToAllReport(
        chunks=chunks,
        wrong=first_wrong(execution.outputs, chunks),
        violations=execution.violations,
        steps=execution.steps,
        sends=execution.sends(chunks.ranks),
        loads=execution.loads,
    )


def numbered_inputs(chunks: Chunks) -> list[Bytes]:
    """Return inputs of numbered chunks, from 1, as 8 bytes; 0 is an empty chunk."""
    numbers = np.arange(1, chunks.stored + 1, dtype="<i8")
    cuts = np.cumsum(chunks.inputs())[:-1]
    return [part.view(np.uint8).reshape(-1, NUMBER_BYTES) for part in np.split(numbers, cuts)]


def first_wrong(outputs: Sequence[Bytes], chunks: Chunks) -> str | None:
    """Return the first output chunk that differs from the all-to-all of numbered inputs."""
    every = np.arange(chunks.ranks)
    first = np.cumsum(chunks.inputs()) - chunks.inputs()
    for rank, output in enumerate(outputs):
        to = np.full(chunks.ranks, rank)
        counts = chunks.of(every, to)
        begins = np.repeat(1 + first + chunks.in_input(every, to), counts)
        expected = (begins + inner_index(counts)).astype("<i8")
        found = np.ascontiguousarray(output).view("<i8").reshape(-1)
        wrong = np.flatnonzero(found != expected)
        if len(wrong):
            place = int(wrong[0])
            held, meant = (_in_words(int(data[place]), chunks) for data in (found, expected))
            return f"rank {rank}, output chunk {place}: found {held}; expected {meant}"
    return None


def _in_words(number: int, chunks: Chunks) -> str:
    if not number:
        return "nothing"
    ends = np.cumsum(chunks.inputs())
    source = int(np.searchsorted(ends, number - 1, side="right"))
    here = np.full(chunks.ranks, source)
    within = number - 1 - int(ends[source] - chunks.inputs()[source])
    starts = chunks.in_input(here, np.arange(chunks.ranks))
    destination = int(np.searchsorted(starts, within, side="right")) - 1
    index = within - int(starts[destination])
    return f"chunk {index} of the shard from rank {source} to rank {destination}"
