"""Lines of an edge list: the header row, words, marks, attributes of networkx, and capacities."""

import ast
import math
import re
from contextlib import suppress
from dataclasses import dataclass
from functools import lru_cache
from itertools import islice
from typing import Any, TypeAlias

from alltoall.errors import FormatError, UsageError
from alltoall.ir.names import is_name
from alltoall.ir.quantities import bytes_per_second, is_unit

_ENDS = {
    ("source", "target"), ("source", "destination"), ("source", "dest"), ("src", "dst"),
    ("src", "dest"), ("from", "to"), ("tail", "head"), ("local", "remote"),
    ("node1", "node2"), ("nodea", "nodeb"), ("host1", "host2"), ("hosta", "hostb"),
    ("device1", "device2"), ("devicea", "deviceb"), ("end1", "end2"), ("enda", "endb"),
}  # fmt: skip
"""Names of the columns of nodes, without case, blanks and underscores."""

_CAPACITY = re.compile(
    r"(?:(?:link)?[\s_]*(?:capacity|bandwidth|bw|rate|speed))?[\s_]*"
    r"[(\[]?([kMGTmgt]?(?:bps|b/s|bit/s|B/s))?[)\]]?",
    re.IGNORECASE,
)
"""Names of the column of capacities, with a unit."""

MAX_COLUMN = 40
"""Most characters of the name of a column."""

Header: TypeAlias = tuple[bool, float | None]
"""Whether the header row names the requested attribute, and the rate of capacity 1."""


def read_header(line: str, text: str, attribute: str | None, place: str) -> Header | None:
    """Read the header row, or return None if the line is an edge.

    Two words are a header only if they are no nodes of the lines to come.
    """
    body = line.partition("#")[0]
    sign = next((sign for sign in (",", "\t") if sign in body), None)
    cells = [cell.strip().strip('"') for cell in body.split(sign)]
    plain = (re.sub(r"[\s_-]", "", cell[:MAX_COLUMN].lower()) for cell in cells)
    if len(cells) == 2 and tuple(plain) in _ENDS:
        return (False, None) if _occur_once(cells, text) else None
    if len(cells) != 3 or len(cells[2]) > MAX_COLUMN:
        return None
    column = cells[2]
    if attribute is not None and column == attribute:
        return True, None
    if column.lower() == "weight":
        raise FormatError(
            f"{place}: the column {column!r} and no capacity; if weights are capacities say so: "
            f"--capacity-attribute {column}"
        )
    match = _CAPACITY.fullmatch(column) if column else None
    if match is None:
        return None
    unit = match[1]
    if unit is None:
        return False, None
    bits = unit[1:] in ("bps", "b/s", "bit/s")
    try:
        return False, bytes_per_second("1" + (unit[0].upper() + unit[1:] if bits else unit))
    except UsageError:
        expected = "expected a unit such as Gbps or GB/s"
        raise FormatError(f"{place}: the column {column!r}; {expected}") from None


def _occur_once(words: list[str], text: str) -> bool:
    """Return whether further lines exist and none of the words is a node of one."""
    lines = re.sub(r"#.*", "", text).strip()
    nodes = "|".join(map(re.escape, words))
    found = re.finditer(rf'(?<![^\s,!"])(?:{nodes})(?![^\s,:"])', lines)
    return "\n" in lines and sum(1 for _ in islice(found, len(words) + 1)) == len(words)


MARK = "!"
"""The first character of a node that is not a terminal."""

MAX_ATTRIBUTES = 1_000
"""Most characters of the attributes in a line: they are a literal, which Python parses."""

CAPACITY, WEIGHT = "capacity", "weight"
"""The attribute of edges with the capacity, and an ambiguous one: a cost, or a width."""

BOTH_WAYS, ONE_WAY = "<->", "->"
ARROWS = (BOTH_WAYS, ONE_WAY, "--", "-")
"""Arrows between two nodes; blanks around the first are optional."""

_OTHER_NUMBER = re.compile(r"[+-][0-9.]+|[0-9]*\.[0-9]*")
_TOKEN = re.compile(r"[^\s#{]+")


@dataclass(frozen=True)
class EdgeLine:
    """An edge: its nodes, their marks, and its width."""

    ends: tuple[str, str]
    marked: tuple[str, ...]
    width: float | None
    """The capacity, or the bytes per second if it has a unit; None if absent."""
    unit: str | None
    """The capacity as written, if it has a unit."""
    has_attribute: bool
    """Whether the attributes of the line include the capacity."""
    one_way: bool
    """Whether an arrow leads from the first node to the second only."""


