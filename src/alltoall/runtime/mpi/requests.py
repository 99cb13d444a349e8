"""The exchange of one rank in Python, by persistent requests and plain calls of MPI 3."""

import os
from collections import OrderedDict
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Literal

import numpy as np

from alltoall.ir.arrays import Ints
from alltoall.ir.chunks import PerShard
from alltoall.ir.messages import RankMessages
from alltoall.ir.program import Buffer
from alltoall.runtime.mpi.buffers import Bytes, address_of
from alltoall.runtime.mpi.library import MPI
from alltoall.runtime.spans import Span, Spans, own_spans, spans_of

BATCH_REQUESTS = 8
"""Least requests of a batch of sends to a peer."""


def let_go(plan: RankMessages, requests: Sequence[int]) -> dict[int, int]:
    """Return, by send, the later send that waits until it is received.

    The later one starts a batch to a peer; the earlier one ends the batch two before.
    """
    found: dict[int, int] = {}
    batches: dict[int, tuple[int, int | None, int | None]] = {}
    for message in np.flatnonzero(plan.sends).tolist():
        peer = int(plan.peer[message])
        count, last, before = batches.get(peer, (0, None, None))
        if count >= BATCH_REQUESTS:
            if before is not None:
                found[before] = message
            count, before = 0, last
        batches[peer] = (count + requests[message], message, before)
    return found


class Progress:
    """Counters of the dependencies and the requests of each message."""

    def __init__(
        self, plan: RankMessages, requests: Sequence[int], let_go: Mapping[int, int]
    ) -> None:
        self._followers, self._next_alike, self._let_go = plan.followers, plan.next_alike, let_go
        self._waiting = list(plan.waiting)
        for message in (*self._next_alike, *let_go.values()):
            if message is not None:
                self._waiting[message] += 1
        self._requests = list(requests)
        self.unfinished = sum(requests)

    def ready(self) -> list[int]:
        """Return the messages without dependencies, which start first."""
        return self._started([each for each, count in enumerate(self._waiting) if count == 0])

    def finish(self, messages: Iterable[int]) -> list[int]:
        """Note one finished request of each of `messages`; return the messages that may start."""
        free: list[int] = []
        for message in messages:
            self.unfinished -= 1
            self._requests[message] -= 1
            if self._requests[message] == 0:
                freed = [*self._followers[message], *self._let_go_by(message)]
                free += [each for each in freed if self._meet(each)]
        return self._started(free)

    def _started(self, messages: list[int]) -> list[int]:
        """Return messages that start now, with those that waited for their turn only."""
        for message in messages:
            after = self._next_alike[message]
            if after is not None and self._meet(after):
                messages.append(after)
        return messages

    def _let_go_by(self, message: int) -> Iterable[int]:
        return (self._let_go[message],) if message in self._let_go else ()

    def _meet(self, message: int) -> bool:
        """Count down a dependency of a message; return whether it may start."""
        self._waiting[message] -= 1
        return self._waiting[message] == 0


Sync = Literal["dataflow", "step"]
Key = tuple[int, int, int | bytes]
"""The addresses of two buffers, and the sizes of shards."""

GATHER_BYTES = 16 * 1024
"""Messages of up to this many bytes travel as one, wherever their bytes lie."""

MAX_BINDINGS = 8
"""Pairs of buffers whose requests are cached; the least recently used is freed first."""


