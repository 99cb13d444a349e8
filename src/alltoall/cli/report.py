"""`alltoall report`: files as one page to look at."""

from pathlib import Path
from typing import Annotated, Any

import typer

from alltoall.cli.options import AsJson, LinkBandwidth
from alltoall.cli.show import Lines, deliver
from alltoall.cli.telling import check_outputs
from alltoall.ir.words import counted
from alltoall.reports.public import report


def report_verb(
    context: typer.Context,
    subjects: Annotated[
        list[Path],
        typer.Argument(
            metavar="FILE...",
            help="Flows, routes, schedules, topologies; JSON of `run` or `simulate`.",
            show_default=False,
        ),
    ],
    output: Annotated[
        Path,
        typer.Option(
            "--output", "-o", metavar="FILE", help="Save the HTML page; - is standard output."
        ),
    ] = Path("report.html"),
    title: Annotated[
        str | None, typer.Option(metavar="TEXT", help="Title of the page (default: its networks).")
    ] = None,
    link_bandwidth: LinkBandwidth = None,
    sources: Annotated[
        list[str] | None,
        typer.Option(
            "--source",
            metavar="NODE",
            help="Show paths from this terminal; repeatable (default: all that fit).",
        ),
    ] = None,
    as_json: AsJson = False,
) -> None:
    """Show files as one page: numbers, proof, network, loads.

    The page is one HTML file that works offline. It compares files that solve one problem, and
    animates schedules. All files are verified first.
    """
    check_outputs(context)
    page = report(subjects, title=title, link_bandwidth=link_bandwidth, sources=sources)
    summary = page.summary()
    deliver(summary, as_json, _lines(summary), {output: lambda: page.html})


def _lines(summary: dict[str, Any]) -> Lines:
    answers = [
        f"{each['time']:.9g} by {each['method']}, {each['name']}" for each in summary["answers"]
    ]
    lines: Lines = {
        "page": summary["title"],
        "topology": summary["topologies"],
        "time": answers,
        "runs": counted(summary["runs"], "run") if summary["runs"] else "",
        "size": f"{summary['bytes'] / 1000:.0f} KB",
    }
    return {label: text for label, text in lines.items() if text}
