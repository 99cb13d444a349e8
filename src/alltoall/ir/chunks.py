"""`Chunks` or bytes of every shard, and the offsets of shards in buffers.

The input buffer of a rank holds the shards that it sends, by destination; the output buffer those
that it receives, by source.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from alltoall.errors import InputError, UsageError
from alltoall.ir.arrays import Floats, Ints, freeze
from alltoall.ir.demand import Demand
from alltoall.ir.noun import Noun

MAX_UNEVEN = 5_792
"""Most ranks with a count per pair, a matrix of 256 MiB."""

MAX_COUNT = 2**62
"""Most chunks or bytes of one shard; sums of more could overflow."""


@dataclass(frozen=True, eq=False, repr=False)
class PerShard(Noun):
    """`per_shard` of every pair, also of a rank with itself, or `counts` of each: one of the two.

    For thousands of ranks a matrix would be the largest thing in memory.
    """

    BRIEF = ("ranks", "shards")

    ranks: int
    per_shard: int | None = None
    counts: Ints | None = None

    def __post_init__(self) -> None:
        if (self.per_shard is None) == (self.counts is None):
            raise InputError("shards need one number for all, or one of each pair, not both")
        freeze(self, np.int64, "counts")
        if self.counts is not None and self.counts.shape != (self.ranks, self.ranks):
            raise InputError(
                f"numbers of shards of shape {self.counts.shape}; expected {self.ranks} rows and "
                "columns, one of each rank"
            )
        if not 0 <= self.least <= self.most <= MAX_COUNT:
            wrong = self.least if self.least < 0 else self.most
            raise InputError(f"{wrong} of one shard; expected 0 to {MAX_COUNT}")

    @property
    def uniform(self) -> bool:
        """Whether all pairs have equal counts."""
        return self.counts is None

    @property
    def least(self) -> int:
        """The count of the smallest shard."""
        return int(self.per_shard or 0) if self.counts is None else int(self.counts.min())

    @property
    def most(self) -> int:
        """The count of the largest shard."""
        return int(self.per_shard or 0) if self.counts is None else int(self.counts.max())

    @cached_property
    def stored(self) -> int:
        """The size of all inputs, with shards of ranks for themselves."""
        if self.counts is None:
            return self.ranks**2 * self.most
        # Counts of a file may be large: Python's numbers add up without end.
        return int(sum(self.counts.ravel().tolist()))

    @cached_property
    def total(self) -> int:
        """The sum over all pairs of different ranks."""
        if self.counts is None:
            return self.ranks * (self.ranks - 1) * self.most
        return self.stored - int(sum(np.diag(self.counts).tolist()))

    def of(self, source: Ints, destination: Ints) -> Ints:
        """Return the counts of some pairs."""
        if self.counts is None:
            return np.full(np.shape(source), self.most, dtype=np.int64)
        return np.asarray(self.counts[source, destination])

    def in_input(self, source: Ints, destination: Ints) -> Ints:
        """Return the offset of each pair's shard in the input of its source."""
        if self.uniform:
            return np.asarray(destination * self.most)
        return np.asarray(self._input[source, destination])

    def in_output(self, source: Ints, destination: Ints) -> Ints:
        """Return the offset of each pair's shard in the output of its destination."""
        if self.uniform:
            return np.asarray(source * self.most)
        return np.asarray(self._output[source, destination])

    def inputs(self) -> Ints:
        """Return the size of every rank's input."""
        return self._sums(1)

    def outputs(self) -> Ints:
        """Return the size of every rank's output."""
        return self._sums(0)

    def _sums(self, axis: int) -> Ints:
        if self.uniform:
            return np.full(self.ranks, self.ranks * self.most, dtype=np.int64)
        return np.asarray(self._matrix().sum(axis=axis))

    def rows(self) -> list[list[int]]:
        """Return source, destination and count of every pair with any, if counts differ."""
        pairs = np.nonzero(self._matrix())
        rows: list[list[int]] = np.column_stack((*pairs, self._matrix()[pairs])).tolist()
        return rows

    def words(self) -> str:
        """Return the count of a shard in words."""
        if self.counts is None:
            return f"{self.most:,} per shard"
        return f"up to {self.most:,} per shard, {self.total:,} between ranks"

    def _title(self) -> str:
        return "of every shard" if self.counts is None else "of each pair"

    def _facts(self) -> dict[str, str]:
        return {"ranks": f"{self.ranks:,}", "shards": self.words()}

    def _columns(self) -> dict[str, list[int]]:
        keys = ("source", "destination", "count")
        return {key: [row[index] for row in self.rows()] for index, key in enumerate(keys)}

    @cached_property
    def _input(self) -> Ints:
        return np.cumsum(self._matrix(), axis=1) - self._matrix()

    @cached_property
    def _output(self) -> Ints:
        return np.cumsum(self._matrix(), axis=0) - self._matrix()

    def _matrix(self) -> Ints:
        return np.zeros((0, 0), dtype=np.int64) if self.counts is None else self.counts


