"""`Program`: the code of each rank, as threads of instructions over three buffers.

The meaning of a program, which `check.program.interpret` executes:

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

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from enum import Enum, IntEnum
from typing import Any, ClassVar, NamedTuple

from alltoall.errors import InputError, escaped
from alltoall.ir.chunks import Chunks
from alltoall.ir.noun import Noun

MAX_RANKS = 65_536
MAX_CHUNKS = 1 << 25
"""In all buffers of all ranks together."""
FIFO_SLOTS = 2
"""Slots of NCCL's Simple protocol under MSCCL: 8 steps, of which a chunk takes 4."""


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
    """The kinds of instructions."""

    SEND = "send"
    RECEIVE = "receive"
    FORWARD = "forward"
    COPY = "copy"
    NOP = "nop"


class Effects(NamedTuple):
    """Whether an operation reads and writes buffers, and uses FIFOs."""

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
class RankCode:
    """The buffers of a rank, in chunks; a kind of code adds its thread blocks."""

    input: int
    output: int
    scratch: int

    def size(self, buffer: Buffer) -> int:
        """Return the size of a buffer in chunks."""
        return (self.input, self.output, self.scratch)[buffer]

    @property
    def code(self) -> Sequence[Sequence[Any]]:
        """The instructions of every thread block."""
        raise NotImplementedError


@dataclass(frozen=True, slots=True)
class RankProgram(RankCode):
    """The buffers of a rank and its threads."""

    threads: tuple[Thread, ...]

    @property
    def code(self) -> Sequence[Sequence[Instruction]]:
        """The instructions of every thread."""
        return [thread.instructions for thread in self.threads]


@dataclass(frozen=True, eq=False, repr=False)
class Executable(Noun):
    """Code of every rank, over its input, output and scratch buffers."""

    TITLE = "name"
    KIND: ClassVar[str]

    name: str
    chunks: Chunks
    ranks: tuple[RankCode, ...]

    def __post_init__(self) -> None:
        object.__setattr__(self, "name", escaped(self.name))
        check_rank_count(self.KIND, len(self.ranks))
        # Refuse more chunks than can be executed, and buffers that do not fit the shards.
        chunks = self.chunks
        if chunks.ranks != len(self.ranks):
            raise InputError(f"chunks of {chunks.ranks} ranks in a program of {len(self.ranks)}")
        check_space(chunks.stored, [rank.scratch for rank in self.ranks])
        sizes = zip(chunks.inputs().tolist(), chunks.outputs().tolist(), strict=True)
        for rank, (own, (sent, received)) in enumerate(zip(self.ranks, sizes, strict=True)):
            if own.input != sent or own.output != received:
                raise InputError(
                    f"rank {rank} has {own.input} input and {own.output} output chunks; expected "
                    f"{sent} and {received}, the sums over its shards"
                )
        for rank, own in enumerate(self.ranks):
            self._check_ends(rank, own)
            for block, instructions in enumerate(own.code):
                for number, each in enumerate(instructions):
                    for problem in self._problems(own, block, each):
                        raise InputError(f"{spot(rank, block, number)}: {problem}")

    def _check_ends(self, rank: int, own: Any) -> None:
        """Refuse FIFOs or channels of a rank that do not lead to another rank."""

    def _problems(self, own: Any, block: int, instruction: Any) -> Iterator[str]:
        """Yield the faults of an instruction of a thread block."""
        raise NotImplementedError

    @property
    def instructions(self) -> int:
        """The number of instructions of all ranks."""
        return sum(len(block) for rank in self.ranks for block in rank.code)

    def _facts(self) -> dict[str, str]:
        blocks = max(len(rank.code) for rank in self.ranks)
        return {
            "ranks": f"{len(self.ranks):,}",
            self.BRIEF[-1]: f"{self.instructions:,}",
            "thread blocks": f"{blocks} at most on a rank",
            "scratch": scratch_words(rank.scratch for rank in self.ranks),
            "chunks": self.chunks.words(),
        }

    def _columns(self) -> dict[str, list[object]]:
        rows = [
            (number, index, step, each.op.value, each.count)
            for number, rank in enumerate(self.ranks)
            for index, block in enumerate(rank.code)
            for step, each in enumerate(block)
        ]
        keys = ("rank", "thread", "step", "op", "count")
        return {key: [row[index] for row in rows] for index, key in enumerate(keys)}


