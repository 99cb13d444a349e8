"""The rows of a run beside those of another: what is exact must agree, what is timed is a ratio."""

import math
from collections.abc import Sequence
from pathlib import Path
from statistics import median

from alltoall.figures.figure import Figure, Row
from alltoall.figures.run import stem
from alltoall.figures.table import key, read_rows

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
