"""Demands, groups, ranks and addresses as JSON, or as tables and lines of text."""

from collections import Counter
from collections.abc import Iterable
from pathlib import Path

import numpy as np

from alltoall.errors import DemandError, FormatError, UsageError
from alltoall.ir.arrays import Floats, Ints
from alltoall.ir.demand import Demand
from alltoall.ir.files.fields import short
from alltoall.ir.files.json.demand import demand_from_json, demand_from_matrix, demand_from_table
from alltoall.ir.files.json.values import parse_json
from alltoall.ir.files.text import read_text
from alltoall.ir.topology import Topology
from alltoall.ir.words import counted, listed

Rows = list[list[str]]


def read_demand(path: Path, topology: Topology) -> Demand:
    """Read JSON, or a matrix as text, with commas or blanks between the cells.

    A first line that is not all numbers names the terminals of the columns. The rows are in the
    same order, or each begins with a name; terminals without a row send nothing.
    """
    text, where = read_text(path), str(path)
    if text.lstrip()[:1] in ("{", "["):
        return demand_from_json(parse_json(text, where), topology, where)
    rows = [_cells(line) for line in text.splitlines() if line.strip()]
    if not rows:
        raise FormatError(f"{path}: the file is empty; expected a demand matrix or JSON")
    if all(map(_is_number, rows[0])):
        return demand_from_matrix(_amounts(rows, where), topology, where)
    header, *rows = rows  # names above the columns, and perhaps beside the rows
    if not rows:
        raise FormatError(f"{where}: names and no rows; expected amounts below them")
    beside = not header[0] or len(rows[0]) > len(header) or not _is_number(rows[0][0])
    if not beside:
        return demand_from_table(header, header, _amounts(rows, where), topology, where)
    columns = header[1:] if len(rows[0]) == len(header) else header
    amounts = _amounts([row[1:] for row in rows], where)
    return demand_from_table([row[0] for row in rows], columns, amounts, topology, where)


def read_groups(path: Path, topology: Topology) -> list[list[int]]:
    """Read groups of terminals, one a line, with commas or blanks between them."""
    lines = read_text(path).splitlines()
    rows = [_cells(line) for line in lines if line.strip() and not line.startswith("#")]
    if not rows:
        raise FormatError(f"{path}: holds no group; expected one a line, such as a,b,c")
    try:
        return [group_of(row, topology) for row in rows]
    except UsageError as error:
        raise FormatError(f"{path}: {error}") from None


def group_of(members: Iterable[str], topology: Topology) -> list[int]:
    """Return the positions of named terminals among all terminals."""
    nodes = [topology.node_of(member) for member in members]
    positions: list[int] = topology.position[nodes].tolist()
    stray = next((node for node in nodes if topology.position[node] < 0), None)
    if stray is not None:
        raise UsageError(
            f"a group has node {topology.node_name(stray)} in it, which is not a terminal of "
            f"{topology.name}; expected nodes that send and receive"
        )
    if len(set(nodes)) < max(2, len(nodes)):
        named = listed(map(topology.node_name, nodes))
        raise DemandError(f"a group of {named}; expected two or more terminals, each once")
    return positions


def _cells(line: str) -> list[str]:
    """Split a line at commas, or at blanks if it has none; a final comma is allowed."""
    if "," not in line:
        return line.split()
    return [cell.strip() for cell in line.strip().removesuffix(",").split(",")]


def _amounts(rows: Rows, where: str) -> Floats:
    if len({len(row) for row in rows}) != 1:
        raise FormatError(f"{where}: rows of different lengths; expected a square matrix")
    try:
        return np.array([[float(cell) for cell in row] for row in rows])
    except ValueError as error:
        raise FormatError(f"{where}: {error}; expected a matrix of numbers") from None


def _is_number(cell: str) -> bool:
    try:
        float(cell)
    except ValueError:
        return False
    return True


MAX_BYTES = 64 << 20

Row = tuple[str, str, list[str]]
"""Its place in the file, the node, and its values."""


def read_node_values(path: Path, topology: Topology) -> list[str]:
    """Return the one value of every terminal, in their order; see `read_node_rows`."""
    rows = read_node_rows(path, topology, topology.terminals)
    long = next((row for row in rows if len(row) > 1), None)
    if long is not None:
        raise FormatError(f"{path}: {short(' '.join(long))}; expected one value for each node")
    return [row[0] for row in rows]


def read_node_rows(path: Path, topology: Topology, nodes: Ints) -> list[list[str]]:
    """Return the values of some nodes, in their order.

    A file has a line `node value ...` for each, separated by blanks or one comma, with comments
    after `#`, or is a JSON object from nodes to values or arrays. Nodes are names or numbers; each
    must occur exactly once.
    """
    text, where = read_text(path, MAX_BYTES), str(path)
    rows = _json_rows(text, where) if text.lstrip()[:1] == "{" else _text_rows(text, where)
    values: dict[int, list[str]] = {}
    for place, name, value in rows:
        try:
            node = topology.node_of(name)
        except UsageError as error:
            raise FormatError(f"{place}: {error}") from None
        if node in values:
            raise FormatError(f"{place}: node {topology.node_name(node)} is there twice")
        values[node] = value
    strays, missing = (
        sorted(each) for each in (values.keys() - {*nodes}, {*nodes} - values.keys())
    )
    if strays:
        raise FormatError(
            f"{where}: node {topology.node_name(strays[0])} is not a terminal of {topology.name}; "
            "leave it out"
        )
    if missing:
        raise FormatError(
            f"{where}: nothing for node {topology.node_name(missing[0])} "
            f"({counted(len(missing), 'such node')}); expected a line for every one"
        )
    return [values[node] for node in nodes.tolist()]


def read_ranks(path: Path, topology: Topology) -> Ints:
    """Return the rank of every terminal: all of 0 to N - 1, each once."""
    values = read_node_values(path, topology)
    expected = set(map(str, range(len(values))))
    wrong = [f"rank {short(value)}" for value in values if value not in expected]
    wrong += [f"rank {value} twice" for value, times in Counter(values).items() if times > 1]
    if wrong:
        raise FormatError(f"{path}: {wrong[0]}; expected each of 0..{len(values) - 1} once")
    return np.array(values, dtype=np.int64)


def _text_rows(text: str, where: str) -> list[Row]:
    rows = []
    for number, line in enumerate(text.splitlines(), start=1):
        words = line.partition("#")[0].split()
        if len(words) == 1:
            words = words[0].rsplit(",", 1)
        if not words:
            continue
        if len(words) < 2:
            raise FormatError(
                f"{where}: line {number}: {short(line)}; expected a node and its value, or, for "
                "names with blanks in them, a JSON object"
            )
        rows.append((f"{where}: line {number}", words[0].removesuffix(","), words[1:]))
    return rows


def _json_rows(text: str, where: str) -> list[Row]:
    value = parse_json(text, where)
    if not isinstance(value, dict):
        raise FormatError(f"{where}: expected a JSON object from nodes to values")
    rows = {name: each if isinstance(each, list) else [each] for name, each in value.items()}
    for name, row in rows.items():
        if not row or not all(type(each) in (str, int) for each in row):
            raise FormatError(
                f"{where}: {short(name)} has {short(row)}; expected a text or a number, or some"
            )
    return [(where, name, list(map(str, row))) for name, row in rows.items()]
