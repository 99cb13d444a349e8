"""Edge lists: one `u v [capacity]` a line, `#` comments; undirected by default.

Comments with a meaning, in any case::

    # directed             every line is one link from u to v
    # parallel             every line is a separate cable
    # nodes: 12            number of nodes, some perhaps without links
    # terminals: 0 1 2     the nodes that send and receive (default: all)
    # name: torus          the topology's name
    # names: ["a", "b"]    the nodes in order; lines use these, or numbers
    # capacity 1: 100Gbps  the rate of a link of capacity 1

Nodes are integers from 0; if any is not, all are names, numbered as they appear. docs/networks.md
explains marks for switches, ports, units and networkx attributes.
"""

import io
import json
import re
from array import array
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

import numpy as np

from alltoall.errors import FormatError
from alltoall.ir.arrays import Floats, Ints, rows
from alltoall.ir.files.json.values import STRINGS, fitting, parse_json
from alltoall.ir.names import checked_names
from alltoall.ir.quantities import exact_rate, rate_in_words
from alltoall.ir.topology import MAX_LINKS, MAX_NODES, Topology
from alltoall.ir.words import counted, one_line
from alltoall.topologies.formats.edge_lines import (
    is_token,
    quote,
    read_header,
    read_line,
    read_rate,
    split_words,
)

PORT = ":"
"""Separates a node from its port, as in `a:eth0`."""

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


def read(
    text: str,
    where: str,
    name: str,
    directed: bool = False,
    capacity: str | None = None,
    parallel: bool = False,
) -> Topology:
    """Read an edge list; `name` is used if the file has none, `capacity` names an attribute."""
    lines = Lines(name, directed, parallel, capacity)
    # Read all lines of a text, and decide between links, cables and ports.
    if text.count("\n") - text.count("#") > MAX_LINKS:
        raise FormatError(f"{where}: more than the limit of {MAX_LINKS:,} edges")
    for at, line in enumerate(io.StringIO(text), start=1):
        stripped, place = line.strip(), f"{where}: line {at}"
        if stripped.startswith("#"):
            _read_comment(lines, stripped, place)
        elif stripped and not _read_header(lines, stripped, text, place):
            _read_edge(lines, stripped, at, where)
    if lines.attribute is not None and len(lines.u) and not lines.attributes:
        raise FormatError(f"{where}: no line has the attribute {lines.attribute!r}; leave it out")
    _settle_direction(lines, where)
    _settle_ports(lines, where)
    names, find = _names(lines, where)
    tokens = zip(lines.tokens, lines.first_line, strict=True)
    number = np.array([_node(token, find, f"{where}: line {at}") for token, at in tokens], np.int64)
    u, v = (number[np.array(ends, dtype=np.int64)] for ends in (lines.u, lines.v))
    nodes = len(names) if names else _node_count(lines, u, v, where)
    widths, notes, rate = _capacities(lines, where)
    if not (lines.directed or lines.parallel or lines.ports):
        _refuse_both_orders(u, v, lambda node: names[node] if names else str(node), where)
    if not lines.directed:
        # Both directions side by side, then by tail and head: the order of Topology.from_edges.
        u, v = np.column_stack([u, v]).ravel(), np.column_stack([v, u]).ravel()
        order = np.lexsort((v, u))
        u, v, widths = u[order], v[order], np.repeat(widths, 2)[order]
    terminals, notes = _terminals(lines, nodes, find, where), lines.notes + notes
    return Topology(lines.name, nodes, u, v, widths, terminals, notes, names, bytes_per_second=rate)


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
    arrays = rows(topology.tail, topology.head, topology.capacity)
    links = (f"{called[u]} {called[v]} {width!r}" for u, v, width in arrays)
    return "\n".join([*header, *links]) + "\n"


def _names(lines: Lines, where: str) -> tuple[tuple[str, ...] | None, dict[str, int] | None]:
    """Return the names of the nodes, and the node of each token; None if tokens are numbers."""
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


def _node(token: str, find: dict[str, int] | None, place: str) -> int:
    if find is None:
        return _integer(token, place, "node ids from 0")
    if token not in find:
        raise FormatError(f"{place}: {quote(token)} is none of the nodes that have names")
    return find[token]


def _capacities(lines: Lines, where: str) -> tuple[Floats, tuple[str, ...], float | None]:
    """Return the capacities, a note, and the rate of capacity 1, the smallest with a unit."""
    capacity = np.array(lines.width, dtype=np.float64)
    if not lines.units:
        notes = () if lines.rate is None else (f"capacity 1 is {rate_in_words(lines.rate)}",)
        return capacity, notes, lines.rate
    if lines.rate is not None:
        raise FormatError(
            f"{where}: lines have units, such as {quote(next(iter(lines.units)))}, and a comment "
            "or the header says what capacity 1 is; expected either"
        )
    if lines.bare is not None:
        raise FormatError(
            f"{where}: line {lines.bare}: no unit, but other lines have one, such as "
            f"{quote(next(iter(lines.units)))}; expected a unit in every line, or in none"
        )
    smallest = min(lines.units, key=lambda unit: lines.units[unit])
    rate = lines.units[smallest]
    return capacity / rate, (f"capacity 1 is {smallest}",), rate


