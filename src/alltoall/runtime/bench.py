"""Check every byte of an all-to-all, and time it beside the runtime's own.

An iteration takes as long as its slowest rank, after a barrier. The two all-to-alls take turns, so
that other load on the machine affects both alike. For N ranks, shards of m bytes and the
mean time T, the figures are those of nccl-tests: the size is that of a rank's buffer, N m; algbw is
N m / T; busbw is algbw (N - 1) / N, the throughput (N - 1) m / T of the paper. For an uneven demand
the size is the mean send buffer of a rank, and busbw the bytes that ranks send each other.
"""

import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from alltoall.ir.arrays import Ints
from alltoall.ir.chunks import PerShard, shards_of
from alltoall.ir.demand import Demand
from alltoall.ir.table import Table

Bytes = NDArray[np.uint8]
Exchanging = Callable[[list[Bytes], list[Bytes], PerShard], None]
"""An exchange: send buffer, receive buffer, and the bytes of every pair."""

MAX_TOLD = 10
"""Most wrong shards that a rank reports."""


class Endpoint(Protocol):
    """A process of a runtime; it plays the ranks `here`, with a buffer each."""

    ranks: int
    demand: Demand
    here: tuple[int, ...]
    name: str
    native_name: str | None

    def exchange(self, send: list[Bytes], recv: list[Bytes], shard: PerShard) -> None:
        """All-to-all by the schedule."""

    def native(self, send: list[Bytes], recv: list[Bytes], shard: PerShard) -> None:
        """Run the runtime's own all-to-all; never called if it has no name."""

    def barrier(self) -> None:
        """Wait for all processes."""

    def gather(self, value: Any) -> list[Any]:
        """Return the value of every process."""

    def close(self) -> None:
        """Disconnect from the other processes; the last call, collective."""


@dataclass(frozen=True)
class Times:
    """Seconds of one all-to-all over the iterations, and bytes a second by the mean."""

    mean: float
    least: float
    most: float
    algbw: float
    busbw: float
    throughput: float


@dataclass(frozen=True)
class Row:
    """Measurements for shards of `bytes`, buffers of `size`.

    `ratio` is our throughput over that of the runtime's own all-to-all, if it has one.
    """

    bytes: int
    size: int
    ours: Times
    native: Times | None
    ratio: float | None


@dataclass(frozen=True, repr=False)
class Report(Table):
    """The result of a run: rows by size, and every violation; valid if there is none.

    `links_emulated` says whether transfers took as long as on the links of the topology.
    """

    TITLE = "runtime"

    runtime: str
    native: str | None
    ranks: int
    links_emulated: bool
    rows: tuple[Row, ...]
    violations: tuple[str, ...]


def report_from_json(value: dict[str, Any]) -> Report:
    """Return the report that a rank wrote."""
    rows = tuple(_row_from_json(row) for row in value["rows"])
    return Report(**{**value, "rows": rows, "violations": tuple(value["violations"])})


def _row_from_json(row: dict[str, Any]) -> Row:
    native = row["native"] and Times(**row["native"])
    return Row(**{**row, "ours": Times(**row["ours"]), "native": native})


def measure(endpoint: Endpoint, sizes: list[int], iterations: int, warmup: int) -> Report:
    """Check and time every size; stop after the first size with a wrong byte."""
    rows: list[Row] = []
    violations: list[str] = []
    for size in sizes:
        row, violations = _measure_size(endpoint, size, iterations, warmup)
        rows.append(row)
        if violations:
            break
    return Report(
        runtime=endpoint.name,
        native=endpoint.native_name,
        ranks=endpoint.ranks,
        links_emulated=False,
        rows=tuple(rows),
        violations=tuple(violations),
    )


