"""What the verbs print: one JSON object, or lines for people; progress on stderr."""

import json
import sys
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from typing import Any

from rich.console import Console

from a2aflow.errors import UsageError

QUIET_SECONDS = 5.0
"""Without a terminal, at most one line of progress in this many seconds."""


def show(summary: Mapping[str, Any], as_json: bool, lines: Mapping[str, str]) -> None:
    """Print `summary` as one JSON object, or `lines` as aligned label and text."""
    if sys.stdout is None:
        raise UsageError("standard output is closed; expected somewhere to print to")
    if as_json:
        print(json.dumps(summary, allow_nan=False), flush=True)
        return
    width = max(map(len, lines), default=0)
    for label, text in lines.items():
        for index, line in enumerate(text.splitlines() or [""]):
            shown = line.encode("utf-8", "backslashreplace").decode()
            print(f"{label if index == 0 else '':<{width}}  {shown}", flush=True)


def line_of(value: object) -> str:
    """Return a value of a summary as people read it."""
    if isinstance(value, list):
        return ", ".join(map(str, value))
    return f"{value:.9g}" if isinstance(value, float) else str(value)


@contextmanager
def progress() -> Iterator[Callable[[str], None]]:
    """Give a function that reports progress: a live line on a terminal, else sparse lines."""
    console = Console(stderr=True)
    if console.is_terminal:
        with console.status("starting") as status:
            yield status.update
        return
    last = time.monotonic()

    def sparse(message: str) -> None:
        nonlocal last
        if time.monotonic() - last >= QUIET_SECONDS:
            last = time.monotonic()
            sys.stderr.write(f"{message}\n")

    yield sparse
