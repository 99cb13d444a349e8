"""An all-to-all among the ranks of a communicator, by the engine."""

from dataclasses import dataclass
from types import TracebackType
from typing import Any, Literal

import numpy as np

from alltoall.errors import MissingComponentError, UsageError
from alltoall.ir.arrays import Ints
from alltoall.ir.chunks import PerShard
from alltoall.ir.messages import RankMessages
from alltoall.runtime.engine.binding import LARGEST_SHARD, EngineExchange
from alltoall.runtime.engine.build import Engine, built_for
from alltoall.runtime.mpi.buffers import Bytes, buffer_of, copy_of, require_fit
from alltoall.runtime.mpi.library import MPI
from alltoall.runtime.mpiexec import LIBRARIES, find_mpi
from alltoall.runtime.parts import Given, is_spec, messages_for, part_of
from alltoall.runtime.spans import Sizes, sizes_of

Sync = Literal["dataflow", "step"]

Layout = tuple[PerShard, tuple[Ints, Ints]]
"""The bytes of all shards, and the offsets of those to and from each rank."""

Lengths = tuple[tuple[int, int], int]
"""Of the buffers of a call: bytes and items to send, and bytes to receive."""


class Alltoall:
    """An all-to-all by one schedule among the ranks of one communicator.

    Rank r plays `topology.terminals[r]`, and ranks talk along the links of the topology only.
    Making and freeing one are collective, as is every call. A SPEC is solved by rank 0.
    """

    def __init__(
        self, work: Given | RankMessages, comm: "MPI.Intracomm", sync: Sync = "dataflow"
    ) -> None:
        if sync not in ("dataflow", "step"):
            raise UsageError(f"sync {sync!r}; expected 'dataflow' or 'step'")
        self._plan = _part(work, comm)
        ranks = self._plan.chunks.ranks
        if comm.Get_size() != ranks:
            raise UsageError(
                f"a communicator of {comm.Get_size()} ranks for a schedule of {ranks}; "
                f"expected one rank per terminal: start {ranks} ranks (mpiexec -n {ranks}), and "
                "start them with the mpiexec of the MPI that mpi4py uses"
            )
        # A communicator of our own: our messages cannot be taken for the user's.
        self._comm = comm.Dup()
        handle = MPI._handleof(self._comm), MPI._sizeof(MPI.Comm)
        library = _engine(self._comm).engine
        self._exchange = EngineExchange(library, self._plan, *handle, sync == "step")
        self._pending: Pending | None = None
        self._last: tuple[int | None, Lengths] | None = None
        self._layout: Layout

    def __call__(self, send: Any, recv: Any, sizes: Sizes = None) -> None:
        """Send shard d of `send` to rank d, and receive the shard from rank s as shard s of `recv`.

        Arguments are in mpi4py's order and form: an array, or a list of an array, an optional count
        and a datatype; `send` may be `MPI.IN_PLACE`. Buffers are contiguous, of one type, and do
        not overlap. Without `sizes`, both have one size, a multiple of the number of ranks; `sizes`
        is the bytes of a shard of size 1, or a matrix with the bytes of every pair, equal at all
        ranks.
        """
        self.start(send, recv, sizes).wait()

    def v(self, send: Any, recv: Any, sizes: Sizes = None) -> None:
        """Send `counts` items to each rank, as `comm.Alltoallv(send, recv)` does.

        Both are lists `[array, counts, displacements, datatype]`, the last two optional. Ranks
        exchange their counts, unless `sizes` has the bytes of every pair.
        """
        self.start_v(send, recv, sizes).wait()

    def start(self, send: Any, recv: Any, sizes: Sizes = None) -> "Pending":
        """Start a call; buffers must not be touched before `wait()` on the result."""
        taken = buffer_of(recv, "receive")
        given = copy_of(taken) if send is MPI.IN_PLACE else buffer_of(send, "send")
        for side in (given, taken):
            if side.counts is not None:
                raise UsageError("counts of each rank are for Alltoall.v, as for comm.Alltoallv")
        require_fit(given, taken)
        lengths = ((given.bytes.nbytes, given.items), taken.bytes.nbytes)
        key = (sizes, lengths) if isinstance(sizes, int | None) else None
        if key is None or key != self._last:  # else all is where it was in the call before
            self._layout = self._laid_out(sizes_of(self._plan, sizes, *lengths))
            self._last = key
        return self._begin(given.bytes, taken.bytes, *self._layout)

    def _laid_out(self, shard: PerShard) -> Layout:
        """Return sizes with consecutive offsets of the shards to and from each rank."""
        here, others = np.full(shard.ranks, self._plan.rank), np.arange(shard.ranks)
        return shard, (shard.in_input(here, others), shard.in_output(others, here))

    def start_v(self, send: Any, recv: Any, sizes: Sizes = None) -> "Pending":
        """Start a call of `v`; buffers must not be touched before `wait()` on the result."""
        taken = buffer_of(recv, "receive")
        given = copy_of(taken) if send is MPI.IN_PLACE else buffer_of(send, "send")
        require_fit(given, taken)
        ranks = self._plan.chunks.ranks
        sent, received = given.shards(ranks), taken.shards(ranks)
        if sizes is None:
            matrix = np.empty((ranks, ranks), dtype=np.int64)
            self._comm.Allgather(sent[0], matrix)
            sizes = matrix
        # What lies together in either buffer is checked as if that were all of it.
        lengths = ((int(sent[0].sum()), 1), int(received[0].sum()))
        shard = sizes_of(self._plan, sizes, *lengths)
        return self._begin(given.bytes, taken.bytes, shard, (sent[1], received[1]))

    def free(self) -> None:
        """Free the exchange and the communicator; collective, and the last call."""
        self._exchange.free()
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

    def _begin(
        self, given: Bytes, taken: Bytes, shard: PerShard, offsets: tuple[Ints, Ints]
    ) -> "Pending":
        if self._pending is not None and not self._pending.done:
            raise UsageError("the call before is not over; wait for it, or make a second Alltoall")
        if shard.most > LARGEST_SHARD:
            raise UsageError(
                f"a shard of {shard.most:,} bytes; expected at most {LARGEST_SHARD:,}: send it in "
                "parts, or by comm.Alltoall"
            )
        self._exchange.start(given, taken, shard, offsets)
        self._pending = Pending(self._exchange, (given, taken))
        return self._pending


