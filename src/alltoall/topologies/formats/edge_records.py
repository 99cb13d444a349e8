"""The lines of an edge list, collected: comments, header row, edges, ports and cables."""

import io
import re
from array import array
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

import numpy as np

from alltoall.errors import FormatError
from alltoall.ir.arrays import Ints
from alltoall.ir.files.json.values import parse_json, strings
from alltoall.ir.topology import MAX_LINKS, MAX_NODES
from alltoall.ir.words import counted
from alltoall.topologies.formats.edge_lines import (
    read_header,
    read_line,
    read_rate,
    shown,
    split_words,
)

PORT = ":"
"""Separates a node from its port, as in `a:eth0`."""


def port_nodes(ends: Sequence[str], u: Ints, v: Ints, where: str) -> list[str] | None:
    """Return the node of each end if the ends of lines are ports, or None if they are nodes.

    A port has one cable, so a name with a colon that is joined to several others is a node. If
    every end has a colon and is joined to one other, only a network of ports is connected.
    Otherwise it may be either, and where it matters the file has to tell.
    """
    has_port = np.array([PORT in end for end in ends])
    partners = np.unique(np.sort(np.stack([u, v]), axis=0), axis=1)
    if not has_port.any() or (np.bincount(partners.ravel())[has_port] > 1).any():
        return None
    nodes = [end.partition(PORT)[0] for end in ends]
    if not has_port.all():
        _refuse_unclear(ends, nodes, where)
        return None
    if "" in nodes:
        raise FormatError(f"{where}: a port {ends[nodes.index('')]!r} of no node; name the node")
    return nodes


def refuse_both_orders(u: Ints, v: Ints, called: Callable[[int], str], where: str) -> None:
    """Refuse lines that name a pair in both orders: one cable from both its ends, or two cables."""
    size = int(max(u.max(initial=0), v.max(initial=0))) + 1
    key, back, pair = u * size + v, v * size + u, np.minimum(u, v) * size + np.maximum(u, v)
    both = np.isin(key, back)
    if both.any():
        first = int(np.argmax(both))
        found, pairs = len(np.unique(pair[both])), len(np.unique(pair))
        raise FormatError(
            f"{where}: lines name {found:,} of {counted(pairs, 'pair')} in both orders, such as "
            f"{called(int(u[first]))} {called(int(v[first]))}; a line is a cable, which goes both "
            "ways, and one that is listed from both ends would count twice; say which it is: "
            "--directed if a line is one direction, --parallel if these are two cables "
            "(in the file, a line `# directed` or `# parallel`)"
        )


def _refuse_unclear(ends: Sequence[str], nodes: Sequence[str], where: str) -> None:
    """Refuse some names with colons if, taken as ports, they would merge several nodes."""
    first: dict[str, str] = {}
    for end, node in zip(ends, nodes, strict=True):
        if node in first:
            raise FormatError(
                f"{where}: {first[node]} and {end} are two ports of {node}, or two nodes; give "
                "every line ports at both ends, or list the nodes in a line `# names: [...]`"
            )
        first[node] = end


def _first_lines(lines: "Lines", ends: Sequence[str], u: Ints, v: Ints, where: str) -> Ints:
    """Return the first line of each cable, in order; its other lines have the same capacity."""
    low, high = (u, v) if lines.directed else (np.minimum(u, v), np.maximum(u, v))
    _, first, cable = np.unique(low * len(ends) + high, return_index=True, return_inverse=True)
    width = np.array(lines.width)
    for line in np.flatnonzero(width != width[first[cable]])[:1]:
        cable_ends = f"{ends[u[line]]} {ends[v[line]]}"
        problem = f"the cable {cable_ends} is listed with two capacities; expected one"
        raise FormatError(f"{where}: {problem}")
    return np.sort(first).astype(np.int64)


_HEADER = re.compile(r"#\s*(names?|nodes|terminals|capacity 1)\s*:\s*(.*)", re.IGNORECASE)
_DIRECTED = re.compile(r"#\s*(directed|parallel)\s*", re.IGNORECASE)
_ALMOST_DIRECTED = re.compile(r"#\s*directed\b", re.IGNORECASE)


@dataclass
class Lines:
    """The lines of a file in compact arrays; ends are indices of tokens."""

    name: str
    directed: bool
    parallel: bool
    attribute: str | None
    nodes: int | None = None
    names: list[str] | None = None
    terminals: list[str] | None = None
    tokens: dict[str, int] = field(default_factory=dict)
    first_line: "array[int]" = field(default_factory=lambda: array("q"))
    marked: set[str] = field(default_factory=set)
    u: "array[int]" = field(default_factory=lambda: array("q"))
    v: "array[int]" = field(default_factory=lambda: array("q"))
    width: "array[float]" = field(default_factory=lambda: array("d"))
    units: dict[str, float] = field(default_factory=dict)
    rate: float | None = None
    """Bytes per second of capacity 1."""
    bare: int | None = None
    """The first line without a unit or capacity."""
    attributes: int = 0
    one_way: int = 0
    almost_directed: str | None = None
    """A comment that begins like `# directed`."""
    has_header: bool = False
    ports: bool = False
    notes: tuple[str, ...] = ()


