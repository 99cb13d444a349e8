"""`alltoall lower`: runtime and fabric files from a schedule or routes."""

from functools import partial
from typing import Any

import typer

from alltoall.cli.options import VerbCall, as_verb
from alltoall.cli.outputs import check_outputs
from alltoall.cli.show import STANDARD_OUTPUT, Files, deliver, write_out
from alltoall.cli.wording import lines_of
from alltoall.lowering.public import lower


def _verb(context: typer.Context, **given: Any) -> None:
    call = VerbCall(context, given)
    check_outputs(context)
    output = call.path("output")
    asked = {key: value for key, value in given.items() if key not in ("output", "json")}
    lowered = lower(**asked, name=str(output or f"the {given['to']} file"))
    if output is None and not call.json:
        write_out(STANDARD_OUTPUT, lowered.text)
        return
    files: Files = {}
    if output == STANDARD_OUTPUT:
        files = {output: partial(str, lowered.text)}
    elif output is not None:
        # Several files cannot go to standard output.
        files = {place: partial(bytes, data) for place, data in lowered.placed(output).items()}
    summary = {**lowered.summary(), "seconds": call.seconds}
    deliver(summary, call.json, lines_of(summary), files)


lower_verb = as_verb(_verb, lower, "output", "json")
