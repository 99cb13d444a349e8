"""How many threads compiled loops use."""

from collections.abc import Iterator
from contextlib import contextmanager

import numba

BLOCKS = 16
"""Blocks of work that threads share out, each with sums of its own; a constant, so that results do
not depend on the number of threads."""


@contextmanager
def using_threads(count: int) -> Iterator[int]:
    """Run parallel loops on `count` threads, or as many as there are; give back how many.

    The number that was set before is restored, so that a caller's own choice survives.
    """
    before = numba.get_num_threads()
    threads = max(1, min(count, numba.config.NUMBA_NUM_THREADS))
    numba.set_num_threads(threads)
    try:
        yield threads
    finally:
        numba.set_num_threads(before)