def _measure_size(
    endpoint: Endpoint, size: int, iterations: int, warmup: int
) -> tuple[Row, list[str]]:
    trial = Trial(endpoint, size)
    shard = trial.shard
    violations = trial.wrong(endpoint.exchange)
    ours, native = [], []
    for _ in range(warmup + iterations):
        ours.append(trial.timed(endpoint.exchange))
        if endpoint.native_name:
            native.append(trial.timed(endpoint.native))
    # Once more after many calls, on buffers that requests have been bound to for long.
    violations += trial.wrong(endpoint.exchange)
    mine = _times(endpoint, ours[warmup:], shard)
    theirs = _times(endpoint, native[warmup:], shard) if native else None
    ratio = theirs.mean / mine.mean if theirs else None
    return Row(size, shard.stored // endpoint.ranks, mine, theirs, ratio), violations


def _times(endpoint: Endpoint, seconds: list[float], shard: PerShard) -> Times:
    """Return the figures of the slowest rank in each iteration."""
    slowest = np.max(endpoint.gather(seconds), axis=0)
    mean = float(slowest.mean())
    busbw = shard.total / endpoint.ranks / mean
    return Times(
        mean=mean,
        least=float(slowest.min()),
        most=float(slowest.max()),
        algbw=shard.stored / endpoint.ranks / mean,
        busbw=busbw,
        throughput=busbw,
    )


class Trial:
    """The buffers of the ranks here, for shards of one size."""

    def __init__(self, endpoint: Endpoint, size: int) -> None:
        self.endpoint, self.size = endpoint, size
        self.shard = shards_of(endpoint.demand, size)
        self.send = [sent_by(rank, self.shard) for rank in endpoint.here]
        sizes = self.shard.outputs()
        self.recv = [np.empty(int(sizes[rank]), dtype=np.uint8) for rank in endpoint.here]

    def timed(self, exchange: Exchanging) -> float:
        """Return the seconds of an exchange after a barrier."""
        self.endpoint.barrier()
        started = time.perf_counter()
        exchange(self.send, self.recv, self.shard)
        return time.perf_counter() - started

    def wrong(self, exchange: Exchanging) -> list[str]:
        """Exchange into buffers in which every byte is wrong; return what still is, anywhere."""
        for taken, rank in zip(self.recv, self.endpoint.here, strict=True):
            np.invert(received_by(rank, self.shard), out=taken)
        exchange(self.send, self.recv, self.shard)
        found: list[str] = []
        for taken, rank in zip(self.recv, self.endpoint.here, strict=True):
            found += wrong_bytes(taken, rank, self.shard, self.size)
        return [each for told in self.endpoint.gather(found) for each in told]


def wrong_bytes(found: Bytes, rank: int, shard: PerShard, size: int) -> list[str]:
    """Name the shards with wrong bytes."""
    expected = received_by(rank, shard)
    ends = (np.arange(shard.ranks), np.full(shard.ranks, rank))
    wrong = np.flatnonzero(found != expected)
    source = np.searchsorted(shard.in_output(*ends), wrong, side="right") - 1
    told: list[str] = []
    for each in np.unique(source)[:MAX_TOLD]:
        here = wrong[source == each]
        told.append(
            f"shards of {size} bytes: rank {rank} has {len(here)} wrong bytes in the "
            f"shard from rank {each}, the first at {here[0] - shard.in_output(*ends)[each]}: found "
            f"{found[here[0]]}, expected {expected[here[0]]}"
        )
    return told


def sent_by(rank: int, shard: PerShard) -> Bytes:
    """Return the send buffer of a rank: bytes that depend on source, destination and position."""
    others = np.arange(shard.ranks)
    return _pattern(np.full(shard.ranks, rank), others, shard)


def received_by(rank: int, shard: PerShard) -> Bytes:
    """Return the expected receive buffer of a rank."""
    others = np.arange(shard.ranks)
    return _pattern(others, np.full(shard.ranks, rank), shard)


def _pattern(source: Ints, destination: Ints, shard: PerShard) -> Bytes:
    """Return the concatenated bytes of some shards."""
    sizes = shard.of(source, destination)
    along = _by_position(int(sizes.max(initial=0)))
    marks = (source * shard.ranks + destination).astype(np.uint8)
    parts = [along[:size] + mark for size, mark in zip(sizes.tolist(), marks, strict=True)]
    return np.concatenate(parts)


def _by_position(size: int) -> Bytes:
    """Return bytes without a short period, so that shifted shards are detected."""
    return (np.arange(size, dtype=np.uint32) * np.uint32(2654435761) >> np.uint32(24)).astype(
        np.uint8
    )
