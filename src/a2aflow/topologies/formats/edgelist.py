"""Edge lists: one `u v [capacity]` a line, `#` comments; undirected unless said otherwise.

Comments that mean something, in any case::

    # directed             every line is one link from u to v
    # nodes: 12            so many nodes, some of which may have no link
    # terminals: 0 1 2     the nodes that send and receive (all of them if left out)
    # name: torus          the topology's name
    # names: ["a", "b"]    the nodes in order; lines have these, or numbers if one cannot be there
    # capacity 1: 100Gbps  what a link of capacity 1 carries

Nodes are integers from 0; if one is anything else, all are names, numbered as they appear.
docs/formats/topology.md has the rest: marks for switches, units, attributes of networkx.
"""

import io
import json
import re
from array import array
from dataclasses import dataclass, field

import numpy as np

from a2aflow.errors import FormatError
from a2aflow.ir.arrays import Floats, Ints
from a2aflow.ir.bandwidth import exact_rate, rate_in_words
from a2aflow.ir.files.json.values import parse_json, strings
from a2aflow.ir.names import checked_names
from a2aflow.ir.topology import MAX_LINKS, MAX_NODES, Topology
from a2aflow.ir.words import one_line
from a2aflow.topologies.formats.edge_lines import (
    is_token,
    read_line,
    read_rate,
    shown,
    split_words,
)

_HEADER = re.compile(r"#\s*(names?|nodes|terminals|capacity 1)\s*:\s*(.*)", re.IGNORECASE)
_DIRECTED = re.compile(r"#\s*directed\s*", re.IGNORECASE)


@dataclass
class _Lines:
    """What the lines of a file say, collected in compact arrays; ends are indices of tokens."""

    name: str
    directed: bool
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
    """What capacity 1 is, in bytes per second."""
    bare: int | None = None
    """The first line whose capacity has no unit, or that has none."""
    attributes: int = 0


def read(
    text: str, where: str, name: str, directed: bool = False, capacity: str | None = None
) -> Topology:
    """Read an edge list; `name` is used if the file has none, `capacity` names an attribute."""
    lines = _Lines(name, directed, capacity)
    if text.count("\n") - text.count("#") > MAX_LINKS:
        raise FormatError(f"{where}: more than the limit of {MAX_LINKS:,} edges")
    for number, line in enumerate(io.StringIO(text), start=1):
        stripped = line.strip()
        if stripped.startswith("#"):
            _read_comment(lines, stripped, f"{where}: line {number}")
        elif stripped:
            _read_edge(lines, stripped, number, where)
    if capacity is not None and len(lines.u) and not lines.attributes:
        raise FormatError(f"{where}: no line has the attribute {capacity!r}; leave it out")
    return _build(lines, where)


def write(topology: Topology) -> str:
    """Return the edge list of a topology, one directed link a line in the order of its indices."""
    called = [str(node) for node in range(topology.nodes)]
    names = []
    if topology.names is not None:
        names = [f"# names: {json.dumps(topology.names, ensure_ascii=False)}"]
        called = list(topology.names) if all(map(is_token, topology.names)) else called
    terminals = " ".join(called[node] for node in topology.terminals.tolist())
    header = [
        "# directed",
        f"# name: {one_line(topology.name)}",
        f"# nodes: {topology.nodes}",
        *names,
        f"# terminals: {terminals}",
    ]
    if topology.bytes_per_second is not None:
        header.append(f"# capacity 1: {exact_rate(topology.bytes_per_second)}")
    arrays = (topology.tail.tolist(), topology.head.tolist(), topology.capacity.tolist())
    links = (f"{called[u]} {called[v]} {width!r}" for u, v, width in zip(*arrays, strict=True))
    return "\n".join([*header, *links]) + "\n"


def _read_comment(lines: _Lines, line: str, place: str) -> None:
    if _DIRECTED.fullmatch(line):
        lines.directed = True
        return
    header = _HEADER.fullmatch(line)
    if header is None:
        return
    key, value = header[1].lower(), header[2].strip()
    if key == "nodes":
        lines.nodes = _integer(value, place, "a number of nodes")
    elif key == "names":
        lines.names = strings(parse_json(value, place), "names", place)
    elif key == "terminals":
        lines.terminals = split_words(value)
    elif key == "capacity 1":
        lines.rate = read_rate(value, place)
    elif value:
        lines.name = value


def _read_edge(lines: _Lines, line: str, number: int, where: str) -> None:
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
    lines.width.append(1.0 if edge.width is None else edge.width)
    if edge.width is not None and edge.unit is not None:
        lines.units.setdefault(edge.unit, edge.width)
    elif lines.bare is None:
        lines.bare = number


def _integer(word: str, place: str, expected: str) -> int:
    if not (word.isascii() and word.isdecimal()):
        raise FormatError(f"{place}: {shown(word)} is not an integer; expected {expected}")
    if len(word) > len(str(MAX_NODES)) or int(word) > MAX_NODES:
        raise FormatError(f"{place}: {shown(word)} is above the limit of {MAX_NODES:,} nodes")
    return int(word)


