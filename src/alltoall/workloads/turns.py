"""Ways take turns, and every step is timed from a barrier on.

The time of a step is that of its slowest rank. A barrier stands before each, and is not part of it:
so who waits for others does not count their time as that of the exchange. What is reported is the
median over the iterations.
"""

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np

from alltoall.errors import UsageError
from alltoall.ir.arrays import Floats
from alltoall.workloads.ranks import Ranks

Steps = Sequence[Callable[[], None]]
MAX_TURNS = 100_000
"""Iterations at most, timed and before."""


@dataclass(frozen=True)
class Turns:
    """How often each way is timed, and how often it goes before that."""

    iterations: int = 10
    warmup: int = 2

    def __post_init__(self) -> None:
        if not (1 <= self.iterations <= MAX_TURNS and 0 <= self.warmup <= MAX_TURNS):
            raise UsageError(
                f"{self.iterations} iterations after {self.warmup}; expected 1 to {MAX_TURNS:,} "
                f"after 0 to {MAX_TURNS:,}"
            )


def median_times(ranks: Ranks, ways: Sequence[Steps], turns: Turns) -> list[list[float]]:
    """Return for each way its time in all, then that of each step, of the slowest ranks."""
    seconds = [
        [_timed(ranks, steps) for steps in ways] for _ in range(turns.warmup + turns.iterations)
    ]
    # By iteration, way and step.
    slowest: Floats = np.max(ranks.share(seconds[turns.warmup :]), axis=0)
    both = np.concatenate((slowest.sum(axis=2, keepdims=True), slowest), axis=2)
    found: list[list[float]] = np.median(both, axis=0).tolist()
    return found


def _timed(ranks: Ranks, steps: Steps) -> list[float]:
    found: list[float] = []
    for step in steps:
        ranks.barrier()
        started = time.perf_counter()
        step()
        found.append(time.perf_counter() - started)
    return found
