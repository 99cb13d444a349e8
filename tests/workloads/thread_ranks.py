"""Ranks as threads of one process, with an exchange among them that can be made to lie."""

import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import numpy as np

from alltoall.ir.chunks import PerShard
from alltoall.workloads.ranks import Bytes

PATIENCE = 60
"""Seconds after which a rank that waits for one that failed gives up."""


class Hub:
    """Where the threads meet."""

    def __init__(self, size: int) -> None:
        self.size = size
        self.barrier = threading.Barrier(size, timeout=PATIENCE)
        self.values: list[Any] = [None] * size


class ThreadRanks:
    """One of the threads."""

    name = "threads"

    def __init__(self, hub: Hub, rank: int) -> None:
        self.hub, self.rank, self.size = hub, rank, hub.size

    def barrier(self) -> None:
        """Wait for all threads."""
        self.hub.barrier.wait()

    def gather(self, value: Any) -> list[Any]:
        """Return the values of all threads."""
        self.hub.values[self.rank] = value
        self.barrier()
        found = list(self.hub.values)
        self.barrier()
        return found

    def collect(self, value: Any) -> list[Any] | None:
        """Return the values of all threads at the first."""
        found = self.gather(value)
        return found if self.rank == 0 else None

    def close(self) -> None:
        """Nothing is held."""


class ThreadExchange:
    """Moves shards; in call `wrong_call` of rank 1, `flip` is flipped in the byte `wrong_byte`."""

    name = "memory"

    def __init__(
        self, ranks: ThreadRanks, wrong_call: int = -1, wrong_byte: int = 0, flip: int = 0x80
    ) -> None:
        self.ranks, self.calls = ranks, 0
        self.wrong_call, self.wrong_byte, self.flip = wrong_call, wrong_byte, flip

    def exchange(self, send: Bytes, recv: Bytes, shard: PerShard) -> None:
        """Copy what the others send."""
        rank, size = self.ranks.rank, self.ranks.size
        here, sent = np.array(rank), self.ranks.gather(send.copy())
        for source in map(np.array, range(size)):
            count = int(shard.of(source, here))
            begin, to = int(shard.in_input(source, here)), int(shard.in_output(source, here))
            recv[to : to + count] = sent[int(source)][begin : begin + count]
        if rank == 1 and self.calls == self.wrong_call:
            recv[self.wrong_byte] ^= self.flip
        self.calls += 1

    def close(self) -> None:
        """Nothing is held."""


def on_threads(size: int, program: Callable[[ThreadRanks], Any]) -> list[Any]:
    """Return what a program returns at each rank."""
    hub = Hub(size)

    def rank_program(rank: int) -> Any:
        try:
            return program(ThreadRanks(hub, rank))
        except BaseException:
            hub.barrier.abort()
            raise

    with ThreadPoolExecutor(size) as pool:
        futures = [pool.submit(rank_program, rank) for rank in range(size)]
    errors = [future.exception() for future in futures]
    for error in errors:
        if error is not None and not isinstance(error, threading.BrokenBarrierError):
            raise error
    return [future.result() for future in futures]
