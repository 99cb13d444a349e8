"""`alltoall failures`: what every failure costs, before it happens."""

from collections.abc import Sequence
from pathlib import Path
from typing import Annotated

import typer

from alltoall.cli.options import AsJson, time_option
from alltoall.cli.progress import progress
from alltoall.cli.show import columns, show
from alltoall.cli.signals import searching
from alltoall.comparing.failures import FAILURES_GAP, INDEX, FailureReport, FailureRow, failures
from alltoall.ir.words import counted
from alltoall.settings import now

HEADER = ("failure", "lost", "time", "slower", "bound", "above it", "moved", "")


def failures_verb(
    file: Annotated[
        Path,
        typer.Argument(metavar="FILE", help="Saved routes or schedule.", show_default=False),
    ],
    links: Annotated[
        int | None,
        typer.Option(metavar="K", help="Fail every set of K links or cables (default: 1)."),
    ] = None,
    nodes: Annotated[
        int | None, typer.Option(metavar="K", help="Fail every set of K nodes.")
    ] = None,
    only: Annotated[
        str | None,
        typer.Option(metavar="A-B,…", help="Only these: a-b a link, a a node, a-b+c both."),
    ] = None,
    output: Annotated[
        Path | None,
        typer.Option(
            "--output",
            "-o",
            metavar="DIR",
            help=f"Save an answer for each failure, and {INDEX}.",
        ),
    ] = None,
    gap: Annotated[float, typer.Option(help="Certified gap to aim for.")] = FAILURES_GAP,
    time_limit: Annotated[
        float | None, time_option("Stop then, with the failures found so far.")
    ] = None,
    as_json: AsJson = False,
) -> None:
    """Show what each failure costs, worst first, and prepare for it.

    For every link or node: the share of the traffic that is lost without rerouting, the time after
    rerouting, and the proven bound. The files in --output can be verified, lowered and run.
    """
    started = now()
    with progress() as report, searching() as stopped:
        found = failures(
            file,
            links=links,
            nodes=nodes,
            only=only,
            output=output,
            gap=gap,
            time_limit=time_limit,
            progress=report,
            stop=stopped,
        )
    summary = {"file": str(file), **found.to_json(), "seconds": round(now() - started, 3)}
    show(summary, as_json, _lines(found, output))


def _lines(found: FailureReport, output: Path | None) -> dict[str, str | Sequence[str]]:
    """Return the answer for people: the worst failure, then all of them."""
    lines: dict[str, str | Sequence[str]] = {
        "worst": _worst(found),
        "healthy": f"{found.topology}: {found.kind} of time {found.time:.6g}",
        "": ["", *columns([HEADER, *map(_cells, found.rows)], words=[0, -1]), ""],
    }
    if found.not_solved:
        late = counted(found.not_solved, "failure")
        lines["not solved"] = f"{late}, as the time was up; allow more time"
    if output is not None:
        lines["saved"] = str(output / INDEX)
    return lines


def _worst(found: FailureReport) -> str:
    if not found.rows:
        return "not known"
    row = found.rows[0]
    if row.slower is None:
        return f"{row.failure} leaves no routes"
    change = "slower" if row.slower >= 0 else "faster"
    lost = f"{_share(row.lost)} of the traffic is lost without"
    return f"{row.failure}: {_share(abs(row.slower))} {change} after rerouting; {lost}"


def _cells(row: FailureRow) -> tuple[str, ...]:
    if row.time is None or row.slower is None or row.bound is None or row.gap is None:
        return row.failure, _share(row.lost), "-", "-", "-", "-", "-", row.reason or ""
    times = f"{row.time:.6g}", _share(row.slower), f"{row.bound:.4g}", _share(row.gap)
    return row.failure, _share(row.lost), *times, str(row.moved), ""


def _share(value: float) -> str:
    return f"{100 * value + 0.0:.1f} %".replace("-0.0", "0.0")
