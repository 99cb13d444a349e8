"""Output of the verbs: one JSON object, or lines for people; progress and errors on stderr.

All output passes through `say`, which escapes control characters. Texts may come from files, so
line ends in `Lines` or table cells are escaped too. `deliver` saves and prints answers: if one
fails, the other is still done.
"""

import json
import os
import sys
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from errno import ENOMEM
from pathlib import Path
from typing import Any, TextIO

from alltoall.cli.signals import Stopped, printing
from alltoall.errors import (
    AlltoallError,
    InputError,
    MissingComponentError,
    TimeLimitError,
    UsageError,
    escaped,
)
from alltoall.ir.files.text import write_bytes
from alltoall.ir.words import beyond_rounding, one_line


class Unsaved(Exception):  # noqa: N818
    """Raised when an answer was printed but not saved; carries the exit code."""

    def __init__(self, code: int) -> None:
        super().__init__(code)
        self.code = code


FAILURES = (AlltoallError, MemoryError, OSError, ImportError, Stopped)
"""Errors that end a call with a message and an exit code; any other is a bug."""


def described(error: BaseException) -> dict[str, Any]:
    """Return the exit code and the message of a failure."""
    if isinstance(error, AlltoallError | Stopped):
        return {"code": error.exit_code, "message": str(error)}
    if isinstance(error, MemoryError) or getattr(error, "errno", None) == ENOMEM:
        message = "not enough memory for a problem of this size; use a smaller one"
        return {"code": InputError.exit_code, "message": message}
    if isinstance(error, TimeoutError):
        message = "the time limit came before any answer; allow more time"
        return {"code": TimeLimitError.exit_code, "message": message}
    message = (
        f"the system refused something that is needed: {one_line(str(_root(error)))}; check the "
        "installation, and the limits that `ulimit -a` shows"
    )
    return {"code": MissingComponentError.exit_code, "message": message}


def _root(error: BaseException) -> BaseException:
    """Return the failure of the system behind a failure: libraries wrap it in pages of advice."""
    while isinstance(error.__cause__, OSError | ImportError):
        error = error.__cause__
    return error


@contextmanager
def writing_output() -> Iterator[None]:
    """Turn write errors into a usage error; a closed pipe passes."""
    try:
        yield
    except BrokenPipeError:
        raise
    except OSError as error:
        raise UsageError(f"output cannot be written: {error.strerror or error}") from None


RESET = "\x1b[0m"
LABEL, ASIDE, WRONG = "\x1b[36m", "\x1b[2m", "\x1b[1;31m"
"""Colours of labels, remarks and errors."""


def coloured(stream: TextIO | None) -> bool:
    """Return whether to colour a stream: a terminal that is not dumb, unless NO_COLOR is set.

    NO_COLOR counts if it is not empty (https://no-color.org).
    """
    if stream is None or os.environ.get("NO_COLOR") or os.environ.get("TERM") == "dumb":
        return False
    return stream.isatty()


def paint(text: str, colour: str, stream: TextIO | None) -> str:
    """Return a text in a colour if the stream shows it."""
    return f"{colour}{text}{RESET}" if text and coloured(stream) else text


GAP = "  "
"""Space between two columns."""


def columns(
    rows: Sequence[Sequence[str]], words: Collection[int] = (), bar: int | None = None
) -> list[str]:
    """Return rows as aligned lines; the first row is the header.

    Columns in `words` are left-aligned, the others right-aligned; negative numbers count from the
    end. A bar precedes the column `bar`.
    """
    count, rows = len(rows[0]), [[escaped(cell) for cell in row] for row in rows]
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    left = {each % count for each in words}
    lines = []
    for row in rows:
        cells = [
            cell.ljust(width) if at in left else cell.rjust(width)
            for at, (cell, width) in enumerate(zip(row, widths, strict=True))
        ]
        if bar is not None and bar < count:
            cells.insert(bar, "|")
        lines.append(GAP.join(cells).rstrip())
    return lines


STANDARD_OUTPUT = Path("-")
"""The file name that stands for standard output."""

SHARES = ("gap", "loss")
"""Fields in which rounding noise is snapped to 0."""

Lines = Mapping[str, str | Sequence[str]]
"""One or several lines of text by label."""

Render = Callable[[], str | bytes]
Files = Mapping[Path | None, Render]
"""Content by path; None is not saved."""


