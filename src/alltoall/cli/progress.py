"""Progress of long work: the only file that imports rich."""

import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial
from typing import TYPE_CHECKING

from alltoall.cli.show import printable, warn
from alltoall.ir.words import ProgressMessage

if TYPE_CHECKING:
    from rich.progress import Progress, TaskID

QUIET_SECONDS = 5.0
"""Delay of the first progress line without a terminal; the delay doubles with every line."""

BAR = 24
"""Columns of the bar."""


@contextmanager
def progress() -> Iterator[Callable[[str], None]]:
    """Yield a function that reports progress: by a bar on a terminal, else by few lines."""
    if sys.stderr is not None and sys.stderr.isatty():
        with _bar() as bar:
            yield partial(_show, bar, bar.add_task("starting", total=None))
        return
    last, quiet = time.monotonic(), QUIET_SECONDS

    def sparse(message: str) -> None:
        nonlocal last, quiet
        if time.monotonic() - last >= quiet:
            last, quiet = time.monotonic(), 2 * quiet
            warn(message)

    yield sparse


def _bar() -> "Progress":
    """Return a progress line: bar, elapsed time and message."""
    # Imported here: rich takes as long as all of typer, and is for terminals only.
    from rich import progress as columns  # noqa: PLC0415
    from rich.console import Console  # noqa: PLC0415

    return columns.Progress(
        columns.SpinnerColumn(),
        columns.BarColumn(BAR),
        columns.TimeElapsedColumn(),
        columns.TextColumn("{task.description}"),
        console=Console(stderr=True),
        transient=True,
    )


def _show(bar: "Progress", task: "TaskID", message: str) -> None:
    """Show a message and the share done; without a share the bar only pulses."""
    from rich.markup import escape  # noqa: PLC0415

    share = message.share if isinstance(message, ProgressMessage) else None
    bar.tasks[task].total = None if share is None else 1.0
    bar.update(task, description=escape(printable(str(message))), completed=share or 0.0)