@dataclass(frozen=True, eq=False, repr=False)
class Program(Executable):
    """One `RankProgram` per rank, with the semantics above."""

    BRIEF = ("ranks", "instructions")
    KIND = "a program"

    ranks: tuple[RankProgram, ...]
    fifo_slots: int = FIFO_SLOTS

    def __post_init__(self) -> None:
        if self.fifo_slots < 1:
            raise InputError(f"{self.fifo_slots} FIFO slots; expected at least one")
        super().__post_init__()

    def _check_ends(self, rank: int, own: RankProgram) -> None:
        for index, thread in enumerate(own.threads):
            if thread.channel < 0:
                raise InputError(
                    f"rank {rank}, thread block {index}: channel {thread.channel} is negative"
                )
        for way in ("send_to", "receive_from"):
            seen: dict[tuple[int, int], int] = {}
            for index, thread in enumerate(own.threads):
                peer: int | None = getattr(thread, way)
                if peer is None:
                    continue
                if not 0 <= peer < len(self.ranks) or peer == rank:
                    raise InputError(
                        f"rank {rank}, thread block {index}: its {way} peer is rank {peer}; "
                        f"expected another one of the ranks 0..{len(self.ranks) - 1}"
                    )
                other = seen.setdefault((peer, thread.channel), index)
                if other != index:
                    raise InputError(
                        f"rank {rank}: thread blocks {other} and {index} share the {way} FIFO of "
                        f"rank {peer} on channel {thread.channel}; give each a channel of its own"
                    )

    def _problems(self, own: RankProgram, block: int, instruction: Instruction) -> Iterator[str]:
        thread, op, count = own.threads[block], instruction.op, instruction.count
        effects = EFFECTS[op]
        if count < 1:
            yield f"{op.value} of {count} chunks; expected at least 1"
        if effects.sends and thread.send_to is None:
            yield f"{op.value} in a thread block that has no rank to send to"
        if effects.receives and thread.receive_from is None:
            yield f"{op.value} in a thread block that has no rank to receive from"
        for key, needed in (("source", effects.reads), ("target", effects.writes)):
            place: Place | None = getattr(instruction, key)
            if (place is not None) != needed:
                yield f"{op.value} {'without' if needed else 'with'} a {key}"
            elif place is not None:
                yield from outside(op, key, place, count, own)
        for step in instruction.after:
            if not 0 <= step.thread < len(own.threads):
                yield f"waits for thread block {step.thread}, which does not exist"
            elif not 0 <= step.number < len(own.threads[step.thread].instructions):
                yield (
                    f"waits for step {step.number} of thread block {step.thread}, which does not "
                    "exist"
                )

    def _columns(self) -> dict[str, list[object]]:
        threads = [each for rank in self.ranks for each in rank.threads for _ in each.instructions]
        ends = ("send_to", "receive_from")
        return super()._columns() | {key: [getattr(each, key) for each in threads] for key in ends}


def spot(rank: int, thread: int, index: int) -> str:
    """Name an instruction for a message, in the words of the file formats."""
    return f"rank {rank}, thread block {thread}, step {index}"


def check_rank_count(kind: str, ranks: int) -> None:
    """Refuse more ranks, or fewer, than can be executed."""
    if not 2 <= ranks <= MAX_RANKS:
        raise InputError(f"{kind} of {ranks} ranks; expected 2 to {MAX_RANKS:,}")


def scratch_words(scratch: Iterable[int]) -> str:
    """Return the largest scratch buffer of any rank, in words."""
    return f"{max(scratch):,} chunks at most on a rank"


def check_space(shards: int, scratch: Sequence[int]) -> None:
    """Refuse more chunks in all inputs, outputs and scratch buffers than can be executed."""
    if min(scratch) < 0:
        raise InputError(f"a scratch buffer of {min(scratch)} chunks; expected 0 or more")
    total = 2 * shards + sum(scratch)
    if total > MAX_CHUNKS:
        raise InputError(
            f"{total:,} chunks in all buffers; expected at most {MAX_CHUNKS:,}, use fewer per shard"
        )


def outside(op: Enum, key: str, place: Place, count: int, rank: RankCode) -> Iterator[str]:
    """Yield a fault if chunks are outside of a rank's buffer."""
    size = rank.size(place.buffer)
    if not 0 <= place.offset <= size - count:
        yield (
            f"{op.value}: the {key} is {place.buffer.name.lower()} chunks {place.offset}.."
            f"{place.offset + count - 1}, outside of the buffer of {size}"
        )
