"""`alltoall verify`: an independent check of any artefact."""

from pathlib import Path
from typing import Annotated

import typer

from alltoall.check.flow import TOLERANCE
from alltoall.cli.options import AsJson
from alltoall.cli.show import show
from alltoall.cli.wording import lines_of
from alltoall.verification import verify


def verify_verb(
    file: Annotated[
        Path, typer.Argument(metavar="FILE", help="File to check.", show_default=False)
    ],
    topology: Annotated[
        str | None,
        typer.Option(
            metavar="SPEC",
            help="Lowered files: check them on this network, against its bound.",
        ),
    ] = None,
    rank_map: Annotated[
        Path | None,
        typer.Option(
            metavar="FILE",
            help="Lines `node rank`, if the file was lowered with them.",
        ),
    ] = None,
    demand: Annotated[
        Path | None,
        typer.Option(
            metavar="FILE",
            help="Predict the time of routes or a schedule under this demand, against its bound. "
            "Lowered routes: their own demand.",
        ),
    ] = None,
    tolerance: Annotated[float, typer.Option(help="Largest relative error.")] = TOLERANCE,
    as_json: AsJson = False,
) -> None:
    """Check a file without trusting what made it.

    A flow must conserve, fit the capacities, meet the demand, and its certificate must prove its
    bound; a schedule must deliver every chunk and send none before it is there; routes must be
    paths, carry the demand and not deadlock; a lowered program (MSCCL XML, MSCCL++ plan, oneCCL
    XML, ours or not) is executed on real bytes; lowered routes (table, ompi, opensm, srv6) are read
    back into routes; a topology must be sound. With a demand, routes and schedules are also judged
    as templates: each pair's amount is spread over its routes or chunks. Exit code 4 and the list
    of violations otherwise.
    """
    report = verify(file, topology=topology, rank_map=rank_map, demand=demand, tolerance=tolerance)
    show(report.summary(), as_json, {"valid": report.kind, **lines_of(report.facts)})