@dataclass(eq=False)
class Pending:
    """A started call. It makes progress only in `test` and `wait`."""

    _exchange: EngineExchange
    _buffers: tuple[Bytes, Bytes]
    done: bool = False

    def test(self) -> bool:
        """Make progress without waiting; return whether the call is complete."""
        self.done = self.done or self._exchange.test()
        return self.done

    def wait(self) -> None:
        """Wait until the call is complete."""
        if not self.done:
            self._exchange.wait()
            self.done = True


def _part(work: Given | RankMessages, comm: "MPI.Intracomm") -> RankMessages:
    """Return this rank's messages; one rank makes the schedule of a SPEC for all."""
    rank = comm.Get_rank()
    if isinstance(work, RankMessages):
        return work
    if is_spec(work):
        parts = messages_for(work).ranks if rank == 0 else None
        if parts is not None and len(parts) != comm.Get_size():
            # Every rank is to get one, of which it finds out that it does not fit.
            parts = (parts[0],) * comm.Get_size()
        found: RankMessages = comm.scatter(parts)
        return found
    messages = messages_for(work)
    return part_of(messages, min(rank, len(messages.ranks) - 1))


def _engine(comm: "MPI.Intracomm") -> Engine:
    """Return the engine, built if some rank does not have it; collective."""
    vendor = MPI.get_vendor()[0].lower()
    kind = "openmpi" if "open mpi" in vendor else "mpich"
    found, problem = built_for(LIBRARIES[kind]), ""
    if not comm.allreduce(found is not None, MPI.LAND):
        for turn in range(2):  # what the first builds, others may find
            if turn == min(comm.rank, 1):
                try:
                    found = built_for(LIBRARIES[kind]) or find_mpi(kind).engine()
                except MissingComponentError as error:
                    problem = str(error)
            comm.Barrier()
        problem = next(filter(None, comm.allgather(problem)), "")
    if found is None or problem:
        raise MissingComponentError(problem)
    return found
