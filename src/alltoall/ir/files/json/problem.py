"""Problems and certificates as JSON: the parts of an answer that can be had without it."""

from typing import Any

import numpy as np

from alltoall.errors import FormatError
from alltoall.ir.answer import Certificate
from alltoall.ir.demand import Demand
from alltoall.ir.files.fields import take_int
from alltoall.ir.files.json.demand import DEMAND_FORMAT, demand_from_json, demand_to_json, matrix_of
from alltoall.ir.files.json.topology import topology_from_json, topology_to_json
from alltoall.ir.files.json.values import artefact, numbers, positive
from alltoall.ir.problem import Problem

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
    """Build a certificate from its JSON form; what it proves depends on the problem."""
    obj = artefact(value, CERTIFICATE_FORMAT, where)
    lengths = np.array(numbers(obj.get("lengths"), "lengths", where), dtype=np.float64)
    return Certificate(lengths, positive(obj, "bound", where))


def demand_alone(value: object, where: str) -> Demand:
    """Build a demand that is not read for a topology: `terminals`, and uniform or a matrix."""
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
