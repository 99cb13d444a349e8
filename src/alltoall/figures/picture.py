"""What a picture shows, as values; `drawing` knows how to draw it."""

from collections.abc import Sequence
from dataclasses import dataclass


@dataclass(frozen=True)
class Series:
    """Points that belong together, drawn as `kind`: line, curve, dots, bars or band.

    A curve is a line without marks, for many points. A line of `low` and `high` has its envelope
    shaded. Bars stand side by side over `names`, or are stacked if they have a `base`. `style` is
    whose colour it has, its label's if left out; a `dashed` line is predicted, or a bound.
    """

    label: str
    x: Sequence[float]
    y: Sequence[float]
    kind: str = "line"
    low: Sequence[float] | None = None
    high: Sequence[float] | None = None
    base: Sequence[float] | None = None
    style: str | None = None
    dashed: bool = False


@dataclass(frozen=True)
class Mark:
    """A published point: where it is, what it is called, and who says so.

    `beyond` is +1 if the value was more than that, which is drawn as an arrow.
    """

    label: str
    x: float
    y: float
    source: str
    beyond: int = 0


@dataclass(frozen=True)
class Panel:
    """One pair of axes; `names` are those of places on the x axis, for bars."""

    title: str
    x: str
    y: str
    series: Sequence[Series]
    marks: Sequence[Mark] = ()
    x_log: bool = False
    y_log: bool = False
    names: Sequence[str] = ()
    from_zero: bool = False


@dataclass(frozen=True)
class Picture:
    """Panels in rows of `columns`, under a title, over a note.

    Where `beside`, one legend stands beside all panels, and not within them.
    """

    title: str
    panels: Sequence[Panel]
    columns: int = 1
    note: str = ""
    beside: bool = False
