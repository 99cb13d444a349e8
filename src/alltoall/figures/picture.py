"""The content of a picture as values; `drawing` draws it."""

from collections.abc import Sequence
from dataclasses import dataclass


@dataclass(frozen=True)
class Series:
    """Points of one label, drawn as `kind`: line, curve, bound, dots or bars.

    A curve has no marks, and a bound is dashed, too. The envelope of `low` and `high` is shaded.
    Bars stand side by side over `names`, or on a `base`. `style` names the colour (default: the
    label). A line that is `cut` is dotted: the algorithm did not end.
    """

    label: str
    x: Sequence[float]
    y: Sequence[float]
    kind: str = "line"
    low: Sequence[float] | None = None
    high: Sequence[float] | None = None
    base: Sequence[float] | None = None
    style: str | None = None
    cut: bool = False


@dataclass(frozen=True)
class Mark:
    """A published point; `beyond` says that the value was larger (an arrow)."""

    label: str
    x: float
    y: float
    beyond: bool = False


@dataclass(frozen=True)
class Panel:
    """One pair of axes; `names` label the x axis of bars, and panels of one `scale` share y."""

    title: str
    x: str
    y: str
    series: Sequence[Series]
    marks: Sequence[Mark] = ()
    x_log: bool = False
    y_log: bool = False
    names: Sequence[str] = ()
    from_zero: bool = False
    scale: str = ""


@dataclass(frozen=True)
class Picture:
    """Panels in rows of `columns`."""

    title: str
    panels: Sequence[Panel]
    columns: int = 1
    note: str = ""