def printable(text: str, encoding: str | None = None) -> str:
    """Escape control characters and those that an encoding lacks."""
    encoding = encoding or "utf-8"
    return escaped(text, kept="\n").encode(encoding, "backslashreplace").decode(encoding)


def require_open(stream: TextIO | None) -> TextIO:
    """Return a stream; raise if it is closed."""
    if stream is None:
        raise UsageError("standard output is closed; expected somewhere to print to")
    return stream


def say(text: str, stream: TextIO | None) -> None:
    """Print a text and a line's end."""
    stream = require_open(stream)
    _write(printable(text, stream.encoding), stream)


def _write(line: str, stream: TextIO) -> None:
    with writing_output():
        stream.write(line + "\n")
        stream.flush()


def say_out(text: str) -> None:
    """Print a text on standard output, whole."""
    with printing():
        say(text, sys.stdout)


def show(
    summary: Mapping[str, Any],
    as_json: bool,
    lines: Lines,
    stream: TextIO | None = None,
) -> None:
    """Print `summary` as one JSON object, or `lines` as aligned label and text.

    A text without a label begins at the margin.
    """
    stream = require_open(stream or sys.stdout)
    with printing():
        if as_json:
            known = (key for key in SHARES if summary.get(key) is not None)
            tidy = {key: beyond_rounding(summary[key]) for key in known}
            say(json.dumps({**summary, **tidy}, allow_nan=False), stream)
            return
        width = max((len(label) + 2 for label in lines if label), default=0)
        for label, text in lines.items():
            for index, line in enumerate([text] if isinstance(text, str) else text):
                head = f"{label if index == 0 else '':<{width}}" if label else ""
                _say_line(head, line, stream)


def _say_line(label: str, line: str, stream: TextIO) -> None:
    """Print a line for people, with coloured labels and remarks on a terminal."""
    plain = printable(escaped(f"{label}{line}").rstrip(), stream.encoding)
    if plain.startswith("# "):
        painted = paint(plain, ASIDE, stream)
    else:
        head = printable(label, stream.encoding).rstrip()
        painted = paint(head, LABEL, stream) + plain[len(head) :]
    _write(painted, stream)


def deliver(summary: Mapping[str, Any], as_json: bool, lines: Lines, files: Files) -> None:
    """Save files, print the summary, then report files that could not be saved.

    The file `-` is standard output; the lines for people then go to standard error.
    """
    wanted = {path: render for path, render in files.items() if path is not None}
    piped = STANDARD_OUTPUT in wanted
    saved, failure = _save(wanted)
    if wanted:
        summary = {**summary, "saved": saved}
    if saved and not piped:
        lines = {**lines, "saved": saved}
    if failure is not None:
        summary = {**summary, "error": described(failure)}
    # Without a standard error nobody reads the lines, and the file is to be alone where it is.
    if not piped or sys.stderr is not None:
        show(summary, as_json, lines, sys.stderr if piped else sys.stdout)
    if failure is not None:
        complain(failure)
        raise Unsaved(described(failure)["code"])


def complain(failure: BaseException) -> None:
    """Print an error on standard error, if it is open."""
    about = described(failure)["message"]
    warn(about, "" if isinstance(failure, Stopped) else "error:")


def warn(text: str, kind: str = "") -> None:
    """Print a text on standard error, if it is open, after a coloured kind."""
    if sys.stderr is not None:
        with suppress(OSError, UsageError):
            if kind:
                sys.stderr.write(paint(kind, WRONG, sys.stderr) + " ")
            say(text, sys.stderr)


def _save(files: Mapping[Path, Render]) -> tuple[list[str], BaseException | None]:
    """Write files; return the paths written and the first failure."""
    saved: list[str] = []
    failure: BaseException | None = None
    for path, render in files.items():
        try:
            write_out(path, render())
            saved.append(str(path))
        except FAILURES as error:
            failure = failure or error
    return saved, failure


def write_out(path: Path, content: str | bytes) -> None:
    """Write a file, or its content to standard output if its name is `-`."""
    data = content.encode() if isinstance(content, str) else content
    if path != STANDARD_OUTPUT:
        write_bytes(path, data)
        return
    out = require_open(sys.stdout)
    with printing(), writing_output():
        out.flush()
        out.buffer.write(data)
        out.flush()


def line_of(value: object) -> str:
    """Return a value of a summary as people read it."""
    if isinstance(value, list):
        return ", ".join(map(str, value))
    return f"{value:.9g}" if isinstance(value, float) else str(value)
