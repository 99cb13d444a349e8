"""`a2aflow lower`: runtime and fabric files from a schedule or routes."""

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Annotated, Any

import typer

from a2aflow.cli.compiling import clock
from a2aflow.cli.options import AsJson
from a2aflow.cli.show import STANDARD_OUTPUT, deliver, require_room, write_out
from a2aflow.cli.wording import lines_of
from a2aflow.errors import FormatError, UsageError
from a2aflow.ir.files.artefacts import FORMATS, Artefact, artefact_of
from a2aflow.ir.files.node_values import read_node_values, read_ranks
from a2aflow.ir.files.text import decode, read_bytes, require_size
from a2aflow.ir.flow import Flow
from a2aflow.ir.routes import Routes
from a2aflow.ir.schedule import Schedule
from a2aflow.lowering import MAX_FILE_BYTES, PROTOCOLS, RUNTIMES, TARGETS, Options, kind_of
from a2aflow.lowering.programs.msccl.complete import complete_msccl
from a2aflow.lowering.ranks import schedule_by_rank
from a2aflow.lowering.tables.hashes import HASHES
from a2aflow.lowering.tables.options import QUEUE_PAIRS, STEERING, RouteOptions
from a2aflow.lowering.tables.targets import ROUTE_TARGETS, verify_routed_text
from a2aflow.routes.phases import split_phases
from a2aflow.verification import verify_text

DEFAULTS, ROUTE_DEFAULTS = Options(), RouteOptions()
SNIFFED = 1 << 10
WITH_RANKS, WITH_ADDRESSES = (*TARGETS, "ompi"), ("ompi",)
"""The targets whose files have ranks in them, and those that have addresses of terminals."""

SCHEDULES, ROUTES = "Targets for schedules", "Targets for routes"


def _option(panel: str, help_text: str, metavar: str | None = None) -> Any:
    return typer.Option(help=help_text, metavar=metavar, rich_help_panel=panel)


