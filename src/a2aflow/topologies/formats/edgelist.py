"""Edge lists: one `u v [capacity]` a line, `#` comments; undirected unless said otherwise.

Comments that mean something, in any case::

    # directed             every line is one link from u to v
    # nodes: 12            so many nodes, some of which may have no link
    # terminals: 0 1 2     the nodes that send and receive (all of them if left out)
    # name: torus          the topology's name

Node ids are integers from 0.
"""

import io
import re
from array import array
from dataclasses import dataclass, field

import numpy as np

from a2aflow.errors import FormatError
from a2aflow.ir.arrays import Ints
from a2aflow.ir.topology import MAX_LINKS, MAX_NODES, Topology
from a2aflow.ir.words import one_line

_HEADER = re.compile(r"#\s*(name|nodes|terminals)\s*:\s*(.*)", re.IGNORECASE)
_DIRECTED = re.compile(r"#\s*directed\s*", re.IGNORECASE)


@dataclass
class _Lines:
    """What the lines of a file say, collected in compact arrays."""

    name: str
    directed: bool
    nodes: int | None = None
    terminals: list[int] | None = None
    u: "array[int]" = field(default_factory=lambda: array("q"))
    v: "array[int]" = field(default_factory=lambda: array("q"))
    capacity: "array[float]" = field(default_factory=lambda: array("d"))


def read(text: str, where: str, name: str, directed: bool = False) -> Topology:
    """Read an edge list; `name` is used if the file has none."""
    lines = _Lines(name, directed)
    if text.count("\n") - text.count("#") > MAX_LINKS:
        raise FormatError(f"{where}: more than the limit of {MAX_LINKS:,} edges")
    for number, line in enumerate(io.StringIO(text), start=1):
        place = f"{where}: line {number}"
        stripped = line.strip()
        if stripped.startswith("#"):
            _read_comment(lines, stripped, place)
        elif stripped:
            _read_edge(lines, stripped, place)
    return _build(lines, where)


def write(topology: Topology) -> str:
    """Return the edge list of a topology, one directed link a line in the order of its indices."""
    terminals = " ".join(map(str, topology.terminals))
    header = [
        "# directed",
        f"# name: {one_line(topology.name)}",
        f"# nodes: {topology.nodes}",
        f"# terminals: {terminals}",
    ]
    arrays = (topology.tail.tolist(), topology.head.tolist(), topology.capacity.tolist())
    links = (f"{u} {v} {capacity!r}" for u, v, capacity in zip(*arrays, strict=True))
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
    elif key == "terminals":
        ids = value.replace(",", " ").split()
        lines.terminals = [_integer(word, place, "node ids from 0") for word in ids]
    elif value:
        lines.name = value


def _read_edge(lines: _Lines, line: str, place: str) -> None:
    words = line.partition("#")[0].split()
    if len(words) not in (2, 3):
        raise FormatError(
            f"{place}: {_shown(line)} is not an edge; expected `u v` or `u v capacity`"
        )
    u, v = (_integer(word, place, "node ids from 0") for word in words[:2])
    if u == v:
        raise FormatError(f"{place}: an edge from {u} to itself; remove the line")
    if len(lines.u) >= MAX_LINKS:
        raise FormatError(f"{place}: more than the limit of {MAX_LINKS:,} edges")
    lines.u.append(u)
    lines.v.append(v)
    lines.capacity.append(_capacity(words[2], place) if len(words) == 3 else 1.0)


def _integer(word: str, place: str, expected: str) -> int:
    if not (word.isascii() and word.isdecimal()):
        raise FormatError(f"{place}: {_shown(word)} is not an integer; expected {expected}")
    if len(word) > len(str(MAX_NODES)) or int(word) > MAX_NODES:
        raise FormatError(f"{place}: {_shown(word)} is above the limit of {MAX_NODES:,} nodes")
    return int(word)


def _capacity(word: str, place: str) -> float:
    try:
        value = float(word)
    except ValueError:
        value = np.nan
    if not (np.isfinite(value) and value > 0):
        raise FormatError(
            f"{place}: {_shown(word)} is not a capacity; expected a positive finite number"
        )
    return value


def _build(lines: _Lines, where: str) -> Topology:
    u, v = np.array(lines.u, dtype=np.int64), np.array(lines.v, dtype=np.int64)
    capacity = np.array(lines.capacity, dtype=np.float64)
    nodes = _node_count(lines, u, v, where)
    if not lines.directed:
        # Both directions side by side, then by tail and head: the order of Topology.from_edges.
        u, v = np.column_stack([u, v]).ravel(), np.column_stack([v, u]).ravel()
        order = np.lexsort((v, u))
        u, v, capacity = u[order], v[order], np.repeat(capacity, 2)[order]
    terminals = range(nodes) if lines.terminals is None else sorted(lines.terminals)
    return Topology(lines.name, nodes, u, v, capacity, np.array(terminals, dtype=np.int64))


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
            f"{hint}: renumber, or add a line `# nodes: N` if some nodes have no edge"
        )
    return len(present)


def _shown(word: str) -> str:
    """Quote a piece of the file for a message, cut short."""
    return repr(word if len(word) <= 40 else word[:40] + "...")
