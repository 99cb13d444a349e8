"""`alltoall lower`: runtime and fabric files from a schedule or routes."""

import inspect
from functools import partial
from pathlib import Path
from typing import Annotated, Any

import typer

from alltoall.cli.options import AsJson, options_of, parameter, with_parameters
from alltoall.cli.show import STANDARD_OUTPUT, Files, deliver, write_out
from alltoall.cli.telling import check_outputs
from alltoall.cli.wording import lines_of
from alltoall.lowering.public import LoweredFiles, lower
from alltoall.settings import now

File = Annotated[
    Path, typer.Argument(metavar="FILE", help="A saved schedule, routes, or an MSCCL file.")
]
To = Annotated[
    str, typer.Option("--to", metavar="TARGET", help="NAME or NAME:key=value; listed below")
]
Folder = Annotated[
    Path | None,
    typer.Option(
        "--output", "-o", metavar="FILE", help="Where to, a folder for several files (default: -)"
    ),
]


def _verb(context: typer.Context, **given: Any) -> None:
    started = now()
    check_outputs(context)
    file, to, output = given.pop("file"), given.pop("to"), given.pop("output")
    as_json = given.pop("as_json")
    lowered = lower(file, to, name=str(output or f"the {to} file"), **given)
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


lower_verb = with_parameters(
    _verb,
    [
        parameter("context", typer.Context, inspect.Parameter.empty),
        parameter("file", File, inspect.Parameter.empty),
        parameter("to", To, inspect.Parameter.empty),
        *options_of(lower),
        parameter("output", Folder, None),
        parameter("as_json", AsJson, False),
    ],
    inspect.getdoc(lower) or "",
)
