"""The reference runtime: the messages of all ranks in one process."""

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from alltoall.errors import UsageError
from alltoall.ir.chunks import PerShard
from alltoall.ir.demand import Demand
from alltoall.ir.messages import Messages, RankMessages
from alltoall.ir.program import Buffer
from alltoall.ir.schedule import Schedule
from alltoall.runtime.parts import all_parts
from alltoall.runtime.spans import Sizes, Spans, own_spans, sizes_of, spans_of

Bytes = NDArray[np.uint8]


class Alltoall:
    """An all-to-all by one schedule; ranks are rows of two arrays or lists."""

    def __init__(self, work: Schedule | Messages) -> None:
        self._plans = all_parts(work).ranks
        self.ranks = len(self._plans)

    def __call__(
        self,
        send: Sequence[Bytes] | Bytes,
        recv: Sequence[Bytes] | Bytes,
        sizes: Sizes = None,
    ) -> None:
        """Exchange shards: row r of `send` and `recv` are the buffers of rank r.

        `sizes` are the bytes of a shard of size 1, or of the shard of every pair; uneven demands
        need them.
        """
        if len(send) != self.ranks or len(recv) != self.ranks:
            raise UsageError(
                f"{len(send)} and {len(recv)} buffers; expected {self.ranks} rows each"
            )
        shards = [
            sizes_of(plan, sizes, (len(given), len(given)), len(taken))
            for plan, given, taken in zip(self._plans, send, recv, strict=True)
        ]
        layouts = [spans_of(plan, shard) for plan, shard in zip(self._plans, shards, strict=True)]
        memory = [
            {Buffer.INPUT: send[rank], Buffer.OUTPUT: recv[rank], Buffer.SCRATCH: _scratch(layout)}
            for rank, layout in enumerate(layouts)
        ]
        for rank in range(self.ranks):
            given, taken = own_spans(rank, shards[rank])
            recv[rank][taken] = send[rank][given]
        for step in range(self._plans[0].steps):
            self._step(step, layouts, memory)

    def _step(self, step: int, layouts: list[Spans], memory: list[dict[Buffer, Bytes]]) -> None:
        """Read all messages of a step, then write them to their receivers."""
        wire: dict[tuple[int, int], list[Bytes]] = {}
        for plan, layout, buffers in zip(self._plans, layouts, memory, strict=True):
            for message in _messages(plan, step, sends=True):
                runs = layout.of(message)
                wire[plan.rank, int(plan.peer[message])] = [
                    buffers[buffer][begin : begin + count].copy() for buffer, begin, count in runs
                ]
        for plan, layout, buffers in zip(self._plans, layouts, memory, strict=True):
            for message in _messages(plan, step, sends=False):
                arrived = wire.pop((int(plan.peer[message]), plan.rank))
                for (buffer, begin, count), run in zip(layout.of(message), arrived, strict=True):
                    if count:  # The empty run of a message without bytes is in the input.
                        buffers[buffer][begin : begin + count] = run


def _scratch(layout: Spans) -> Bytes:
    return np.zeros(layout.scratch_bytes, dtype=np.uint8)


def _messages(plan: RankMessages, step: int, sends: bool) -> list[int]:
    return [message for message in plan.by_step[step] if plan.sends[message] == sends]


class OneProcess:
    """All ranks in this process, for `runtime.bench`."""

    native_name = None

    def __init__(self, ranks: int, demand: Demand, name: str) -> None:
        self.ranks, self.demand, self.name = ranks, demand, name
        self.here = tuple(range(ranks))

    def native(self, send: list[Bytes], recv: list[Bytes], shard: PerShard) -> None:
        """Do nothing: this runtime has no all-to-all."""

    def barrier(self) -> None:
        """Do nothing."""

    def gather(self, value: Any) -> list[Any]:
        """Return the value of the only process."""
        return [value]

    def close(self) -> None:
        """Do nothing."""


class Endpoint(OneProcess):
    """Ranks that exchange shards by the messages of a schedule."""

    def __init__(self, messages: Messages) -> None:
        super().__init__(len(messages.ranks), messages.demand, "reference, one process")
        self._alltoall = Alltoall(messages)

    def exchange(self, send: list[Bytes], recv: list[Bytes], shard: PerShard) -> None:
        """All-to-all by the schedule."""
        self._alltoall(send, recv, shard)
