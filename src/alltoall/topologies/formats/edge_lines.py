"""Lines of an edge list: the header row, words, marks, attributes of networkx, and capacities."""

import ast
import re
from dataclasses import dataclass
from functools import lru_cache
from itertools import islice
from typing import Any

import numpy as np

from alltoall.errors import FormatError, UsageError
from alltoall.ir.names import is_name
from alltoall.ir.quantities import bytes_per_second, is_unit

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
    return Header(False, _column_rate(match[1], column, place)) if match else None


def _cells(line: str) -> list[str]:
    sign = next((sign for sign in (",", "\t") if sign in line), None)
    return [cell.strip().strip('"') for cell in line.split(sign)]


def _plain(cell: str) -> str:
    return re.sub(r"[\s_-]", "", cell[:MAX_COLUMN].lower())


def _column_rate(unit: str | None, column: str, place: str) -> float | None:
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


MARK = "!"
"""What a node begins with that is not a terminal."""

MAX_ATTRIBUTES = 1_000
"""Most characters of the attributes in a line: they are a literal, which Python parses."""

CAPACITY, WEIGHT = "capacity", "weight"
"""The attribute that is a capacity, and the one that may be one: a cost, or a width."""

BOTH_WAYS, ONE_WAY = "<->", "->"
ARROWS = (BOTH_WAYS, ONE_WAY, "--", "-")
"""What may stand between two nodes; blanks around the first may be left out."""

_OTHER_NUMBER = re.compile(r"[+-][0-9.]+|[0-9]*\.[0-9]*")
_TOKEN = re.compile(r"[^\s#{]+")


@dataclass(frozen=True)
class EdgeLine:
    """What a line says: two nodes, which of them are marked, and how wide the edge is."""

    ends: tuple[str, str]
    marked: tuple[str, ...]
    width: float | None
    """The capacity, or the bytes per second if there is a unit; None if the line has none."""
    unit: str | None
    """The capacity as it is written, if it has a unit."""
    has_attribute: bool
    """Whether the attributes of the line have the capacity among them."""
    one_way: bool
    """Whether an arrow says that it leads from the first node to the second only."""


def read_line(line: str, attribute: str | None, place: str) -> EdgeLine:
    """Read `u v`, `u v capacity` or `u v {attributes}`, with blanks, commas or an arrow between."""
    body = line.partition("#")[0]
    head, brace, rest = body.partition("{")
    words, arrow = _split_line(_join_rate(head))
    if len(words) != 2 and not (len(words) == 3 and not brace):
        raise FormatError(
            f"{place}: {shown(line)} is not an edge; expected `u v`, `u v capacity`, "
            "`a:eth0 <-> b:eth1 100G` or `u v {'capacity': 2}`"
        )
    marked = tuple(word.removeprefix(MARK) for word in words[:2] if word.startswith(MARK))
    u, v = (_node(word.removeprefix(MARK), place) for word in words[:2])
    if u == v:
        raise FormatError(f"{place}: an edge from {u} to itself; remove the line")
    found = _attribute(brace + rest, attribute, place) if brace else None
    text = words[2] if len(words) == 3 else found
    width, unit = (None, None) if text is None else _width(str(text), place)
    return EdgeLine((u, v), marked, width, unit, found is not None, arrow == ONE_WAY)


def _join_rate(text: str) -> str:
    """Return a line with the blank in `100 Gbit/s` left out."""
    words = text.rsplit(None, 1)
    joined = len(words) == 2 and words[0][-1] in "0123456789" and is_unit(words[1])
    return "".join(words) if joined else text


def _split_line(text: str) -> tuple[list[str], str | None]:
    """Return the words of a line without the arrow that may stand between its nodes."""
    first, arrow, rest = text.partition(BOTH_WAYS)
    if not arrow:
        first, arrow, rest = [*text.split(None, 2), "", "", ""][:3]
    if arrow not in ARROWS:
        return split_words(text), None
    return [first.strip(), *split_words(rest)], arrow


def split_words(text: str) -> list[str]:
    """Cut a text at its commas if blanks follow them or it has none, else at its blanks.

    Commas without blanks are then within names, such as the coordinates of Graph Golf.
    """
    words = text.split()
    if "," in text and (len(words) == 1 or any(word[-1] == "," for word in words)):
        return [word.strip().strip('"') for word in text.strip().removesuffix(",").split(",")]
    return words


def is_token(name: str) -> bool:
    """Whether a node's name can stand in a line and be read as it is."""
    whole = _TOKEN.fullmatch(name) is not None and not _OTHER_NUMBER.fullmatch(name)
    if name in ARROWS or BOTH_WAYS in name:
        return False
    return whole and name[0] not in (MARK, ",") and name[-1] != ","


def _node(word: str, place: str) -> str:
    if _OTHER_NUMBER.fullmatch(word) or not is_name(word) or not _TOKEN.fullmatch(word):
        raise FormatError(
            f"{place}: {shown(word)} is no node; expected a number from 0, or a name without blanks"
        )
    return word


def _attribute(text: str, key: str | None, place: str) -> object:
    """Return the capacity among the attributes that networkx writes, None if it is not there."""
    if len(text) > MAX_ATTRIBUTES:
        raise FormatError(f"{place}: {len(text)} characters of attributes; at most 1,000 are read")
    found = _literal(text.strip())
    if not isinstance(found, dict):
        raise FormatError(
            f"{place}: {shown(text)} are no attributes; expected some such as {{'capacity': 2}}"
        )
    if key is None and CAPACITY not in found and found.get(WEIGHT, 1) != 1:
        raise FormatError(
            f"{place}: the weight {shown(str(found[WEIGHT]))} and no capacity; if weights are "
            "capacities say so: --capacity-attribute weight"
        )
    return found.get(CAPACITY if key is None else key)


@lru_cache(maxsize=1024)
def _literal(text: str) -> Any:
    """Return the value of a Python literal, None if it is none; nothing in it is evaluated."""
    try:
        return ast.literal_eval(text)
    except (ValueError, SyntaxError, TypeError, MemoryError, RecursionError):
        return None


def _width(word: str, place: str) -> tuple[float, str | None]:
    """Return a capacity, and the text of it if it has a unit."""
    try:
        value, unit = float(word), None
    except ValueError:
        value, unit = _rate(word), word
    if not (np.isfinite(value) and value > 0):
        raise FormatError(
            f"{place}: {shown(word)} is not a capacity; expected a positive finite number, "
            "or one with a unit, such as 100G"
        )
    return value, unit


def read_rate(word: str, place: str) -> float:
    """Return a rate such as 100Gbps in bytes per second."""
    try:
        return bytes_per_second(word)
    except UsageError as error:
        raise FormatError(f"{place}: {error}") from None


def _rate(word: str) -> float:
    try:
        return bytes_per_second(word)
    except UsageError:
        return np.nan


def shown(word: str) -> str:
    """Quote a piece of the file for a message, cut short."""
    return repr(word if len(word) <= 40 else word[:40] + "...")
