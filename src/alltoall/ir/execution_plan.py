"""`ExecutionPlan`: what each rank executes where ranks write into each other's memory.

The meaning of a plan, which `check.program.interpret_plan` carries out:

- Buffers are those of a `Program`. The thread blocks of a rank run at the same time; their
  operations start one after another. All the threads of a block take part in an operation, so it
  may still be under way when the next one starts: only a `NOP` or `BARRIER` waits for all before.
- A rank's channels are numbered. The ith channel of rank r to rank p is joined to the ith of p to
  r. `SIGNAL` makes one `WAIT` at the other end pass, and tells it of all that a `NOP` or `BARRIER`
  (or, on an ordered channel, the channel itself) has completed; the next `NOP` or `BARRIER` tells
  the block. A relaxed signal tells of nothing.
- `COPY` and `PUT` read chunks of their rank and write chunks of a rank, their own or another.
- `BARRIER` waits for `parties` blocks of the rank at the same barrier.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from enum import Enum
from typing import NamedTuple

from alltoall.errors import InputError
from alltoall.ir.chunks import Chunks
from alltoall.ir.noun import Noun
from alltoall.ir.program import MAX_RANKS, Buffer, Place, check_buffers, spot
from alltoall.ir.words import escaped

End = tuple[int, int]
"""One end of a channel: a rank and the channel's number there."""


class PlanOp(Enum):
    """What an operation does."""

    PUT = "put"
    COPY = "copy"
    SIGNAL = "signal"
    WAIT = "wait"
    BARRIER = "barrier"
    NOP = "nop"


class Copy(NamedTuple):
    """`chunks` from `source` on, written to `rank` from `target` on."""

    source: Place
    rank: int
    target: Place
    chunks: int


@dataclass(frozen=True, slots=True)
class Operation:
    """One operation of a thread block; which fields matter follows from `op`."""

    op: PlanOp
    copies: tuple[Copy, ...] = ()
    channels: tuple[int, ...] = ()
    relaxed: bool = False
    ordered: bool = False
    barrier: int = 0
    parties: int = 1


@dataclass(frozen=True, slots=True)
class RankPlan:
    """The buffers of a rank, in chunks, the rank at the end of each channel, and the blocks."""

    input: int
    output: int
    scratch: int
    channels: tuple[int, ...]
    blocks: tuple[tuple[Operation, ...], ...]

    def size(self, buffer: Buffer) -> int:
        """Return the size of a buffer in chunks."""
        return (self.input, self.output, self.scratch)[buffer]


@dataclass(frozen=True, eq=False, repr=False)
class ExecutionPlan(Noun):
    """One `RankPlan` per rank; see the module for what it means."""

    BRIEF = ("ranks", "operations")

    name: str
    chunks: Chunks
    ranks: tuple[RankPlan, ...]

    def __post_init__(self) -> None:
        object.__setattr__(self, "name", escaped(self.name))
        if not 2 <= len(self.ranks) <= MAX_RANKS:
            raise InputError(f"a plan of {len(self.ranks)} ranks; expected 2 to {MAX_RANKS:,}")
        check_buffers(self.chunks, self.ranks)
        for rank, plan in enumerate(self.ranks):
            _check_channels(self, rank, plan)
            for block, operations in enumerate(plan.blocks):
                for number, operation in enumerate(operations):
                    for problem in _problems(self, plan, operation):
                        raise InputError(f"{spot(rank, block, number)}: {problem}")

    @property
    def operations(self) -> int:
        """The number of operations of all ranks."""
        return sum(len(block) for plan in self.ranks for block in plan.blocks)

    def _title(self) -> str:
        return self.name

    def _facts(self) -> dict[str, str]:
        return {
            "ranks": f"{len(self.ranks):,}",
            "operations": f"{self.operations:,}",
            "thread blocks": f"{max(len(plan.blocks) for plan in self.ranks)} at most on a rank",
            "scratch": f"{max(plan.scratch for plan in self.ranks):,} chunks at most on a rank",
            "chunks": self.chunks.words(),
        }

    def _columns(self) -> dict[str, list[object]]:
        rows = [
            (rank, number, step, each.op.value, sum(copy.chunks for copy in each.copies))
            for rank, plan in enumerate(self.ranks)
            for number, block in enumerate(plan.blocks)
            for step, each in enumerate(block)
        ]
        keys = ("rank", "thread", "step", "op", "count")
        return {key: [row[index] for row in rows] for index, key in enumerate(keys)}


def joined_channels(plan: ExecutionPlan) -> dict[End, End]:
    """Join the ith channel of one rank to another with the ith channel back."""
    ends: dict[tuple[int, int], list[int]] = {}
    for rank, own in enumerate(plan.ranks):
        for channel, peer in enumerate(own.channels):
            ends.setdefault((rank, peer), []).append(channel)
    return {
        (rank, mine): (peer, theirs)
        for (rank, peer), channels in ends.items()
        for mine, theirs in zip(channels, ends.get((peer, rank), []), strict=False)
    }


def _check_channels(plan: ExecutionPlan, rank: int, own: RankPlan) -> None:
    for channel, peer in enumerate(own.channels):
        if not 0 <= peer < len(plan.ranks) or peer == rank:
            raise InputError(
                f"rank {rank}, channel {channel}: leads to rank {peer}; expected another one of "
                f"the ranks 0..{len(plan.ranks) - 1}"
            )


def _problems(plan: ExecutionPlan, own: RankPlan, operation: Operation) -> Iterator[str]:
    for copy in operation.copies:
        if copy.chunks < 1:
            yield f"{operation.op.value} of {copy.chunks} chunks; expected at least 1"
        if not 0 <= copy.rank < len(plan.ranks):
            yield f"{operation.op.value} to rank {copy.rank}, which does not exist"
        else:
            there = plan.ranks[copy.rank]
            for place, size in (
                (copy.source, own.size(copy.source.buffer)),
                (copy.target, there.size(copy.target.buffer)),
            ):
                if not 0 <= place.offset <= size - copy.chunks:
                    yield (
                        f"{operation.op.value}: {place.buffer.name.lower()} chunks {place.offset}"
                        f"..{place.offset + copy.chunks - 1} are outside of the buffer of {size}"
                    )
    for channel in operation.channels:
        if not 0 <= channel < len(own.channels):
            yield f"{operation.op.value} on channel {channel}, which does not exist"
    if operation.op is PlanOp.BARRIER and not 1 <= operation.parties <= len(own.blocks):
        yield f"a barrier of {operation.parties} thread blocks; the rank has {len(own.blocks)}"
