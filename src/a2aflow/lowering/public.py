"""`a2aflow.lower`: the files of runtimes and fabrics, each proven before anybody gets it."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from os import PathLike
from pathlib import Path
from typing import Any

import numpy as np

from a2aflow.errors import FormatError, UsageError
from a2aflow.ir.files.artefacts import FORMATS, Artefact, artefact_of
from a2aflow.ir.files.node_values import read_node_rows, read_node_values, read_ranks
from a2aflow.ir.files.text import decode, read_bytes, require_size, write_text
from a2aflow.ir.flow import Flow
from a2aflow.ir.routes import Routes
from a2aflow.ir.schedule import Schedule
from a2aflow.ir.topology import Topology
from a2aflow.lowering import MAX_FILE_BYTES, TARGETS, Options, kind_of
from a2aflow.lowering.programs.msccl.complete import complete_msccl
from a2aflow.lowering.ranks import schedule_by_rank
from a2aflow.lowering.tables.options import RouteOptions
from a2aflow.lowering.tables.targets import ROUTE_TARGETS
from a2aflow.routes.phases import split_phases
from a2aflow.verification import verify_routed_text, verify_text

SNIFFED = 1 << 10
"""How much of a file is looked at to tell XML from an artefact."""

WITH_RANKS, WITH_ADDRESSES = (*TARGETS, "ompi"), ("ompi", "srv6")
"""The targets whose files have ranks in them, and those that have addresses of nodes."""


@dataclass(frozen=True)
class LoweredFiles:
    """What a target makes of a schedule or of routes: texts by file name, and what they are.

    They have been parsed back and proven: a program was executed on real bytes, routes were checked
    against the topology. `facts` is what that found, by the names that the command line prints.
    """

    target: str
    files: Mapping[str, str]
    facts: Mapping[str, Any]

    @property
    def text(self) -> str:
        """The text, where there is one file."""
        (text,) = self.files.values()
        return text

    def summary(self) -> dict[str, Any]:
        """Return what the files are, as plain values."""
        return {**self.facts, "bytes": sum(len(text.encode()) for text in self.files.values())}

    def save(self, path: str | PathLike[str]) -> None:
        """Write the one file to a path, or several under their names into a folder."""
        if len(self.files) == 1:
            write_text(Path(path), self.text)
            return
        for name, text in self.files.items():
            write_text(Path(path) / name, text)


def lower(
    subject: Schedule | Routes | str | PathLike[str],
    *,
    to: str,
    runtime: str = Options.runtime,
    channels: int = Options.channels,
    protocol: str = Options.protocol,
    max_bytes: int = Options.max_bytes,
    max_routes: int = RouteOptions.max_routes,
    hash: str = RouteOptions.hash,
    queue_pairs: str = RouteOptions.queue_pairs,
    steering: str = RouteOptions.steering,
    phases: int | None = None,
    phase_loss: float = 0.05,
    rank_map: str | PathLike[str] | None = None,
    addresses: str | PathLike[str] | None = None,
    name: str | None = None,
) -> LoweredFiles:
    """Return the files of a runtime or a fabric for a schedule or routes.

    What is wrong, or does not fit, is raised and never returned. An MSCCL file of another tool is
    lowered to msccl again, with all attributes that any runtime requires.

    Args:
        subject: a `Schedule` or `Routes`, or the path of one, or that of an MSCCL file.
        to: the target: a name in `a2aflow.lowering.TARGETS` for a schedule, or in
            `a2aflow.lowering.tables.targets.ROUTE_TARGETS` for routes.
        runtime: whose limits hold for msccl.
        channels: run the schedule on so many channels at once.
        protocol: of msccl.
        max_bytes: the largest send buffer for msccl; its scratch memory grows with it.
        max_routes: routes per destination that the fabric holds.
        hash: the fabric's hash.
        queue_pairs: what a queue pair carries, `"chunk"` or `"route"`.
        steering: how srv6 steers, `"encap"` or `"plain"`.
        phases: split the routes of ompi into so many phases.
        phase_loss: what the phases may cost.
        rank_map: a file with a line `node rank` for every terminal; else ranks are in the order
            of the nodes.
        addresses: a file with a line `node address` for every terminal, IPv4, for ompi, or with a
            line `node prefix device ...` for every node, IPv6, for srv6.
        name: what the file is called; `alltoall` and the target's suffix if left out.

    >>> import a2aflow
    >>> lowered = a2aflow.lower(a2aflow.schedule("ring:4"), to="msccl")
    >>> lowered.facts["ranks"], lowered.facts["correct"], list(lowered.files)
    (4, True, ['alltoall.msccl.xml'])

    """
    found = _read(Path(subject)) if isinstance(subject, str | PathLike) else subject
    options = Options(channels, runtime, protocol, max_bytes)
    _require_use("rank map", rank_map, "ranks", to, () if isinstance(found, str) else WITH_RANKS)
    _require_use("addresses", addresses, "addresses", to, WITH_ADDRESSES)
    if isinstance(found, Schedule):
        if rank_map is not None:
            ranks = read_ranks(Path(rank_map), found.problem.topology)
            found = schedule_by_rank(found, ranks)
        return _lower_schedule(found, to, options, name)
    if isinstance(found, Routes):
        topology = found.problem.topology
        tables = RouteOptions(
            max_routes,
            hash,
            rank=read_ranks(Path(rank_map), topology) if rank_map else None,
            queue_pairs=queue_pairs,
            steering=steering,
        )
        if addresses is not None:
            tables = _with_addresses(tables, Path(addresses), topology, to)
        if phases is not None:
            tables = replace(tables, phase=split_phases(found, phases, phase_loss).phase)
        return _lower_routes(found, to, tables, name)
    return _complete(found, to, options, str(subject), name)


def _with_addresses(tables: RouteOptions, path: Path, topology: Topology, to: str) -> RouteOptions:
    """Return the options with the addresses of a file: of terminals, or of all nodes for srv6."""
    if to != "srv6":
        return replace(tables, address=tuple(read_node_values(path, topology)))
    rows = read_node_rows(path, topology, np.arange(topology.nodes))
    return replace(tables, places=tuple(map(tuple, rows)))


def _require_use(what: str, given: object, part: str, to: str, by: Sequence[str]) -> None:
    """Refuse a table that says what the file of the target does not have."""
    if given is not None and to not in by:
        expected = f"use it with {', '.join(by)}" if by else "lower the schedule itself"
        raise UsageError(f"{what} for this file and {to}, which takes no {part}; {expected}")


def _read(path: Path) -> Schedule | Routes | str:
    """Return what a file holds: an artefact, or the text of an MSCCL file."""
    data, where = read_bytes(path), str(path)
    artefact: Artefact | str
    if data[:SNIFFED].lstrip(b"\xef\xbb\xbf \n\r\t").startswith(b"<"):
        require_size(data, where, MAX_FILE_BYTES)
        artefact = decode(data, where)
        found = {"msccl": None, None: "XML"}.get(kind_of(artefact), "a lowered program")
    else:
        artefact = artefact_of(data, where)
        found = f"format is {FORMATS[Flow]!r}" if isinstance(artefact, Flow) else None
    if found or isinstance(artefact, Flow):
        raise FormatError(
            f"{path}: {found}; expected {FORMATS[Schedule]!r} or {FORMATS[Routes]!r}, which "
            "`a2aflow schedule` and `a2aflow route` save, or MSCCL XML"
        )
    return artefact


def _lower_schedule(
    schedule: Schedule, to: str, options: Options, name: str | None
) -> LoweredFiles:
    if to not in TARGETS:
        raise UsageError(f"target {to!r} for a schedule; expected one of {', '.join(TARGETS)}")
    name = name or f"alltoall{TARGETS[to].suffix}"
    text = TARGETS[to].emit(schedule, options)
    facts = verify_text(text, name, schedule.problem.topology) | {"time": schedule.time}
    if facts["format"] != to:
        raise UsageError(
            f"target {to!r}: its file reads as one of the target {facts['format']}; expected a "
            "sign that only its own files have near their beginning"
        )
    if to == "mscclpp" and not schedule.chunks.uniform:
        facts["padding"] = schedule.padding
    if schedule.bound > 0:
        facts |= {"bound": schedule.bound, "gap": schedule.gap}
    return LoweredFiles(to, {name: text}, facts)


def _lower_routes(routes: Routes, to: str, options: RouteOptions, name: str | None) -> LoweredFiles:
    if to not in ROUTE_TARGETS:
        raise UsageError(f"target {to!r} for routes; expected one of {', '.join(ROUTE_TARGETS)}")
    name = name or f"alltoall{ROUTE_TARGETS[to].suffix}"
    text = ROUTE_TARGETS[to].emit(routes, options)
    return LoweredFiles(to, {name: text}, verify_routed_text(text, name, routes))


def _complete(text: str, to: str, options: Options, where: str, name: str | None) -> LoweredFiles:
    """Return an MSCCL file of another tool with all that any runtime requires."""
    if to != "msccl":
        raise UsageError(
            f"target {to!r} for an MSCCL file; expected msccl, which completes it; other "
            "targets are lowered from the schedule that `a2aflow schedule` saves"
        )
    name = name or f"alltoall{TARGETS[to].suffix}"
    completed = complete_msccl(text, options, where)
    return LoweredFiles(to, {name: completed}, verify_text(completed, name))
