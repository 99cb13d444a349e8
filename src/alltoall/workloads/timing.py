"""Check and time the exchanges of a workload, which take turns.

A step takes as long as its slowest rank after a barrier, so that waiting for others does not count
as exchange. Medians over the iterations are reported.

Shards must arrive bit for bit, since an error in the last bit would pass any numerical tolerance:
ranks share the checksum of every shard sent.
"""

import time
import zlib
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from alltoall.ir.arrays import Ints
from alltoall.ir.chunks import PerShard
from alltoall.workloads.ranks import Bytes, Ranks, Turns, Way

Steps = Sequence[tuple[str, Callable[[], None]]]
"""What a way does, each with the band that its time is of."""

Check = Callable[[Way], tuple[float, list[str]]]
"""Runs a workload once; returns its error and every violation."""

MAX_NAMED = 5
"""Wrong shards that each rank names."""

UNTOUCHED = 0xFF
"""Fills receive buffers: NaN in any floating-point format."""


def measure_ways(
    ranks: Ranks,
    ways: Sequence[Way],
    steps: Callable[[Way], Steps],
    check: Check,
    turns: Turns,
) -> dict[str, Any]:
    """Check every way, time its steps, and check it again; return rows and violations."""
    checked = [check(way) for way in ways]
    violations = [problem for _, problems in checked for problem in problems]
    times: list[dict[str, float]] = []
    if not violations:
        times = median_times(ranks, [steps(way) for way in ways], turns)
        # Once more after many calls, on buffers that requests have been bound to for long.
        violations = [problem for way in ways for problem in check(way)[1]]
    rows = [
        {"way": way.name, "carrier": way.carrier, **seconds, "error": error}
        for way, seconds, (error, _) in zip(ways, times, checked, strict=False)
    ]
    return {"rows": rows, "violations": violations}


def median_times(ranks: Ranks, ways: Sequence[Steps], turns: Turns) -> list[dict[str, float]]:
    """Return for each way its total time and that of each band, of the slowest ranks."""
    seconds = [
        [_time_steps(ranks, steps) for steps in ways]
        for _ in range(turns.warmup + turns.iterations)
    ]
    shared = ranks.gather(seconds[turns.warmup :])
    found: list[dict[str, float]] = []
    for way, steps in enumerate(ways):
        # By iteration and step.
        slowest = np.max([[turn[way] for turn in each] for each in shared], axis=0)
        bands = {band: 0.0 for band, _ in steps}
        for band in bands:
            own = [step for step, (name, _) in enumerate(steps) if name == band]
            bands[band] = float(np.median(slowest[:, own].sum(axis=1)))
        found.append({"seconds": float(np.median(slowest.sum(axis=1))), **bands})
    return found


def _time_steps(ranks: Ranks, steps: Steps) -> list[float]:
    found: list[float] = []
    for _, step in steps:
        ranks.barrier()
        started = time.perf_counter()
        step()
        found.append(time.perf_counter() - started)
    return found


def wrong_shards(
    ranks: Ranks, send: Bytes, recv: Bytes, shard: PerShard, subject: str
) -> list[str]:
    """Return the shards that any rank received wrongly, equal at all ranks."""
    here = np.full(ranks.size, ranks.rank)
    others = np.arange(ranks.size)
    sent = ranks.gather(_checksums(send, shard.of(here, others)))
    found = _checksums(recv, shard.of(others, here))
    wrong = [source for source in others.tolist() if sent[source][ranks.rank] != found[source]]
    named = [
        f"{subject}: the {int(shard.of(np.array(source), np.array(ranks.rank)))} bytes at rank "
        f"{ranks.rank} from rank {source} are not those that were sent"
        for source in wrong[:MAX_NAMED]
    ]
    return [each for every in ranks.gather(named) for each in every]


def _checksums(buffer: Bytes, sizes: Ints) -> list[int]:
    """Return the checksum of each of the shards that lie one after another."""
    ends = np.cumsum(sizes).tolist()
    return [
        zlib.crc32(buffer[end - size : end].data)
        for end, size in zip(ends, sizes.tolist(), strict=True)
    ]
