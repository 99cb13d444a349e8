"""Targets for routes: how each is written and read."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from a2aflow.errors import FormatError
from a2aflow.ir.routes import Routes
from a2aflow.lowering.registering import GROUP, require_target
from a2aflow.lowering.tables.ompi.emit import emit_ompi
from a2aflow.lowering.tables.ompi.read import read_ompi
from a2aflow.lowering.tables.opensm.emit import emit_opensm
from a2aflow.lowering.tables.opensm.read import read_opensm
from a2aflow.lowering.tables.options import RouteOptions
from a2aflow.lowering.tables.routed_file import RoutedFile
from a2aflow.lowering.tables.srv6.emit import emit_srv6
from a2aflow.lowering.tables.srv6.read import read_srv6
from a2aflow.lowering.tables.table import TABLE_FORMAT, emit_routes_table, read_routes_table
from a2aflow.registry import Registry

MAX_FILE_BYTES = 256 << 20
SNIFFED = 1024


@dataclass(frozen=True)
class RouteTarget:
    """How routes become a file for a fabric or a runtime, and how such a file is read."""

    emit: Callable[[Routes, RouteOptions], str]
    read: Callable[[str, str], RoutedFile]
    suffix: str
    summary: str
    sign: str
    """What the text of such a file has near its beginning."""


def _target(name: str, target: Any) -> RouteTarget | None:
    """Return what somebody registers as a target, if it is one for routes."""
    if not isinstance(target, RouteTarget):
        return None
    require_target(name, target)
    return target


ROUTE_TARGETS: Registry[RouteTarget] = Registry(
    "target",
    GROUP,
    {
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
        "opensm": RouteTarget(
            emit_opensm,
            read_opensm,
            ".opensm.lfts",
            "forwarding tables for OpenSM on InfiniBand",
            "Unicast lids [",
        ),
        "srv6": RouteTarget(
            emit_srv6, read_srv6, ".srv6.batch", "Linux segment routing commands", "# a2aflow srv6/"
        ),
    },
    _target,
)
"""All targets for routes by name; others are added by `a2aflow.register_target`."""


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
