"""`Program`: what each rank executes, as threads of instructions over three buffers.

The meaning of a program, which `check.program.interpret` carries out:

- A rank has an input, an output and a scratch buffer, counted in chunks. Shards lie one after the
  other: by destination in the input, by source in the output, each as many chunks as `Chunks` says
  of its pair.
- The threads of a rank run at the same time; the instructions of a thread run one after another.
  An instruction starts when the one before it, and all in its `after`, have finished.
- Chunks travel in FIFOs. A FIFO is named by its sending rank, receiving rank and channel; it keeps
  the order and carries no tags, and holds `fifo_slots` chunks before a send has to wait. Each end
  of a FIFO belongs to one thread.
- `SEND` reads `count` chunks from `source` on, and pushes them one by one; `RECEIVE` pops `count`
  chunks and writes them from `target` on; `FORWARD` pops, writes and pushes on what it popped;
  `COPY` moves chunks within the rank; `NOP` does nothing but wait for its `after`.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from enum import Enum, IntEnum
from typing import NamedTuple, Protocol

from alltoall.errors import InputError
from alltoall.ir.chunks import Chunks
from alltoall.ir.noun import Noun
from alltoall.ir.words import escaped

MAX_RANKS = 65_536
MAX_CHUNKS = 1 << 25
"""In all buffers of all ranks together."""
FIFO_SLOTS = 2
"""What NCCL's Simple protocol holds under MSCCL: 8 steps, of which a chunk takes 4."""


class Buffer(IntEnum):
    """The three buffers of a rank."""

    INPUT = 0
    OUTPUT = 1
    SCRATCH = 2


class Place(NamedTuple):
    """The first chunk of a range: a buffer and the offset in it, in chunks."""

    buffer: Buffer
    offset: int


class Step(NamedTuple):
    """An instruction of the same rank: its thread, and its number there, from 0."""

    thread: int
    number: int


class Op(Enum):
    """What an instruction does."""

    SEND = "send"
    RECEIVE = "receive"
    FORWARD = "forward"
    COPY = "copy"
    NOP = "nop"


class Effects(NamedTuple):
    """What an operation touches."""

    reads: bool
    writes: bool
    sends: bool
    receives: bool


EFFECTS = {
    Op.SEND: Effects(reads=True, writes=False, sends=True, receives=False),
    Op.RECEIVE: Effects(reads=False, writes=True, sends=False, receives=True),
    Op.FORWARD: Effects(reads=False, writes=True, sends=True, receives=True),
    Op.COPY: Effects(reads=True, writes=True, sends=False, receives=False),
    Op.NOP: Effects(reads=False, writes=False, sends=False, receives=False),
}


@dataclass(frozen=True, slots=True)
class Instruction:
    """One operation on `count` chunks; `source` and `target` are set where it reads and writes."""

    op: Op
    count: int = 1
    source: Place | None = None
    target: Place | None = None
    after: tuple[Step, ...] = ()


@dataclass(frozen=True, slots=True)
class Thread:
    """Instructions in order, at most one rank to send to and one to receive from."""

    channel: int
    send_to: int | None
    receive_from: int | None
    instructions: tuple[Instruction, ...]


@dataclass(frozen=True, slots=True)
class RankProgram:
    """The buffers of a rank, in chunks, and its threads."""

    input: int
    output: int
    scratch: int
    threads: tuple[Thread, ...]

    def size(self, buffer: Buffer) -> int:
        """Return the size of a buffer in chunks."""
        return (self.input, self.output, self.scratch)[buffer]


@dataclass(frozen=True, eq=False, repr=False)
class Program(Noun):
    """One `RankProgram` per rank; see the module for what it means."""

    BRIEF = ("ranks", "instructions")

    name: str
    chunks: Chunks
    ranks: tuple[RankProgram, ...]
    fifo_slots: int = FIFO_SLOTS

    def __post_init__(self) -> None:
        object.__setattr__(self, "name", escaped(self.name))
        _check_sizes(self)
        for rank, code in enumerate(self.ranks):
            _check_fifos(self, rank, code)
            for thread in range(len(code.threads)):
                _check_thread(self, rank, thread)

    @property
    def instructions(self) -> int:
        """The number of instructions of all ranks."""
        return sum(len(thread.instructions) for code in self.ranks for thread in code.threads)

    def _title(self) -> str:
        return self.name

    def _facts(self) -> dict[str, str]:
        return {
            "ranks": f"{len(self.ranks):,}",
            "instructions": f"{self.instructions:,}",
            "thread blocks": f"{max(len(code.threads) for code in self.ranks)} at most on a rank",
            "scratch": f"{max(code.scratch for code in self.ranks):,} chunks at most on a rank",
            "chunks": self.chunks.words(),
        }

    def _columns(self) -> dict[str, list[object]]:
        rows = [
            (rank, number, step, each.op.value, each.count, thread.send_to, thread.receive_from)
            for rank, code in enumerate(self.ranks)
            for number, thread in enumerate(code.threads)
            for step, each in enumerate(thread.instructions)
        ]
        keys = ("rank", "thread", "step", "op", "count", "send_to", "receive_from")
        return {key: [row[index] for row in rows] for index, key in enumerate(keys)}


