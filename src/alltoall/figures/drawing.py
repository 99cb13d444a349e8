"""Pictures as SVG and PNG: the one file that knows matplotlib."""

import io
from collections.abc import Iterable, Sequence
from importlib import import_module
from itertools import cycle
from textwrap import fill
from typing import Any

from alltoall.errors import MissingComponentError, how_to_install
from alltoall.figures.picture import Mark, Panel, Picture, Series

FORMATS = ("svg", "png")

COLOURS = {
    name: colour
    for colour, names in {
        "#555555": ("bound", "link"),
        "#0072b2": ("ours", "extp", "decomposed", "genkautz"),
        "#56b4e9": ("pmcf",),
        "#8c6bb1": ("pmcf shortest",),
        "#009e73": ("single", "schedule", "best"),
        "#e69f00": ("ilp-disjoint",),
        "#c49a6c": ("ilp-shortest",),
        "#d55e00": ("sssp",),
        "#cc79a7": ("ewsp",),
        "#999933": ("dor",),
        "#882255": ("native", "library"),
        "#aa4499": ("sccl",),
        "#b15928": ("fptas",),
    }.items()
    for name in names
}
"""Colours that are the same in all figures, and safe for the colour-blind."""

OTHERS = (
    *("#e69f00", "#d55e00", "#cc79a7", "#56b4e9", "#117733", "#882255"),
    *("#8c6bb1", "#b15928", "#44aa99", "#332288", "#999933", "#888888"),
)
"""Colours of other labels, in order."""

MARKERS = "os^Dv<>ph*XP"
ROOM = 0.3
"""Free room above bars for the legend, as a share of their height."""

PANEL_INCHES = (4.3, 3.3)
LEAST_INCHES = 7.0
NOTE_CHARACTERS = 24
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
    """Return the figure: panels row by row, with one legend for panels of the same labels."""
    columns = min(picture.columns, len(picture.panels))
    rows = -(-len(picture.panels) // columns)
    width = max(PANEL_INCHES[0] * columns, LEAST_INCHES)
    size = (width, PANEL_INCHES[1] * rows + 0.9)
    # A figure of its own: pyplot would keep it, and choose a backend.
    figure = _matplotlib("matplotlib.figure").Figure(size, layout="constrained")
    figure.suptitle(picture.title, fontweight="bold")
    styles = _styles(picture.panels)
    shown: dict[str, Any] = {}
    for index, panel in enumerate(picture.panels):
        axes = figure.add_subplot(rows, columns, index + 1)
        _draw_panel(axes, panel, styles)
        lines = {each.get_label(): each for each in axes.get_legend_handles_labels()[0]}
        if not picture.beside and not lines.keys() <= shown.keys():
            axes.legend(loc="best", handlelength=1.8, labelspacing=0.3)
        shown |= lines
    if picture.beside:
        figure.legend(shown.values(), shown.keys(), loc="outside right upper")
    if picture.note:
        note = fill(picture.note, int(width * NOTE_CHARACTERS * 0.75))
        figure.supxlabel(note, fontsize=7.5, color="#555555", x=0.02, ha="left")
    return figure


def _styles(panels: Iterable[Panel]) -> dict[str, tuple[str, str]]:
    """Return the colour and the marker of every style, the same in all panels."""
    names = dict.fromkeys(each.style or each.label for panel in panels for each in panel.series)
    taken = {COLOURS[name] for name in names if name in COLOURS}
    free = cycle([colour for colour in OTHERS if colour not in taken] or OTHERS)
    return {
        name: (COLOURS.get(name) or next(free), MARKERS[index % len(MARKERS)])
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
    if bars:
        axes.margins(y=ROOM)
    _draw_marks(axes, panel.marks)
    if panel.x_log:
        axes.set_xscale("log")
    if panel.y_log:
        axes.set_yscale("log")
    if panel.names:
        axes.set_xticks(range(len(panel.names)), panel.names, rotation=20, ha="right")
        axes.grid(visible=False, axis="x")
    if panel.from_zero:
        axes.set_ylim(bottom=0)


def _draw_line(axes: Any, series: Series, colour: str, marker: str) -> None:
    dots = series.kind == "dots"
    bare = series.kind == "curve" or (series.dashed and not dots)
    line = "none" if dots else "--" if series.dashed else "-"
    look = {"linestyle": line, "linewidth": 1.5, "markersize": 4.5, "color": colour}
    axes.plot(series.x, series.y, marker=None if bare else marker, label=series.label, **look)
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


def _draw_marks(axes: Any, marks: Sequence[Mark]) -> None:
    """Draw published points as stars with their names; an arrow where the value is larger."""
    right = max((mark.x for mark in marks), default=0.0)
    for mark in marks:
        inwards = mark.x > right / 3
        star = "$\\uparrow$" if mark.beyond > 0 else "*"
        axes.plot([mark.x], [mark.y], linestyle="none", marker=star, markersize=9, color="#111111")
        axes.annotate(
            mark.label,
            (mark.x, mark.y),
            xytext=(-6 if inwards else 6, 5),
            ha="right" if inwards else "left",
            textcoords="offset points",
            fontsize=7,
            color="#111111",
        )
