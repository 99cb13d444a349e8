"""The limits of the three MSCCL runtimes, in one table, and the check of a program.

The numbers are those of the runtimes' own parsers. A program that does not fit is refused with
the name of the limit: the runtime would refuse it too, or worse, run it wrongly.
"""

from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass

from alltoall.errors import LimitError
from alltoall.ir.program import Instruction, Op, Program, RankProgram, Step, Thread


@dataclass(frozen=True)
class Limits:
    """The limits of a runtime."""

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
"""Attributes of <algo> that each runtime's parser requires, besides those that all of them and our
reader require. Files of msccl-tools lack some of them."""

MAX_COUNT = min(limits.chunks_per_step for limits in RUNTIMES.values())

_FEWER_CHANNELS = "use fewer channels, or fewer chunks per shard"
_FEWER_CHUNKS = "use fewer chunks per shard, or fewer channels"


def check_limits(program: Program, runtime: str) -> None:
    """Raise if a program does not fit a runtime: the limit, what was found, and a way out."""
    for _, problem in excesses(program, runtime):
        raise LimitError(problem)


def excesses(program: Program, runtime: str) -> Iterator[tuple[str, str]]:
    """Yield the name of each limit of a runtime that a program exceeds, and a message."""
    for name, (measure, advice) in _QUANTITIES.items():
        codes = enumerate(program.ranks)
        number, where = max((measure(program, code), f"rank {rank}") for rank, code in codes)
        limit = getattr(RUNTIMES[runtime], name)
        if number > limit:
            words = f"{number} {name.replace('_', ' ')} ({where})"
            yield name, f"{program.name}: {words}, but {runtime} takes at most {limit}; {advice}"


def steps_of(thread: Thread) -> Iterator[tuple[int, Instruction, tuple[Step, ...]]]:
    """Yield index, instruction and waits of a thread's instructions; nops pass theirs on.

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


def _channels(code: RankProgram) -> Counter[int]:
    return Counter(thread.channel for thread in code.threads)


_QUANTITIES: dict[str, tuple[Callable[[Program, RankProgram], int], str]] = {
    "steps_per_thread_block": (
        lambda _, code: max(map(_steps, code.threads), default=0),
        "use fewer chunks per shard, or a runtime that takes more steps",
    ),
    "thread_blocks_per_gpu": (lambda _, code: len(code.threads), _FEWER_CHANNELS),
    "thread_blocks_per_channel": (
        lambda _, code: max(_channels(code).values(), default=0),
        "give the thread blocks more channels",
    ),
    "channels": (lambda _, code: 1 + max(_channels(code), default=-1), _FEWER_CHANNELS),
    "chunks_per_step": (
        lambda _, code: max((each.count for each in _instructions(code)), default=0),
        "split the step",
    ),
    "chunks_per_buffer": (
        lambda _, code: max(code.input, code.output, code.scratch),
        _FEWER_CHUNKS,
    ),
    "awaited_thread_block": (
        lambda _, code: max(
            (step.thread for each in _instructions(code) for step in each.after), default=0
        ),
        _FEWER_CHANNELS,
    ),
    # A parser stores all ranks' elements, and those below its own.
    "elements_per_gpu": (
        lambda program, code: (
            1 + len(program.ranks) + sum(1 + _steps(thread) for thread in code.threads)
        ),
        _FEWER_CHUNKS,
    ),
}
"""The quantities of `Limits`: the measure of each on a rank, and the way out."""
