"""What the three MSCCL runtimes can take, in one table, and whether a program fits.

The numbers are those of the runtimes' own parsers. A program that does not fit is refused with
the name of the limit: the runtime would refuse it too, or worse, run it wrongly.
"""

from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass, fields

from alltoall.errors import LimitError
from alltoall.ir.program import Instruction, Op, Program, RankProgram, Step, Thread

Measured = tuple[int, str]
"""A number and where in the program it was found."""


@dataclass(frozen=True)
class Limits:
    """The largest of each quantity that a runtime takes."""

    steps_per_thread_block: int
    thread_blocks_per_gpu: int
    thread_blocks_per_channel: int = 32
    channels: int = 32
    chunks_per_step: int = 71
    chunks_per_buffer: int = 32_768
    awaited_thread_block: int = 127
    elements_per_gpu: int = 4096


RUNTIMES = {
    "msccl": Limits(steps_per_thread_block=256, thread_blocks_per_gpu=216),
    "executor": Limits(steps_per_thread_block=64, thread_blocks_per_gpu=1024),
    "rccl": Limits(steps_per_thread_block=64, thread_blocks_per_gpu=64, channels=128),
}

NEEDED = {
    "msccl": ("name", "inplace"),
    "executor": ("inplace", "outofplace", "minBytes", "maxBytes"),
    "rccl": ("inplace", "outofplace", "minBytes", "maxBytes"),
}
"""The attributes of <algo> without which each runtime's parser rejects a file, besides those that
all of them, and our reader, insist on. Files of msccl-tools lack some of them."""

MAX_COUNT = min(limits.chunks_per_step for limits in RUNTIMES.values())

WAYS_OUT = {
    "steps_per_thread_block": "use fewer chunks per shard, or a runtime that takes more steps",
    "thread_blocks_per_gpu": "use fewer channels, or fewer chunks per shard",
    "thread_blocks_per_channel": "give the thread blocks more channels",
    "channels": "use fewer channels, or fewer chunks per shard",
    "chunks_per_step": "split the step",
    "chunks_per_buffer": "use fewer chunks per shard, or fewer channels",
    "awaited_thread_block": "use fewer channels, or fewer chunks per shard",
    "elements_per_gpu": "use fewer chunks per shard, or fewer channels",
}


def check_limits(program: Program, runtime: str) -> None:
    """Raise if a program does not fit a runtime: the limit, what was found, and a way out."""
    for _, problem in excesses(program, runtime):
        raise LimitError(problem)


def excesses(program: Program, runtime: str) -> Iterator[tuple[str, str]]:
    """Yield the name of each limit of a runtime that a program exceeds, and the fact in words."""
    limits, found = RUNTIMES[runtime], measure(program)
    for each in fields(Limits):
        number, where = found[each.name]
        limit = getattr(limits, each.name)
        if number > limit:
            words = each.name.replace("_", " ")
            yield (
                each.name,
                f"{program.name}: {number} {words} ({where}), but {runtime} takes at most {limit}; "
                f"{WAYS_OUT[each.name]}",
            )


def measure(program: Program) -> dict[str, Measured]:
    """Return the largest of each limited quantity, and the rank where it is."""
    return {
        name: max(
            (measured(program, code), f"rank {rank}") for rank, code in enumerate(program.ranks)
        )
        for name, measured in _MEASURES.items()
    }


def steps_of(thread: Thread) -> Iterator[tuple[int, Instruction, tuple[Step, ...]]]:
    """Yield index, instruction and waits of what a thread does; nops give theirs to the next.

    A runtime's step waits for one other step, so each instruction takes as many steps as it has
    waits, and at least one.
    """
    waits: tuple[Step, ...] = ()
    for index, instruction in enumerate(thread.instructions):
        waits += instruction.after
        if instruction.op is not Op.NOP:
            yield index, instruction, waits
            waits = ()


def _steps(thread: Thread) -> int:
    return sum(max(1, len(waits)) for _, _, waits in steps_of(thread))


def _instructions(code: RankProgram) -> Iterator[Instruction]:
    return (instruction for thread in code.threads for instruction in thread.instructions)


def _per_channel(_: Program, code: RankProgram) -> int:
    """Return how many thread blocks the busiest channel has."""
    return max(Counter(thread.channel for thread in code.threads).values(), default=0)


def _awaited(_: Program, code: RankProgram) -> int:
    waits = (step.thread for each in _instructions(code) for step in each.after)
    return max(waits, default=0)


def _elements(program: Program, code: RankProgram) -> int:
    """Return what a parser stores for one rank: all ranks' elements, and its own below."""
    return 1 + len(program.ranks) + sum(1 + _steps(thread) for thread in code.threads)


_MEASURES: dict[str, Callable[[Program, RankProgram], int]] = {
    "steps_per_thread_block": lambda _, code: max(map(_steps, code.threads), default=0),
    "thread_blocks_per_gpu": lambda _, code: len(code.threads),
    "thread_blocks_per_channel": _per_channel,
    "channels": lambda _, code: max((thread.channel + 1 for thread in code.threads), default=0),
    "chunks_per_step": lambda _, code: max((each.count for each in _instructions(code)), default=0),
    "chunks_per_buffer": lambda _, code: max(code.input, code.output, code.scratch),
    "awaited_thread_block": _awaited,
    "elements_per_gpu": _elements,
}
