"""The content of a picture as values; `drawing` draws it."""

from collections.abc import Sequence
from dataclasses import dataclass


@dataclass(frozen=True)
class Series:
    """Points of one label, drawn as `kind`: line, curve (a line without marks), dots or bars.

    The envelope of `low` and `high` is shaded. Bars stand side by side over `names`, or on a
    `base`. `style` names the colour (default: the label); predictions and bounds are `dashed`.
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
    """A published point and its source; `beyond` is +1 if the value was larger (an arrow)."""

    label: str
    x: float
    y: float
    source: str
    beyond: int = 0


@dataclass(frozen=True)
class Panel:
    """One pair of axes; `names` label the x axis of bars."""

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
    """Panels in rows of `columns`, with a legend in each or one `beside` all."""

    title: str
    panels: Sequence[Panel]
    columns: int = 1
    note: str = ""
    beside: bool = False
