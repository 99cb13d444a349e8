"""Demands and groups of terminals as people write them: JSON, or a table or lines of text."""

from collections.abc import Iterable
from pathlib import Path

import numpy as np

from alltoall.errors import DemandError, FormatError, UsageError
from alltoall.ir.arrays import Floats
from alltoall.ir.demand import Demand
from alltoall.ir.files.json.demand import demand_from_json, demand_from_matrix, demand_from_table
from alltoall.ir.files.json.values import parse_json
from alltoall.ir.files.text import read_text
from alltoall.ir.topology import Topology
from alltoall.ir.words import listed

Rows = list[list[str]]


def read_demand(path: Path, topology: Topology) -> Demand:
    """Read JSON, or a matrix as text, with commas or blanks between the cells.

    A first line that is not all numbers names the terminals of the columns. The rows are in the
    same order, or each begins with the name of its own; what is not named sends nothing.
    """
    text, where = read_text(path), str(path)
    if text.lstrip()[:1] in ("{", "["):
        return demand_from_json(parse_json(text, where), topology, where)
    rows = [_cells(line) for line in text.splitlines() if line.strip()]
    if not rows:
        raise FormatError(f"{path}: the file is empty; expected a demand matrix or JSON")
    if all(map(_is_number, rows[0])):
        return demand_from_matrix(_amounts(rows, where), topology, where)
    return _named(rows[0], rows[1:], topology, where)


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
    position = {int(node): at for at, node in enumerate(topology.terminals)}
    nodes = [topology.node_of(member) for member in members]
    stray = next((node for node in nodes if node not in position), None)
    if stray is not None:
        raise UsageError(
            f"a group has node {topology.node_name(stray)} in it, which is not a terminal of "
            f"{topology.name}; expected nodes that send and receive"
        )
    if len(set(nodes)) < max(2, len(nodes)):
        named = listed(map(topology.node_name, nodes))
        raise DemandError(f"a group of {named}; expected two or more terminals, each once")
    return [position[node] for node in nodes]


def _named(header: list[str], rows: Rows, topology: Topology, where: str) -> Demand:
    """Build a demand from a table with names above the columns, and perhaps beside the rows."""
    if not rows:
        raise FormatError(f"{where}: names and no rows; expected amounts below them")
    beside = not header[0] or len(rows[0]) > len(header) or not _is_number(rows[0][0])
    if not beside:
        return demand_from_table(header, header, _amounts(rows, where), topology, where)
    columns = header[1:] if len(rows[0]) == len(header) else header
    amounts = _amounts([row[1:] for row in rows], where)
    return demand_from_table([row[0] for row in rows], columns, amounts, topology, where)


def _cells(line: str) -> list[str]:
    """Cut a line at its commas, or at its blanks if it has none; one comma may end it."""
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
