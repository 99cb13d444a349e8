"""`a2aflow lower`: runtime files from a schedule."""

import sys
import time
from pathlib import Path
from typing import Annotated

import typer

from a2aflow.cli.lowered import verify_text
from a2aflow.cli.options import AsJson
from a2aflow.cli.show import line_of, show
from a2aflow.errors import UsageError
from a2aflow.ir.files import write_text
from a2aflow.ir.json import read_json, schedule_from_json
from a2aflow.ir.schedule import Schedule
from a2aflow.lower import PROTOCOLS, RUNTIMES, TARGETS, Options

DEFAULTS = Options()


def lower_verb(
    file: Annotated[
        Path, typer.Argument(metavar="FILE", help="A saved schedule.", show_default=False)
    ],
    to: Annotated[
        str,
        typer.Option(
            "--to",
            metavar="TARGET",
            help="; ".join(f"{name}: {target.summary}" for name, target in TARGETS.items()) + ".",
            show_default=False,
        ),
    ],
    runtime: Annotated[
        str, typer.Option(help=f"Whose limits hold for msccl: {', '.join(RUNTIMES)}.")
    ] = DEFAULTS.runtime,
    channels: Annotated[
        int, typer.Option(metavar="K", help="Run the schedule on K channels at once.")
    ] = DEFAULTS.channels,
    protocol: Annotated[
        str, typer.Option(help=f"Of msccl: {', '.join(PROTOCOLS)}.")
    ] = DEFAULTS.protocol,
    max_bytes: Annotated[
        int,
        typer.Option(
            metavar="BYTES", help="Largest send buffer for msccl; its scratch memory grows with it."
        ),
    ] = DEFAULTS.max_bytes,
    output: Annotated[
        Path | None,
        typer.Option("--output", "-o", metavar="FILE", help="Where to; else standard output."),
    ] = None,
    as_json: AsJson = False,
) -> None:
    """Lower a saved schedule to the file of a runtime.

    Before the file is written it is parsed back and executed on real bytes; a program that does
    not do the all-to-all, or does not fit the runtime, is never written.

    Example: a2aflow lower torus.schedule.json --to msccl --runtime rccl -o torus.xml
    """
    started = time.monotonic()
    if to not in TARGETS:
        raise UsageError(f"target {to!r}; expected one of {', '.join(TARGETS)}")
    schedule = schedule_from_json(read_json(file), str(file))
    text = TARGETS[to].emit(schedule, Options(channels, runtime, protocol, max_bytes))
    name = str(output or f"the {to} file")
    summary = verify_text(text, name, schedule.problem.topology)
    summary |= {"time": schedule.time, **_against_bound(schedule)}
    summary |= {"bytes": len(text), "seconds": round(time.monotonic() - started, 3)}
    if output is not None:
        write_text(output, text)
        summary["output"] = str(output)
    elif not as_json:
        sys.stdout.write(text)
        return
    show(summary, as_json, {key: line_of(value) for key, value in summary.items()})


def _against_bound(schedule: Schedule) -> dict[str, float]:
    """Return the bound and the gap to it, if the schedule came with a bound."""
    return {"bound": schedule.bound, "gap": schedule.gap} if schedule.bound > 0 else {}