def collect(text: str, where: str, lines: Lines) -> None:
    """Read all lines of a text, and decide between links, cables and ports."""
    if text.count("\n") - text.count("#") > MAX_LINKS:
        raise FormatError(f"{where}: more than the limit of {MAX_LINKS:,} edges")
    for number, line in enumerate(io.StringIO(text), start=1):
        stripped = line.strip()
        if stripped.startswith("#"):
            _read_comment(lines, stripped, f"{where}: line {number}")
        elif stripped and not _read_header(lines, stripped, text, f"{where}: line {number}"):
            _read_edge(lines, stripped, number, where)
    if lines.attribute is not None and len(lines.u) and not lines.attributes:
        raise FormatError(f"{where}: no line has the attribute {lines.attribute!r}; leave it out")
    _settle_direction(lines, where)
    _settle_ports(lines, where)


def _read_comment(lines: Lines, line: str, place: str) -> None:
    mode = _DIRECTED.fullmatch(line)
    if mode is not None:
        setattr(lines, mode[1].lower(), True)
        return
    if _ALMOST_DIRECTED.match(line):
        lines.almost_directed = f"{place}: {shown(line)}"
    header = _HEADER.fullmatch(line)
    if header is None:
        return
    key, value = header[1].lower(), header[2].strip()
    if key == "nodes":
        lines.nodes = integer(value, place, "a number of nodes")
    elif key == "names":
        lines.names = strings(parse_json(value, place), "names", place)
    elif key == "terminals":
        lines.terminals = split_words(value)
    elif key == "capacity 1":
        lines.rate = read_rate(value, place)
    elif value:
        lines.name = value


def _read_header(lines: Lines, line: str, text: str, place: str) -> bool:
    """Read the header row, which describes the capacities; return whether the line is one."""
    if len(lines.u) or lines.has_header or lines.names is not None:
        return False
    header = read_header(line, text, lines.attribute, place)
    if header is None:
        return False
    names_attribute, rate = header
    lines.has_header = True
    lines.attributes += names_attribute
    lines.rate = lines.rate if rate is None else rate
    return True


def _read_edge(lines: Lines, line: str, number: int, where: str) -> None:
    edge = read_line(line, lines.attribute, f"{where}: line {number}")
    if len(lines.u) >= MAX_LINKS:
        raise FormatError(f"{where}: line {number}: more than the limit of {MAX_LINKS:,} edges")
    for token, ends in zip(edge.ends, (lines.u, lines.v), strict=True):
        if token not in lines.tokens:
            lines.tokens[token] = len(lines.tokens)
            lines.first_line.append(number)
        ends.append(lines.tokens[token])
    lines.marked.update(edge.marked)
    lines.attributes += edge.has_attribute
    lines.one_way += edge.one_way
    lines.width.append(1.0 if edge.width is None else edge.width)
    if edge.width is not None and edge.unit is not None:
        lines.units.setdefault(edge.unit, edge.width)
    elif lines.bare is None:
        lines.bare = number


def _settle_direction(lines: Lines, where: str) -> None:
    """Take lines with arrows `->` as directed; refuse what contradicts itself."""
    if 0 < lines.one_way < len(lines.u):
        raise FormatError(
            f"{where}: {lines.one_way} of {len(lines.u)} lines have an arrow `->`; expected one in "
            "every line, or in none"
        )
    lines.directed |= lines.one_way > 0
    if lines.almost_directed is not None and not (lines.directed or lines.parallel):
        raise FormatError(
            f"{lines.almost_directed} looks like `# directed`, which makes every line one "
            "direction, and is not; say which it is: --directed if a line is one direction, "
            "--parallel if it is a cable, which goes both ways; or reword the comment"
        )
    if lines.directed and lines.parallel:
        raise FormatError(
            f"{where}: lines are one direction (`->`, `# directed` or --directed) and cables "
            "(`# parallel` or --parallel); expected one of these"
        )


def _settle_ports(lines: Lines, where: str) -> None:
    """Put nodes in the place of ports; a cable that is listed twice counts once."""
    if lines.names is not None or not len(lines.u):
        return
    u, v = (np.array(ends, dtype=np.int64) for ends in (lines.u, lines.v))
    ends = list(lines.tokens)
    nodes = port_nodes(ends, u, v, where)
    if nodes is None:
        return
    lines.ports = True
    keep = _first_lines(lines, ends, u, v, where)
    keep = np.arange(len(u)) if lines.parallel else keep
    if len(keep) < len(u):
        lines.notes += (
            f"{len(u) - len(keep):,} of {len(u):,} lines name a cable by its ports "
            "that an earlier line named; each cable counts once",
        )
    first = dict(zip(reversed(nodes), reversed(lines.first_line), strict=True))
    lines.tokens = {node: number for number, node in enumerate(dict.fromkeys(nodes))}
    lines.first_line = array("q", [first[node] for node in lines.tokens])
    number = np.array([lines.tokens[node] for node in nodes], dtype=np.int64)
    for line in np.flatnonzero(number[u] == number[v])[:1]:
        cable = f"{ends[u[line]]} {ends[v[line]]}"
        raise FormatError(f"{where}: a cable {cable} from a node to itself; remove it")
    lines.u, lines.v = (array("q", number[end[keep]].tolist()) for end in (u, v))
    lines.width = array("d", np.array(lines.width)[keep].tolist())
    lines.marked = {end.partition(PORT)[0] for end in lines.marked}


def integer(word: str, place: str, expected: str) -> int:
    """Return a number of nodes, or a node; `expected` says which."""
    if not (word.isascii() and word.isdecimal()):
        raise FormatError(f"{place}: {shown(word)} is not an integer; expected {expected}")
    if len(word) > len(str(MAX_NODES)) or int(word) > MAX_NODES:
        raise FormatError(f"{place}: {shown(word)} is above the limit of {MAX_NODES:,} nodes")
    return int(word)