def lower_verb(
    file: Annotated[
        Path,
        typer.Argument(
            metavar="FILE", help="A saved schedule, routes, or an MSCCL file.", show_default=False
        ),
    ],
    to: Annotated[
        str,
        typer.Option(
            "--to",
            metavar="TARGET",
            help=f"For a schedule: {', '.join(TARGETS)}; for routes: {', '.join(ROUTE_TARGETS)}.",
            show_default=False,
        ),
    ],
    runtime: Annotated[
        str, _option(SCHEDULES, f"Whose limits hold for msccl: {', '.join(RUNTIMES)}.")
    ] = DEFAULTS.runtime,
    channels: Annotated[
        int, _option(SCHEDULES, "Run the schedule on K channels at once.", "K")
    ] = DEFAULTS.channels,
    protocol: Annotated[
        str, _option(SCHEDULES, f"Of msccl: {', '.join(PROTOCOLS)}.")
    ] = DEFAULTS.protocol,
    max_bytes: Annotated[
        int,
        _option(SCHEDULES, "Largest send buffer for msccl; its scratch memory grows with it."),
    ] = DEFAULTS.max_bytes,
    max_routes: Annotated[
        int, _option(ROUTES, "Routes per destination that the fabric holds.", "R")
    ] = ROUTE_DEFAULTS.max_routes,
    hash_name: Annotated[
        str,
        typer.Option(
            "--hash", help=f"The fabric's hash: {', '.join(HASHES)}.", rich_help_panel=ROUTES
        ),
    ] = ROUTE_DEFAULTS.hash,
    queue_pairs: Annotated[
        str, _option(ROUTES, f"What a queue pair carries: {', '.join(QUEUE_PAIRS)}.")
    ] = ROUTE_DEFAULTS.queue_pairs,
    steering: Annotated[
        str, _option(ROUTES, f"How srv6 steers: {', '.join(STEERING)}.")
    ] = ROUTE_DEFAULTS.steering,
    phases: Annotated[
        int | None, _option(ROUTES, "Split the routes of ompi into K phases.", "K")
    ] = None,
    phase_loss: Annotated[float, _option(ROUTES, "What the phases may cost.")] = 0.05,
    rank_map: Annotated[
        Path | None,
        typer.Option(
            metavar="FILE",
            help=f"A line `node rank` for every terminal, for {', '.join(WITH_RANKS)}; else ranks "
            "are in the order of the nodes.",
        ),
    ] = None,
    addresses: Annotated[
        Path | None,
        _option(ROUTES, "A line `node address` for every terminal, IPv4, for ompi.", "FILE"),
    ] = None,
    output: Annotated[
        Path | None,
        typer.Option(
            "--output", "-o", metavar="FILE", help="Where to; else standard output, as with -."
        ),
    ] = None,
    as_json: AsJson = False,
) -> None:
    """Lower a saved schedule or saved routes to the file of a runtime or a fabric.

    Before the file is written it is parsed back: a program is executed on real bytes, routes are
    checked against the topology. What is wrong, or does not fit, is never written. An MSCCL file
    of another tool is lowered to msccl again, with all attributes that any runtime requires.

    Example: a2aflow lower torus.schedule.json --to msccl --runtime rccl -o torus.xml
    """
    started = clock()
    require_room(as_json, output)
    artefact, name = _read(file), str(output or f"the {to} file")
    settings = Options(channels, runtime, protocol, max_bytes)
    _require_use(
        "--rank-map", rank_map, "ranks", to, () if isinstance(artefact, str) else WITH_RANKS
    )
    _require_use("--addresses", addresses, "addresses of terminals", to, WITH_ADDRESSES)
    if isinstance(artefact, Routes):
        topology = artefact.problem.topology
        options = RouteOptions(
            max_routes,
            hash_name,
            address=tuple(read_node_values(addresses, topology)) if addresses else None,
            rank=read_ranks(rank_map, topology) if rank_map else None,
            queue_pairs=queue_pairs,
            steering=steering,
        )
        if phases is not None:
            options = replace(options, phase=split_phases(artefact, phases, phase_loss).phase)
        text, summary = _lower_routes(artefact, to, options, name)
    elif isinstance(artefact, Schedule):
        if rank_map:
            ranks = read_ranks(rank_map, artefact.problem.topology)
            artefact = schedule_by_rank(artefact, ranks)
        text, summary = _lower_schedule(artefact, to, settings, name)
    else:
        if to != "msccl":
            raise UsageError(
                f"target {to!r} for an MSCCL file; expected msccl, which completes it; other "
                "targets are lowered from the schedule that `a2aflow schedule` saves"
            )
        text = complete_msccl(artefact, settings, str(file))
        summary = verify_text(text, name)
    summary |= {"bytes": len(text.encode()), "seconds": round(clock() - started, 3)}
    if output is None and not as_json:
        write_out(STANDARD_OUTPUT, text)
    else:
        deliver(summary, as_json, lines_of(summary), {output: lambda: text})


def _require_use(option: str, given: Path | None, what: str, to: str, by: Sequence[str]) -> None:
    """Refuse a table that says what the file of the target does not have."""
    if given is not None and to not in by:
        expected = f"use it with {', '.join(by)}" if by else "lower the schedule itself"
        raise UsageError(f"{option} for this file and {to}, which takes no {what}; {expected}")


def _read(file: Path) -> Schedule | Routes | str:
    """Return what a file holds: an artefact, or the text of an MSCCL file."""
    data, where = read_bytes(file), str(file)
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
            f"{file}: {found}; expected {FORMATS[Schedule]!r} or {FORMATS[Routes]!r}, which "
            "`a2aflow schedule` and `a2aflow route` save, or MSCCL XML"
        )
    return artefact


def _lower_schedule(
    schedule: Schedule, to: str, options: Options, name: str
) -> tuple[str, dict[str, Any]]:
    if to not in TARGETS:
        raise UsageError(f"target {to!r} for a schedule; expected one of {', '.join(TARGETS)}")
    text = TARGETS[to].emit(schedule, options)
    summary = verify_text(text, name, schedule.problem.topology) | {"time": schedule.time}
    if to == "mscclpp" and not schedule.chunks.uniform:
        summary["padding"] = schedule.padding
    if schedule.bound > 0:
        summary |= {"bound": schedule.bound, "gap": schedule.gap}
    return text, summary


def _lower_routes(
    routes: Routes, to: str, options: RouteOptions, name: str
) -> tuple[str, dict[str, Any]]:
    if to not in ROUTE_TARGETS:
        raise UsageError(f"target {to!r} for routes; expected one of {', '.join(ROUTE_TARGETS)}")
    text = ROUTE_TARGETS[to].emit(routes, options)
    return text, verify_routed_text(text, name, routes)
