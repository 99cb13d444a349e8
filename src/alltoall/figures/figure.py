"""What a figure is: points to measure, sentences to judge, a picture to draw.

A figure is a user's program: it calls the functions that the package exports, and nothing behind
them. Its points are plain values, so that rows that a file has need not be measured again, and so
that a cluster can measure them.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from alltoall.figures.picture import Picture

Value = str | int | float | bool | None
Point = dict[str, Value]
"""What is to be measured, by the names of the columns that tell rows apart."""

Row = Mapping[str, Any]
"""A point and what was measured at it."""

SIZES = {
    "full": "the whole figure",
    "quick": "fewer and smaller points, about a minute",
    "sample": "a few points in seconds, to see what it looks like",
}
"""How much of a figure there may be."""


@dataclass(frozen=True)
class Asked:
    """How much of a figure is asked for, and with what.

    `testbed` is whether this machine can emulate links and may; `peers` are XML files of others.
    """

    size: str = "full"
    testbed: bool = False
    peers: tuple[Path, ...] = ()

    def pick(self, full: Any, quick: Any, sample: Any) -> Any:
        """Return what goes with the size."""
        return {"full": full, "quick": quick, "sample": sample}[self.size]


@dataclass(frozen=True)
class Finding:
    """A claim, what was measured, and whether the claim holds; None if that cannot be said.

    `reason` is why it does not hold, or why nothing can be said.
    """

    claim: str
    measured: str
    holds: bool | None
    reason: str = ""

    @property
    def verdict(self) -> str:
        """In a word or two."""
        return {True: "holds", False: "does not hold", None: "not measured"}[self.holds]

    @property
    def sentence(self) -> str:
        """The claim, the measurement and the verdict."""
        reason = f" ({self.reason})" if self.reason else ""
        return f"{self.claim}: {self.measured}; {self.verdict}{reason}."


@dataclass(frozen=True)
class Figure:
    """One figure; `source` is where the paper has it, `full` an estimate of its time on two cores.

    `points` yields what is to be measured. It is given the rows so far, which a method that was too
    slow at one size needs to be left out at the next. `measure` returns the rows of one point,
    without its own columns. `exact` names the columns that are the same on every machine, `timed`
    those that depend on it. Where `alone`, points are measured on this machine, one by one.
    """

    name: str
    title: str
    source: str
    full: str
    columns: tuple[str, ...]
    exact: tuple[str, ...]
    timed: tuple[str, ...]
    points: Callable[[Asked, Sequence[Row]], Iterator[Point]]
    measure: Callable[[Point, Asked], list[dict[str, Value]]]
    judge: Callable[[Sequence[Row]], list[Finding]]
    draw: Callable[[Sequence[Row]], Picture]
    alone: bool = False