def _terminals(lines: Lines, nodes: int, find: dict[str, int] | None, where: str) -> Ints:
    """Return the listed terminals, or all nodes without a mark."""
    place = f"{where}: terminals"
    marked = {_node(token, find, place) for token in lines.marked}
    if lines.terminals is None:
        return np.array([node for node in range(nodes) if node not in marked], dtype=np.int64)
    listed = sorted(_node(token, find, place) for token in lines.terminals)
    for node in sorted(marked.intersection(listed)):
        problem = f"node {node} is listed, but marked as none by !; expected either"
        raise FormatError(f"{place}: {problem}")
    return np.array(listed, dtype=np.int64)


def _node_count(lines: Lines, u: Ints, v: Ints, where: str) -> int:
    if lines.nodes is not None:
        return lines.nodes
    if not len(u):
        raise FormatError(f"{where}: holds no edge; expected one `u v [capacity]` a line")
    present = np.zeros(int(max(u.max(), v.max())) + 1, dtype=np.bool_)
    present[u] = present[v] = True
    for missing in np.flatnonzero(~present)[:1]:
        hint = "ids must start at 0" if missing == 0 else "ids must have no gaps"
        raise FormatError(
            f"{where}: no edge at node {missing}, though ids go up to {len(present) - 1}; "
            f"{hint}: renumber, or add a line `# nodes: N` if some nodes have no edge, or a line "
            "`# names: [...]` if these are names"
        )
    return len(present)


def _read_comment(lines: Lines, line: str, place: str) -> None:
    mode = _DIRECTED.fullmatch(line)
    if mode is not None:
        setattr(lines, mode[1].lower(), True)
        return
    if _ALMOST_DIRECTED.match(line):
        lines.almost_directed = f"{place}: {quote(line)}"
    header = _HEADER.fullmatch(line)
    if header is None:
        return
    key, value = header[1].lower(), header[2].strip()
    if key == "nodes":
        lines.nodes = _integer(value, place, "a number of nodes")
    elif key == "names":
        lines.names = fitting(parse_json(value, place), STRINGS, f"{place}: names")
    elif key == "terminals":
        lines.terminals = split_words(value)
    elif key == "capacity 1":
        lines.rate = read_rate(value, place)
    elif value:
        lines.name = value


def _read_header(lines: Lines, line: str, text: str, place: str) -> bool:
    """Read a header row, which names the unit of capacities; return whether the line is one."""
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
    """Take lines with arrows `->` as directed; refuse contradictions."""
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
    """Replace ports by their nodes; a cable listed twice counts once."""
    if lines.names is not None or not len(lines.u):
        return
    u, v = (np.array(ends, dtype=np.int64) for ends in (lines.u, lines.v))
    ends = list(lines.tokens)
    nodes = _port_nodes(ends, u, v, where)
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


def _integer(word: str, place: str, expected: str) -> int:
    """Return a node count or a node; `expected` names it in messages."""
    if not (word.isascii() and word.isdecimal()):
        raise FormatError(f"{place}: {quote(word)} is not an integer; expected {expected}")
    if len(word) > len(str(MAX_NODES)) or int(word) > MAX_NODES:
        raise FormatError(f"{place}: {quote(word)} is above the limit of {MAX_NODES:,} nodes")
    return int(word)


def _port_nodes(ends: Sequence[str], u: Ints, v: Ints, where: str) -> list[str] | None:
    """Return the node of each end if the ends of lines are ports, or None if they are nodes.

    A port has one cable, so a name with a colon and several neighbours is a node. If every end has
    a colon and one neighbour, they are ports, or the network would not be connected. In other cases
    the file must say which.
    """
    has_port = np.array([PORT in end for end in ends])
    partners = np.unique(np.sort(np.stack([u, v]), axis=0), axis=1)
    if not has_port.any() or (np.bincount(partners.ravel())[has_port] > 1).any():
        return None
    nodes = [end.partition(PORT)[0] for end in ends]
    if not has_port.all():
        # Refuse some names with colons if, taken as ports, they would merge several nodes.
        first: dict[str, str] = {}
        for end, node in zip(ends, nodes, strict=True):
            if node in first:
                raise FormatError(
                    f"{where}: {first[node]} and {end} are two ports of {node}, or two nodes; give "
                    "every line ports at both ends, or list the nodes in a line `# names: [...]`"
                )
            first[node] = end
        return None
    if "" in nodes:
        raise FormatError(f"{where}: a port {ends[nodes.index('')]!r} of no node; name the node")
    return nodes


def _refuse_both_orders(u: Ints, v: Ints, called: Callable[[int], str], where: str) -> None:
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
