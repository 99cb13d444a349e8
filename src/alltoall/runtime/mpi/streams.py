"""Ranks that carry out the instructions of a file over MPI, for `runtime.bench`."""

import os

import numpy as np

from alltoall.errors import UsageError
from alltoall.ir.chunks import PerShard
from alltoall.runtime.mpi.buffers import Bytes
from alltoall.runtime.mpi.endpoint import WorldRank
from alltoall.runtime.mpi.library import MPI
from alltoall.runtime.streams import Layout, Packet, Streams, advance, player

HEAD_BYTES = 24
"""Three numbers before the chunks of a packet."""


class _Mail:
    """Packets between this rank and others, for one exchange: nobody leaves before all have ended.

    A send ends when it is received, so that nothing is under way after the barrier at the end; and
    two exchanges in turn have different tags, as a rank may begin the next while others leave.
    """

    def __init__(self, comm: "MPI.Intracomm", tag: int, width: int) -> None:
        self._comm, self._tag, self._width = comm, tag, width
        self._status = MPI.Status()
        self._sent: list[tuple[MPI.Request, Bytes]] = []

    def send(self, peer: int, head: tuple[int, int, int], rows: Bytes) -> None:
        """Send a packet from memory of its own."""
        numbers = np.array(head, dtype="<i8").view(np.uint8)
        packet = np.concatenate((numbers, rows.reshape(-1)))
        self._sent.append((self._comm.Issend([packet, MPI.BYTE], peer, self._tag), packet))

    def arrived(self) -> list[Packet]:
        """Receive what has come."""
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
        """Whether anything that was sent has not been received."""
        self._sent = [each for each in self._sent if not each[0].Test()]
        return bool(self._sent)


class StreamsEndpoint(WorldRank):
    """A rank that carries out the instructions of a file."""

    def __init__(self, work: Streams) -> None:
        super().__init__(
            MPI.COMM_WORLD.Dup(), work.chunks.demand(), "by the instructions of the file"
        )
        self._work, self._exchanges = work, 0
        if self.ranks != len(work.ranks):
            raise UsageError(f"{self.ranks} ranks for a program of {len(work.ranks)}")

    def exchange(self, send: list[Bytes], recv: list[Bytes], shard: PerShard) -> None:
        """All-to-all by the instructions; that they come to an end is what `verify` has found."""
        rank = self.here[0]
        layout = Layout(self._work, rank, shard)
        memory = layout.memory(send[0], recv[0])
        mail = _Mail(self._comm, self._exchanges % 2, layout.width)
        self._exchanges += 1
        mine = player(self._work, rank, memory, mail)
        threads, leaving = mine.threads(), None
        while leaving is None or not leaving.Test():
            packets = mail.arrived()
            for packet in packets:
                mine.take(packet)
            threads = advance(threads)
            if leaving is None and not threads and not mail.sending():
                leaving = self._comm.Ibarrier()
            if not packets:
                os.sched_yield()
        layout.deliver(memory, recv[0])

    def close(self) -> None:
        """Free the communicator."""
        self._comm.Free()
