"""MSCCL algorithm XML, for the interpreters of NCCL and RCCL.

The attributes are the union of those of the three parsers. Thread blocks are threads, steps are
instructions; as a step can wait for one other step only, further waits go on nops before it.

The limits of the three runtimes are those of their own parsers. A program that does not fit is
refused with the name of the limit: the runtime would refuse it too, or worse, run it wrongly.
"""

import re
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from itertools import zip_longest

from alltoall.errors import LimitError
from alltoall.ir.program import (
    Buffer,
    Instruction,
    Op,
    Place,
    Program,
    RankProgram,
    Step,
    Thread,
    spot,
)
from alltoall.ir.schedule import Schedule
from alltoall.lowering.options import PROTOCOLS, Options, chosen
from alltoall.lowering.programs.compile import Share, program_of
from alltoall.lowering.programs.moves import refuse_uneven


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


def _steps_taken(thread: Thread) -> int:
    return sum(max(1, len(waits)) for _, _, waits in steps_of(thread))


def _instructions(code: RankProgram) -> Iterator[Instruction]:
    return (instruction for thread in code.threads for instruction in thread.instructions)


def _channels(code: RankProgram) -> Counter[int]:
    return Counter(thread.channel for thread in code.threads)


_QUANTITIES: dict[str, tuple[Callable[[Program, RankProgram], int], str]] = {
    "steps_per_thread_block": (
        lambda _, code: max(map(_steps_taken, code.threads), default=0),
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
            1 + len(program.ranks) + sum(1 + _steps_taken(thread) for thread in code.threads)
        ),
        _FEWER_CHUNKS,
    ),
}
"""The quantities of `Limits`: the measure of each on a rank, and the way out."""


TYPES = {Op.SEND: "s", Op.RECEIVE: "r", Op.FORWARD: "rcs", Op.COPY: "cpy"}
BUFFERS = {Buffer.INPUT: "i", Buffer.OUTPUT: "o", Buffer.SCRATCH: "s"}
FIFO_SLOTS = dict(zip(PROTOCOLS, (2, 8, 8), strict=True))
"""Chunks that a FIFO holds: 8 steps, of which a chunk takes 4 in Simple and 1 in the others."""

MAX_NAME = 63
MAX_PARTS = 8
SHARED_LIMITS = {
    "steps_per_thread_block",
    "thread_blocks_per_gpu",
    "thread_blocks_per_channel",
    "channels",
    "awaited_thread_block",
}
"""Limits that another sharing of thread blocks may meet."""

Numbers = dict[Step, int]
"""The step number of each instruction of a rank in the file, where nops count too."""

NOWHERE = Place(Buffer.INPUT, 0)
"""The operand of instructions without one."""


def emit_msccl(schedule: Schedule, options: Options) -> str:
    """Lower a schedule to MSCCL XML; a FIFO too long for a thread block is dealt out to several.

    A thread block serves a peer to send to and one to receive from where that costs no time, and
    elsewhere where the runtime has no room for thread blocks of their own.
    """
    refuse_uneven(schedule, "MSCCL")
    runtime = chosen("runtime", options.runtime, tuple(RUNTIMES))
    refused: dict[str, Program] = {}
    for program in _candidates(schedule, options.channels, RUNTIMES[runtime]):
        exceeded = [limit for limit, _ in excesses(program, runtime)]
        if not exceeded or set(exceeded) - SHARED_LIMITS:
            return msccl_text(program, options)
        refused.setdefault(exceeded[0], program)
    # With few enough steps, too many thread blocks are the real obstacle.
    return msccl_text(refused.get("thread_blocks_per_gpu", program), options)


