"""The page of results, written from the rows of figures in a folder."""

from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

from alltoall.errors import FormatError
from alltoall.figures.drawing import render
from alltoall.figures.figure import SIZES, Asked, Figure, Finding, Row, Verdict
from alltoall.figures.run import MACHINES, stem
from alltoall.figures.table import WHEN, is_done, read_rows
from alltoall.ir.files.text import read_text, write_bytes, write_text

HEAD = Path(__file__).with_name("head.md")
"""What the page begins with."""


class Made(NamedTuple):
    """The rows of a figure in its largest size, the points that they lack, and the findings."""

    figure: Figure
    size: str
    rows: list[Row]
    missing: int
    findings: list[Finding]


def write_results(page: Path, figures: Sequence[Figure], folder: Path) -> None:
    """Write the page of all figures in a folder, with pictures beside it."""
    found = [made for made in (_newest(figure, folder) for figure in figures) if made]
    if not found:
        raise FormatError(f"{folder}: no figures there; expected what `alltoall reproduce` writes")
    for made in found:
        picture = page.parent / page.stem / f"{made.figure.name}.svg"
        write_bytes(picture, render(made.figure.draw(made.rows))["svg"])
    machines = folder / MACHINES
    measured_on = read_text(machines).splitlines() if machines.exists() else []
    write_text(page, results_text(found, measured_on, page.stem))


def results_text(found: Sequence[Made], machines: Sequence[str], pictures: str) -> str:
    """Return the page, with pictures in a folder."""
    parts = [read_text(HEAD), _summary(found, machines)]
    for verdict in (Verdict.NOT_REPRODUCED, Verdict.NOT_COMPARABLE):
        parts.append(_listed(found, verdict))
    return "\n".join([*parts, *(_section(made, pictures) for made in found)])


def _newest(figure: Figure, folder: Path) -> Made | None:
    """Return a figure in its largest size with rows."""
    for size in SIZES:
        rows = read_rows(figure, folder / f"{stem(figure, size)}.csv")
        if rows:
            points = figure.points(Asked(size, testbed=True), rows)
            missing = sum(not is_done(figure, point, rows) for point in points)
            return Made(figure, size, rows, missing, figure.judge(rows))
    return None


def _summary(found: Sequence[Made], machines: Sequence[str]) -> str:
    """Return the table of figures, with the sum of all."""
    lines = [
        "| figure | of the paper | size | reproduced | not reproduced | not comparable | date |",
        "|---|---|---|---|---|---|---|",
    ]
    total = Counter[Verdict]()
    for made in found:
        count = Counter(each.verdict for each in made.findings)
        total += count
        name, source = made.figure.name, made.figure.source
        lack = f", {made.missing} points not measured" if made.missing else ""
        date = max(row[WHEN] for row in made.rows)[:10]
        lines.append(
            f"| [`{name}`](#{name}) | {source} | {made.size}{lack} | {_counts(count)} | {date} |"
        )
    lines.append(f"| all | | | {_counts(total)} | |")
    measured = [f"Measured on {'; '.join(machines)}.", ""] if machines else []
    return "\n".join([*lines, "", *measured])


def _counts(count: Counter[Verdict]) -> str:
    return " | ".join(str(count[verdict] or "") for verdict in Verdict)


def _listed(found: Sequence[Made], verdict: Verdict) -> str:
    """Return the claims of a verdict with the numbers; the table of their figure says why."""
    lines = [
        f"- [`{made.figure.name}`](#{made.figure.name}): {each.claim}: {each.measured}"
        for made in found
        for each in made.findings
        if each.verdict == verdict
    ]
    return "\n".join([f"## {verdict.capitalize()}", "", *(lines or ["Nothing."]), ""])


def _section(made: Made, pictures: str) -> str:
    name = made.figure.name
    rows = [
        f"| {each.claim} | {each.expected} | {each.measured} | {_verdict(each)} |"
        for each in made.findings
    ]
    lines = (
        *(f"## {name}", ""),
        *(f"{made.figure.title}: {len(made.rows)} rows.", ""),
        *(f"![{name}]({pictures}/{name}.svg)", ""),
        *("| claim | reproduced if | measured | verdict |", "|---|---|---|---|", *rows, ""),
    )
    return "\n".join(lines)


def _verdict(finding: Finding) -> str:
    word = str(finding.verdict)
    word = f"**{word}**" if finding.verdict == Verdict.NOT_REPRODUCED else word
    return f"{word}: {finding.reason}" if finding.reason else word
