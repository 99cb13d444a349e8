"""How compiled kernels run: no time limit counts their compilation, and their threads may fork."""

import os
import threading
from collections.abc import Callable
from typing import Any, TypeVar

from numba import config
from numba.core import event

from alltoall.settings import PAUSES

COMPILE = "numba:compile"
"""What numba calls the compilation of a kernel; one that is loaded from disk is none."""

THREADING_LAYERS = ["tbb", "workqueue", "omp"]
"""What runs parallel loops, the first that is there: GNU OpenMP ends every child of a fork.

The second is not there for two threads at once, so that their kernels take turns."""

Answer = TypeVar("Answer")


class _Pausing(event.Listener):  # type: ignore[misc]
    """Lets time limits stand still while a kernel, and those that it calls, are compiled."""

    def on_start(self, _: Any) -> None:
        PAUSES.begin()

    def on_end(self, _: Any) -> None:
        PAUSES.end()


def pause_limits_while_compiling() -> None:
    """Begin to listen to the compiler, for as long as the process lives."""
    event.register(COMPILE, _Pausing())


def let_threads_fork() -> None:
    """Choose threads that a forked child can start anew, unless the user has chosen some."""
    if "NUMBA_THREADING_LAYER_PRIORITY" not in os.environ:
        config.THREADING_LAYER_PRIORITY = THREADING_LAYERS


class _Turn:
    """A lock that a forked child has anew: nobody would give back what another thread had."""

    def __init__(self) -> None:
        self.renew()
        os.register_at_fork(after_in_child=self.renew)

    def renew(self) -> None:
        self.lock = threading.Lock()


_TURN = _Turn()


def run_in_turn(kernel: Callable[..., Answer], *arguments: Any) -> Answer:
    """Run a parallel kernel while no other thread of this process runs one."""
    with _TURN.lock:
        return kernel(*arguments)
