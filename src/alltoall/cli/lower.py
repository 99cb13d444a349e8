"""`alltoall lower`: runtime and fabric files from a schedule or routes."""

from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Annotated, Any

import typer

from alltoall.cli.options import AsJson, time_option
from alltoall.cli.show import STANDARD_OUTPUT, Files, deliver, write_out
from alltoall.cli.telling import check_outputs
from alltoall.cli.wording import lines_of
from alltoall.ir.routes import Routes
from alltoall.ir.schedule import Schedule
from alltoall.lowering import TARGETS, Options, Target
from alltoall.lowering.options import PROTOCOLS, QUEUE_PAIRS, STEERING, TABLE_ROUTES
from alltoall.lowering.programs.msccl_limits import RUNTIMES
from alltoall.lowering.public import LoweredFiles, lower
from alltoall.lowering.tables.hashes import HASHES
from alltoall.runtime.sizes import parse_size
from alltoall.settings import now

DEFAULTS = Options()
SCHEDULES, ROUTES = "Targets for schedules", "Targets for routes"


def _names(those: Callable[[Target], bool]) -> str:
    """Name targets of ours, without a look at what others have installed."""
    return ", ".join(name for name in TARGETS.known if those(TARGETS[name]))


def _option(panel: str, help_text: str, metavar: str | None = None) -> Any:
    return typer.Option(help=help_text, metavar=metavar, rich_help_panel=panel)


def lower_verb(
    context: typer.Context,
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
            help=f"For a schedule: {_names(lambda each: each.takes is Schedule)}; "
            f"for routes: {_names(lambda each: each.takes is Routes)}.",
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
        typer.Option(
            metavar="SIZE",
            help="Largest send buffer for msccl, such as 1G; its scratch memory grows with it.",
            rich_help_panel=SCHEDULES,
            parser=parse_size,
        ),
    ] = DEFAULTS.max_bytes,
    shard_bytes: Annotated[
        str,
        typer.Option(
            "--bytes",
            metavar="SIZE",
            help="Of a shard in files for simulators, goal and chakra, such as 64K.",
            rich_help_panel=SCHEDULES,
        ),
    ] = "1M",
    max_routes: Annotated[
        int | None,
        _option(
            ROUTES,
            f"Routes per destination that the fabric holds; {TABLE_ROUTES} for routes and ompi.",
            "R",
        ),
    ] = DEFAULTS.max_routes,
    hash_name: Annotated[
        str,
        typer.Option(
            "--hash", help=f"The fabric's hash: {', '.join(HASHES)}.", rich_help_panel=ROUTES
        ),
    ] = DEFAULTS.hash,
    queue_pairs: Annotated[
        str, _option(ROUTES, f"What a queue pair carries: {', '.join(QUEUE_PAIRS)}.")
    ] = DEFAULTS.queue_pairs,
    steering: Annotated[
        str, _option(ROUTES, f"How srv6 steers: {', '.join(STEERING)}.")
    ] = DEFAULTS.steering,
    link_bandwidth: Annotated[
        str | None,
        _option(
            ROUTES,
            "Bandwidth of a capacity-1 link, for simgrid (25Gbps if unknown).",
            "RATE",
        ),
    ] = DEFAULTS.link_bandwidth,
    link_latency: Annotated[
        float, time_option("How long a link takes, for simgrid, such as 2us.", ROUTES)
    ] = DEFAULTS.link_latency,
    phases: Annotated[
        int | None, _option(ROUTES, "Split the routes of ompi into K phases.", "K")
    ] = None,
    phase_loss: Annotated[float, _option(ROUTES, "What the phases may cost.")] = 0.05,
    rank_map: Annotated[
        Path | None,
        typer.Option(
            metavar="FILE",
            help="A line `node rank` for every terminal, for "
            f"{_names(lambda each: each.admits('rank'))}; else ranks are in the order of nodes.",
        ),
    ] = None,
    addresses: Annotated[
        Path | None,
        _option(
            ROUTES,
            "For ompi, a line `node IPv4` for every terminal; for srv6, a line "
            "`node IPv6/48 device ...` for every node.",
            "FILE",
        ),
    ] = None,
    output: Annotated[
        Path | None,
        typer.Option(
            "--output",
            "-o",
            metavar="FILE",
            help="Where to, a folder for a target that writes several files; else standard output, "
            "as with -.",
        ),
    ] = None,
    as_json: AsJson = False,
) -> None:
    """Lower a saved schedule or saved routes to the file of a runtime or a fabric.

    Before the file is written it is parsed back: a program is executed on real bytes, routes are
    checked against the topology. Files for simulators (goal, chakra, simgrid) are only written: the
    schedule or routes are checked. What is wrong, or does not fit, is never written. An MSCCL file
    of another tool is lowered to msccl again, with all attributes that any runtime requires.

    Example: alltoall lower torus.schedule.json --to msccl --runtime rccl -o torus.xml
    """
    started = now()
    check_outputs(context)
    lowered = lower(
        file,
        to=to,
        runtime=runtime,
        channels=channels,
        protocol=protocol,
        max_bytes=max_bytes,
        shard_bytes=shard_bytes,
        max_routes=max_routes,
        hash=hash_name,
        queue_pairs=queue_pairs,
        steering=steering,
        link_bandwidth=link_bandwidth,
        link_latency=link_latency,
        phases=phases,
        phase_loss=phase_loss,
        rank_map=rank_map,
        addresses=addresses,
        name=str(output or f"the {to} file"),
    )
    if output is None and not as_json:
        write_out(STANDARD_OUTPUT, lowered.text)
        return
    summary = {**lowered.summary(), "seconds": round(now() - started, 3)}
    deliver(summary, as_json, lines_of(summary), _files(lowered, output))


def _files(lowered: LoweredFiles, output: Path | None) -> Files:
    """Return what to save where; several files do not go to standard output."""
    if output is None:
        return {}
    if output == STANDARD_OUTPUT:
        return {output: partial(str, lowered.text)}
    return {place: partial(bytes, data) for place, data in lowered.placed(output).items()}
