"""What long work says while it goes on: the only file that imports rich."""

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from rich.console import Console
from rich.markup import escape

from a2aflow.cli.show import printable, warn

QUIET_SECONDS = 5.0
"""Without a terminal, at most one line of progress in this many seconds."""


@contextmanager
def progress() -> Iterator[Callable[[str], None]]:
    """Give a function that reports progress: a live line on a terminal, else sparse lines."""
    console = Console(stderr=True)
    if console.is_terminal:
        with console.status("starting") as status:
            yield lambda message: status.update(escape(printable(message)))
        return
    last = time.monotonic()

    def sparse(message: str) -> None:
        nonlocal last
        if time.monotonic() - last >= QUIET_SECONDS:
            last = time.monotonic()
            warn(message)

    yield sparse
