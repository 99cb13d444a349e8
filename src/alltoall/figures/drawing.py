"""Pictures as SVG and PNG: the one file that knows matplotlib."""

import io
from collections.abc import Sequence
from dataclasses import replace
from importlib import import_module
from itertools import count
from textwrap import fill
from typing import Any

import numpy as np

from alltoall.errors import MissingComponentError, how_to_install
from alltoall.figures.picture import Mark, Panel, Picture, Series

FORMATS = ("svg", "png")

COLOURS = {
    name: colour
    for colour, names in {
        "#000000": ("bound",),
        "#0072b2": (
            *("ours", "extp", "decomposed", "decomposed, gap 1e-3", "genkautz"),
            *("solved for the demand", "joint routes", "all-to-all"),
        ),
        "#009e73": ("single", "schedule", "best", "template, robust"),
        "#d55e00": ("extp raw", "decomposed-lp", "2D FFT and pack"),
        "#56b4e9": ("first-order", "unpack and 1D FFT"),
    }.items()
    for name in names
}
"""The same in all figures: the bound, ours, and what we do as published. Baselines are grey."""

GREYS = ("#4d4d4d", "#8c8c8c", "#6e6e6e", "#b0b0b0")
MARKERS = "os^Dv<>ph*XP"

SAME = 0.01
"""Lines this close everywhere, as a share of the largest value, are drawn as one."""

LABEL_CHARACTERS, LINE_HEIGHT = 26, 0.055
"""Characters of a line of a label, and its height as a share of its panel's."""

PANEL_INCHES = (4.6, 3.3)
LEAST_INCHES = 7.0
NOTE_CHARACTERS = 18
"""Characters of a note to an inch of the picture's width."""

STYLE = {
    "font.size": 9,
    "font.family": "DejaVu Sans",
    "axes.titlesize": 10,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.grid": True,
    "axes.axisbelow": True,
    "grid.color": "#e4e4e4",
    "grid.linewidth": 0.7,
    "legend.frameon": False,
    "legend.fontsize": 8,
    "svg.hashsalt": "alltoall",
    "svg.fonttype": "none",
}
"""Quiet axes; text stays text, and the same picture is the same file."""


def require_plots() -> None:
    """Raise unless pictures can be drawn."""
    _matplotlib("matplotlib")


def render(picture: Picture) -> dict[str, bytes]:
    """Return a picture in all formats."""
    matplotlib = _matplotlib("matplotlib")
    with matplotlib.rc_context(STYLE):
        figure = _drawn(picture)
        return {name: _bytes(figure, name) for name in FORMATS}


def merged(series: Sequence[Series]) -> list[Series]:
    """Return the series with lines that coincide as one, whose label names them all."""
    top = max((max(each.y) for each in series if len(each.y)), default=0.0)
    found: list[Series] = []
    for each in series:
        for place, other in enumerate(found):
            if _coincide(each, other, SAME * top):
                label = f"{other.label} = {each.label}"
                found[place] = replace(other, label=label, style=other.style or other.label)
                break
        else:
            found.append(each)
    return found


def _coincide(one: Series, other: Series, most: float) -> bool:
    if not one.kind == other.kind == "line" or one.cut != other.cut or one.x != other.x:
        return False
    return bool(np.abs(np.subtract(one.y, other.y)).max(initial=0.0) <= most)


def _matplotlib(module: str) -> Any:
    try:
        return import_module(module)
    except ImportError:
        raise MissingComponentError(
            f"pictures need matplotlib, which is not installed; {how_to_install('plots')}"
        ) from None


def _bytes(figure: Any, kind: str) -> bytes:
    buffer = io.BytesIO()
    metadata = {"Date": None} if kind == "svg" else {}
    figure.savefig(buffer, format=kind, dpi=144, metadata=metadata)
    return buffer.getvalue()