def read_line(line: str, attribute: str | None, place: str) -> EdgeLine:
    """Read `u v`, `u v capacity` or `u v {attributes}`, with blanks, commas or an arrow between."""
    body = line.partition("#")[0]
    head, brace, rest = body.partition("{")
    words = head.rsplit(None, 1)
    if len(words) == 2 and words[0][-1] in "0123456789" and is_unit(words[1]):
        head = "".join(words)  # 100 Gbit/s
    words, arrow = _split_line(head)
    if len(words) != 2 and not (len(words) == 3 and not brace):
        raise FormatError(
            f"{place}: {quote(line)} is not an edge; expected `u v`, `u v capacity`, "
            "`a:eth0 <-> b:eth1 100G` or `u v {'capacity': 2}`"
        )
    marked = tuple(word.removeprefix(MARK) for word in words[:2] if word.startswith(MARK))
    u, v = (_check_node(word.removeprefix(MARK), place) for word in words[:2])
    if u == v:
        raise FormatError(f"{place}: an edge from {u} to itself; remove the line")
    value = _read_attribute(brace + rest, attribute, place) if brace else None
    text = words[2] if len(words) == 3 else value
    width, unit = (None, None) if text is None else _read_width(str(text), place)
    return EdgeLine((u, v), marked, width, unit, value is not None, arrow == ONE_WAY)


def _split_line(text: str) -> tuple[list[str], str | None]:
    """Split a line into its words and the arrow between its nodes, if any."""
    first, arrow, rest = text.partition(BOTH_WAYS)
    if not arrow:
        first, arrow, rest = [*text.split(None, 2), "", "", ""][:3]
    if arrow not in ARROWS:
        return split_words(text), None
    return [first.strip(), *split_words(rest)], arrow


def split_words(text: str) -> list[str]:
    """Split a text at commas, if blanks follow them or it has no others, else at blanks.

    Commas without blanks are then within names, such as the coordinates of Graph Golf.
    """
    words = text.split()
    if "," in text and (len(words) == 1 or any(word[-1] == "," for word in words)):
        return [word.strip().strip('"') for word in text.strip().removesuffix(",").split(",")]
    return words


def is_token(name: str) -> bool:
    """Return whether a node's name can be written without quotes."""
    whole = _TOKEN.fullmatch(name) is not None and not _OTHER_NUMBER.fullmatch(name)
    if name in ARROWS or BOTH_WAYS in name:
        return False
    return whole and name[0] not in (MARK, ",") and name[-1] != ","


def _check_node(word: str, place: str) -> str:
    if _OTHER_NUMBER.fullmatch(word) or not is_name(word) or not _TOKEN.fullmatch(word):
        expected = "expected a number from 0, or a name without blanks"
        raise FormatError(f"{place}: {quote(word)} is no node; {expected}")
    return word


def _read_attribute(text: str, key: str | None, place: str) -> object:
    """Return the capacity among the attributes that networkx writes, or None."""
    if len(text) > MAX_ATTRIBUTES:
        raise FormatError(f"{place}: {len(text)} characters of attributes; at most 1,000 are read")
    found = _literal(text.strip())
    if not isinstance(found, dict):
        expected = "expected some such as {'capacity': 2}"
        raise FormatError(f"{place}: {quote(text)} are no attributes; {expected}")
    if key is None and CAPACITY not in found and found.get(WEIGHT, 1) != 1:
        raise FormatError(
            f"{place}: the weight {quote(str(found[WEIGHT]))} and no capacity; if weights are "
            "capacities say so: --capacity-attribute weight"
        )
    return found.get(CAPACITY if key is None else key)


@lru_cache(maxsize=1024)
def _literal(text: str) -> Any:
    """Return the value of a Python literal, or None, without evaluating code."""
    try:
        return ast.literal_eval(text)
    except (ValueError, SyntaxError, TypeError, MemoryError, RecursionError):
        return None


def _read_width(word: str, place: str) -> tuple[float, str | None]:
    value, unit = math.nan, word
    try:
        value, unit = float(word), ""
    except ValueError:
        with suppress(UsageError):
            value = bytes_per_second(word)
    if not (math.isfinite(value) and value > 0):
        raise FormatError(
            f"{place}: {quote(word)} is not a capacity; expected a positive finite number, "
            "or one with a unit, such as 100G"
        )
    return value, unit or None


def read_rate(word: str, place: str) -> float:
    """Return a rate such as 100Gbps in bytes per second."""
    try:
        return bytes_per_second(word)
    except UsageError as error:
        raise FormatError(f"{place}: {error}") from None


def quote(word: str) -> str:
    """Quote a piece of the file for a message, cut short."""
    return repr(word if len(word) <= 40 else word[:40] + "...")
