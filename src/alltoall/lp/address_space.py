"""Limits on address space, checked before a library that would wait for memory for ever."""

import os
import resource
from pathlib import Path

from alltoall.errors import MissingComponentError

THREAD_BYTES = 144 << 20
"""Address space of a thread of HiGHS's OpenBLAS: a buffer of 128 MiB, a stack, and some room."""


def require_address_space() -> None:
    """Refuse a limit (`ulimit -v`) in which the constructor of OpenBLAS would spin or exit."""
    limit, _ = resource.getrlimit(resource.RLIMIT_AS)
    if limit == resource.RLIM_INFINITY:
        return
    pages = int(Path("/proc/self/statm").read_text().split()[0])
    left = limit - pages * resource.getpagesize()
    asked = os.environ.get("OPENBLAS_NUM_THREADS", "")
    threads = len(os.sched_getaffinity(0))
    if asked.isdecimal():
        threads = max(1, min(threads, int(asked)))
    if left < threads * THREAD_BYTES:
        raise MissingComponentError(
            f"the solver HiGHS needs {threads * THREAD_BYTES >> 20} MiB of address space, of which "
            f"the limit leaves {max(left, 0) >> 20} MiB; raise it (ulimit -v), or set "
            f"OPENBLAS_NUM_THREADS=1, which takes {THREAD_BYTES >> 20} MiB"
        )
