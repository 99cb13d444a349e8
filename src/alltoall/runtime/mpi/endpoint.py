"""Ranks of COMM_WORLD, for `runtime.bench`."""

import os
from pathlib import Path
from typing import Any

import numpy as np

from alltoall.errors import UsageError
from alltoall.ir.chunks import PerShard
from alltoall.ir.demand import Demand
from alltoall.ir.files.messages import read_rank
from alltoall.runtime.mpi.alltoall import Alltoall, Sync
from alltoall.runtime.mpi.buffers import Bytes
from alltoall.runtime.mpi.library import MPI
from alltoall.runtime.streams import ChunkLayout, Packet, Streams, advance, player


class MpiRank:
    """A rank of COMM_WORLD."""

    def __init__(self) -> None:
        self.comm = MPI.COMM_WORLD
        self.rank, self.size = self.comm.Get_rank(), self.comm.Get_size()
        vendor, version = MPI.get_vendor()
        self.name = f"{vendor} {'.'.join(map(str, version))}"

    def barrier(self) -> None:
        """Wait for all ranks."""
        self.comm.Barrier()

    def gather(self, value: Any) -> list[Any]:
        """Return every rank's value."""
        return self.comm.allgather(value)


def by_library(comm: "MPI.Intracomm", send: Bytes, recv: Bytes, shard: PerShard, rank: int) -> None:
    """Exchange by MPI_Alltoall, or by MPI_Alltoallv for unequal shards."""
    if shard.counts is None:
        comm.Alltoall(send, recv)
        return
    sent, received = shard.counts[rank].tolist(), shard.counts[:, rank].tolist()
    comm.Alltoallv([send, sent], [recv, received])


class _RunRank(MpiRank):
    """Common part of all ranks of a run over MPI."""

    def __init__(self, demand: Demand, way: str) -> None:
        super().__init__()
        self.ranks, self.here, self.demand = self.size, (self.rank,), demand
        self.name += f", {way}"
        self.native_name = "MPI_Alltoall" if demand.uniform else "MPI_Alltoallv"

    def native(self, send: list[Bytes], recv: list[Bytes], shard: PerShard) -> None:
        """Run the library's own all-to-all."""
        by_library(self.comm, send[0], recv[0], shard, self.rank)


class Endpoint(_RunRank):
    """A rank that exchanges shards by its messages."""

    def __init__(self, messages: Path, sync: Sync) -> None:
        comm = MPI.COMM_WORLD
        part = read_rank(messages, comm.Get_rank())
        self._alltoall = Alltoall(part, comm, sync)
        super().__init__(part.demand, "exchange in C")

    def exchange(self, send: list[Bytes], recv: list[Bytes], shard: PerShard) -> None:
        """All-to-all by the schedule."""
        self._alltoall(send[0], recv[0], shard)

    def close(self) -> None:
        """Free the MPI resources of the schedule."""
        self._alltoall.free()


HEAD_BYTES = 24
"""Three numbers before the chunks of a packet."""


class _Mail:
    """Packets between this rank and others, for one exchange that ends with a barrier.

    Sends are synchronous, so that nothing is in transit after the barrier; successive exchanges
    have different tags, since a rank may start the next while others leave.
    """

    def __init__(self, comm: "MPI.Intracomm", tag: int, width: int) -> None:
        self._comm, self._tag, self._width = comm, tag, width
        self._status = MPI.Status()
        self._sent: list[tuple[MPI.Request, Bytes]] = []

    def send(self, peer: int, head: tuple[int, int, int], rows: Bytes) -> None:
        """Send a copy of a packet."""
        numbers = np.array(head, dtype="<i8").view(np.uint8)
        packet = np.concatenate((numbers, rows.reshape(-1)))
        self._sent.append((self._comm.Issend([packet, MPI.BYTE], peer, self._tag), packet))

    def arrived(self) -> list[Packet]:
        """Receive all packets that have arrived."""
        found: list[Packet] = []
        while self._comm.Iprobe(MPI.ANY_SOURCE, self._tag, self._status):
            source = self._status.Get_source()
            data = np.empty(self._status.Get_count(MPI.BYTE), dtype=np.uint8)
            self._comm.Recv([data, MPI.BYTE], source, self._tag)
            first, second, third = data[:HEAD_BYTES].view("<i8").tolist()
            rows = data[HEAD_BYTES:].reshape(-1, self._width)
            found.append(Packet(source, (first, second, third), rows))
        return found

    def sending(self) -> bool:
        """Whether a sent packet has not been received."""
        self._sent = [each for each in self._sent if not each[0].Test()]
        return bool(self._sent)


class StreamsEndpoint(_RunRank):
    """A rank that carries out the instructions of a file."""

    def __init__(self, work: Streams) -> None:
        super().__init__(work.chunks.demand(), "by the instructions of the file")
        self._work, self._exchanges, self._own = work, 0, self.comm.Dup()
        if self.ranks != len(work.ranks):
            raise UsageError(f"{self.ranks} ranks for a program of {len(work.ranks)}")

    def exchange(self, send: list[Bytes], recv: list[Bytes], shard: PerShard) -> None:
        """Exchange by the instructions; `verify` has proven that they end."""
        rank = self.rank
        layout = ChunkLayout(self._work, rank, shard)
        memory = layout.memory(send[0], recv[0])
        mail = _Mail(self._own, self._exchanges % 2, layout.width)
        self._exchanges += 1
        mine = player(self._work, rank, memory, mail)
        threads, leaving = mine.threads(), None
        while leaving is None or not leaving.Test():
            packets = mail.arrived()
            for packet in packets:
                mine.take(packet)
            threads = advance(threads)
            if leaving is None and not threads and not mail.sending():
                leaving = self._own.Ibarrier()
            if not packets:
                os.sched_yield()
        layout.deliver(memory, recv[0])

    def close(self) -> None:
        """Free the communicator."""
        self._own.Free()
