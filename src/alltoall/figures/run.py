"""One figure, from its points to its files: rows, picture, sentences."""

import fcntl
import json
import math
import os
import platform
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
from alltoall.figures.figure import Asked, Figure, Finding, Point, Row, Value
from alltoall.figures.table import WHEN, header, is_done, key, read_rows, write_rows
from alltoall.ir.files.text import write_bytes, write_text

Measured = list[dict[str, Value]]
Measure = Callable[[Figure, Sequence[Point], Asked], Iterator[Measured]]
"""What measures points, in order, here or on a cluster; it may end before all of them are."""


@dataclass(frozen=True)
class Reproduced:
    """What came of a figure; `complete` is whether all of its points were measured.

    `files` are what was written, `measured` how many points this call measured; the others were
    there.
    """

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
        """Whether every claim that could be judged holds."""
        return all(each.holds is not False for each in self.findings)

    @property
    def sentences(self) -> list[str]:
        """The claims, what was measured, and whether they hold."""
        return [each.sentence for each in self.findings]

    def to_json(self) -> dict[str, Any]:
        """Return everything as plain values."""
        return {**asdict(self), "holds": self.holds, "sentences": self.sentences}


def stem(figure: Figure, size: str) -> str:
    """Return how the files of a figure are called."""
    return figure.name if size == "full" else f"{figure.name}-{size}"


def measure_figure(
    figure: Figure,
    asked: Asked,
    folder: Path,
    measure: Measure,
    late: Callable[[], bool],
) -> tuple[list[Row], int, bool]:
    """Measure what a figure's file does not have; return all rows, how many are new, and if all."""
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
        # What is judged is what the file says, whether it was measured now or before.
        return read_rows(figure, path), new, not _next_batch(figure, asked, rows)


def _next_batch(figure: Figure, asked: Asked, rows: Sequence[Row]) -> list[Point]:
    """Return what is to be measured next: all that is left, or one point of what stands alone."""
    left = (each for each in figure.points(asked, rows) if not is_done(figure, each, rows))
    return list(islice(left, 1 if figure.alone else None))


def _now() -> str:
    return datetime.now(UTC).strftime("%Y-%m-%dT%H:%M:%SZ")


def tell_figure(
    figure: Figure,
    asked: Asked,
    folder: Path,
    rows: Sequence[Row],
    measured: int,
    complete: bool,
    compared: str,
) -> Reproduced:
    """Judge and draw the rows of a figure, and write what came of it."""
    base = folder / stem(figure, asked.size)
    files = [f"{base}.csv"]
    if rows:
        for kind, data in render(figure.draw(rows)).items():
            files.append(f"{base}.{kind}")
            write_bytes(Path(files[-1]), data)
    told = Reproduced(
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
        date=_now()[:10],
    )
    write_text(Path(f"{base}.json"), json.dumps(told.to_json(), indent=1) + "\n")
    return told


def machine() -> str:
    """Return what this machine is, in a few words."""
    return (
        f"{os.cpu_count()} cores, {_processor()}, {platform.system()} "
        f"{platform.release().partition('-')[0]}, Python {platform.python_version()}"
    )


def _processor() -> str:
    """Return the processor as Linux calls it."""
    try:
        lines = Path("/proc/cpuinfo").read_text().splitlines()
    except OSError:
        return platform.machine()
    names = [line.partition(":")[2].strip() for line in lines if line.startswith("model name")]
    return names[0] if names else platform.machine()


@contextmanager
def _locked(folder: Path) -> Iterator[None]:
    """Keep others from adding to the same files."""
    try:
        folder.mkdir(parents=True, exist_ok=True)
        handle = os.open(folder, os.O_RDONLY)
    except OSError as error:
        raise UsageError(
            f"{folder}: figures cannot be kept there: {error.strerror}; name another folder "
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


STORED = Path(__file__).parent / "stored"
"""The rows that come with alltoall."""

TOLERANCE = 0.01
"""By how much of itself a value may differ: where a time limit or a gap ended a search."""


def compare(figure: Figure, size: str, rows: Sequence[Row], folder: Path = STORED) -> str:
    """Return in a sentence how rows compare with those of a folder."""
    path = folder / f"{stem(figure, size)}.csv"
    stored = {key(figure, row): row for row in read_rows(figure, path)}
    pairs = [(row, stored[key(figure, row)]) for row in rows if key(figure, row) in stored]
    if not pairs:
        return "no stored rows to compare with"
    exact = [_ratio(new, old, name) for new, old in pairs for name in figure.exact]
    known = [each for each in exact if each is not None]
    agree = [each for each in known if abs(each - 1) <= TOLERANCE]
    sentence = (
        f"{len(pairs)} rows in common with the stored ones: {len(agree)} of {len(known)} values "
        f"agree within {TOLERANCE:.0%}"
    )
    timed = [_ratio(new, old, name) for new, old in pairs for name in figure.timed]
    ratios = [each for each in timed if each is not None]
    return sentence + (f"; timings are {median(ratios):.2f} times those" if ratios else "")


def _ratio(new: Row, old: Row, name: str) -> float | None:
    """Return a value over its stored one, if both are numbers."""
    a, b = new[name], old[name]
    if not isinstance(a, int | float) or not isinstance(b, int | float):
        return None
    if a == b:
        return 1.0
    return a / b if b and not math.isnan(a / b) else math.inf
