"""Demands as JSON."""

import math
from typing import Any, cast

import numpy as np

from a2aflow.errors import DemandError, FormatError
from a2aflow.ir.arrays import Floats
from a2aflow.ir.demand import Demand
from a2aflow.ir.files.json.values import artefact, is_number, is_triple, short, take
from a2aflow.ir.topology import Topology

DEMAND_FORMAT = "a2aflow.demand/1"
MAX_CELLS = 1 << 25
"""Most cells of a demand of which only some entries are given."""


def demand_to_json(demand: Demand) -> dict[str, Any]:
    """Return the JSON form of a demand."""
    shape = {"matrix": demand.matrix.tolist()} if demand.matrix is not None else {"uniform": True}
    return {"format": DEMAND_FORMAT, "terminals": demand.terminals, **shape}


def demand_from_json(value: object, topology: Topology, where: str) -> Demand:
    """Build a demand from a bare matrix, or from an object with `uniform`, `matrix` or `entries`.

    A matrix has one row and column per terminal, or one per node with nothing for the others;
    `entries` are `[source node, destination node, amount]`, and what is not listed is zero.
    """
    if isinstance(value, list):
        return demand_from_matrix(matrix_of(value, where), topology, where)
    obj = artefact(value, DEMAND_FORMAT, where)
    if obj.get("uniform") is True:
        return Demand(len(topology.terminals))
    if "matrix" in obj:
        return demand_from_matrix(matrix_of(obj["matrix"], where), topology, where)
    if "entries" in obj:
        return _demand_from_entries(take(obj, "entries", list, where), topology, where)
    raise FormatError(f'{where}: expected one of the keys "uniform", "matrix" and "entries"')


def demand_from_matrix(matrix: Floats, topology: Topology, where: str) -> Demand:
    """Build a demand from a matrix over the terminals, or over all nodes."""
    terminals = topology.terminals
    if matrix.shape == (topology.nodes, topology.nodes) and topology.nodes != len(terminals):
        other = np.ones(topology.nodes, dtype=np.bool_)
        other[terminals] = False
        stray = np.argwhere((matrix != 0) & (other[:, None] | other[None, :]))
        if len(stray):
            raise _not_terminals(int(stray[0][0]), int(stray[0][1]), other, where)
        matrix = matrix[np.ix_(terminals, terminals)]
    try:
        return Demand(len(terminals), matrix)
    except DemandError as error:
        raise DemandError(f"{where}: {error}") from None


def _demand_from_entries(entries: list[object], topology: Topology, where: str) -> Demand:
    if len(topology.terminals) ** 2 > MAX_CELLS:
        raise DemandError(
            f"{where}: a demand between {len(topology.terminals):,} terminals; expected at most "
            f"{math.isqrt(MAX_CELLS):,}, or a uniform demand"
        )
    matrix = np.zeros((len(topology.terminals),) * 2)
    position = {int(node): index for index, node in enumerate(topology.terminals)}
    for index, row in enumerate(entries):
        if not is_triple(row):
            raise FormatError(
                f"{where}: entries[{index}] is {short(row)}; expected [source, destination, amount]"
            )
        source, destination, amount = cast(list[Any], row)
        for node in (source, destination):
            if node not in position:
                raise DemandError(
                    f"{where}: entries[{index}] names node {node}, which is not a terminal of "
                    f"{topology.name}; demand goes between terminals only"
                )
        matrix[position[source], position[destination]] += amount
    return demand_from_matrix(matrix, topology, where)


def _not_terminals(source: int, destination: int, other: Any, where: str) -> DemandError:
    culprit = source if other[source] else destination
    return DemandError(
        f"{where}: demand from node {source} to node {destination}, but node {culprit} is not a "
        "terminal; demand goes between terminals only"
    )


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
