"""Topologies, problems, certificates, fabrics and provenance as JSON."""

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np

from alltoall.errors import FormatError
from alltoall.ir.answer import Certificate
from alltoall.ir.demand import Demand
from alltoall.ir.fabric import Fabric
from alltoall.ir.files.fields import Json, short, take_int, take_list, take_object, take_text
from alltoall.ir.files.json.demand import DEMAND_FORMAT, demand_from_json, demand_to_json, matrix_of
from alltoall.ir.files.json.values import (
    INTEGERS,
    MAX_INTEGER,
    NUMBERS,
    STRINGS,
    are_integers,
    artefact,
    is_integer,
    is_number,
    positive,
    take,
)
from alltoall.ir.noun import Provenance
from alltoall.ir.problem import Problem
from alltoall.ir.topology import Topology

PROVENANCE = "provenance"


KINDS: dict[str, tuple[Callable[[object], bool], str]] = {
    **dict.fromkeys(
        ("version", "command", "method", "solver", "date"),
        (lambda value: isinstance(value, str), "a string"),
    ),
    "seed": (is_integer, "an integer"),
    **dict.fromkeys(("gap", "seconds"), (is_number, "a number")),
}
"""The type of each field; fields of other names are ignored."""


def provenance_from_json(obj: dict[str, Any], where: str) -> Provenance | None:
    """Return the provenance in an artefact, if it has any."""
    if PROVENANCE not in obj:
        return None
    block = take_object(obj[PROVENANCE], f"{where}: {PROVENANCE}")
    known = {key: value for key, value in block.items() if key in KINDS}
    for key, value in known.items():
        fits, expected = KINDS[key]
        if not fits(value):
            raise FormatError(f"{where}: {PROVENANCE}.{key} is {short(value)}; expected {expected}")
    return Provenance(**known)


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
    """Build a topology from its JSON form; missing `terminals` mean all nodes."""
    obj = artefact(value, TOPOLOGY_FORMAT, where)
    fields, rows = topology_fields(obj, where), take_list(obj, "links", where)
    for index, row in enumerate(rows):
        sound = isinstance(row, list) and len(row) == 3 and are_integers(row[:2])
        if not sound or not is_number(row[2]):
            raise FormatError(
                f"{where}: links[{index}] is {short(row)}; expected [tail, head, capacity] "
                "with two integers and a number"
            )
    terminals = take(obj, "terminals", INTEGERS, where, None)
    topology = Topology.from_links(fields["name"], fields["nodes"], rows, terminals)
    return replace(topology, **fields, provenance=provenance_from_json(obj, where))


def topology_fields(obj: Json, where: str) -> Json:
    """Return the fields of a topology that are the same in all its forms."""
    rate = "bytes_per_second"
    return {
        "name": take_text(obj, "name", where) if "name" in obj else where,
        "nodes": take_int(obj, "nodes", where, MAX_INTEGER),
        "notes": tuple(take(obj, "notes", STRINGS, where, [])),
        "names": take(obj, "names", STRINGS, where, None),
        rate: positive(obj, rate, where) if rate in obj else None,
    }


PROBLEM_FORMAT = "alltoall.problem/1"
CERTIFICATE_FORMAT = "alltoall.certificate/1"


def problem_to_json(problem: Problem) -> dict[str, Any]:
    """Return the JSON form of a problem: its topology and its demand."""
    parts = topology_to_json(problem.topology), demand_to_json(problem.demand)
    return {"format": PROBLEM_FORMAT, "topology": parts[0], "demand": parts[1]}


def problem_from_json(value: object, where: str) -> Problem:
    """Build a problem from its JSON form."""
    obj = artefact(value, PROBLEM_FORMAT, where)
    topology = topology_from_json(obj.get("topology"), f"{where}: topology")
    return Problem(topology, demand_from_json(obj.get("demand"), topology, f"{where}: demand"))


def certificate_to_json(certificate: Certificate) -> dict[str, Any]:
    """Return the JSON form of a certificate."""
    lengths = certificate.lengths.tolist()
    return {"format": CERTIFICATE_FORMAT, "bound": certificate.bound, "lengths": lengths}


def certificate_from_json(value: object, where: str) -> Certificate:
    """Build a certificate from its JSON form, unchecked."""
    obj = artefact(value, CERTIFICATE_FORMAT, where)
    lengths = np.array(take(obj, "lengths", NUMBERS, where), dtype=np.float64)
    return Certificate(lengths, positive(obj, "bound", where))


def demand_alone(value: object, where: str) -> Demand:
    """Build a demand without a topology: `terminals`, and uniform or a matrix."""
    obj = artefact(value, DEMAND_FORMAT, where)
    if obj.get("uniform") is True:
        return Demand(take_int(obj, "terminals", where))
    if "matrix" not in obj:
        raise FormatError(
            f'{where}: a demand with neither "uniform" nor "matrix"; entries name nodes, so give '
            "the file together with its topology"
        )
    matrix = matrix_of(obj["matrix"], where)
    return Demand(len(matrix), matrix)


FABRIC_FORMAT = "alltoall.fabric/1"


def fabric_to_json(fabric: Fabric) -> dict[str, Any]:
    """Return the JSON form of a fabric, in bytes and seconds."""
    value = {
        "format": FABRIC_FORMAT,
        "topology": topology_to_json(fabric.topology),
        "bytes_per_second": fabric.bytes_per_second,
        "latency": fabric.latency.tolist(),
        "overhead": fabric.overhead,
    }
    return value if fabric.injection is None else {**value, "injection": fabric.injection}


def fabric_from_json(value: object, where: str) -> Fabric:
    """Build a fabric from its JSON form; latency, overhead and injection are optional."""
    obj = artefact(value, FABRIC_FORMAT, where)
    overhead = obj.get("overhead", 0.0)
    if not is_number(overhead):
        raise FormatError(f"{where}: overhead is {short(overhead)}; expected seconds")
    given = take(obj, "latency", NUMBERS, where, 0.0)
    return Fabric(
        topology=topology_from_json(obj.get("topology"), f"{where}: topology"),
        bytes_per_second=positive(obj, "bytes_per_second", where),
        latency=np.array(given, dtype=np.float64),
        injection=positive(obj, "injection", where) if "injection" in obj else None,
        overhead=float(overhead),
    )
