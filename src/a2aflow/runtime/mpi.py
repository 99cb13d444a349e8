"""All-to-all by a schedule over MPI; the only file that imports mpi4py.

    alltoall = Alltoall(schedule, MPI.COMM_WORLD)
    alltoall(send, recv)        # as comm.Alltoall(send, recv), as often as you like

Bytes go between the user's buffers and the scratch buffer without copies in between. A message
whose bytes do not lie together is a derived datatype if it is short, and one request per run of
bytes if it is long: with MPICH, long derived datatypes were 1.5 to 12 times slower than runs.
Only persistent requests and plain point-to-point calls of MPI 3 are used, so any MPI will do.
"""

import os
from collections import OrderedDict
from pathlib import Path
from types import TracebackType
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from a2aflow.errors import MissingComponentError, UsageError
from a2aflow.ir.chunks import PerShard
from a2aflow.ir.files.messages import read_rank
from a2aflow.ir.messages import RankMessages
from a2aflow.ir.program import Buffer
from a2aflow.runtime.parts import Work, part_of
from a2aflow.runtime.progress import Progress
from a2aflow.runtime.spans import Sizes, Span, Spans, own_spans, sizes_of, spans_of

try:
    from mpi4py import MPI
except (ImportError, RuntimeError) as error:  # RuntimeError: mpi4py is here, libmpi is not
    raise MissingComponentError(
        f"MPI cannot be used: {error}; install it with: pip install 'a2aflow[mpi]'"
    ) from error

__all__ = ["MPI", "Alltoall", "Endpoint"]

Sync = Literal["dataflow", "step"]
Bytes = NDArray[np.uint8]
Key = tuple[int, int, int | bytes]
"""The addresses of two buffers, and the sizes of shards."""

GATHER_BYTES = 16 * 1024
"""Messages of up to this many bytes travel as one, wherever their bytes lie."""

MAX_BINDINGS = 8
"""For how many pairs of buffers requests are kept; the one not used for longest goes first."""


class Alltoall:
    """An all-to-all by one schedule among the ranks of one communicator.

    Rank r plays `topology.terminals[r]`, and ranks talk along the links of the topology only.
    Making and freeing one are collective, as is every call.
    """

    def __init__(self, work: Work, comm: "MPI.Intracomm", sync: Sync = "dataflow") -> None:
        ranks = work.chunks.ranks
        if comm.Get_size() != ranks:
            raise UsageError(
                f"a communicator of {comm.Get_size()} ranks for a schedule of {ranks}; "
                f"expected one rank per terminal: start {ranks} ranks (mpiexec -n {ranks}), and "
                "start them with the mpiexec of the MPI that mpi4py uses"
            )
        if sync not in ("dataflow", "step"):
            raise UsageError(f"sync {sync!r}; expected 'dataflow' or 'step'")
        self._sync = sync
        self._plan = part_of(work, comm.Get_rank())
        # A communicator of our own: our messages cannot be taken for the user's.
        self._comm = comm.Dup()
        self._scratch: Bytes = np.empty(0, dtype=np.uint8)
        self._bindings: OrderedDict[Key, _Binding] = OrderedDict()

    def __call__(self, send: NDArray[Any], recv: NDArray[Any], sizes: Sizes = None) -> None:
        """Send shard d of `send` to rank d, and receive the shard from rank s as shard s of `recv`.

        In mpi4py's order. Contiguous arrays of one type that do not overlap. If `sizes` is left
        out, both are of one size, a multiple of the number of ranks; else it is the bytes of a
        shard of size 1, or a matrix with the bytes of every pair, the same at all ranks.
        """
        given, taken = _bytes_of(send, "send"), _bytes_of(recv, "receive")
        if send.dtype != recv.dtype:
            raise UsageError(
                f"the send buffer is of {send.dtype}, the receive buffer of {recv.dtype}; expected "
                "one type (view one of them as the other's)"
            )
        if not recv.flags.writeable or np.may_share_memory(given, taken):
            raise UsageError("the receive buffer must be writable, and apart from the send buffer")
        shard = sizes_of(self._plan, sizes, (given.nbytes, send.size), taken.nbytes)
        own, to = own_spans(self._plan.rank, shard)
        binding = self._binding(given, taken, shard)
        taken[to] = given[own]
        if self._sync == "dataflow":
            self._flow(binding)
        else:
            self._march(binding)

    def free(self) -> None:
        """Free the requests and the communicator; collective, and the last call."""
        while self._bindings:
            self._bindings.popitem()[1].free()
        self._comm.Free()

    def __enter__(self) -> "Alltoall":
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        value: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        # After an error elsewhere the others may never come to a collective call.
        if kind is None:
            self.free()

    def _binding(self, send: Bytes, recv: Bytes, shard: PerShard) -> "_Binding":
        """Return requests for these addresses and these sizes, new ones only if there are none."""
        sizes = shard.most if shard.counts is None else shard.counts.tobytes()
        key = (_address(send), _address(recv), sizes)
        found = self._bindings.get(key)
        if found is None:
            while len(self._bindings) >= MAX_BINDINGS:
                self._bindings.popitem(last=False)[1].free()
            spans = spans_of(self._plan, shard)
            if self._scratch.nbytes < spans.scratch_bytes:
                self._scratch = np.empty(spans.scratch_bytes, dtype=np.uint8)
            found = _Binding(self._comm, self._plan, spans, (send, recv, self._scratch))
            self._bindings[key] = found
        self._bindings.move_to_end(key)
        return found

    def _flow(self, binding: "_Binding") -> None:
        """Start every message as soon as what it waits for has finished."""
        progress = Progress(self._plan, binding.counts)
        ready = progress.ready()
        while progress.unfinished:
            binding.start(ready)
            done = _wait_some(binding.requests)
            ready = progress.finish(binding.message[request] for request in done)

    def _march(self, binding: "_Binding") -> None:
        """Finish each step everywhere before the next one starts."""
        for messages in self._plan.by_step:
            binding.start(messages)
            left = sum(binding.counts[message] for message in messages)
            while left:
                left -= len(_wait_some(binding.requests))
            self._comm.Barrier()


