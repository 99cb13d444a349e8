"""Kernels are compiled when they are first called after an installation: said, and not charged."""

import time
from typing import Any

from numba.core import event

from a2aflow.cli.show import warn

COMPILE = "numba:compile"
"""What numba calls the compilation of a kernel; one that is loaded from disk is none."""

MESSAGE = "compiling kernels (once)"


class _Compiler(event.Listener):  # type: ignore[misc]
    """Counts the seconds in which anything is compiled; kernels compile those that they call."""

    def __init__(self) -> None:
        self.depth, self.began, self.seconds, self.kernels = 0, 0.0, 0.0, 0

    def on_start(self, _: Any) -> None:
        if self.kernels == 0:
            warn(MESSAGE)
        if self.depth == 0:
            self.began = time.monotonic()
        self.kernels, self.depth = self.kernels + 1, self.depth + 1

    def on_end(self, _: Any) -> None:
        self.depth -= 1
        if self.depth == 0:
            self.seconds += time.monotonic() - self.began


_COMPILER = _Compiler()


def listen_to_compiler() -> Any:
    """Give a context in which kernels that are compiled are announced and counted."""
    return event.install_listener(COMPILE, _COMPILER)


def clock() -> float:
    """Return seconds that pass while anything but compilation happens."""
    return time.monotonic() - _COMPILER.seconds


def kernels_compiled() -> tuple[int, float]:
    """Return how many kernels were compiled by now, and in how many seconds."""
    return _COMPILER.kernels, _COMPILER.seconds
