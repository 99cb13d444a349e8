"""`Traffic`: who sends whom how many bytes, and in which order; what simulators read.

The meaning, which `check.program.traffic` carries out:

- A rank has operations: each sends so many bytes to another rank, or receives them from it.
- The kth send of one rank to another with a tag meets the kth receive there with that tag.
- An operation starts when all in its `after` have ended and all in its `beside` have started; it
  ends when the operation that it meets has started too.

Which bytes these are, and where they lie, no simulator asks, and nobody can tell from traffic.
"""

from collections.abc import Iterator
from dataclasses import dataclass, field, fields
from typing import Any

import numpy as np
from numpy.typing import NDArray

from a2aflow.errors import InputError
from a2aflow.ir.arrays import Ints, frozen
from a2aflow.ir.chunks import MAX_COUNT, MAX_UNEVEN, PerShard
from a2aflow.ir.noun import Noun

MAX_OPERATION_BYTES = 1 << 50
"""What one operation moves at most; sums of many stay exact."""

MAX_TAG = 2**31 - 1
"""The largest tag: simulators keep it in 32 bits."""


@dataclass(frozen=True, eq=False, repr=False)
class RankTraffic(Noun):
    """The operations of one rank; those that i comes after are `after[after_first[i]:...]`.

    `beside` are those that i starts after without waiting for their end, in the same form.
    """

    BRIEF = ("operations", "bytes")

    rank: int
    sends: NDArray[np.bool_]
    peer: Ints
    tag: Ints
    bytes: Ints
    after_first: Ints
    after: Ints
    beside_first: Ints
    beside: Ints

    def __post_init__(self) -> None:
        for each in fields(self):
            value = getattr(self, each.name)
            if isinstance(value, np.ndarray):
                object.__setattr__(self, each.name, frozen(value, value.dtype.type))
        for problem in _problems(self):
            raise InputError(f"rank {self.rank}: {problem}")

    @property
    def operations(self) -> int:
        """The number of operations."""
        return len(self.peer)

    def _title(self) -> str:
        return f"of rank {self.rank}"

    def _facts(self) -> dict[str, str]:
        return {
            "operations": f"{self.operations:,}",
            "bytes": f"{int(self.bytes[self.sends].sum()):,} sent",
        }

    def _columns(self) -> dict[str, NDArray[Any]]:
        return {key: getattr(self, key) for key in ("sends", "peer", "tag", "bytes")}


@dataclass(frozen=True, eq=False, repr=False)
class Traffic(Noun):
    """The traffic of all ranks; see the module for what it means.

    `shard` is how many bytes every rank has for every other, if the file says so, and `unit` how
    many bytes a shard of size 1 has.
    """

    BRIEF = ("ranks", "messages", "bytes")

    name: str = field(compare=False)
    ranks: tuple[RankTraffic, ...]
    unit: int | None = None
    shard: PerShard | None = None

    def __post_init__(self) -> None:
        ranks = len(self.ranks)
        if not 2 <= ranks <= MAX_UNEVEN:
            raise InputError(f"traffic of {ranks} ranks; expected 2 to {MAX_UNEVEN:,}")
        if (self.unit is None) != (self.shard is None):
            raise InputError("traffic with shards but not what size 1 is, or the other way round")
        if self.unit is not None and not 1 <= self.unit <= MAX_OPERATION_BYTES:
            raise InputError(f"a shard of {self.unit} bytes; expected 1 to {MAX_OPERATION_BYTES:,}")
        if self.shard is not None and self.shard.stored > MAX_COUNT:
            raise InputError(f"shards of {self.shard.stored} bytes together; expected fewer")
        for part in self.ranks:
            if np.any(part.peer >= ranks):
                raise InputError(
                    f"rank {part.rank}: an operation with rank {part.peer.max()}; expected one of "
                    f"0..{ranks - 1}"
                )

    @property
    def messages(self) -> int:
        """The number of sends."""
        return int(sum(np.count_nonzero(part.sends) for part in self.ranks))

    def _title(self) -> str:
        return self.name

    def _facts(self) -> dict[str, str]:
        sent = sum(int(part.bytes[part.sends].sum()) for part in self.ranks)
        return {
            "ranks": f"{len(self.ranks):,}",
            "messages": f"{self.messages:,}",
            "bytes": f"{sent:,} sent",
        }


def _problems(part: RankTraffic) -> Iterator[str]:
    """Yield what is wrong with operations as such; what they do is for `check` to judge."""
    starts = (part.after_first[1:], part.beside_first[1:])
    columns = (part.sends, part.peer, part.tag, part.bytes, *starts)
    if len({len(column) for column in columns}) > 1:
        yield "operations that are not fully described"
        return
    for what, values, most in (
        ("bytes", part.bytes, MAX_OPERATION_BYTES),
        ("tag", part.tag, MAX_TAG),
    ):
        wrong = (values < (what == "bytes")) | (values > most)
        if wrong.any():
            found = int(np.flatnonzero(wrong)[0])
            yield f"operation {found} has {what} {values[found]}; expected at most {most}"
    if np.any((part.peer == part.rank) | (part.peer < 0)):
        yield "an operation with itself, or with no rank"
    for first, others in ((part.after_first, part.after), (part.beside_first, part.beside)):
        if first[0] != 0 or first[-1] != len(others) or np.any(np.diff(first) < 0):
            yield f"operations do not share out {len(others)} dependencies"
        elif len(others) and not 0 <= others.min() <= others.max() < part.operations:
            yield "an operation depends on one that does not exist"
