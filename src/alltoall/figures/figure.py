"""A figure: points to measure, claims to judge, a picture to draw.

A figure is a user's program: it calls the functions that the package exports, and nothing behind
them. Its points are plain values, so that rows already in a file need not be measured again, and so
that a cluster can measure them.
"""

import csv
import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path
from typing import Any, NamedTuple

from alltoall.figures.picture import Picture

Point = dict[str, Any]
"""A point to measure, by the names of the columns that tell rows apart."""

Row = Mapping[str, Any]
"""A point and the values measured at it."""

Measured = list[dict[str, Any]]
"""The values measured at a point, by column: one row or several."""

SIZES = {
    "full": "the whole figure",
    "quick": "fewer and smaller points, about a minute",
    "sample": "a few points in seconds, to see what it looks like",
}
"""The sizes of a figure."""


@dataclass(frozen=True)
class Asked:
    """The size of a figure, whether links may be emulated, and XML files of other tools."""

    size: str = "full"
    testbed: bool = False
    peers: tuple[Path, ...] = ()

    def pick(self, full: Any, quick: Any, sample: Any) -> Any:
        """Return the value for the size."""
        return {"full": full, "quick": quick, "sample": sample}[self.size]


class Verdict(StrEnum):
    """The three verdicts on a claim."""

    REPRODUCED = "reproduced"
    NOT_REPRODUCED = "not reproduced"
    NOT_COMPARABLE = "not comparable here"


class Measurement(NamedTuple):
    """The quantity of a claim as measured, in words too; None with a reason if not comparable.

    With a value, the reason says why it would lie outside of the band.
    """

    value: float | None
    words: str
    reason: str = ""


Quantity = Callable[[Sequence[Row]], Measurement | None]
ABSENT = Measurement(None, "nothing", "not part of this size")


@dataclass(frozen=True)
class Finding:
    """A claim with its quantity and band, the measurement, the verdict, and its reason."""

    claim: str
    expected: str
    measured: str
    verdict: Verdict
    reason: str = ""

    @property
    def sentence(self) -> str:
        """The finding as one sentence."""
        reason = f" ({self.reason})" if self.reason else ""
        return f"{self.claim} [{self.expected}]: {self.measured}; {self.verdict}{reason}."


@dataclass(frozen=True)
class Claim:
    """A claim about one quantity, and the band in which it counts as reproduced.

    The upper end is open only where the claim is that something is larger.
    """

    text: str
    quantity: str
    low: float
    high: float

    @property
    def expected(self) -> str:
        """The quantity and its band in words."""
        least = f"{self.low:.6g}"
        if math.isinf(self.high):
            return f"{self.quantity}: at least {least}"
        most = "" if self.low == self.high else f" to {self.high:.6g}"
        return f"{self.quantity}: {least}{most}"

    def judge(self, measurement: Measurement | None) -> Finding:
        """Return the finding of a measurement; None without rows for it."""
        value, words, reason = measurement or ABSENT
        if value is None:
            verdict = Verdict.NOT_COMPARABLE
        elif self.low <= value <= self.high:
            verdict, reason = Verdict.REPRODUCED, ""
        else:
            verdict = Verdict.NOT_REPRODUCED
        return Finding(self.text, self.expected, words, verdict, reason)


def claims_of(figure: str) -> dict[str, Claim]:
    """Return the claims of a figure by their keys.

    The table states claims and bands before anything is measured. Where the paper has a number,
    the band allows half of its difference to no effect, either way.
    """
    return {
        row["key"]: Claim(
            row["claim"], row["quantity"], float(row["low"]), float(row["high"] or math.inf)
        )
        for row in _read_table("claims.csv")
        if row["figure"] == figure
    }


@dataclass(frozen=True)
class Figure:
    """A row of `figures.csv` and its functions; `full` is an estimate of its time on two cores.

    `columns` tell rows apart, `exact` ones are the same on every machine, `timed` ones depend on
    it. Where `alone`, points are measured on this machine, one by one. `points` yields the points
    to measure, given the rows so far: a method too slow at one size is left out at the next.
    `measure` returns the rows of one point, without its own columns. `quantities` finds in the rows
    the quantity of each claim, and no other.
    """

    name: str
    title: str
    source: str
    full: str
    columns: Sequence[str]
    exact: Sequence[str]
    timed: Sequence[str]
    alone: bool
    points: Callable[[Asked, Sequence[Row]], Iterator[Point]]
    measure: Callable[[Point, Asked], Measured]
    quantities: Mapping[str, Quantity]
    draw: Callable[[Sequence[Row]], Picture]

    @classmethod
    def of(cls, name: str, *functions: Any) -> "Figure":
        """Return the figure of a row, with its last four fields."""
        (row,) = (row for row in _read_table("figures.csv") if row["figure"] == name)
        fields: list[Any] = [row[key] for key in ("title", "source", "full")]
        fields += [row[key].split() for key in ("columns", "exact", "timed")]
        return cls(*[name, *fields, row["alone"] == "yes", *functions])

    def judge(self, rows: Sequence[Row]) -> list[Finding]:
        """Return a finding for every claim."""
        claims = claims_of(self.name)
        return [claim.judge(self.quantities[key](rows)) for key, claim in claims.items()]


def _read_table(name: str) -> list[dict[str, str]]:
    with Path(__file__).with_name(name).open(newline="", encoding="utf-8") as file:
        return list(csv.DictReader(file))
