"""Edge lists: one `u v [capacity]` a line, `#` comments; undirected unless said otherwise.

Comments that mean something, in any case::

    # directed             every line is one link from u to v
    # parallel             every line is a cable of its own
    # nodes: 12            so many nodes, some of which may have no link
    # terminals: 0 1 2     the nodes that send and receive (all of them if left out)
    # name: torus          the topology's name
    # names: ["a", "b"]    the nodes in order; lines have these, or numbers if one cannot be there
    # capacity 1: 100Gbps  what a link of capacity 1 carries

Nodes are integers from 0; if one is anything else, all are names, numbered as they appear.
docs/networks.md has the rest: marks for switches, ports, units, attributes of networkx.
"""

import json

import numpy as np

from alltoall.errors import FormatError
from alltoall.ir.arrays import Floats, Ints
from alltoall.ir.names import checked_names
from alltoall.ir.quantities import exact_rate, rate_in_words
from alltoall.ir.topology import MAX_NODES, Topology
from alltoall.ir.words import one_line
from alltoall.topologies.formats.edge_lines import is_token, shown
from alltoall.topologies.formats.edge_records import Lines, collect, integer, refuse_both_orders


def read(
    text: str,
    where: str,
    name: str,
    directed: bool = False,
    capacity: str | None = None,
    parallel: bool = False,
) -> Topology:
    """Read an edge list; `name` is used if the file has none, `capacity` names an attribute.

    `directed` makes every line one link, `parallel` every line a cable of its own.
    """
    lines = Lines(name, directed, parallel, capacity)
    collect(text, where, lines)
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


def _build(lines: Lines, where: str) -> Topology:
    names, find = _names(lines, where)
    number = _numbers(lines, find, where)
    u, v = (number[np.array(ends, dtype=np.int64)] for ends in (lines.u, lines.v))
    nodes = len(names) if names else _node_count(lines, u, v, where)
    capacity, notes, rate = _capacities(lines, where)
    if not (lines.directed or lines.parallel or lines.ports):
        refuse_both_orders(u, v, lambda node: names[node] if names else str(node), where)
    if not lines.directed:
        # Both directions side by side, then by tail and head: the order of Topology.from_edges.
        u, v = np.column_stack([u, v]).ravel(), np.column_stack([v, u]).ravel()
        order = np.lexsort((v, u))
        u, v, capacity = u[order], v[order], np.repeat(capacity, 2)[order]
    terminals = _terminals(lines, nodes, find, where)
    return Topology(
        lines.name,
        nodes,
        u,
        v,
        capacity,
        terminals,
        lines.notes + notes,
        names,
        bytes_per_second=rate,
    )


def _names(lines: Lines, where: str) -> tuple[tuple[str, ...] | None, dict[str, int] | None]:
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


def _numbers(lines: Lines, find: dict[str, int] | None, where: str) -> Ints:
    """Return the node of every token."""
    rows = zip(lines.tokens, lines.first_line, strict=True)
    found = [_node(token, find, f"{where}: line {number}") for token, number in rows]
    return np.array(found, dtype=np.int64)


def _node(token: str, find: dict[str, int] | None, place: str) -> int:
    if find is None:
        return integer(token, place, "node ids from 0")
    if token not in find:
        raise FormatError(f"{place}: {shown(token)} is none of the nodes that have names")
    return find[token]


def _capacities(lines: Lines, where: str) -> tuple[Floats, tuple[str, ...], float | None]:
    """Return the capacities, a note, and what capacity 1 is; with units, the smallest is 1."""
    capacity = np.array(lines.width, dtype=np.float64)
    if not lines.units:
        notes = () if lines.rate is None else (f"capacity 1 is {rate_in_words(lines.rate)}",)
        return capacity, notes, lines.rate
    if lines.rate is not None:
        raise FormatError(
            f"{where}: lines have units, such as {shown(next(iter(lines.units)))}, and a comment "
            "or the header says what capacity 1 is; expected either"
        )
    if lines.bare is not None:
        raise FormatError(
            f"{where}: line {lines.bare}: no unit, but other lines have one, such as "
            f"{shown(next(iter(lines.units)))}; expected a unit in every line, or in none"
        )
    smallest = min(lines.units, key=lambda unit: lines.units[unit])
    rate = lines.units[smallest]
    return capacity / rate, (f"capacity 1 is {smallest}",), rate


def _terminals(lines: Lines, nodes: int, find: dict[str, int] | None, where: str) -> Ints:
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


def _node_count(lines: Lines, u: Ints, v: Ints, where: str) -> int:
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
