"""No time limit counts the compilation of numba's kernels, once this module is imported."""

from typing import Any

from numba.core import event

from alltoall.settings import PAUSES

COMPILE = "numba:compile"
"""What numba calls the compilation of a kernel; one that is loaded from disk is none."""


class _Pausing(event.Listener):  # type: ignore[misc]
    """Lets time limits stand still while a kernel, and those that it calls, are compiled."""

    def on_start(self, _: Any) -> None:
        PAUSES.begin()

    def on_end(self, _: Any) -> None:
        PAUSES.end()


event.register(COMPILE, _Pausing())