@dataclass(frozen=True, eq=False, repr=False)
class Chunks(PerShard):
    """Number of chunks of each shard; pairs without chunks have nothing to send."""

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.most < 1:
            raise InputError(
                "0 chunks per shard; expected at least one chunk of every shard, or of some pair"
            )

    @classmethod
    def of_demand(cls, demand: Demand, per_shard: int) -> "Chunks":
        """Return chunks of about one size: `per_shard` of a shard of size 1, and one at least."""
        if demand.matrix is None or per_shard < 1:
            return cls(demand.terminals, per_shard)
        return cls(demand.terminals, counts=chunks_of(demand.matrix, per_shard))

    @classmethod
    def from_rows(cls, ranks: int, rows: Sequence[tuple[int, int, int]]) -> "Chunks":
        """Build chunks from source, destination and count of every pair with chunks."""
        if ranks > MAX_UNEVEN:
            raise InputError(
                f"chunks of each pair of {ranks:,} ranks; expected at most {MAX_UNEVEN:,} ranks, "
                "or as many chunks of every pair"
            )
        counts = np.zeros((ranks, ranks), dtype=np.int64)
        for index, (source, to, count) in enumerate(rows):
            known = 0 <= source < ranks and 0 <= to < ranks
            if not known or counts[source, to] or not 1 <= count <= MAX_COUNT:
                raise InputError(
                    f"shard {index}: {count} chunks from rank {source} to rank {to}; expected two "
                    f"of {ranks} ranks, each pair once, and at least one chunk"
                )
            counts[source, to] = count
        return cls(ranks, counts=counts)

    def demand(self) -> Demand:
        """Return the demand if all chunks are equal and the largest shard is 1."""
        if self.counts is None:
            return Demand(self.ranks)
        own = np.eye(self.ranks, dtype=np.bool_)
        return Demand(self.ranks, np.where(own, 0, self.counts) / self.most)

    def times(self, factor: int) -> "Chunks":
        """Return `factor` times as many chunks of each shard."""
        if self.counts is None:
            return Chunks(self.ranks, self.most * factor)
        return Chunks(self.ranks, counts=self.counts * factor)


def chunks_of(demand: Floats, per_shard: int) -> Ints:
    """Return the number of chunks of shards of these sizes, at least one if there is any demand."""
    counts = np.clip(np.rint(demand * per_shard), 1, MAX_COUNT)
    return np.where(demand > 0, counts, 0).astype(np.int64)


def shards_of(demand: Demand, shard_bytes: int) -> PerShard:
    """Return the bytes of every pair's shard, where a shard of size 1 has `shard_bytes`.

    Bytes are rounded to the nearest whole number, halves to even. In the uniform all-to-all a rank
    has a shard for itself, too, as in the libraries.
    """
    if demand.matrix is None:
        return PerShard(demand.terminals, shard_bytes)
    counts = np.rint(demand.matrix * shard_bytes)
    if counts.max() > np.iinfo(np.int64).max // demand.terminals**2:
        raise UsageError(f"shards of {counts.max():g} bytes; expected fewer")
    return PerShard(demand.terminals, counts=counts.astype(np.int64))
