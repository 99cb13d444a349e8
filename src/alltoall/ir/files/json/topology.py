"""Topologies as JSON."""

from dataclasses import replace
from typing import Any

from alltoall.errors import FormatError
from alltoall.ir.files.fields import short, take_int, take_list, take_text
from alltoall.ir.files.json.provenance import provenance_from_json
from alltoall.ir.files.json.values import (
    MAX_INTEGER,
    artefact,
    integers,
    is_triple,
    positive,
    strings,
)
from alltoall.ir.topology import Topology

TOPOLOGY_FORMAT = "alltoall.topology/1"


def topology_to_json(topology: Topology) -> dict[str, Any]:
    """Return the JSON form of a topology."""
    columns = (topology.tail.tolist(), topology.head.tolist(), topology.capacity.tolist())
    value = {
        "format": TOPOLOGY_FORMAT,
        "name": topology.name,
        "nodes": topology.nodes,
        "links": [list(row) for row in zip(*columns, strict=True)],
        "terminals": topology.terminals.tolist(),
    }
    value |= {"notes": list(topology.notes)} if topology.notes else {}
    if topology.bytes_per_second is not None:
        value["bytes_per_second"] = topology.bytes_per_second
    return value | ({"names": list(topology.names)} if topology.names is not None else {})


def topology_from_json(value: object, where: str) -> Topology:
    """Build a topology from its JSON form; `terminals` may be left out and then means all.

    `names`, one per node, is there only if nodes have names, `bytes_per_second` only if it is known
    what capacity 1 is, and `provenance` in a file of its own.
    """
    obj = artefact(value, TOPOLOGY_FORMAT, where)
    nodes = take_int(obj, "nodes", where, MAX_INTEGER)
    rows = take_list(obj, "links", where)
    for index, row in enumerate(rows):
        if not is_triple(row):
            raise FormatError(
                f"{where}: links[{index}] is {short(row)}; expected [tail, head, capacity] "
                "with two integers and a number"
            )
    terminals = integers(obj["terminals"], "terminals", where) if "terminals" in obj else None
    notes = strings(obj.get("notes", []), "notes", where)
    names = strings(obj["names"], "names", where) if "names" in obj else None
    name = take_text(obj, "name", where) if "name" in obj else where
    rate = positive(obj, "bytes_per_second", where) if "bytes_per_second" in obj else None
    topology = Topology.from_links(name, nodes, rows, terminals, notes, names)
    made = provenance_from_json(obj, where)
    return replace(topology, bytes_per_second=rate, provenance=made)
