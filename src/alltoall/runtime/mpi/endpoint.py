"""Ranks of COMM_WORLD, for `runtime.bench`."""

from pathlib import Path
from typing import Any

from alltoall.ir.chunks import PerShard
from alltoall.ir.demand import Demand
from alltoall.ir.files.messages import read_rank
from alltoall.runtime.mpi.alltoall import Alltoall
from alltoall.runtime.mpi.buffers import Bytes
from alltoall.runtime.mpi.library import MPI
from alltoall.runtime.mpi.requests import Sync


class WorldRank:
    """What any rank of a run over MPI has, however it exchanges shards."""

    def __init__(self, comm: "MPI.Intracomm", demand: Demand, way: str) -> None:
        self._comm, self.demand = comm, demand
        self.ranks = comm.Get_size()
        self.here = (comm.Get_rank(),)
        vendor, version = MPI.get_vendor()
        self.name = f"{vendor} {'.'.join(map(str, version))}, {way}"
        self.native_name = "MPI_Alltoall" if demand.uniform else "MPI_Alltoallv"

    def native(self, send: list[Bytes], recv: list[Bytes], shard: PerShard) -> None:
        """All-to-all by MPI itself, of shards that are alike or not."""
        if shard.counts is None:
            self._comm.Alltoall(send[0], recv[0])
            return
        sent, received = shard.counts[self.here[0]], shard.counts[:, self.here[0]]
        self._comm.Alltoallv([send[0], sent.tolist()], [recv[0], received.tolist()])

    def barrier(self) -> None:
        """Wait for all ranks."""
        self._comm.Barrier()

    def gather(self, value: Any) -> list[Any]:
        """Return every rank's value."""
        return self._comm.allgather(value)


class Endpoint(WorldRank):
    """A rank that exchanges shards by its messages."""

    def __init__(self, messages: Path, sync: Sync) -> None:
        comm = MPI.COMM_WORLD
        part = read_rank(messages, comm.Get_rank())
        self._alltoall = Alltoall(part, comm, sync)
        exchange = {"c": "exchange in C", "python": "exchange in Python"}[self._alltoall.engine]
        super().__init__(comm, part.demand, exchange)

    def exchange(self, send: list[Bytes], recv: list[Bytes], shard: PerShard) -> None:
        """All-to-all by the schedule."""
        self._alltoall(send[0], recv[0], shard)

    def close(self) -> None:
        """Free what MPI holds for the schedule."""
        self._alltoall.free()
