"""Kernels are compiled when first called after an installation; no time limit counts that."""

from typing import Any

from numba.core import event

from a2aflow.settings import PAUSES

COMPILE = "numba:compile"
"""What numba calls the compilation of a kernel; one that is loaded from disk is none."""


class _Pausing(event.Listener):  # type: ignore[misc]
    """Lets time limits stand still while a kernel, and those that it calls, are compiled."""

    def on_start(self, _: Any) -> None:
        PAUSES.begin()

    def on_end(self, _: Any) -> None:
        PAUSES.end()


def pause_limits_while_compiling() -> None:
    """Begin to listen to the compiler, for as long as the process lives."""
    event.register(COMPILE, _Pausing())
