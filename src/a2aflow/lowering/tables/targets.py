"""Targets for routes: how each is written, read, and checked without trusting what wrote it."""

from collections.abc import Callable
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from a2aflow.check.routes import check_routes
from a2aflow.errors import FormatError, UsageError, VerificationError
from a2aflow.ir.certificate import Certificate
from a2aflow.ir.files.text import read_text
from a2aflow.ir.problem import Problem
from a2aflow.ir.routes import Routes
from a2aflow.ir.topology import Topology
from a2aflow.lowering.tables.ompi.emit import emit_ompi
from a2aflow.lowering.tables.ompi.read import read_ompi
from a2aflow.lowering.tables.options import RouteOptions
from a2aflow.lowering.tables.routed_file import RoutedFile, differences, rebuild
from a2aflow.lowering.tables.srv6.emit import emit_srv6
from a2aflow.lowering.tables.srv6.read import read_srv6
from a2aflow.lowering.tables.table import TABLE_FORMAT, emit_routes_table, read_routes_table

MAX_FILE_BYTES = 256 << 20
SNIFFED = 1024

Reference = Topology | Problem | Routes
"""What a file is held against: a topology stands for the uniform all-to-all on it."""


@dataclass(frozen=True)
class RouteTarget:
    """How routes become a file for a fabric or a runtime, and how such a file is read."""

    emit: Callable[[Routes, RouteOptions], str]
    read: Callable[[str, str], RoutedFile]
    suffix: str
    summary: str
    sign: str
    """What the text of such a file has near its beginning."""


ROUTE_TARGETS: dict[str, RouteTarget] = {
    "routes": RouteTarget(
        emit_routes_table,
        read_routes_table,
        ".routes-table.json",
        "the table of a routed fabric: egress ports and layers",
        f'"{TABLE_FORMAT}"',
    ),
    "ompi": RouteTarget(
        emit_ompi, read_ompi, ".ompi.xml", "path-steered XML for an MPI runtime", "<alltoall"
    ),
    "srv6": RouteTarget(
        emit_srv6, read_srv6, ".srv6.batch", "Linux segment routing commands", "# a2aflow srv6/"
    ),
}


def routed_kind(text: str) -> str | None:
    """Return the name of the target that a text looks like a file of, if any."""
    start = text[:SNIFFED]
    return next((kind for kind, each in ROUTE_TARGETS.items() if each.sign in start), None)


def read_routed(text: str, where: str) -> RoutedFile:
    """Read the text of a file of any target for routes."""
    kind = routed_kind(text)
    if kind is None:
        names = ", ".join(target.summary for target in ROUTE_TARGETS.values())
        raise FormatError(f"{where}: not a file of routes; expected one of: {names}")
    return ROUTE_TARGETS[kind].read(text, where)


def verify_routed(path: Path, reference: Reference | None = None) -> dict[str, Any]:
    """Check a file of any target for routes; return what it is, or raise what is wrong with it.

    Its routes must be simple paths of the topology through the ports that it states, carry exactly
    the demand, and be free of deadlocks in every layer. Held against routes, it must say the same.
    Only the fabric's table has its own topology and can be checked alone.
    """
    return verify_routed_text(read_text(path, MAX_FILE_BYTES), str(path), reference)


def verify_routed_text(text: str, where: str, reference: Reference | None = None) -> dict[str, Any]:
    """Check the text of a file of routes; see `verify_routed`."""
    file = read_routed(text, where)
    problem, certificate = _problem(file, reference)
    found = rebuild(file, problem, certificate)
    report = check_routes(found)
    violations = list(differences(found, reference)) if isinstance(reference, Routes) else []
    if violations:
        raise VerificationError(where, violations)
    return {
        "format": file.kind,
        "topology": problem.topology.name,
        **file.facts,
        **asdict(report),
    }


def _problem(file: RoutedFile, reference: Reference | None) -> tuple[Problem, Certificate | None]:
    """Return what to check the file against, and what proves the bound, if anything."""
    if reference is None:
        if file.problem is None:
            raise UsageError(
                f"{file.name}: a file of the target {file.kind} has no topology in it; "
                "give the topology that it is for (--topology SPEC)"
            )
        return file.problem, file.certificate
    problem = _problem_of(reference)
    own = file.problem
    if own is not None and own.topology != problem.topology:
        raise VerificationError(
            file.name, [f"is for another topology than {problem.topology.name}"]
        )
    if own is not None and own.demand != problem.demand:
        raise VerificationError(file.name, ["is for another demand"])
    if isinstance(reference, Routes):
        return problem, reference.certificate
    return problem, file.certificate


def _problem_of(reference: Reference) -> Problem:
    if isinstance(reference, Topology):
        return Problem.all_to_all(reference)
    return reference.problem if isinstance(reference, Routes) else reference