def _build(lines: _Lines, where: str) -> Topology:
    names, find = _names(lines, where)
    number = _numbers(lines, find, where)
    u, v = (number[np.array(ends, dtype=np.int64)] for ends in (lines.u, lines.v))
    nodes = len(names) if names else _node_count(lines, u, v, where)
    capacity, notes, rate = _capacities(lines, where)
    if not lines.directed:
        # Both directions side by side, then by tail and head: the order of Topology.from_edges.
        u, v = np.column_stack([u, v]).ravel(), np.column_stack([v, u]).ravel()
        order = np.lexsort((v, u))
        u, v, capacity = u[order], v[order], np.repeat(capacity, 2)[order]
    terminals = _terminals(lines, nodes, find, where)
    return Topology(
        lines.name, nodes, u, v, capacity, terminals, notes, names, bytes_per_second=rate
    )


def _names(lines: _Lines, where: str) -> tuple[tuple[str, ...] | None, dict[str, int] | None]:
    """Return what the nodes are called, and the node of each token; None if that is a number."""
    names = None if lines.names is None else tuple(lines.names)
    if names is None and not all(token.isascii() and token.isdecimal() for token in lines.tokens):
        names = tuple(lines.tokens)
    if names is None:
        return None, None
    if lines.nodes not in (None, len(names)):
        raise FormatError(
            f"{where}: {lines.nodes} nodes, but {len(names)} names; expected a name for each node, "
            "those without an edge too, in a line `# names: [...]`"
        )
    if not 0 < len(names) <= MAX_NODES:
        raise FormatError(f"{where}: {len(names):,} names; expected 1 to {MAX_NODES:,}")
    checked_names(where, len(names), names)
    by_name = all(map(is_token, names))
    return names, {name: node for node, name in enumerate(names)} if by_name else None


def _numbers(lines: _Lines, find: dict[str, int] | None, where: str) -> Ints:
    """Return the node of every token."""
    rows = zip(lines.tokens, lines.first_line, strict=True)
    found = [_node(token, find, f"{where}: line {number}") for token, number in rows]
    return np.array(found, dtype=np.int64)


def _node(token: str, find: dict[str, int] | None, place: str) -> int:
    if find is None:
        return _integer(token, place, "node ids from 0")
    if token not in find:
        raise FormatError(f"{place}: {shown(token)} is none of the nodes that have names")
    return find[token]


def _capacities(lines: _Lines, where: str) -> tuple[Floats, tuple[str, ...], float | None]:
    """Return the capacities, a note, and what capacity 1 is; with units, the smallest is 1."""
    capacity = np.array(lines.width, dtype=np.float64)
    if not lines.units:
        notes = () if lines.rate is None else (f"capacity 1 is {rate_in_words(lines.rate)}",)
        return capacity, notes, lines.rate
    if lines.rate is not None:
        raise FormatError(
            f"{where}: lines have units, such as {shown(next(iter(lines.units)))}, and a comment "
            "says what capacity 1 is; expected either"
        )
    if lines.bare is not None:
        raise FormatError(
            f"{where}: line {lines.bare}: no unit, but other lines have one, such as "
            f"{shown(next(iter(lines.units)))}; expected a unit in every line, or in none"
        )
    smallest = min(lines.units, key=lambda unit: lines.units[unit])
    rate = lines.units[smallest]
    return capacity / rate, (f"capacity 1 is {smallest}",), rate


def _terminals(lines: _Lines, nodes: int, find: dict[str, int] | None, where: str) -> Ints:
    """Return the nodes that are listed as terminals, or all that are not marked as none."""
    place = f"{where}: terminals"
    marked = {_node(token, find, place) for token in lines.marked}
    if lines.terminals is None:
        return np.array([node for node in range(nodes) if node not in marked], dtype=np.int64)
    listed = sorted(_node(token, find, place) for token in lines.terminals)
    if marked.intersection(listed):
        raise FormatError(
            f"{place}: node {min(marked.intersection(listed))} is listed, but marked as none by !; "
            "expected either"
        )
    return np.array(listed, dtype=np.int64)


def _node_count(lines: _Lines, u: Ints, v: Ints, where: str) -> int:
    if lines.nodes is not None:
        return lines.nodes
    if not len(u):
        raise FormatError(f"{where}: holds no edge; expected one `u v [capacity]` a line")
    present = np.zeros(int(max(u.max(), v.max())) + 1, dtype=np.bool_)
    present[u] = present[v] = True
    missing = np.flatnonzero(~present)
    if len(missing):
        hint = "ids must start at 0" if missing[0] == 0 else "ids must have no gaps"
        raise FormatError(
            f"{where}: no edge at node {missing[0]}, though ids go up to {len(present) - 1}; "
            f"{hint}: renumber, or add a line `# nodes: N` if some nodes have no edge, or a line "
            "`# names: [...]` if these are names"
        )
    return len(present)
