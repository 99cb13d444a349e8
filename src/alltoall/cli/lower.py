"""`alltoall lower`: runtime and fabric files from a schedule or routes."""

import inspect
from functools import partial
from pathlib import Path
from typing import Any

import typer

from alltoall.cli.options import VerbCall, options_of, with_parameters
from alltoall.cli.outputs import check_outputs
from alltoall.cli.show import STANDARD_OUTPUT, Files, deliver, write_out
from alltoall.cli.wording import lines_of
from alltoall.lowering.public import LoweredFiles, lower


def _verb(context: typer.Context, **given: Any) -> None:
    call = VerbCall(context, given)
    check_outputs(context)
    output = call.path("output")
    asked = {key: value for key, value in given.items() if key not in ("output", "json")}
    lowered = lower(**asked, name=str(output or f"the {given['to']} file"))
    if output is None and not call.json:
        write_out(STANDARD_OUTPUT, lowered.text)
        return
    summary = {**lowered.summary(), "seconds": call.seconds}
    deliver(summary, call.json, lines_of(summary), _files(lowered, output))


def _files(lowered: LoweredFiles, output: Path | None) -> Files:
    """Return the content of each file; several files cannot go to standard output."""
    if output is None:
        return {}
    if output == STANDARD_OUTPUT:
        return {output: partial(str, lowered.text)}
    return {place: partial(bytes, data) for place, data in lowered.placed(output).items()}


lower_verb = with_parameters(
    _verb, [*options_of(lower, "output", "json")], inspect.getdoc(lower) or ""
)
