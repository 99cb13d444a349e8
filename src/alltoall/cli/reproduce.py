"""`alltoall reproduce`: the figures of the paper, measured again."""

from pathlib import Path
from typing import Annotated

import typer

from alltoall.cli.options import AsJson, time_option
from alltoall.cli.progress import progress
from alltoall.cli.show import show
from alltoall.cli.signals import searching
from alltoall.figures import FIGURES
from alltoall.figures.figure import SIZES, Finding
from alltoall.figures.public import ALL, FOLDER, reproduce
from alltoall.figures.run import Reproduced


def reproduce_verb(
    figure: Annotated[
        str | None,
        typer.Argument(
            metavar="FIGURE",
            help=f"One of {', '.join(FIGURES)}; or {ALL}.",
            show_default=False,
        ),
    ] = None,
    quick: Annotated[
        bool, typer.Option("--quick", help="Fewer and smaller points: about a minute each.")
    ] = False,
    size: Annotated[
        str | None,
        typer.Option(metavar="SIZE", help=f"One of {', '.join(SIZES)}; full if left out."),
    ] = None,
    output: Annotated[
        Path, typer.Option("--output", "-o", metavar="DIR", help="Where the files go, and stay.")
    ] = FOLDER,
    peers: Annotated[
        list[Path] | None,
        typer.Option(
            "--peer",
            metavar="FILE.xml",
            help="MSCCL XML of another tool, shown beside ours where its ranks fit; may be "
            "repeated.",
        ),
    ] = None,
    testbed: Annotated[
        bool,
        typer.Option(
            "--testbed/--no-testbed",
            help="Measure on emulated links where this machine can; else by simulation only.",
        ),
    ] = True,
    cluster: Annotated[
        str | None,
        typer.Option(
            metavar="ADDRESS",
            help="Measure points that are not timed on the Dask cluster at tcp://host:port, which "
            "you trust.",
        ),
    ] = None,
    results: Annotated[
        Path | None,
        typer.Option(
            metavar="FILE.md", help="Write a page of all figures in DIR, pictures beside it."
        ),
    ] = None,
    against: Annotated[
        Path | None,
        typer.Option(
            metavar="DIR", help="Compare with the rows of another run; else those of alltoall."
        ),
    ] = None,
    time_limit: Annotated[float | None, time_option("Begin no further point after that.")] = None,
    as_json: AsJson = False,
) -> None:
    """Measure figures of the paper again: data, picture, and whether each claim holds.

    A figure leaves its rows as CSV, its picture as SVG and PNG, and its sentences as JSON. A call
    that was stopped goes on where it was.

    Example: alltoall reproduce methods --quick
    """
    if figure is None:
        show({"figures": _listed()}, as_json, {"": "\n".join(_table())})
        return
    with progress() as report, searching() as stopped:
        made = reproduce(
            figure,
            quick=quick,
            size=size,
            output=output,
            peers=peers,
            testbed=testbed,
            cluster=cluster,
            results=results,
            against=against,
            time_limit=time_limit,
            progress=report,
            stop=stopped,
        )
    lines = {each.figure: _told(each) for each in made}
    show({"figures": [each.to_json() for each in made]}, as_json, lines)


def _told(made: Reproduced) -> str:
    """Return the sentences of a figure, and where its files are."""
    complete = (
        "" if made.complete else ", not complete, so no claim is judged: run it again to go on"
    )
    return "\n".join(
        [
            f"{made.title} ({made.size}{complete})",
            *(f"{each.verdict + ':':<21}{each.claim}: {_measured(each)}" for each in made.findings),
            made.compared,
            f"files: {', '.join(made.files)}",
        ]
    )


def _measured(finding: Finding) -> str:
    return f"{finding.measured} ({finding.reason})" if finding.reason else finding.measured


def _listed() -> list[dict[str, str]]:
    return [
        {"name": each.name, "title": each.title, "source": each.source, "full": each.full}
        for each in FIGURES.values()
    ]


def _table() -> list[str]:
    width = max(map(len, FIGURES)) + 2
    return [
        f"{each.name:<{width}}{each.title}; {each.source}; in full about {each.full} on two cores"
        for each in FIGURES.values()
    ]
