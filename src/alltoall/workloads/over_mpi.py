"""Ranks of MPI's COMM_WORLD, and two exchanges among them: a schedule's, and the library's own."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

from alltoall.ir.chunks import PerShard
from alltoall.ir.files.messages import read_rank
from alltoall.runtime.mpi import Alltoall
from alltoall.runtime.mpi.endpoint import MpiRank, by_library
from alltoall.workloads.ranks import Bytes


class MpiRanks(MpiRank):
    """All ranks that were started together."""

    def collect(self, value: Any) -> list[Any] | None:
        """Return the values of all ranks at rank 0."""
        return self.comm.gather(value)

    def close(self) -> None:
        """Leave the rest to MPI, which takes leave when the process ends."""


class BySchedule:
    """An exchange by the messages of a schedule."""

    name = "schedule, exchange in C"

    def __init__(self, ranks: MpiRanks, messages: str) -> None:
        self._alltoall = Alltoall(read_rank(Path(messages), ranks.rank), ranks.comm)

    def exchange(self, send: Bytes, recv: Bytes, shard: PerShard) -> None:
        """Exchange shards of any sizes by the schedule."""
        self._alltoall(send, recv, shard)

    def close(self) -> None:
        """Free what MPI holds for the schedule."""
        self._alltoall.free()


class ByLibrary:
    """MPI's own exchange, on the world or in a group of ranks."""

    name = "MPI_Alltoall(v)"

    def __init__(self, ranks: MpiRanks, groups: Sequence[Sequence[int]] = ()) -> None:
        self._comm: Any = ranks.comm
        self._members: Sequence[int] | None = None
        self._rank = ranks.rank
        if groups:
            number = next(index for index, group in enumerate(groups) if ranks.rank in group)
            self._members = groups[number]
            self._rank = self._members.index(ranks.rank)
            self._comm = ranks.comm.Split(number, self._rank)

    def exchange(self, send: Bytes, recv: Bytes, shard: PerShard) -> None:
        """Exchange by MPI_Alltoall, or by MPI_Alltoallv for unequal shards."""
        if self._members is not None:
            counts = shard.of(*np.meshgrid(self._members, self._members, indexing="ij"))
            alike = np.all(counts == counts[0, 0])
            shard = PerShard(len(counts), *((int(counts[0, 0]),) if alike else (None, counts)))
        by_library(self._comm, send, recv, shard, self._rank)

    def close(self) -> None:
        """Nothing is held."""
