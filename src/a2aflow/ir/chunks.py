"""`Chunks`: into how many chunks the shard of each pair is cut, and where they lie in buffers.

A rank's input buffer holds the shards that it sends, by destination; its output buffer those that
it receives, by source. Both are counted in chunks, so the shard of a pair begins where the chunks
of the pairs before it end.
"""

from dataclasses import dataclass
from functools import cached_property

import numpy as np

from a2aflow.errors import InputError
from a2aflow.ir.arrays import Floats, Ints, frozen
from a2aflow.ir.demand import Demand

MAX_COUNT = 2**62
"""Chunks of one shard beyond which sums of counts could overflow."""


@dataclass(frozen=True, eq=False)
class Chunks:
    """`per_shard` chunks of every pair, also of a rank with itself, or `counts` of each.

    Exactly one of the two is given: of thousands of ranks that are all alike, a matrix would be the
    largest thing in memory. Pairs without chunks have nothing to send.
    """

    ranks: int
    per_shard: int | None = None
    counts: Ints | None = None

    def __post_init__(self) -> None:
        if (self.per_shard is None) == (self.counts is None):
            raise InputError("chunks need a number per shard, or one of each pair, not both")
        if self.counts is None:
            least = most = int(self.per_shard or 0)
        else:
            object.__setattr__(self, "counts", frozen(self.counts, np.int64))
            if self.counts.shape != (self.ranks, self.ranks) or not self.counts.any():
                raise InputError(
                    f"chunks of shape {self.counts.shape}; expected {self.ranks} rows and columns, "
                    "and a chunk in one of them at least"
                )
            least, most = int(self.counts.min()), int(self.counts.max())
        floor = 0 if self.per_shard is None else 1
        if not floor <= least <= most <= MAX_COUNT:
            wrong = least if least < floor else most
            raise InputError(f"{wrong} chunks per shard; expected {floor} to {MAX_COUNT}")

    @classmethod
    def of_demand(cls, demand: Demand, per_shard: int) -> "Chunks":
        """Return chunks of about one size: `per_shard` of a shard of size 1, and one at least."""
        alike = cls(demand.terminals, per_shard)
        if demand.matrix is None:
            return alike
        return cls(demand.terminals, counts=chunks_of(demand.matrix, per_shard))

    @property
    def uniform(self) -> bool:
        """Whether every pair has as many."""
        return self.counts is None

    @property
    def most(self) -> int:
        """The chunks of the shard that has most."""
        return int(self.per_shard or 0) if self.counts is None else int(self.counts.max())

    @cached_property
    def total(self) -> int:
        """All chunks that go from one rank to another."""
        if self.counts is None:
            return self.ranks * (self.ranks - 1) * self.most
        # Counts of a file may be large: whole numbers of any size add up.
        return int(sum(self.counts.ravel().tolist()) - sum(np.diag(self.counts).tolist()))

    def of(self, source: Ints, destination: Ints) -> Ints:
        """Return the number of chunks of some pairs."""
        if self.counts is None:
            return np.full(np.shape(source), self.most, dtype=np.int64)
        return np.asarray(self.counts[source, destination])

    def in_input(self, source: Ints, destination: Ints) -> Ints:
        """Return the offset of each pair's first chunk in the input of its source."""
        if self._input is None:
            return np.asarray(destination * self.most)
        return np.asarray(self._input[source, destination])

    def in_output(self, source: Ints, destination: Ints) -> Ints:
        """Return the offset of each pair's first chunk in the output of its destination."""
        if self._output is None:
            return np.asarray(source * self.most)
        return np.asarray(self._output[source, destination])

    def inputs(self) -> Ints:
        """Return the size of every rank's input."""
        if self.counts is None:
            return np.full(self.ranks, self.ranks * self.most, dtype=np.int64)
        return np.asarray(self.counts.sum(axis=1))

    def outputs(self) -> Ints:
        """Return the size of every rank's output."""
        if self.counts is None:
            return self.inputs()
        return np.asarray(self.counts.sum(axis=0))

    def times(self, factor: int) -> "Chunks":
        """Return chunks that are each cut into `factor` again."""
        if self.counts is None:
            return Chunks(self.ranks, self.most * factor)
        return Chunks(self.ranks, counts=self.counts * factor)

    @cached_property
    def _input(self) -> Ints | None:
        return None if self.counts is None else np.cumsum(self.counts, axis=1) - self.counts

    @cached_property
    def _output(self) -> Ints | None:
        return None if self.counts is None else np.cumsum(self.counts, axis=0) - self.counts


def chunks_of(demand: Floats, per_shard: int) -> Ints:
    """Return into how many chunks shards of these sizes are cut: at least one where any demand."""
    counts = np.clip(np.rint(demand * per_shard), 1, MAX_COUNT)
    return np.where(demand > 0, counts, 0).astype(np.int64)
