"""`a2aflow verify`: an independent check of any artefact."""

from collections.abc import Callable
from dataclasses import asdict
from pathlib import Path
from typing import Annotated, Any

import typer

from a2aflow.cli.lowered import verify_lowered
from a2aflow.cli.options import AsJson, load_topology
from a2aflow.cli.show import line_of, show
from a2aflow.errors import UsageError
from a2aflow.ir.files import read_text
from a2aflow.ir.json import (
    FLOW_FORMAT,
    ROUTES_FORMAT,
    SCHEDULE_FORMAT,
    flow_from_json,
    format_of,
    parse_json,
    routes_from_json,
    schedule_from_json,
)
from a2aflow.ir.problem import Problem
from a2aflow.ir.verify import TOLERANCE, check_flow, check_topology
from a2aflow.ir.verify_routes import check_routes
from a2aflow.ir.verify_schedule import check_schedule
from a2aflow.lower import kind_of
from a2aflow.lower.routed import routed_kind, verify_routed_text
from a2aflow.solve import solve
from a2aflow.topologies.formats import read_topology

Check = Callable[[object, str, float], dict[str, Any]]


def _verify_flow(value: object, where: str, tolerance: float) -> dict[str, Any]:
    flow = flow_from_json(value, where)
    return {"topology": flow.problem.topology.name, **asdict(check_flow(flow, tolerance))}


def _verify_schedule(value: object, where: str, tolerance: float) -> dict[str, Any]:
    schedule = schedule_from_json(value, where)
    report = check_schedule(schedule, tolerance)
    return {"topology": schedule.problem.topology.name, **asdict(report)}


def _verify_routes(value: object, where: str, tolerance: float) -> dict[str, Any]:
    routes = routes_from_json(value, where)
    return {"topology": routes.problem.topology.name, **asdict(check_routes(routes, tolerance))}


CHECKS: dict[str, Check] = {
    FLOW_FORMAT: _verify_flow,
    SCHEDULE_FORMAT: _verify_schedule,
    ROUTES_FORMAT: _verify_routes,
}
"""How to check an artefact, by its format; other files are lowered programs, or topologies."""


def verify_verb(
    file: Annotated[Path, typer.Argument(metavar="FILE", help="The artefact.", show_default=False)],
    topology: Annotated[
        str | None,
        typer.Option(
            metavar="SPEC",
            help="For lowered files: check that they keep to the links of this topology, and hold "
            "their time against the certified bound.",
        ),
    ] = None,
    tolerance: Annotated[float, typer.Option(help="Largest relative error.")] = TOLERANCE,
    as_json: AsJson = False,
) -> None:
    """Check an artefact without trusting what made it.

    A flow must conserve, fit the capacities, meet the demand, and its certificate must prove its
    bound; a schedule must deliver every chunk and send none before it is there; routes must be
    paths, carry the demand and not deadlock; a lowered program (MSCCL XML, MSCCL++ plan, oneCCL
    XML, ours or not) is executed on real bytes; lowered routes (table, ompi, srv6) are read back
    into routes; a topology must be sound. Exit code 4 and the list of violations otherwise.

    Example: a2aflow verify alltoall.xml --topology torus:3x3x3
    """
    if not 0 <= tolerance < 1:
        raise UsageError(f"tolerance {tolerance:g}; expected a number from 0 to below 1")
    kind, found = _verify(file, topology, tolerance)
    lines = {key: line_of(value) for key, value in found.items()}
    show({"valid": True, **found, "format": kind}, as_json, {"valid": kind, **lines})


def _verify(file: Path, spec: str | None, tolerance: float) -> tuple[str, dict[str, Any]]:
    """Return what a file is, and what its check found."""
    text = read_text(file)
    value = parse_json(text, str(file)) if text.lstrip()[:1] == "{" else None
    if isinstance(value, dict) and value.get("format") in CHECKS:
        kind = format_of(value, str(file))
        return kind, CHECKS[kind](value, str(file), tolerance)
    topology = load_topology(spec) if spec is not None else None
    if routed_kind(text) is not None:
        found = verify_routed_text(text, str(file), topology)
        return str(found.pop("format")), found
    if kind_of(text) is not None:
        bound = solve(Problem.all_to_all(topology), "grouped").bound if topology else None
        found = verify_lowered(file, topology, bound)
        return str(found.pop("format")), found
    found_topology = read_topology(file)
    check_topology(found_topology)
    sizes = {"nodes": found_topology.nodes, "links": found_topology.links}
    return "topology", {"topology": found_topology.name, **sizes}
