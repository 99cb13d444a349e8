"""Ranks of MPI's COMM_WORLD, and two exchanges among them: a schedule's, and the library's own."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

from alltoall.ir.chunks import PerShard
from alltoall.ir.files.messages import read_rank
from alltoall.runtime.mpi import Alltoall
from alltoall.runtime.mpi.library import MPI
from alltoall.workloads.ranks import Bytes


class MpiRanks:
    """All ranks that were started together."""

    def __init__(self) -> None:
        self.comm = MPI.COMM_WORLD
        self.rank, self.size = self.comm.Get_rank(), self.comm.Get_size()
        vendor, version = MPI.get_vendor()
        self.name = f"{vendor} {'.'.join(map(str, version))}"

    def barrier(self) -> None:
        """Wait for all ranks."""
        self.comm.Barrier()

    def share(self, value: Any) -> list[Any]:
        """Return the values of all ranks."""
        return self.comm.allgather(value)

    def collect(self, value: Any) -> list[Any] | None:
        """Return the values of all ranks at rank 0."""
        return self.comm.gather(value)

    def close(self) -> None:
        """Leave the rest to MPI, which takes leave when the process ends."""


class BySchedule:
    """An exchange by the messages of a schedule."""

    def __init__(self, ranks: MpiRanks, messages: str) -> None:
        self._alltoall = Alltoall(read_rank(Path(messages), ranks.rank), ranks.comm)
        self.name = "schedule, exchange in C"

    def exchange(self, send: Bytes, recv: Bytes, shard: PerShard) -> None:
        """Exchange shards of any sizes by the schedule."""
        self._alltoall(send, recv, shard)

    def close(self) -> None:
        """Free what MPI holds for the schedule."""
        self._alltoall.free()


class ByLibrary:
    """MPI's own exchange, on the world or in a group of ranks."""

    def __init__(self, ranks: MpiRanks, groups: Sequence[Sequence[int]] = ()) -> None:
        self._comm: Any = ranks.comm
        self._rank = ranks.rank
        self._members = np.arange(ranks.size)
        if groups:
            number = next(index for index, group in enumerate(groups) if ranks.rank in group)
            self._members = np.array(groups[number])
            self._comm = ranks.comm.Split(number, groups[number].index(ranks.rank))
        self.name = "MPI_Alltoall(v)"

    def exchange(self, send: Bytes, recv: Bytes, shard: PerShard) -> None:
        """Exchange by MPI_Alltoall, or by MPI_Alltoallv for unequal shards."""
        here, others = np.meshgrid(self._members, self._members, indexing="ij")
        counts = shard.of(here, others)
        if np.all(counts == counts[0, 0]):
            self._comm.Alltoall(send, recv)
            return
        own = int(np.flatnonzero(self._members == self._rank)[0])
        sent, received = counts[own], counts[:, own]
        self._comm.Alltoallv([send, sent.tolist()], [recv, received.tolist()])

    def close(self) -> None:
        """Nothing is held."""
