"""Threads of compiled loops, and blocks short enough to react to Ctrl-C."""

from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar

from alltoall.settings import cores

BLOCK_CELLS = 1 << 20
"""Rows times links in one call of the core, about 50 ms of work."""

LEAST_ROWS = 64
"""Rows in one call at least: as many sources share the memory of their shortest-path trees."""

_THREADS: ContextVar[int] = ContextVar("threads")


def thread_count() -> int:
    """Return the number of threads of compiled loops, all cores by default."""
    return _THREADS.get(cores())


@contextmanager
def using_threads(count: int) -> Iterator[int]:
    """Limit compiled loops to `count` threads, at most the cores; yield the number."""
    threads = max(1, min(count, cores()))
    token = _THREADS.set(threads)
    try:
        yield threads
    finally:
        _THREADS.reset(token)


def row_blocks(rows: int, links: int, least: int = LEAST_ROWS) -> Iterator[slice]:
    """Yield slices of rows, one for each call of the core; all but the last are whole `least`."""
    size = max(least, BLOCK_CELLS // max(links, 1) // least * least)
    for begin in range(0, rows, size):
        yield slice(begin, min(begin + size, rows))
