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
            metavar="[FIGURE]",
            help=f"One of {', '.join(FIGURES)}; or {ALL}.",
            show_default=False,
        ),
    ] = None,
    quick: Annotated[
        bool, typer.Option("--quick", help="Fewer and smaller points: about a minute per figure.")
    ] = False,
    size: Annotated[
        str | None,
        typer.Option(metavar="SIZE", help=f"{', '.join(SIZES)} (default: full)."),
    ] = None,
    output: Annotated[
        Path,
        typer.Option(
            "--output",
            "-o",
            metavar="DIR",
            help="Save rows, pictures and claims here; resume from it.",
        ),
    ] = FOLDER,
    peers: Annotated[
        list[Path] | None,
        typer.Option(
            "--peer",
            metavar="FILE.xml",
            help="Also show MSCCL XML of another tool; repeatable.",
        ),
    ] = None,
    testbed: Annotated[
        bool,
        typer.Option(
            "--testbed/--no-testbed",
            help="Measure on emulated links, or only simulate.",
        ),
    ] = True,
    cluster: Annotated[
        str | None,
        typer.Option(
            metavar="ADDRESS",
            help="Trusted Dask cluster for points that are not timed.",
        ),
    ] = None,
    results: Annotated[
        Path | None,
        typer.Option(metavar="FILE.md", help="Write a page of all figures in DIR."),
    ] = None,
    against: Annotated[
        Path | None,
        typer.Option(metavar="DIR", help="Compare with another run (default: our own)."),
    ] = None,
    time_limit: Annotated[float | None, time_option("Start no further points then.")] = None,
    as_json: AsJson = False,
) -> None:
    """Measure the figures of the paper again: data, picture, and whether each claim holds.

    Without FIGURE it lists the figures. A figure saves its rows as CSV, its picture as SVG and PNG,
    and its claims as JSON. A stopped call resumes where it was.
    """
    if figure is None:
        show({"figures": _listed()}, as_json, {"": _table()})
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


def _told(made: Reproduced) -> list[str]:
    """Return the sentences of a figure, and where its files are."""
    complete = (
        "" if made.complete else ", not complete, so no claim is judged: run it again to go on"
    )
    return [
        f"{made.title} ({made.size}{complete})",
        *(f"{each.verdict + ':':<21}{each.claim}: {_measured(each)}" for each in made.findings),
        made.compared,
        f"files: {', '.join(made.files)}",
    ]


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
