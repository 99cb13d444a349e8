"""Kernels are compiled when they are first called after an installation: that is said, once."""

from typing import Any

from numba.core import event

from alltoall.cli.show import warn
from alltoall.paths.kernels import COMPILE

MESSAGE = "compiling kernels (once)"


class _Announcer(event.Listener):  # type: ignore[misc]
    """Says so when the first of all kernels is compiled, and counts them."""

    def __init__(self) -> None:
        self.kernels = 0

    def on_start(self, _: Any) -> None:
        if self.kernels == 0:
            warn(MESSAGE)
        self.kernels += 1

    def on_end(self, _: Any) -> None:
        """Nothing more is to be said."""


_ANNOUNCER = _Announcer()


def listen_to_compiler() -> Any:
    """Give a context in which kernels that are compiled are announced and counted."""
    return event.install_listener(COMPILE, _ANNOUNCER)
