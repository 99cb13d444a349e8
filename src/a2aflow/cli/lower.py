"""`a2aflow lower`: runtime and fabric files from a schedule or routes."""

from dataclasses import replace
from pathlib import Path
from typing import Annotated, Any

import typer

from a2aflow.cli.compiling import clock
from a2aflow.cli.lowered import verify_text
from a2aflow.cli.options import AsJson
from a2aflow.cli.show import STANDARD_OUTPUT, deliver, require_room, write_out
from a2aflow.cli.wording import lines_of
from a2aflow.errors import FormatError, UsageError
from a2aflow.ir.artefacts import FORMATS, read_artefact
from a2aflow.ir.flow import Flow
from a2aflow.ir.routes import Routes
from a2aflow.ir.schedule import Schedule
from a2aflow.lower import PROTOCOLS, RUNTIMES, TARGETS, Options
from a2aflow.lower.route_options import QUEUE_PAIRS, STEERING, RouteOptions
from a2aflow.lower.routed import ROUTE_TARGETS, verify_routed_text
from a2aflow.lower.steering import HASHES
from a2aflow.schedule.phases import split_phases

DEFAULTS, ROUTE_DEFAULTS = Options(), RouteOptions()
SCHEDULES, ROUTES = "Targets for schedules", "Targets for routes"


def _option(panel: str, help_text: str, metavar: str | None = None) -> Any:
    return typer.Option(help=help_text, metavar=metavar, rich_help_panel=panel)


def lower_verb(
    file: Annotated[
        Path,
        typer.Argument(metavar="FILE", help="A saved schedule, or routes.", show_default=False),
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
    checked against the topology. What is wrong, or does not fit, is never written.

    Example: a2aflow lower torus.schedule.json --to msccl --runtime rccl -o torus.xml
    """
    started = clock()
    require_room(as_json, output)
    artefact, name = read_artefact(file), str(output or f"the {to} file")
    if isinstance(artefact, Flow):
        raise FormatError(
            f"{file}: format is {FORMATS[Flow]!r}; expected {FORMATS[Schedule]!r} or "
            f"{FORMATS[Routes]!r}, which `a2aflow schedule` and `a2aflow route` save"
        )
    if isinstance(artefact, Routes):
        options = RouteOptions(max_routes, hash_name, queue_pairs=queue_pairs, steering=steering)
        if phases is not None:
            options = replace(options, phase=split_phases(artefact, phases, phase_loss).phase)
        text, summary = _lower_routes(artefact, to, options, name)
    else:
        settings = Options(channels, runtime, protocol, max_bytes)
        text, summary = _lower_schedule(artefact, to, settings, name)
    summary |= {"bytes": len(text.encode()), "seconds": round(clock() - started, 3)}
    if output is None and not as_json:
        write_out(STANDARD_OUTPUT, text)
    else:
        deliver(summary, as_json, lines_of(summary), {output: lambda: text})


def _lower_schedule(
    schedule: Schedule, to: str, options: Options, name: str
) -> tuple[str, dict[str, Any]]:
    if to not in TARGETS:
        raise UsageError(f"target {to!r} for a schedule; expected one of {', '.join(TARGETS)}")
    text = TARGETS[to].emit(schedule, options)
    summary = verify_text(text, name, schedule.problem.topology) | {"time": schedule.time}
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
