"""`a2aflow verify`: an independent check of any artefact."""

from dataclasses import asdict
from pathlib import Path
from typing import Annotated, Any

import typer

from a2aflow.check.flow import TOLERANCE, FlowReport, check_flow, check_topology
from a2aflow.check.routes import RoutesReport, check_routes
from a2aflow.check.schedule import ScheduleReport, check_schedule
from a2aflow.cli.options import AsJson, load_topology
from a2aflow.cli.show import show
from a2aflow.cli.wording import lines_of
from a2aflow.errors import UsageError
from a2aflow.flows import solve
from a2aflow.ir.files.artefacts import Artefact, artefact_from_json, format_name, is_artefact
from a2aflow.ir.files.json import parse_json
from a2aflow.ir.files.node_values import read_ranks
from a2aflow.ir.files.npz import artefact_from_bytes, is_archive
from a2aflow.ir.files.text import decode, read_bytes, require_size
from a2aflow.ir.flow import Flow
from a2aflow.ir.routes import Routes
from a2aflow.ir.topology import Topology
from a2aflow.lowering import MAX_FILE_BYTES, kind_of
from a2aflow.lowering.ranks import topology_by_rank
from a2aflow.lowering.tables.targets import routed_kind, verify_routed_text
from a2aflow.topologies.formats import read_topology
from a2aflow.verification import verify_text


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
    rank_map: Annotated[
        Path | None,
        typer.Option(
            metavar="FILE",
            help="With --topology: a line `node rank` for every terminal, if a program was lowered "
            "with one.",
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
    if rank_map is not None and topology is None:
        raise UsageError("--rank-map without the topology whose nodes it names; add --topology")
    kind, found = _verify(file, topology, rank_map, tolerance)
    show({"valid": True, **found, "format": kind}, as_json, {"valid": kind, **lines_of(found)})


def _verify(
    file: Path, spec: str | None, rank_map: Path | None, tolerance: float
) -> tuple[str, dict[str, Any]]:
    """Return what a file is, and what its check found; it is read once, so it may be a pipe."""
    data, where = read_bytes(file), str(file)
    if is_archive(data):
        return _verify_artefact(artefact_from_bytes(data, where), tolerance)
    text = decode(data, where)
    value = parse_json(text, where) if text.lstrip()[:1] == "{" else None
    if is_artefact(value):
        return _verify_artefact(artefact_from_json(value, where), tolerance)
    topology = load_topology(spec) if spec is not None else None
    if topology is not None and rank_map is not None and routed_kind(text) is None:
        topology = topology_by_rank(topology, read_ranks(rank_map, topology))
    if routed_kind(text) is not None or kind_of(text) is not None:
        require_size(data, where, MAX_FILE_BYTES)
        found = _verify_lowered(text, where, topology)
        return str(found.pop("format")), found
    found_topology = read_topology(file)
    check_topology(found_topology)
    sizes = {"nodes": found_topology.nodes, "links": found_topology.links}
    return "topology", {"topology": found_topology.name, **sizes}


def _verify_artefact(noun: Artefact, tolerance: float) -> tuple[str, dict[str, Any]]:
    report: FlowReport | RoutesReport | ScheduleReport
    if isinstance(noun, Flow):
        report = check_flow(noun, tolerance)
    elif isinstance(noun, Routes):
        report = check_routes(noun, tolerance)
    else:
        report = check_schedule(noun, tolerance)
    return format_name(noun), {"topology": noun.problem.topology.name, **asdict(report)}


def _verify_lowered(text: str, where: str, topology: Topology | None) -> dict[str, Any]:
    """Read routes back from their target's file, or execute a program on real bytes."""
    if routed_kind(text) is not None:
        return verify_routed_text(text, where, topology)
    return verify_text(text, where, topology, lambda problem: solve(problem, "grouped").bound)
