"""The plans of all ranks in one process: what the runtimes must do, without any runtime."""

from typing import Any

import numpy as np
from numpy.typing import NDArray

from a2aflow.errors import UsageError
from a2aflow.ir.program import Buffer
from a2aflow.ir.schedule import Schedule
from a2aflow.lowering.programs.messages import Plan, placement_of, plan_rank
from a2aflow.runtime.spans import Spans, shard_bytes_of, spans_of

Bytes = NDArray[np.uint8]


class Alltoall:
    """An all-to-all by one schedule among ranks that are rows of two arrays."""

    def __init__(self, schedule: Schedule) -> None:
        placement = placement_of(schedule)
        self.ranks = placement.transfers.ranks
        self._plans = [plan_rank(placement, rank) for rank in range(self.ranks)]

    def __call__(self, send: Bytes, recv: Bytes) -> None:
        """Exchange shards: row r of `send` is rank r's send buffer, row r of `recv` the other."""
        if send.ndim != 2 or len(send) != self.ranks or send.shape != recv.shape:
            raise UsageError(
                f"buffers of shape {send.shape} and {recv.shape}; expected {self.ranks} rows each"
            )
        shard = shard_bytes_of(self.ranks, send.shape[1], send.shape[1], recv.shape[1])
        layouts = [spans_of(plan, shard) for plan in self._plans]
        memory = [
            {Buffer.INPUT: send[rank], Buffer.OUTPUT: recv[rank], Buffer.SCRATCH: _scratch(layout)}
            for rank, layout in enumerate(layouts)
        ]
        for rank in range(self.ranks):
            own = slice(rank * shard, (rank + 1) * shard)
            recv[rank, own] = send[rank, own]
        for step in range(self._plans[0].steps):
            self._step(step, layouts, memory)

    def _step(self, step: int, layouts: list[Spans], memory: list[dict[Buffer, Bytes]]) -> None:
        """Read all that is sent in a step, then write it where it is received."""
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
                    buffers[buffer][begin : begin + count] = run


def _scratch(layout: Spans) -> Bytes:
    return np.zeros(layout.scratch_bytes, dtype=np.uint8)


def _messages(plan: Plan, step: int, sends: bool) -> list[int]:
    return [message for message in plan.by_step[step] if plan.sends[message] == sends]


class Endpoint:
    """All ranks at once, for `runtime.bench`."""

    def __init__(self, schedule: Schedule) -> None:
        self._alltoall = Alltoall(schedule)
        self.ranks = self._alltoall.ranks
        self.here = tuple(range(self.ranks))
        self.name = "reference, one process"
        self.native_name = None

    def exchange(self, send: Bytes, recv: Bytes) -> None:
        """All-to-all by the schedule."""
        self._alltoall(send, recv)

    def native(self, send: Bytes, recv: Bytes) -> None:
        """Do nothing: there is no all-to-all of its own."""

    def barrier(self) -> None:
        """Wait for nobody."""

    def gather(self, value: Any) -> list[Any]:
        """Return the only value that there is."""
        return [value]

    def close(self) -> None:
        """Take leave of nobody."""
