"""`ExecutionPlan`: code for ranks that write into each other's memory.

The meaning of a plan, which `check.program.interpret` executes:

- Buffers are those of a `Program`. The thread blocks of a rank run at the same time; their
  operations start one after another. All the threads of a block take part in an operation, so it
  may still be under way when the next one starts: only a `NOP` or `BARRIER` waits for all before.
- A rank's channels are numbered. The ith channel of rank r to rank p is joined to the ith of p to
  r. `SIGNAL` releases one `WAIT` at the other end and publishes everything that a `NOP` or
  `BARRIER` (or an ordered channel itself) has completed; it is visible to the block after its next
  `NOP` or `BARRIER`. A relaxed signal publishes nothing.
- `COPY` and `PUT` read chunks of their rank and write chunks of a rank, their own or another.
- `BARRIER` waits for `parties` blocks of the rank at the same barrier.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from enum import Enum
from typing import NamedTuple

from alltoall.errors import InputError
from alltoall.ir.program import Executable, Place, RankCode, outside

End = tuple[int, int]
"""One end of a channel: a rank and the channel's number there."""


class PlanOp(Enum):
    """The kinds of operations."""

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
    """One operation of a thread block; `op` determines the fields in use."""

    op: PlanOp
    copies: tuple[Copy, ...] = ()
    channels: tuple[int, ...] = ()
    relaxed: bool = False
    ordered: bool = False
    barrier: int = 0
    parties: int = 1

    @property
    def count(self) -> int:
        """The number of chunks that are copied."""
        return sum(copy.chunks for copy in self.copies)


@dataclass(frozen=True, slots=True)
class RankPlan(RankCode):
    """The buffers of a rank, the rank at the end of each channel, and the thread blocks."""

    channels: tuple[int, ...]
    blocks: tuple[tuple[Operation, ...], ...]

    @property
    def code(self) -> Sequence[Sequence[Operation]]:
        """The operations of every thread block."""
        return self.blocks


@dataclass(frozen=True, eq=False, repr=False)
class ExecutionPlan(Executable):
    """One `RankPlan` per rank, with the semantics above."""

    BRIEF = ("ranks", "operations")
    KIND = "a plan"

    ranks: tuple[RankPlan, ...]

    def _check_ends(self, rank: int, own: RankPlan) -> None:
        for channel, peer in enumerate(own.channels):
            if not 0 <= peer < len(self.ranks) or peer == rank:
                raise InputError(
                    f"rank {rank}, channel {channel}: leads to rank {peer}; expected another one "
                    f"of the ranks 0..{len(self.ranks) - 1}"
                )

    def _problems(self, own: RankPlan, block: int, instruction: Operation) -> Iterator[str]:
        op = instruction.op.value
        for copy in instruction.copies:
            if copy.chunks < 1:
                yield f"{op} of {copy.chunks} chunks; expected at least 1"
            if not 0 <= copy.rank < len(self.ranks):
                yield f"{op} to rank {copy.rank}, which does not exist"
            else:
                there = self.ranks[copy.rank]
                yield from outside(instruction.op, "source", copy.source, copy.chunks, own)
                yield from outside(instruction.op, "target", copy.target, copy.chunks, there)
        for channel in instruction.channels:
            if not 0 <= channel < len(own.channels):
                yield f"{op} on channel {channel}, which does not exist"
        if instruction.op is PlanOp.BARRIER and not 1 <= instruction.parties <= len(own.blocks):
            yield (
                f"a barrier of {instruction.parties} thread blocks; the rank has {len(own.blocks)}"
            )


def joined_channels(plan: ExecutionPlan) -> dict[End, End]:
    """Join the ith channel of one rank to another with the ith channel back."""
    ends: dict[End, list[int]] = {}
    for rank, own in enumerate(plan.ranks):
        for channel, peer in enumerate(own.channels):
            ends.setdefault((rank, peer), []).append(channel)
    return {
        (rank, mine): (peer, theirs)
        for (rank, peer), channels in ends.items()
        for mine, theirs in zip(channels, ends.get((peer, rank), []), strict=False)
    }
