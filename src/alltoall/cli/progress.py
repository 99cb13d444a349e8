"""What long work says while it goes on: the only file that imports rich."""

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial

from rich.console import Console
from rich.markup import escape
from rich.progress import (
    BarColumn,
    Progress,
    SpinnerColumn,
    TaskID,
    TextColumn,
    TimeElapsedColumn,
)

from alltoall.cli.show import printable, warn
from alltoall.ir.words import News

QUIET_SECONDS = 5.0
"""Without a terminal the first line of progress comes after so long, each next after twice that."""

BAR = 24
"""Columns of the bar."""


@contextmanager
def progress() -> Iterator[Callable[[str], None]]:
    """Give a function that reports progress: a bar on a terminal, which goes away, or few lines."""
    console = Console(stderr=True)
    if console.is_terminal:
        with _bar(console) as bar:
            task = bar.add_task("starting", total=None)
            yield partial(_show, bar, task)
        return
    last, quiet = time.monotonic(), QUIET_SECONDS

    def sparse(message: str) -> None:
        nonlocal last, quiet
        if time.monotonic() - last >= quiet:
            last, quiet = time.monotonic(), 2 * quiet
            warn(message)

    yield sparse


def _bar(console: Console) -> Progress:
    """Return a line of progress: how far it is, for how long it goes on, and what it does."""
    return Progress(
        SpinnerColumn(),
        BarColumn(BAR),
        TimeElapsedColumn(),
        TextColumn("{task.description}"),
        console=console,
        transient=True,
    )


def _show(bar: Progress, task: TaskID, message: str) -> None:
    """Show a message, and the share that is done; where that is not known the bar only moves."""
    share = message.share if isinstance(message, News) else None
    bar.tasks[task].total = None if share is None else 1.0
    bar.update(task, description=escape(printable(str(message))), completed=share or 0.0)
