"""`Table`: the common part of reports, which have a row for each size, failure or candidate."""

from collections.abc import Mapping
from dataclasses import asdict
from html import escape
from operator import attrgetter
from typing import Any, ClassVar, cast

from alltoall.ir.noun import frame_of
from alltoall.ir.words import counted, one_line

SHOWN_ROWS = 50
"""Most rows in a notebook."""


class Table:
    """Plain values, one line for a prompt, a table for a notebook, and a DataFrame of a report."""

    TITLE: ClassVar[str] = "topology"
    """The attribute in the title."""
    ROWS: ClassVar[str] = "rows"
    """The attribute with the rows: a noun in plural."""

    def to_json(self) -> dict[str, Any]:
        """Return the report as plain values."""
        return asdict(cast(Any, self))

    def to_frame(self) -> Any:
        """Return the rows as a pandas DataFrame; pandas must be installed."""
        rows = [_flat(row) for row in self._rows()]
        names = dict.fromkeys(name for row in rows for name in row)
        return frame_of({name: [row.get(name) for row in rows] for name in names})

    def __repr__(self) -> str:
        count = counted(len(self._rows()), self.ROWS.removesuffix("s"))
        return one_line(f"<{type(self).__name__} of {self._title()}: {count}>")

    def _repr_html_(self) -> str:
        rows = [_flat(row) for row in self._rows()[:SHOWN_ROWS]]
        names = dict.fromkeys(name for row in rows for name in row)
        lines = [names, *([_cell(row.get(name)) for name in names] for row in rows)]
        body = "".join(
            f"<tr>{''.join(f'<td>{escape(cell)}</td>' for cell in line)}</tr>" for line in lines
        )
        return f"<div><p>{escape(repr(self))}</p><table>{body}</table></div>"

    def _title(self) -> str:
        return str(attrgetter(self.TITLE)(self))

    def _rows(self) -> list[dict[str, Any]]:
        """Return the rows as plain values."""
        return [asdict(row) for row in getattr(self, self.ROWS)]


def _flat(row: Mapping[str, Any], prefix: str = "") -> dict[str, Any]:
    """Return a row with the values of its parts: `ours` of `mean` is `ours_mean`."""
    found: dict[str, Any] = {}
    for key, value in row.items():
        part = isinstance(value, dict)
        found |= _flat(value, f"{prefix}{key}_") if part else {f"{prefix}{key}": value}
    return found


def _cell(value: object) -> str:
    if value is None:
        return ""
    return f"{value:.6g}" if isinstance(value, float) else str(value)
