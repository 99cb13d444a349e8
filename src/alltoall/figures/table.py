"""The rows of a figure in a CSV file that is complete at every moment."""

import csv
import io
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

from alltoall.errors import FormatError
from alltoall.figures.figure import Figure, Point, Row
from alltoall.ir.files.text import read_text, write_text

WHEN = "at"
"""The column with the time of a measurement."""

MOST_BYTES = 64 << 20


def header(figure: Figure) -> list[str]:
    """Return the names of all columns of a figure."""
    return [*figure.columns, *figure.exact, *figure.timed, WHEN]


def read_rows(figure: Figure, path: Path) -> list[Row]:
    """Return the rows of a file; none if there is no file."""
    if not path.exists():
        return []
    lines = csv.DictReader(io.StringIO(read_text(path, MOST_BYTES)), strict=True)
    if lines.fieldnames != header(figure):
        raise FormatError(
            f"{path}: not the columns of {figure.name!r}; expected {', '.join(header(figure))}: "
            "move the file away, or name another folder"
        )
    return [{name: _value(text) for name, text in line.items()} for line in lines]


def write_rows(figure: Figure, path: Path, rows: Iterable[Row]) -> None:
    """Write all rows: to another name, then renamed, so that a file is never cut off."""
    text, names = io.StringIO(), header(figure)
    writer = csv.writer(text, lineterminator="\n")
    writer.writerows([names, *([_text(row.get(name)) for name in names] for row in rows)])
    write_text(path, text.getvalue())


def key(figure: Figure, row: Row) -> tuple[str, ...]:
    """Return the columns that tell rows apart, as texts."""
    return tuple(_text(row.get(name)) for name in figure.columns)


def is_done(figure: Figure, point: Point, rows: Sequence[Row]) -> bool:
    """Return whether a point has rows."""
    wanted = {name: _text(point[name]) for name in figure.columns if name in point}
    return any(all(_text(row[name]) == text for name, text in wanted.items()) for row in rows)


def _text(value: object) -> str:
    if isinstance(value, float):
        return f"{value:.9g}"
    return "" if value is None else str(value)


def _value(text: str | None) -> Any:
    """Return the value of a cell, a number if it is one."""
    for kind in (int, float):
        try:
            return kind(text or "")
        except ValueError:
            continue
    return text or None
