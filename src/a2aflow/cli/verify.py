"""`a2aflow verify`: an independent check of any artefact."""

from collections.abc import Callable
from dataclasses import asdict
from pathlib import Path
from typing import Annotated, Any

import typer

from a2aflow.cli.options import AsJson
from a2aflow.cli.show import show
from a2aflow.ir.json import (
    FLOW_FORMAT,
    SCHEDULE_FORMAT,
    flow_from_json,
    format_of,
    read_json,
    schedule_from_json,
)
from a2aflow.ir.verify import TOLERANCE, check_flow, check_topology
from a2aflow.ir.verify_schedule import check_schedule
from a2aflow.topologies.formats import read_topology

Check = Callable[[object, str, float], dict[str, Any]]


def _verify_flow(value: object, where: str, tolerance: float) -> dict[str, Any]:
    flow = flow_from_json(value, where)
    return {"topology": flow.problem.topology.name, **asdict(check_flow(flow, tolerance))}


def _verify_schedule(value: object, where: str, tolerance: float) -> dict[str, Any]:
    schedule = schedule_from_json(value, where)
    report = check_schedule(schedule, tolerance)
    return {"topology": schedule.problem.topology.name, **asdict(report)}


CHECKS: dict[str, Check] = {FLOW_FORMAT: _verify_flow, SCHEDULE_FORMAT: _verify_schedule}
"""How to check an artefact, by its format; what is none of these is read as a topology."""


def verify_verb(
    file: Annotated[Path, typer.Argument(metavar="FILE", help="The artefact.", show_default=False)],
    tolerance: Annotated[float, typer.Option(help="Largest relative error.")] = TOLERANCE,
    as_json: AsJson = False,
) -> None:
    """Check an artefact without trusting what made it.

    A flow must conserve, fit the capacities, meet the demand, and its certificate must prove its
    bound; a schedule must deliver every chunk and send none before it is there; a topology must be
    sound. Exit code 4 and the list of violations if it does not hold.

    Example: a2aflow verify torus.flow.json
    """
    kind = _kind_of(file)
    if kind in CHECKS:
        found = CHECKS[kind](read_json(file), str(file), tolerance)
    else:
        topology = read_topology(file)
        check_topology(topology)
        kind = "topology"
        found = {"topology": topology.name, "nodes": topology.nodes, "links": topology.links}
    lines = {
        key: f"{value:.9g}" if isinstance(value, float) else str(value)
        for key, value in found.items()
    }
    show({"valid": True, "format": kind, **found}, as_json, {"valid": kind, **lines})


def _kind_of(file: Path) -> str:
    """Return the format of an a2aflow artefact, or nothing for other files."""
    if file.suffix != ".json":
        return ""
    value = read_json(file)
    return format_of(value, str(file)) if isinstance(value, dict) and "format" in value else ""
