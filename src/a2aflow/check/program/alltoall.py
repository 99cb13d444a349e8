"""Whether a program is an all-to-all: run it on numbered chunks and look where each one ends."""

from collections import Counter
from dataclasses import dataclass

import numpy as np

from a2aflow.check.program.interpret import Execution, interpret
from a2aflow.check.program.memory import Bytes
from a2aflow.ir.arrays import Ints
from a2aflow.ir.program import Program

NUMBER_BYTES = 8


@dataclass(frozen=True)
class WrongChunk:
    """A chunk of an output buffer that does not hold what an all-to-all puts there."""

    rank: int
    offset: int
    expected: str
    found: str

    def __str__(self) -> str:
        return (
            f"rank {self.rank}, output chunk {self.offset}: found {self.found}; "
            f"expected {self.expected}"
        )


@dataclass(frozen=True, eq=False)
class AllToAllReport:
    """The result of executing a program: correct if nothing is wrong and no chunk is."""

    chunks_per_shard: int
    wrong: WrongChunk | None
    violations: tuple[str, ...]
    steps: int
    sends: Ints
    loads: Counter[tuple[int, int, int]]

    @property
    def correct(self) -> bool:
        """Whether this is an all-to-all without races, deadlocks or leftovers."""
        return self.wrong is None and not self.violations

    def problems(self) -> list[str]:
        """Return everything that is wrong, in words."""
        return [*self.violations, *([str(self.wrong)] if self.wrong else [])]


def check_all_to_all(program: Program, fifo_slots: int | None = None) -> AllToAllReport:
    """Execute a program on chunks that hold their own number, and compare byte by byte."""
    inputs = numbered_inputs(len(program.ranks), program.chunks_per_shard)
    execution = interpret(program, inputs, fifo_slots)
    return report(execution, len(program.ranks), program.chunks_per_shard)


def report(execution: Execution, ranks: int, chunks_per_shard: int) -> AllToAllReport:
    """Judge what came out of executing something on numbered inputs."""
    return AllToAllReport(
        chunks_per_shard=chunks_per_shard,
        wrong=first_wrong(execution.outputs, chunks_per_shard),
        violations=execution.violations,
        steps=execution.steps,
        sends=execution.sends(ranks),
        loads=execution.loads,
    )


def numbered_inputs(ranks: int, chunks_per_shard: int) -> Bytes:
    """Return inputs whose chunks hold their number, from 1, as 8 bytes; 0 is an empty chunk."""
    chunks = ranks * chunks_per_shard
    numbers = np.arange(1, ranks * chunks + 1, dtype="<i8")
    return numbers.view(np.uint8).reshape(ranks, chunks, NUMBER_BYTES)


def first_wrong(outputs: tuple[Bytes, ...], chunks_per_shard: int) -> WrongChunk | None:
    """Return the first output chunk that is not what the all-to-all of numbered inputs gives."""
    ranks = len(outputs)
    inputs = numbered_inputs(ranks, chunks_per_shard)
    shards = inputs.reshape(ranks, ranks, chunks_per_shard, NUMBER_BYTES)
    for rank, output in enumerate(outputs):
        expected = shards[:, rank].reshape(output.shape)
        wrong = np.flatnonzero(np.any(output != expected, axis=1))
        if len(wrong):
            offset = int(wrong[0])
            words = [
                _in_words(data[offset], ranks, chunks_per_shard) for data in (expected, output)
            ]
            return WrongChunk(rank, offset, words[0], words[1])
    return None


def _in_words(chunk: Bytes, ranks: int, chunks_per_shard: int) -> str:
    number = int(chunk.view("<i8")[0])
    if not number:
        return "nothing"
    source, rest = divmod(number - 1, ranks * chunks_per_shard)
    destination, index = divmod(rest, chunks_per_shard)
    return f"chunk {index} of the shard from rank {source} to rank {destination}"
