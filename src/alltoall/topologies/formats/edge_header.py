"""The header row of an edge list: `source,target,capacity` and the like."""

import re
from dataclasses import dataclass
from itertools import islice

from alltoall.errors import FormatError, UsageError
from alltoall.ir.quantities import bytes_per_second

_ENDS = {
    ("source", "target"), ("source", "destination"), ("source", "dest"), ("src", "dst"),
    ("src", "dest"), ("from", "to"), ("tail", "head"), ("local", "remote"),
    ("node1", "node2"), ("nodea", "nodeb"), ("host1", "host2"), ("hosta", "hostb"),
    ("device1", "device2"), ("devicea", "deviceb"), ("end1", "end2"), ("enda", "endb"),
}  # fmt: skip
"""What the columns of nodes are called, without case, blanks and underscores."""

_CAPACITY = re.compile(
    r"(?:(?:link)?[\s_]*(?:capacity|bandwidth|bw|rate|speed))?[\s_]*"
    r"[(\[]?([kMGTmgt]?(?:bps|b/s|bit/s|B/s))?[)\]]?",
    re.IGNORECASE,
)
"""What the column of capacities is called, with the unit of its numbers if it says one."""

MAX_COLUMN = 40
"""Most characters of the name of a column."""


@dataclass(frozen=True)
class Header:
    """The header row: whether it names the attribute asked for, and the rate of capacity 1."""

    names_attribute: bool
    rate: float | None


def read_header(line: str, text: str, attribute: str | None, place: str) -> Header | None:
    """Return the header that the first line is, None if it is an edge.

    Two words are a header only if they are no nodes of the lines to come.
    """
    cells = _cells(line.partition("#")[0])
    if len(cells) == 2 and tuple(map(_plain, cells)) in _ENDS:
        return Header(False, None) if _occur_once(cells, text) else None
    if len(cells) != 3 or len(cells[2]) > MAX_COLUMN:
        return None
    column = cells[2]
    if attribute is not None and column == attribute:
        return Header(True, None)
    if column.lower() == "weight":
        raise FormatError(
            f"{place}: the column {column!r} and no capacity; if weights are capacities say so: "
            f"--capacity-attribute {column}"
        )
    match = _CAPACITY.fullmatch(column) if column else None
    return Header(False, _rate(match[1], column, place)) if match else None


def _cells(line: str) -> list[str]:
    sign = next((sign for sign in (",", "\t") if sign in line), None)
    return [cell.strip().strip('"') for cell in line.split(sign)]


def _plain(cell: str) -> str:
    return re.sub(r"[\s_-]", "", cell[:MAX_COLUMN].lower())


def _rate(unit: str | None, column: str, place: str) -> float | None:
    """Return the bytes per second of 1 in the unit of a column."""
    if unit is None:
        return None
    bits = unit[1:] in ("bps", "b/s", "bit/s")
    try:
        return bytes_per_second("1" + (unit[0].upper() + unit[1:] if bits else unit))
    except UsageError:
        raise FormatError(
            f"{place}: the column {column!r}; expected a unit such as Gbps or GB/s"
        ) from None


def _occur_once(words: list[str], text: str) -> bool:
    """Return whether there are further lines, and none of these words is a node of one."""
    lines = re.sub(r"#.*", "", text).strip()
    nodes = "|".join(map(re.escape, words))
    found = re.finditer(rf'(?<![^\s,!"])(?:{nodes})(?![^\s,:"])', lines)
    return "\n" in lines and sum(1 for _ in islice(found, len(words) + 1)) == len(words)