def _candidates(schedule: Schedule, channels: int, limits: Limits) -> Iterator[Program]:
    """Yield programs, from the fastest to the one with the shortest thread blocks."""
    steps = limits.steps_per_thread_block
    blocks = min(limits.thread_blocks_per_gpu, limits.awaited_thread_block + 1)
    for parts in range(1, MAX_PARTS + 1):
        for share in (
            Share(steps, blocks),
            Share(steps, blocks, slower=True),
            Share(steps * 3 // 4, blocks, slower=True),  # leaves room for the steps of waits
        ):
            program = program_of(schedule, channels, MAX_COUNT, parts, share)
            yield program
        ends = (
            sum(getattr(thread, way) is not None for thread in code.threads)
            for code in program.ranks
            for way in ("send_to", "receive_from")
        )
        if max(ends) > limits.thread_blocks_per_gpu:
            return  # and still more of them with more parts


def msccl_text(program: Program, options: Options) -> str:
    """Print a program as MSCCL XML; raise if the runtime cannot take it."""
    check_limits(program, chosen("runtime", options.runtime, tuple(RUNTIMES)))
    # Refuse waits for nops: they are no operations of a runtime, so nothing announces them.
    for rank, code in enumerate(program.ranks):
        for step in sorted(_awaited(code)):
            if code.threads[step.thread].instructions[step.number].op is Op.NOP:
                raise LimitError(
                    f"{program.name}: {spot(rank, *step)} is a nop that others wait for, which "
                    "MSCCL cannot express; let them wait for what it waits for"
                )
    return "".join(f"{line}\n" for line in _algo(program, options))


def _awaited(code: RankProgram) -> set[Step]:
    return {step for thread in code.threads for each in thread.instructions for step in each.after}


def _algo(program: Program, options: Options) -> Iterator[str]:
    channels = 1 + max(thread.channel for code in program.ranks for thread in code.threads)
    yield _tag(
        "algo",
        name=algorithm_name(program.name),
        ngpus=len(program.ranks),
        nchunksperloop=program.ranks[0].input,
        nchannels=channels,
        proto=chosen("protocol", options.protocol, PROTOCOLS),
        coll="alltoall",
        inplace=0,
        outofplace=1,
        minBytes=options.min_bytes,
        maxBytes=options.max_bytes,
    )
    for rank, code in enumerate(program.ranks):
        sizes = {"i_chunks": code.input, "o_chunks": code.output, "s_chunks": code.scratch}
        yield "  " + _tag("gpu", id=rank, **sizes)
        numbers, awaited = _numbers(code), _awaited(code)
        for index, thread in enumerate(code.threads):
            ends = {"send": _or_none(thread.send_to), "recv": _or_none(thread.receive_from)}
            yield "    " + _tag("tb", id=index, **ends, chan=thread.channel)
            yield from _steps(index, thread, numbers, awaited)
            yield "    </tb>"
        yield "  </gpu>"
    yield "</algo>"


def _numbers(code: RankProgram) -> Numbers:
    numbers: Numbers = {}
    for thread, each in enumerate(code.threads):
        used = 0
        for index, _, waits in steps_of(each):
            used += max(1, len(waits))
            numbers[Step(thread, index)] = used - 1
    return numbers


def _steps(index: int, thread: Thread, numbers: Numbers, awaited: set[Step]) -> Iterator[str]:
    for at, instruction, waits in steps_of(thread):
        own = Step(index, at)
        kinds = [*["nop"] * (len(waits) - 1), TYPES[instruction.op]]
        first = numbers[own] - len(kinds) + 1
        for kind, wait in zip_longest(kinds, waits):
            last = first == numbers[own]
            source = (instruction.source or instruction.target if last else None) or NOWHERE
            target = (instruction.target if last else None) or source
            attributes: dict[str, int | str] = {
                "s": first,
                "type": kind,
                "srcbuf": BUFFERS[source.buffer],
                "srcoff": source.offset,
                "dstbuf": BUFFERS[target.buffer],
                "dstoff": target.offset,
                "cnt": instruction.count if last else 1,
                "depid": _or_none(wait.thread if wait else None),
                "deps": _or_none(numbers[wait] if wait else None),
                "hasdep": int(last and own in awaited),
            }
            yield "      " + _tag("step", **attributes).replace(">", "/>")
            first += 1


def _or_none(value: int | None) -> int:
    return -1 if value is None else value


def _tag(tag: str, **attributes: int | str) -> str:
    words = " ".join(f'{key}="{value}"' for key, value in attributes.items())
    return f"<{tag} {words}>"


def algorithm_name(name: str) -> str:
    """Return a name for the parsers: plain characters, up to 63, and not the special 2D."""
    plain = re.sub(r"[^A-Za-z0-9_.:,=+-]+", "_", name)[:MAX_NAME] or "alltoall"
    return "alltoall_2D" if plain == "2D" else plain