def spot(rank: int, thread: int, index: int) -> str:
    """Name an instruction for a message, in the words of the file formats."""
    return f"rank {rank}, thread block {thread}, step {index}"


def _check_sizes(program: Program) -> None:
    ranks = len(program.ranks)
    if not 2 <= ranks <= MAX_RANKS:
        raise InputError(f"a program of {ranks} ranks; expected 2 to {MAX_RANKS:,}")
    if program.fifo_slots < 1:
        raise InputError(f"{program.fifo_slots} FIFO slots; expected at least one")
    check_buffers(program.chunks, program.ranks)


class _Sized(Protocol):
    """The buffers of a rank, in chunks."""

    @property
    def input(self) -> int:
        """What it sends."""

    @property
    def output(self) -> int:
        """What it receives."""

    @property
    def scratch(self) -> int:
        """What it holds for others."""


def check_buffers(chunks: Chunks, ranks: Sequence[_Sized]) -> None:
    """Refuse more chunks than can be executed, and buffers that do not hold those of the pairs."""
    if chunks.ranks != len(ranks):
        raise InputError(f"chunks of {chunks.ranks} ranks in a program of {len(ranks)}")
    check_space(chunks.stored, [each.scratch for each in ranks])
    sizes = zip(chunks.inputs().tolist(), chunks.outputs().tolist(), strict=True)
    for rank, (own, (sent, received)) in enumerate(zip(ranks, sizes, strict=True)):
        if own.input != sent or own.output != received:
            raise InputError(
                f"rank {rank} has {own.input} input and {own.output} output chunks; expected "
                f"{sent} and {received}, the sums over its shards"
            )


def check_space(shards: int, scratch: Sequence[int]) -> None:
    """Refuse more chunks in all inputs, outputs and scratch buffers than can be executed."""
    if min(scratch) < 0:
        raise InputError(f"a scratch buffer of {min(scratch)} chunks; expected 0 or more")
    total = 2 * shards + sum(scratch)
    if total > MAX_CHUNKS:
        raise InputError(
            f"{total:,} chunks in all buffers; expected at most {MAX_CHUNKS:,}, use fewer per shard"
        )


def _check_fifos(program: Program, rank: int, code: RankProgram) -> None:
    for way in ("send_to", "receive_from"):
        seen: dict[tuple[int, int], int] = {}
        for index, thread in enumerate(code.threads):
            peer: int | None = getattr(thread, way)
            if peer is None:
                continue
            if not 0 <= peer < len(program.ranks) or peer == rank:
                raise InputError(
                    f"rank {rank}, thread block {index}: its {way} peer is rank {peer}; expected "
                    f"another one of the ranks 0..{len(program.ranks) - 1}"
                )
            other = seen.setdefault((peer, thread.channel), index)
            if other != index:
                raise InputError(
                    f"rank {rank}: thread blocks {other} and {index} share the {way} FIFO of rank "
                    f"{peer} on channel {thread.channel}; give each a channel of its own"
                )


def _check_thread(program: Program, rank: int, index: int) -> None:
    code = program.ranks[rank]
    thread = code.threads[index]
    if thread.channel < 0:
        raise InputError(f"rank {rank}, thread block {index}: channel {thread.channel} is negative")
    for number, instruction in enumerate(thread.instructions):
        for problem in _problems(code, thread, instruction):
            raise InputError(f"{spot(rank, index, number)}: {problem}")


def _problems(code: RankProgram, thread: Thread, instruction: Instruction) -> Iterator[str]:
    op, effects = instruction.op, EFFECTS[instruction.op]
    if instruction.count < 1:
        yield f"{op.value} of {instruction.count} chunks; expected at least 1"
    if effects.sends and thread.send_to is None:
        yield f"{op.value} in a thread block that has no rank to send to"
    if effects.receives and thread.receive_from is None:
        yield f"{op.value} in a thread block that has no rank to receive from"
    yield from _range_problems(code, "source", instruction, instruction.source, effects.reads)
    yield from _range_problems(code, "target", instruction, instruction.target, effects.writes)
    for step in instruction.after:
        yield from _step_problems(code, step)


def _range_problems(
    code: RankProgram, key: str, instruction: Instruction, place: Place | None, needed: bool
) -> Iterator[str]:
    if (place is not None) != needed:
        yield f"{instruction.op.value} {'without' if needed else 'with'} a {key}"
    elif place is not None:
        size = code.size(place.buffer)
        if not 0 <= place.offset <= size - instruction.count:
            yield (
                f"{instruction.op.value}: the {key} is {place.buffer.name.lower()} chunks "
                f"{place.offset}..{place.offset + instruction.count - 1}, outside of the buffer "
                f"of {size}"
            )


def _step_problems(code: RankProgram, step: Step) -> Iterator[str]:
    if not 0 <= step.thread < len(code.threads):
        yield f"waits for thread block {step.thread}, which does not exist"
    elif not 0 <= step.number < len(code.threads[step.thread].instructions):
        yield f"waits for step {step.number} of thread block {step.thread}, which does not exist"