class InPython:
    """The same by persistent requests.

    A message whose bytes do not lie together is a derived datatype if it is short, and one request
    per run of bytes if it is long: with MPICH, long derived datatypes were 1.5 to 12 times slower
    than runs.
    """

    def __init__(self, plan: RankMessages, comm: "MPI.Intracomm", sync: Sync) -> None:
        self._plan, self._comm, self._sync = plan, comm, sync
        self._scratch: Bytes = np.empty(0, dtype=np.uint8)
        self._bindings: OrderedDict[Key, _Binding] = OrderedDict()
        self._unpack: tuple[Bytes, Bytes, list[tuple[slice, slice]]] | None = None

    def start(
        self, given: Bytes, taken: Bytes, shard: PerShard, offsets: tuple[Ints, Ints]
    ) -> None:
        """Start an all-to-all; shards with gaps between them are copied together."""
        rank, others = self._plan.rank, np.arange(shard.ranks)
        here = np.full(shard.ranks, rank)
        ends = (shard.in_input(here, others), shard.in_output(others, here))
        counts = (shard.of(here, others), shard.of(others, here))
        self._unpack = None
        if not np.array_equal(ends[0], offsets[0]):
            given = _packed(given, _moves(offsets[0], ends[0], counts[0]), int(counts[0].sum()))
        if not np.array_equal(ends[1], offsets[1]):
            packed = np.empty(int(counts[1].sum()), dtype=np.uint8)
            self._unpack = (packed, taken, _moves(ends[1], offsets[1], counts[1]))
            taken = packed
        own, to = own_spans(rank, shard)
        taken[to] = given[own]
        self._kept = (given, taken)
        self._binding = self._bound(given, taken, shard)
        self._progress = self._binding.progress()
        if self._sync == "dataflow":
            self._binding.start(self._progress.ready())

    def test(self) -> bool:
        """Make progress; wait only for a step with a barrier."""
        if self._sync == "step":
            self.wait()
        elif self._progress.unfinished:
            self._go_on(MPI.Request.Testsome(self._binding.requests) or [])
        return self._over()

    def wait(self) -> None:
        """Start every message once its dependencies have finished, or step by step."""
        if self._sync == "step":
            self._march()
        while self._progress.unfinished:
            self._go_on(_wait_some(self._binding.requests))
        self._over()

    def _go_on(self, finished: list[int]) -> None:
        message = self._binding.message
        self._binding.start(self._progress.finish(message[request] for request in finished))

    def _over(self) -> bool:
        if self._progress.unfinished:
            return False
        if self._unpack is not None:
            packed, taken, moves = self._unpack
            for source, target in moves:
                taken[target] = packed[source]
            self._unpack = None
        return True

    def _march(self) -> None:
        """Finish each step everywhere before the next one starts."""
        for messages in self._plan.by_step:
            self._binding.start(messages)
            left = sum(self._binding.counts[message] for message in messages)
            self._progress.unfinished -= left
            while left:
                left -= len(_wait_some(self._binding.requests))
            self._comm.Barrier()

    def free(self) -> None:
        """Free the requests."""
        while self._bindings:
            self._bindings.popitem()[1].free()

    def _bound(self, send: Bytes, recv: Bytes, shard: PerShard) -> "_Binding":
        """Return the requests for these addresses and sizes, cached if possible."""
        sizes = shard.most if shard.counts is None else shard.counts.tobytes()
        key = (address_of(send), address_of(recv), sizes)
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
        self._bases = [address_of(buffer) for buffer in buffers]
        self._scratch = buffers[Buffer.SCRATCH]
        self._types: list[MPI.Datatype] = []
        # Of any type: to mpi4py's stubs, what `Ssend_init` returns is not persistent.
        self._groups: list[list[Any]] = []
        specs = [self._specs(spans.of(message)) for message in range(plan.messages)]
        self.counts = [len(each) for each in specs]
        self._plan, self._let_go = plan, let_go(plan, self.counts)
        ends = zip(plan.sends.tolist(), plan.peer.tolist(), plan.step.tolist(), strict=True)
        for message, (sends, peer, step) in enumerate(ends):
            send = comm.Ssend_init if message in self._let_go else comm.Send_init
            init = send if sends else comm.Recv_init
            self._groups.append([init(spec, peer, step) for spec in specs[message]])
        self.requests = [request for group in self._groups for request in group]
        self.message = np.repeat(np.arange(plan.messages), self.counts).tolist()

    def progress(self) -> Progress:
        """Return the counters that start each message of a call."""
        return Progress(self._plan, self.counts, self._let_go)

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
        """Return the datatypes to move: one over all runs, or one per run."""
        places = [(self._bases[buffer] + offset, count) for buffer, offset, count in runs]
        if len(runs) == 1 or sum(count for _, count in places) > GATHER_BYTES:
            return [[MPI.buffer.fromaddress(*place), MPI.BYTE] for place in places]
        datatype = MPI.BYTE.Create_hindexed(
            [count for _, count in places], [address for address, _ in places]
        )
        self._types.append(datatype.Commit())
        return [[MPI.BOTTOM, 1, datatype]]


def _wait_some(requests: "list[MPI.Prequest]") -> list[int]:
    """Wait for at least one request; return the finished ones.

    Not by `Waitsome`: MPICH's never yields, and took 10 times as long with 4 ranks on a core.
    """
    while not (done := MPI.Request.Testsome(requests)):
        os.sched_yield()
    return done


def _moves(sources: Ints, targets: Ints, counts: Ints) -> list[tuple[slice, slice]]:
    rows = zip(sources.tolist(), targets.tolist(), counts.tolist(), strict=True)
    return [(slice(source, source + n), slice(to, to + n)) for source, to, n in rows]


def _packed(buffer: Bytes, moves: list[tuple[slice, slice]], size: int) -> Bytes:
    found = np.empty(size, dtype=np.uint8)
    for source, target in moves:
        found[target] = buffer[source]
    return found
