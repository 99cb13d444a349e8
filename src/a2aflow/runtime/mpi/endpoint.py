"""One rank of COMM_WORLD, for `runtime.bench`."""

from pathlib import Path
from typing import Any

from a2aflow.ir.chunks import PerShard
from a2aflow.ir.files.messages import read_rank
from a2aflow.runtime.mpi.alltoall import Alltoall
from a2aflow.runtime.mpi.buffers import Bytes
from a2aflow.runtime.mpi.library import MPI
from a2aflow.runtime.mpi.requests import Sync


class Endpoint:
    """One rank of COMM_WORLD, for `runtime.bench`."""

    def __init__(self, messages: Path, sync: Sync) -> None:
        self._comm = MPI.COMM_WORLD
        part = read_rank(messages, self._comm.Get_rank())
        self._alltoall = Alltoall(part, self._comm, sync)
        self.demand = part.demand
        self.ranks = self._comm.Get_size()
        self.here = (self._comm.Get_rank(),)
        vendor, version = MPI.get_vendor()
        exchange = {"c": "exchange in C", "python": "exchange in Python"}[self._alltoall.engine]
        self.name = f"{vendor} {'.'.join(map(str, version))}, {exchange}"
        self.native_name = "MPI_Alltoall" if part.demand.uniform else "MPI_Alltoallv"

    def exchange(self, send: list[Bytes], recv: list[Bytes], shard: PerShard) -> None:
        """All-to-all by the schedule."""
        self._alltoall(send[0], recv[0], shard)

    def native(self, send: list[Bytes], recv: list[Bytes], shard: PerShard) -> None:
        """All-to-all by MPI itself."""
        native_alltoall(self._comm, send[0], recv[0], shard)

    def barrier(self) -> None:
        """Wait for all ranks."""
        self._comm.Barrier()

    def gather(self, value: Any) -> list[Any]:
        """Return every rank's value."""
        return self._comm.allgather(value)

    def close(self) -> None:
        """Free what MPI holds for the schedule."""
        self._alltoall.free()


def native_alltoall(comm: "MPI.Intracomm", send: Bytes, recv: Bytes, shard: PerShard) -> None:
    """All-to-all by MPI itself, of shards that are alike or not."""
    if shard.counts is None:
        comm.Alltoall(send, recv)
        return
    rank = comm.Get_rank()
    sent, received = shard.counts[rank], shard.counts[:, rank]
    comm.Alltoallv([send, sent.tolist()], [recv, received.tolist()])
