"""Check every byte of an all-to-all, and time it beside the runtime's own.

The time of an iteration is that of its slowest rank, after a barrier. The two all-to-alls take
turns, so that what else the machine does meets both alike. For N ranks, shards of m bytes and the
mean time T, the figures are those of nccl-tests: the size is that of a rank's buffer, N m; algbw is
N m / T; busbw is algbw (N - 1) / N, the throughput (N - 1) m / T of the paper.
"""

import time
from collections.abc import Callable
from dataclasses import asdict, dataclass
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

Bytes = NDArray[np.uint8]
MAX_TOLD = 10
"""How many wrong shards each rank tells of."""


class Endpoint(Protocol):
    """What a process of a runtime can do; it plays the ranks `here`, one row of a buffer each."""

    ranks: int
    here: tuple[int, ...]
    name: str
    native_name: str | None

    def exchange(self, send: Bytes, recv: Bytes) -> None:
        """All-to-all by the schedule."""

    def native(self, send: Bytes, recv: Bytes) -> None:
        """All-to-all by the runtime itself; never called if that has no name."""

    def barrier(self) -> None:
        """Wait for all processes."""

    def gather(self, value: Any) -> list[Any]:
        """Return the value of every process."""

    def close(self) -> None:
        """Take leave of the other processes; the last call, by all of them."""


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
    """What was measured for shards of `bytes`, buffers of `size`.

    `ratio` is our throughput over the runtime's own, if it has an all-to-all of its own.
    """

    bytes: int
    size: int
    ours: Times
    native: Times | None
    ratio: float | None


@dataclass(frozen=True)
class Report:
    """What one run found: rows by size, and every violation; valid if there is none.

    `links_emulated` is whether bytes took as long as they would on the links of the topology.
    """

    runtime: str
    native: str | None
    ranks: int
    links_emulated: bool
    rows: tuple[Row, ...]
    violations: tuple[str, ...]

    def to_json(self) -> dict[str, Any]:
        """Return the report as plain values."""
        return asdict(self)


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
    send = np.stack([_sent(rank, endpoint.ranks, size) for rank in endpoint.here])
    recv, other = np.empty_like(send), np.empty_like(send)
    violations = _check(endpoint, send, recv, size)
    ours, native = [], []
    for _ in range(warmup + iterations):
        ours.append(_timed(endpoint, endpoint.exchange, send, recv))
        if endpoint.native_name:
            native.append(_timed(endpoint, endpoint.native, send, other))
    # Once more after many calls, on buffers that requests have been bound to for long.
    violations += _check(endpoint, send, recv, size)
    mine = _times(endpoint, ours[warmup:], size)
    theirs = _times(endpoint, native[warmup:], size) if native else None
    ratio = theirs.mean / mine.mean if theirs else None
    return Row(size, endpoint.ranks * size, mine, theirs, ratio), violations


def _timed(
    endpoint: Endpoint, exchange: Callable[[Bytes, Bytes], None], send: Bytes, recv: Bytes
) -> float:
    endpoint.barrier()
    started = time.perf_counter()
    exchange(send, recv)
    return time.perf_counter() - started


def _times(endpoint: Endpoint, seconds: list[float], size: int) -> Times:
    """Return the figures of the slowest rank in each iteration."""
    slowest = np.max(endpoint.gather(seconds), axis=0)
    mean = float(slowest.mean())
    busbw = (endpoint.ranks - 1) * size / mean
    return Times(
        mean=mean,
        least=float(slowest.min()),
        most=float(slowest.max()),
        algbw=endpoint.ranks * size / mean,
        busbw=busbw,
        throughput=busbw,
    )


def _check(endpoint: Endpoint, send: Bytes, recv: Bytes, size: int) -> list[str]:
    """Exchange once into a buffer in which every byte is wrong; return what still is, anywhere."""
    for row, rank in enumerate(endpoint.here):
        recv[row] = ~_received(rank, endpoint.ranks, size)
    endpoint.exchange(send, recv)
    found: list[str] = []
    for row, rank in enumerate(endpoint.here):
        found += _wrong(recv[row], _received(rank, endpoint.ranks, size), rank, size)
    return [each for told in endpoint.gather(found) for each in told]


def _wrong(found: Bytes, expected: Bytes, rank: int, size: int) -> list[str]:
    """Name the shards with wrong bytes."""
    bad = found != expected
    told: list[str] = []
    for source in np.flatnonzero(bad.reshape(-1, size).any(axis=1))[:MAX_TOLD]:
        shard = slice(source * size, (source + 1) * size)
        first = int(np.argmax(bad[shard]))
        told.append(
            f"shards of {size} bytes: rank {rank} has {int(bad[shard].sum())} wrong bytes in the "
            f"shard from rank {source}, the first at {first}: found {found[shard][first]}, "
            f"expected {expected[shard][first]}"
        )
    return told


def _sent(rank: int, ranks: int, size: int) -> Bytes:
    """Return what a rank sends: bytes that depend on source, destination and position."""
    pairs = rank * ranks + np.arange(ranks)
    return (_by_position(size)[None, :] + pairs.astype(np.uint8)[:, None]).reshape(-1)


def _received(rank: int, ranks: int, size: int) -> Bytes:
    """Return what a rank must receive."""
    pairs = np.arange(ranks) * ranks + rank
    return (_by_position(size)[None, :] + pairs.astype(np.uint8)[:, None]).reshape(-1)


def _by_position(size: int) -> Bytes:
    """Return bytes without a short period, so that a shifted shard is found out."""
    return (np.arange(size, dtype=np.uint32) * np.uint32(2654435761) >> np.uint32(24)).astype(
        np.uint8
    )
