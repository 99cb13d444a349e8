"""msccl-tools topology JSON: `links[dst][src]` bandwidths, and switches over groups of links.

A switch `[sources, destinations, bandwidth, name]` limits what all links from its sources to its
destinations carry together. `msccl_hubs` turns switches into nodes that are not terminals.
"""

import json
import reprlib
from typing import Any

import numpy as np

from alltoall.errors import FormatError, TopologyError
from alltoall.ir.files.json.values import parse_json, strings
from alltoall.ir.names import checked_names, distinct_names, is_name
from alltoall.ir.topology import Topology
from alltoall.topologies.formats.msccl_hubs import Links, Switch, expand

# The format is a dense matrix; this many nodes make a file of a hundred megabytes.
MAX_MATRIX_NODES = 8192


def read(text: str, where: str, name: str) -> Topology:
    """Read a topology that msccl-tools saved; GPUs are terminals, switches become hubs."""
    obj = parse_json(text, where)
    if not isinstance(obj, dict) or obj.get("msccl_type") != "topology":
        raise FormatError(
            f'{where}: expected an object with "msccl_type": "topology", as msccl-tools saves it'
        )
    links, nodes = _links(obj.get("links"), where)
    switches = _switches(obj.get("switches", []), nodes, where)
    title = obj.get("name")
    name = title if isinstance(title, str) and title else name
    hubs, rows = expand(nodes, links, switches, where)
    notes = [f"{len(hubs)} hub nodes stand for {len(switches)} switches"] if switches else []
    gpus = _names(obj, nodes, where) or ([str(gpu) for gpu in range(nodes)] if hubs else None)
    names = None if gpus is None else distinct_names([*gpus, *hubs])
    return Topology.from_links(name, nodes + len(hubs), rows, range(nodes), notes, names)


def _names(obj: dict[str, Any], nodes: int, where: str) -> list[str] | None:
    """Return the names of the GPUs, which alltoall adds and msccl-tools does not look at."""
    if "names" not in obj:
        return None
    return list(checked_names(where, nodes, strings(obj["names"], "names", where)))


def write(topology: Topology) -> str:
    """Return the JSON of a topology in which every node is a terminal.

    The format has one bandwidth per pair, so the capacities of parallel links are added up.
    """
    if len(topology.terminals) != topology.nodes:
        raise TopologyError(
            f"{topology.name}: {topology.nodes - len(topology.terminals)} nodes are not terminals, "
            "which msccl-tools cannot express; write the alltoall JSON form instead"
        )
    if topology.nodes > MAX_MATRIX_NODES:
        raise TopologyError(
            f"{topology.name}: {topology.nodes} nodes are too many for the dense matrix of "
            f"msccl-tools; expected at most {MAX_MATRIX_NODES}"
        )
    matrix = np.zeros((topology.nodes, topology.nodes))
    np.add.at(matrix, (topology.head, topology.tail), topology.capacity)
    rows = [[int(cell) if cell.is_integer() else cell for cell in row] for row in matrix.tolist()]
    obj: dict[str, Any] = {"msccl_type": "topology", "name": topology.name, "switches": []}
    obj |= {"links": rows} | ({} if topology.names is None else {"names": topology.names})
    return json.dumps(obj, separators=(",", ":"), allow_nan=False) + "\n"


def _links(value: object, where: str) -> tuple[Links, int]:
    """Return the bandwidth of every pair (source, destination) that has one."""
    if not isinstance(value, list) or not 0 < len(value) <= MAX_MATRIX_NODES:
        raise FormatError(
            f"{where}: links must be a square matrix, 1 to {MAX_MATRIX_NODES} rows of numbers"
        )
    links: Links = {}
    for head, row in enumerate(value):
        if not isinstance(row, list) or len(row) != len(value):
            raise FormatError(f"{where}: links[{head}] is not a row of {len(value)} numbers")
        for tail, cell in enumerate(row):
            bandwidth = _number(cell, f"links[{head}][{tail}]", where)
            if bandwidth and head == tail:
                raise FormatError(
                    f"{where}: links[{head}][{head}] links a node to itself; set it to 0"
                )
            if bandwidth:
                links[tail, head] = bandwidth
    return links, len(value)


def _switches(value: object, nodes: int, where: str) -> list[Switch]:
    if not isinstance(value, list):
        raise FormatError(f"{where}: switches must be an array")
    return [_switch(row, nodes, f"switches[{index}]", where) for index, row in enumerate(value)]


def _switch(row: object, nodes: int, place: str, where: str) -> Switch:
    if not isinstance(row, list) or len(row) != 4:
        raise FormatError(f"{where}: {place} must be [sources, destinations, bandwidth, name]")
    sources, destinations = (_ranks(ranks, nodes, place, where) for ranks in row[:2])
    bandwidth = _number(row[2], f"the bandwidth of {place}", where)
    if bandwidth == 0:
        raise FormatError(f"{where}: {place} has bandwidth 0; leave out its links instead")
    label = str(row[3])[:80].strip()
    return Switch(sources, destinations, bandwidth, label if is_name(label) else "switch")


def _ranks(value: object, nodes: int, place: str, where: str) -> frozenset[int]:
    if not isinstance(value, list) or not value:
        raise FormatError(f"{where}: {place} must list its sources and its destinations")
    for rank in value:
        if type(rank) is not int or not 0 <= rank < nodes:
            raise FormatError(
                f"{where}: {place} names node {reprlib.repr(rank)}; expected 0..{nodes - 1}"
            )
    return frozenset(value)


def _number(value: object, place: str, where: str) -> float:
    if isinstance(value, int | float) and not isinstance(value, bool) and 0 <= value < 1e300:
        return float(value)
    raise FormatError(f"{where}: {place} is {reprlib.repr(value)}; expected a number of 0 or more")
