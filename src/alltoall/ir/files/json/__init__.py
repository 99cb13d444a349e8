"""Artefacts as JSON: exact round trips for our nouns, clear errors for everything else."""

from alltoall.ir.files.json.demand import (
    DEMAND_FORMAT,
    demand_from_json,
    demand_from_matrix,
    demand_to_json,
)
from alltoall.ir.files.json.fabric import FABRIC_FORMAT, fabric_from_json, fabric_to_json
from alltoall.ir.files.json.flow import FLOW_FORMAT, flow_from_json, flow_to_json
from alltoall.ir.files.json.problem import (
    CERTIFICATE_FORMAT,
    PROBLEM_FORMAT,
    certificate_from_json,
    certificate_to_json,
    demand_alone,
    problem_from_json,
    problem_to_json,
)
from alltoall.ir.files.json.program import (
    PLAN_FORMAT,
    PROGRAM_FORMAT,
    plan_from_json,
    plan_to_json,
    program_from_json,
    program_to_json,
)
from alltoall.ir.files.json.routes import ROUTES_FORMAT, routes_from_json, routes_to_json
from alltoall.ir.files.json.schedule import (
    SCHEDULE_FORMAT,
    UNEVEN_FORMAT,
    schedule_format,
    schedule_from_json,
    schedule_to_json,
)
from alltoall.ir.files.json.topology import TOPOLOGY_FORMAT, topology_from_json, topology_to_json
from alltoall.ir.files.json.values import format_of, json_text, parse_json, read_json, write_json

__all__ = [
    "CERTIFICATE_FORMAT",
    "DEMAND_FORMAT",
    "FABRIC_FORMAT",
    "FLOW_FORMAT",
    "PLAN_FORMAT",
    "PROBLEM_FORMAT",
    "PROGRAM_FORMAT",
    "ROUTES_FORMAT",
    "SCHEDULE_FORMAT",
    "TOPOLOGY_FORMAT",
    "UNEVEN_FORMAT",
    "certificate_from_json",
    "certificate_to_json",
    "demand_alone",
    "demand_from_json",
    "demand_from_matrix",
    "demand_to_json",
    "fabric_from_json",
    "fabric_to_json",
    "flow_from_json",
    "flow_to_json",
    "format_of",
    "json_text",
    "parse_json",
    "plan_from_json",
    "plan_to_json",
    "problem_from_json",
    "problem_to_json",
    "program_from_json",
    "program_to_json",
    "read_json",
    "routes_from_json",
    "routes_to_json",
    "schedule_format",
    "schedule_from_json",
    "schedule_to_json",
    "topology_from_json",
    "topology_to_json",
    "write_json",
]
