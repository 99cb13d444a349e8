"""Demands as JSON."""

import math
from functools import partial
from typing import Any

import numpy as np

from alltoall.errors import DemandError, FormatError, UsageError
from alltoall.ir.arrays import Floats
from alltoall.ir.demand import Demand, check_amounts
from alltoall.ir.files.fields import short, take_list
from alltoall.ir.files.json.values import STRINGS, artefact, is_integer, is_number, take
from alltoall.ir.topology import Topology

DEMAND_FORMAT = "alltoall.demand/1"
MAX_CELLS = 1 << 25
"""Most cells of a demand given by entries."""


def demand_to_json(demand: Demand) -> dict[str, Any]:
    """Return the JSON form of a demand."""
    shape = {"matrix": demand.matrix.tolist()} if demand.matrix is not None else {"uniform": True}
    return {"format": DEMAND_FORMAT, "terminals": demand.terminals, **shape}


def demand_from_json(value: object, topology: Topology, where: str) -> Demand:
    """Build a demand from a bare matrix, or from an object with `uniform`, `matrix` or `entries`.

    A matrix has one row and column per terminal, or one per node with nothing for the others, or
    one per node that `names` lists, in its order. `entries` are `[source, destination, amount]`.
    Nodes are numbers or names; missing entries are zero.
    """
    if isinstance(value, list):
        return demand_from_matrix(matrix_of(value, where), topology, where)
    obj = artefact(value, DEMAND_FORMAT, where)
    if obj.get("uniform") is True:
        return Demand(len(topology.terminals))
    if "matrix" in obj:
        matrix = matrix_of(obj["matrix"], where)
        if "names" not in obj:
            return demand_from_matrix(matrix, topology, where)
        names = take(obj, "names", STRINGS, where)
        return demand_from_table(names, names, matrix, topology, where)
    if "entries" in obj:
        return _demand_from_entries(take_list(obj, "entries", where), topology, where)
    raise FormatError(f'{where}: expected one of the keys "uniform", "matrix" and "entries"')


def demand_from_table(
    senders: list[str], receivers: list[str], amounts: Floats, topology: Topology, where: str
) -> Demand:
    """Build a demand from a table with the names of senders and receivers."""
    if amounts.shape != (len(senders), len(receivers)):
        shape = "x".join(map(str, amounts.shape))
        raise DemandError(
            f"{where}: a matrix of {shape} cells for {len(senders)} senders and {len(receivers)} "
            "receivers; expected a row and a column for each"
        )
    find = partial(_position, topology, f"{where}: the table")
    rows, columns = ([find(name) for name in names] for names in (senders, receivers))
    for names, found in ((senders, rows), (receivers, columns)):
        if len(set(found)) < len(found):
            twice = next(name for name, at in zip(names, found, strict=True) if found.count(at) > 1)
            raise DemandError(f"{where}: {twice!r} is there twice; expected every node once")
    matrix = _zeros(topology, where)
    matrix[np.ix_(rows, columns)] = amounts
    return demand_from_matrix(matrix, topology, where)


def _position(topology: Topology, here: str, node: int | str) -> int:
    """Return the position of the terminal that a number or a name in a file means."""
    try:
        number = topology.node_of(node) if isinstance(node, str) else node
    except UsageError as error:
        raise DemandError(f"{here}: {error}") from None
    if not 0 <= number < topology.nodes or topology.position[number] < 0:
        raise DemandError(
            f"{here} names node {topology.node_name(number)}, which is not a terminal of "
            f"{topology.name}; demand goes between terminals only"
        )
    return int(topology.position[number])


def demand_from_matrix(matrix: Floats, topology: Topology, where: str) -> Demand:
    """Build a demand from a matrix over the terminals, or over all nodes."""
    terminals = topology.terminals
    if matrix.shape == (topology.nodes, topology.nodes) and topology.nodes != len(terminals):
        other = topology.position < 0
        stray = np.argwhere((matrix != 0) & (other[:, None] | other[None, :]))
        if len(stray):
            source, destination = map(topology.node_name, stray[0].tolist())
            culprit = source if other[stray[0][0]] else destination
            raise DemandError(
                f"{where}: demand from node {source} to node {destination}, but node {culprit} is "
                "not a terminal; demand goes between terminals only"
            )
        matrix = matrix[np.ix_(terminals, terminals)]
    try:
        if matrix.shape == (len(terminals),) * 2:
            check_amounts(matrix, topology.terminal_name)
        return Demand(len(terminals), matrix)
    except DemandError as error:
        raise DemandError(f"{where}: {error}") from None


def _demand_from_entries(entries: list[Any], topology: Topology, where: str) -> Demand:
    matrix = _zeros(topology, where)
    for index, row in enumerate(entries):
        sound = isinstance(row, list) and len(row) == 3 and is_number(row[2])
        if not (sound and all(isinstance(node, str) or is_integer(node) for node in row[:2])):
            raise FormatError(
                f"{where}: entries[{index}] is {short(row)}; expected [source, destination, amount]"
            )
        here = f"{where}: entries[{index}]"
        source, destination = (_position(topology, here, node) for node in row[:2])
        matrix[source, destination] += row[2]
    return demand_from_matrix(matrix, topology, where)


def _zeros(topology: Topology, where: str) -> Floats:
    """Return an empty demand matrix; refuse one that is too large."""
    if len(topology.terminals) ** 2 > MAX_CELLS:
        raise DemandError(
            f"{where}: a demand between {len(topology.terminals):,} terminals; expected at most "
            f"{math.isqrt(MAX_CELLS):,}, or a uniform demand"
        )
    return np.zeros((len(topology.terminals),) * 2)


def matrix_of(value: object, where: str) -> Floats:
    """Return the array of rows of numbers, all as long as the first."""
    if not isinstance(value, list) or not value:
        raise FormatError(f"{where}: matrix is {short(value)}; expected an array of rows")
    for index, row in enumerate(value):
        if not isinstance(row, list) or not all(map(is_number, row)):
            raise FormatError(f"{where}: matrix row {index} is not an array of numbers")
        if len(row) != len(value[0]):
            raise FormatError(
                f"{where}: matrix row {index} has {len(row)} cells, row 0 has {len(value[0])}"
            )
    return np.array(value, dtype=np.float64)