def _drawn(picture: Picture) -> Any:
    """Return the figure: panels row by row, each line with its label at its end."""
    columns = min(picture.columns, len(picture.panels))
    rows = -(-len(picture.panels) // columns)
    width = max(PANEL_INCHES[0] * columns, LEAST_INCHES)
    size = (width, PANEL_INCHES[1] * rows + 0.9)
    # A figure of its own: pyplot would keep it, and choose a backend.
    figure = _matplotlib("matplotlib.figure").Figure(size, layout="constrained")
    figure.suptitle(picture.title, fontweight="bold")
    styles = _styles(picture.panels)
    drawn = []
    for index, panel in enumerate(picture.panels):
        axes = figure.add_subplot(rows, columns, index + 1)
        drawn.append((axes, replace(panel, series=merged(panel.series))))
        _draw_panel(*drawn[-1], styles)
    for axes, panel in drawn:
        if panel.scale:
            ranges = [other.get_ylim() for other, each in drawn if each.scale == panel.scale]
            axes.set_ylim(min(low for low, _ in ranges), max(high for _, high in ranges))
    for axes, panel in drawn:
        _draw_labels(axes, panel, styles)
    if picture.note:
        note = fill(picture.note, int(width * NOTE_CHARACTERS))
        figure.supxlabel(note, fontsize=7.5, color="#555555", x=0.02, ha="left")
    return figure


def _styles(panels: Sequence[Panel]) -> dict[str, tuple[str, str]]:
    """Return the colour and the marker of every style, the same in all panels."""
    names = dict.fromkeys(each.style or each.label for panel in panels for each in panel.series)
    grey = count()
    return {
        name: (COLOURS.get(name) or GREYS[next(grey) % len(GREYS)], MARKERS[index % len(MARKERS)])
        for index, name in enumerate(names)
    }


def _draw_panel(axes: Any, panel: Panel, styles: dict[str, tuple[str, str]]) -> None:
    axes.set(title=panel.title, xlabel=panel.x, ylabel=panel.y)
    bars = [each for each in panel.series if each.kind == "bars"]
    for series in panel.series:
        colour, marker = styles[series.style or series.label]
        if series.kind == "bars":
            _draw_bars(axes, series, bars, colour)
        else:
            _draw_line(axes, series, colour, marker)
    right = max((max(each.x) for each in panel.series if len(each.x)), default=0.0)
    _draw_marks(axes, panel.marks, right)
    ticker = _matplotlib("matplotlib.ticker")
    for axis, log in ((axes.xaxis, panel.x_log), (axes.yaxis, panel.y_log)):
        if log:  # Only decades have labels.
            axis.set_major_locator(ticker.LogLocator(10.0, numticks=20))
            getattr(axes, f"set_{axis.axis_name}scale")("log")
            axis.set_minor_formatter(ticker.NullFormatter())
    if panel.names:
        axes.set_xticks(range(len(panel.names)), panel.names, rotation=20, ha="right")
        axes.grid(visible=False, axis="x")
    if panel.from_zero:
        axes.set_ylim(bottom=0)


def _draw_line(axes: Any, series: Series, colour: str, marker: str) -> None:
    line = {"dots": "none", "bound": "--"}.get(series.kind, ":" if series.cut else "-")
    look = {"linestyle": line, "linewidth": 1.5, "markersize": 4.5, "color": colour}
    bare = series.kind in ("bound", "curve")
    axes.plot(series.x, series.y, marker=None if bare else marker, **look)
    if series.low is not None and series.high is not None:
        axes.fill_between(series.x, series.low, series.high, color=colour, alpha=0.18, linewidth=0)


def _draw_bars(axes: Any, series: Series, bars: Sequence[Series], colour: str) -> None:
    """Draw bars beside the other series, or stacked on a base."""
    if series.base is not None:
        axes.bar(series.x, series.y, 0.7, series.base, color=colour, label=series.label)
        return
    width = 0.8 / len(bars)
    shift = (bars.index(series) - (len(bars) - 1) / 2) * width
    places = [x + shift for x in series.x]
    axes.bar(places, series.y, width * 0.92, color=colour, label=series.label)


def _draw_labels(axes: Any, panel: Panel, styles: dict[str, tuple[str, str]]) -> None:
    """Write the label of each line beside its end, as near as others allow; bars have a legend."""
    if any(each.kind == "bars" for each in panel.series):
        axes.legend(loc="upper left", bbox_to_anchor=(1.02, 1.0))
        return
    fraction = axes.transData + axes.transAxes.inverted()
    ends = []
    for series in panel.series:
        if len(series.x):
            end = (series.x[-1], series.y[-1])
            ends.append((float(fraction.transform(end)[1]), end, series))
    ends.sort(key=lambda each: each[0])
    labels = [
        fill(series.label + (" (cut off)" if series.cut else ""), LABEL_CHARACTERS)
        for *_, series in ends
    ]
    sizes = [LINE_HEIGHT * (label.count("\n") + 1) for label in labels]
    places, below = [], 0.0
    for (height, *_), size in zip(ends, sizes, strict=True):
        places.append(max(height - size / 2, below))
        below = places[-1] + size
    above = max(1.0, sum(sizes))
    for index in reversed(range(len(places))):
        above = places[index] = min(places[index], above - sizes[index])
    for label, place, (_, end, series) in zip(labels, places, ends, strict=True):
        colour = styles[series.style or series.label][0]
        axes.annotate(
            label,
            end,
            (1.05, place),
            textcoords="axes fraction",
            va="bottom",
            fontsize=7.5,
            color=colour,
            annotation_clip=False,
            arrowprops={"arrowstyle": "-", "color": colour, "linewidth": 0.5, "alpha": 0.6},
        )


def _draw_marks(axes: Any, marks: Sequence[Mark], right: float) -> None:
    """Draw published points as stars with their names; an arrow where the value is larger."""
    for mark in marks:
        star = "$\\uparrow$" if mark.beyond else "*"
        axes.plot([mark.x], [mark.y], linestyle="none", marker=star, markersize=9, color="#111111")
        inwards = mark.x > right / 3
        axes.annotate(
            mark.label,
            (mark.x, mark.y),
            xytext=(-6 if inwards else 6, 5),
            ha="right" if inwards else "left",
            textcoords="offset points",
            fontsize=7,
            color="#111111",
        )
