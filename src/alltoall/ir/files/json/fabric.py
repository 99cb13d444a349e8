"""Fabrics as JSON."""

from typing import Any

import numpy as np

from alltoall.errors import FormatError
from alltoall.ir.fabric import Fabric
from alltoall.ir.files.fields import short
from alltoall.ir.files.json.topology import topology_from_json, topology_to_json
from alltoall.ir.files.json.values import artefact, is_number, numbers, positive

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
    """Build a fabric from its JSON form; latency, overhead and injection may be left out."""
    obj = artefact(value, FABRIC_FORMAT, where)
    overhead = obj.get("overhead", 0.0)
    if not is_number(overhead):
        raise FormatError(f"{where}: overhead is {short(overhead)}; expected seconds")
    given = numbers(obj["latency"], "latency", where) if "latency" in obj else 0.0
    return Fabric(
        topology=topology_from_json(obj.get("topology"), f"{where}: topology"),
        bytes_per_second=positive(obj, "bytes_per_second", where),
        latency=np.array(given, dtype=np.float64),
        injection=positive(obj, "injection", where) if "injection" in obj else None,
        overhead=float(overhead),
    )
