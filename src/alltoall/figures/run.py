"""One figure, from its points to its files: rows, picture, sentences."""

import fcntl
import json
import math
import os
import platform
import re
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from datetime import UTC, datetime
from itertools import islice
from pathlib import Path
from statistics import median
from typing import Any

import alltoall
from alltoall.errors import UsageError
from alltoall.figures.drawing import render
from alltoall.figures.figure import Asked, Figure, Finding, Measured, Point, Row, Verdict
from alltoall.figures.table import WHEN, header, is_done, key, read_rows, write_rows
from alltoall.ir.files.text import read_text, write_bytes, write_text
from alltoall.ir.table import Table

Measure = Callable[[Figure, Sequence[Point], Asked], Iterator[Measured]]
"""Measures points in order, here or on a cluster; it may end early."""


@dataclass(frozen=True, repr=False)
class Reproduced(Table):
    """A figure with its findings and files.

    `complete` says whether all points are measured, `measured` how many of them by this call.
    """

    TITLE, ROWS = "figure", "findings"

    figure: str
    title: str
    source: str
    size: str
    complete: bool
    measured: int
    rows: int
    findings: tuple[Finding, ...]
    compared: str
    files: tuple[str, ...]
    machine: str
    version: str
    date: str

    @property
    def holds(self) -> bool:
        """Whether every claim that is comparable here was reproduced."""
        return all(each.verdict != Verdict.NOT_REPRODUCED for each in self.findings)

    @property
    def sentences(self) -> list[str]:
        """The claims, their measurements and verdicts."""
        return [each.sentence for each in self.findings]

    def to_json(self) -> dict[str, Any]:
        """Return everything as plain values."""
        return {**asdict(self), "holds": self.holds, "sentences": self.sentences}


def stem(figure: Figure, size: str) -> str:
    """Return the name of a figure's files without a suffix."""
    return figure.name if size == "full" else f"{figure.name}-{size}"


def measure_figure(
    figure: Figure,
    asked: Asked,
    folder: Path,
    measure: Measure,
    late: Callable[[], bool],
) -> tuple[list[Row], int, bool]:
    """Measure missing points; return all rows, the number of new points, whether all are done."""
    path = folder / f"{stem(figure, asked.size)}.csv"
    with _locked(folder):
        rows: list[Row]
        rows, new = read_rows(figure, path), 0
        while batch := _next_batch(figure, asked, rows):
            for point, found in zip(batch, measure(figure, batch, asked), strict=False):
                empty = dict.fromkeys(header(figure))
                rows += [{**empty, **point, **each, WHEN: _now()} for each in found]
                write_rows(figure, path, rows)
                new += 1
            if late():
                break
        if new:
            _note_machine(folder / MACHINES)
        # Judge the rows of the file, whether measured now or before.
        return read_rows(figure, path), new, not _next_batch(figure, asked, rows)


def _next_batch(figure: Figure, asked: Asked, rows: Sequence[Row]) -> list[Point]:
    """Return the next points: all remaining, or one if the figure is measured alone."""
    left = (each for each in figure.points(asked, rows) if not is_done(figure, each, rows))
    return list(islice(left, 1 if figure.alone else None))


def _now() -> str:
    return datetime.now(UTC).strftime("%Y-%m-%dT%H:%M:%SZ")


def write_figure(
    figure: Figure,
    asked: Asked,
    folder: Path,
    rows: Sequence[Row],
    measured: int,
    complete: bool,
    compared: str,
) -> Reproduced:
    """Judge and draw the rows of a figure, and write its files."""
    base = folder / stem(figure, asked.size)
    files = [f"{base}.csv"]
    if rows:
        for kind, data in render(figure.draw(rows)).items():
            files.append(f"{base}.{kind}")
            write_bytes(Path(files[-1]), data)
    made = Reproduced(
        figure=figure.name,
        title=figure.title,
        source=figure.source,
        size=asked.size,
        complete=complete,
        measured=measured,
        rows=len(rows),
        # Claims are about the whole of a figure.
        findings=tuple(figure.judge(rows)) if complete else (),
        compared=compared,
        files=(*files, f"{base}.json"),
        machine=machine(),
        version=alltoall.__version__,
        date=max((row[WHEN] for row in rows), default=_now())[:10],
    )
    write_text(Path(f"{base}.json"), json.dumps(made.to_json(), indent=1) + "\n")
    return made


def _note_machine(path: Path) -> None:
    """Add this machine to those on which rows of a folder were measured."""
    known = read_text(path).splitlines() if path.exists() else []
    write_text(path, "\n".join(dict.fromkeys([*known, machine()])) + "\n")


def machine() -> str:
    """Describe this machine in a few words."""
    return (
        f"{os.cpu_count()} cores, {_processor()}, {platform.system()} "
        f"{platform.release().partition('-')[0]}, Python {platform.python_version()}"
    )


def _processor() -> str:
    """Return the processor as Linux calls it."""
    about = Path("/proc/cpuinfo")
    found = re.search(r"model name\s*: (.*)", about.read_text() if about.exists() else "")
    return found[1].strip() if found else platform.machine()


@contextmanager
def _locked(folder: Path) -> Iterator[None]:
    """Lock the files of a figure against other processes."""
    try:
        folder.mkdir(parents=True, exist_ok=True)
        handle = os.open(folder, os.O_RDONLY)
    except OSError as error:
        raise UsageError(
            f"{folder}: figures cannot be written there: {error.strerror}; name another folder "
            "(--output DIR)"
        ) from None
    try:
        fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
        yield
    except BlockingIOError:
        raise UsageError(
            f"{folder}: another alltoall is writing figures there; wait for it, or name another "
            "folder (--output DIR)"
        ) from None
    finally:
        os.close(handle)


MACHINES = "machines.txt"
"""The file of a folder with the machines on which its rows were measured."""

STORED = Path(__file__).parent / "stored"
"""Folder of the rows in the package."""

TOLERANCE = 0.01
"""Relative difference of equal values: a time limit or a gap may end a search."""


def compare(figure: Figure, size: str, rows: Sequence[Row], folder: Path = STORED) -> str:
    """Compare rows with those of a folder, in a sentence."""
    path = folder / f"{stem(figure, size)}.csv"
    stored = {key(figure, row): row for row in read_rows(figure, path)}
    pairs = [(row, stored[key(figure, row)]) for row in rows if key(figure, row) in stored]
    if not pairs:
        return "no stored rows to compare with"
    known = _ratios(pairs, figure.exact)
    agree = [each for each in known if abs(each - 1) <= TOLERANCE]
    sentence = (
        f"{len(pairs)} rows in common with the stored ones: {len(agree)} of {len(known)} values "
        f"agree within {TOLERANCE:.0%}"
    )
    timed = _ratios(pairs, figure.timed)
    return sentence + (f"; timings are {median(timed):.2f} times those" if timed else "")


def _ratios(pairs: Sequence[tuple[Row, Row]], names: Sequence[str]) -> list[float]:
    """Return the ratios to the stored values."""
    values = [(new[name], old[name]) for new, old in pairs for name in names]
    known = [pair for pair in values if all(isinstance(each, int | float) for each in pair)]
    return [1.0 if a == b else a / b if b and a / b == a / b else math.inf for a, b in known]
