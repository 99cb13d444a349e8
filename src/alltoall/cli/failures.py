"""`alltoall failures`: the cost of every failure."""

from collections.abc import Sequence
from pathlib import Path

from alltoall.cli.options import VerbCall, verb_of
from alltoall.cli.show import columns, show
from alltoall.comparing.failures import INDEX, FailureReport, FailureRow, failures
from alltoall.ir.words import LAST_DIGITS, counted, percent

HEADER = ("failure", "lost", "time", "slower", "bound", "above it", "moved", "")


def _tell(found: FailureReport, call: VerbCall) -> None:
    summary = {"file": call.given["file"], **found.to_json(), "seconds": call.seconds}
    show(summary, call.json, _lines(found, call.path("output")))


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
    return f"-{percent(-value)}" if value < -LAST_DIGITS else percent(value)


failures_verb = verb_of(failures, _tell, "json")