class _Binding:
    """Persistent requests for one pair of buffers, and scratch that outlives them."""

    def __init__(
        self,
        comm: "MPI.Intracomm",
        plan: RankMessages,
        spans: Spans,
        buffers: tuple[Bytes, Bytes, Bytes],
    ) -> None:
        # By address: a request that held the user's arrays would keep them alive.
        self._bases = [_address(buffer) for buffer in buffers]
        self._scratch = buffers[Buffer.SCRATCH]
        self._types: list[MPI.Datatype] = []
        self._groups: list[list[MPI.Prequest]] = []
        ends = zip(plan.sends.tolist(), plan.peer.tolist(), plan.step.tolist(), strict=True)
        for message, (sends, peer, step) in enumerate(ends):
            init = comm.Send_init if sends else comm.Recv_init
            specs = self._specs(spans.of(message))
            self._groups.append([init(spec, peer, step) for spec in specs])
        self.counts = [len(group) for group in self._groups]
        self.requests = [request for group in self._groups for request in group]
        self.message = np.repeat(np.arange(plan.messages), self.counts).tolist()

    def start(self, messages: "list[int] | range") -> None:
        """Start messages. Runs of one message share a tag: they match in the order of starting."""
        for message in messages:
            for request in self._groups[message]:
                request.Start()

    def free(self) -> None:
        """Free requests and datatypes."""
        for request in self.requests:
            request.Free()
        for datatype in self._types:
            datatype.Free()

    def _specs(self, runs: list[Span]) -> list[Any]:
        """Return what MPI is to move: one datatype over all runs, or each run."""
        places = [(self._bases[buffer] + offset, count) for buffer, offset, count in runs]
        if len(runs) == 1 or sum(count for _, count in places) > GATHER_BYTES:
            return [[MPI.buffer.fromaddress(*place), MPI.BYTE] for place in places]
        datatype = MPI.BYTE.Create_hindexed(
            [count for _, count in places], [address for address, _ in places]
        )
        self._types.append(datatype.Commit())
        return [[MPI.BOTTOM, 1, datatype]]


def _wait_some(requests: "list[MPI.Prequest]") -> list[int]:
    """Return the requests that have finished, at least one.

    Not by `Waitsome`: MPICH's never yields, and took 10 times as long with 4 ranks on a core.
    """
    while not (done := MPI.Request.Testsome(requests)):
        os.sched_yield()
    return done


def _bytes_of(array: NDArray[Any], name: str) -> Bytes:
    """Return a buffer as bytes, in place."""
    if not isinstance(array, np.ndarray) or array.dtype.hasobject:
        raise UsageError(f"the {name} buffer is not a numpy array of plain values")
    if not array.flags.c_contiguous:
        raise UsageError(
            f"the {name} buffer is not contiguous; give one that is (numpy.ascontiguousarray)"
        )
    return array.reshape(-1).view(np.uint8)


def _address(array: Bytes) -> int:
    return int(array.__array_interface__["data"][0])


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
        self.name = f"{vendor} {'.'.join(map(str, version))}"
        self.native_name = "MPI_Alltoall" if part.demand.uniform else "MPI_Alltoallv"

    def exchange(self, send: list[Bytes], recv: list[Bytes], shard: PerShard) -> None:
        """All-to-all by the schedule."""
        self._alltoall(send[0], recv[0], shard)

    def native(self, send: list[Bytes], recv: list[Bytes], shard: PerShard) -> None:
        """All-to-all by MPI itself."""
        if shard.counts is None:
            self._comm.Alltoall(send[0], recv[0])
        else:
            sent, received = shard.counts[self.here[0]], shard.counts[:, self.here[0]]
            self._comm.Alltoallv([send[0], sent.tolist()], [recv[0], received.tolist()])

    def barrier(self) -> None:
        """Wait for all ranks."""
        self._comm.Barrier()

    def gather(self, value: Any) -> list[Any]:
        """Return every rank's value."""
        return self._comm.allgather(value)

    def close(self) -> None:
        """Free what MPI holds for the schedule."""
        self._alltoall.free()
