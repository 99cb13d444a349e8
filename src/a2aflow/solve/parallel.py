"""How many threads compiled loops use."""

from collections.abc import Iterator
from contextlib import contextmanager

import numba


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
