"""Bar and line charts as SVG, and a self-contained page around them."""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from html import escape

WIDTH, ROW = 560.0, 44.0
"""The width of a chart, which shrinks with its page, and the height of a bar with its name."""

PLOT = (312.0, 58.0, 16.0, 26.0, 44.0)
"""Height of the lines, and the room to their left, right, top and bottom."""

NAME_LETTERS = 50
"""Letters of a name that fit over a bar on a small screen."""

LEGEND = 23.0
"""The height of a name in a legend."""

LETTER = 11.0
"""The width of a digit on a small screen."""

COLOURS = ("#1d6fb8", "#d1661b", "#2a9457", "#8f4bb8", "#b8304f", "#6f6a12", "#16858f", "#7d5a3c")

STYLE = """
.chart{width:100%;max-width:640px;height:auto;font:13px system-ui,sans-serif;--ink:#1b2430;
--soft:#5a6675;--line:#d5dbe2;--paper:#fff;background:var(--paper)}
.chart text{fill:var(--ink)}.chart .soft{fill:var(--soft)}.chart .grid{stroke:var(--line)}
.chart .limit{stroke:var(--ink);stroke-width:2}
@media(max-width:500px){.chart{font-size:18px}}
@media(prefers-color-scheme:dark){.chart{--ink:#e8edf3;--soft:#9aa7b6;--line:#323b47;
--paper:#1b212a}}
"""

PAGE_STYLE = """
body{font:16px/1.45 system-ui,sans-serif;margin:0 auto;padding:1rem;max-width:900px;
background:#fff;color:#1b2430}
.scroll{overflow-x:auto}table{border-collapse:collapse;font-size:.9rem;
font-variant-numeric:tabular-nums}
td,th{text-align:left;padding:.3rem .8rem .3rem 0;border-bottom:1px solid #8884}
td:nth-child(n+3){white-space:nowrap}td:last-child{white-space:normal;min-width:4rem}
p{font-size:1.15rem;overflow-wrap:anywhere}
@media(prefers-color-scheme:dark){body{background:#12161c;color:#e8edf3}}
"""


@dataclass(frozen=True)
class Bar:
    """A value with its name and words; `limit` is marked, and `spread` is the range of seeds."""

    name: str
    value: float
    told: str
    limit: float | None = None
    spread: tuple[float | None, float | None] | None = None


@dataclass(frozen=True)
class Curve:
    """Values over numbers, each with its range."""

    name: str
    x: Sequence[float]
    y: Sequence[float]
    spread: Sequence[tuple[float, float]]


def bars(unit: str, rows: Sequence[Bar]) -> str:
    """Return a bar chart with a mark at the proven maximum of each bar."""
    most = max((max(each.value, each.limit or 0.0) for each in rows), default=1.0) or 1.0
    scale = (WIDTH - 130.0) / most
    parts = []
    for at, each in enumerate(rows):
        y, long = ROW * at + 20, max(1.0, each.value * scale)
        limit = (each.limit or 0.0) * scale
        parts.append(_text(0, y - 5, _cut(each.name)))
        parts.append(
            f'<rect x="0" y="{y:.0f}" width="{long:.1f}" height="17" fill="{COLOURS[0]}">'
            f"<title>{escape(each.name)}: {escape(each.told)}</title></rect>"
        )
        if each.limit is not None:
            parts.append(
                f'<path class="limit" d="M{limit:.1f},{y - 2:.0f}V{y + 19:.0f}">'
                "<title>the proven maximum</title></path>"
            )
        if each.spread is not None:
            low, high = ((edge or 0.0) * scale for edge in each.spread)
            parts.append(
                f'<path class="limit" d="M{low:.1f},{y + 8.5:.1f}H{high:.1f}"><title>range</title>'
                "</path>"
            )
        told = each.told.partition(",")[0]
        # Beside the bar, unless the mark is in the way.
        at_mark = limit - LETTER * (len(told) + 2) < long
        parts.append(_text((max(long, limit) if at_mark else long) + 8, y + 13, told))
    note = f"{unit}; the mark is the proven maximum" if any(r.limit for r in rows) else unit
    parts.append(_text(0, ROW * len(rows) + 16, note, "soft"))
    return _svg(ROW * len(rows) + 26, parts)


def lines(across: str, unit: str, found: Sequence[Curve]) -> str:
    """Return a line chart over one number, with ranges; numbers that double get a log axis."""
    height, left, right, top, bottom = PLOT
    xs = sorted({x for each in found for x in each.x})
    most = max((high for each in found for _, high in each.spread), default=1.0) or 1.0
    steps = ticks(most)

    def at_y(value: float) -> float:
        return height - bottom - value / steps[-1] * (height - top - bottom)

    def at_x(value: float) -> float:
        even = math.log2 if xs[0] > 0 and xs[-1] / xs[0] >= 4 else float
        low, high = even(xs[0]), even(xs[-1])
        return left + 12 + (even(value) - low) / (high - low or 1.0) * (WIDTH - left - right - 24)

    parts = [_grid(at_y(step), step) for step in steps]
    parts += [_text(at_x(x), height - bottom + 18, f"{x:g}", "soft", "middle") for x in xs]
    parts.append(_text(WIDTH / 2, height - 6, across, "soft", "middle"))
    parts.append(_text(left, 10, unit, "soft"))
    for index, each in enumerate(found):
        colour = COLOURS[index % len(COLOURS)]
        places = [(at_x(x), at_y(y)) for x, y in zip(each.x, each.y, strict=True)]
        path = " ".join(f"{x:.1f},{y:.1f}" for x, y in places)
        parts.append(f'<polyline points="{path}" fill="none" stroke="{colour}" stroke-width="2"/>')
        for (x, y), (low, high), n, value in zip(places, each.spread, each.x, each.y, strict=True):
            told = f"{escape(each.name)}: {across} = {n:g}, {value:.4g}"
            parts.append(
                f'<path d="M{x:.1f},{at_y(low):.1f}V{at_y(high):.1f}" stroke="{colour}"/>'
                f'<circle cx="{x:.1f}" cy="{y:.1f}" r="4" fill="{colour}"><title>{told}</title>'
                "</circle>"
            )
        y = height + LEGEND * index + 16
        parts.append(f'<circle cx="{left:.0f}" cy="{y - 4:.0f}" r="5" fill="{colour}"/>')
        parts.append(_text(left + 12, y, _cut(each.name)))
    return _svg(height + LEGEND * len(found) + 8, parts)


def _grid(y: float, value: float) -> str:
    left = PLOT[1]
    line = f'<line class="grid" x1="{left}" x2="{WIDTH - PLOT[2]}" y1="{y:.1f}" y2="{y:.1f}"/>'
    return line + _text(left - 6, y + 4, f"{value:g}", "soft", "end")


def ticks(most: float) -> list[float]:
    """Return round numbers from 0 to beyond a value."""
    rough = most / 4
    power = 10.0 ** math.floor(math.log10(rough))
    step = next(each * power for each in (1, 2, 5, 10) if each * power >= rough * 0.999)
    return [round(at * step, 9) for at in range(math.ceil(most / step - 1e-9) + 1)]


def page(title: str, body: str) -> str:
    """Return a page without scripts or external files."""
    return (
        '<!DOCTYPE html>\n<html lang="en"><head><meta charset="utf-8">'
        '<meta name="viewport" content="width=device-width, initial-scale=1">'
        '<meta http-equiv="Content-Security-Policy" content="default-src \'none\'; '
        "style-src 'unsafe-inline'\">"
        f"<title>{escape(title)}</title><style>{PAGE_STYLE}</style></head>"
        f"<body><h1>{escape(title)}</h1>{body}</body></html>\n"
    )


def _text(x: float, y: float, text: str, kind: str = "", anchor: str = "start") -> str:
    named = f' class="{kind}"' if kind else ""
    return f'<text x="{x:.1f}" y="{y:.1f}" text-anchor="{anchor}"{named}>{escape(text)}</text>'


def _cut(name: str) -> str:
    return name if len(name) <= NAME_LETTERS else f"{name[: NAME_LETTERS - 1]}…"


def _svg(height: float, parts: Sequence[str]) -> str:
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" class="chart" role="img" '
        f'viewBox="-8 -4 {WIDTH + 16:.0f} {height + 8:.0f}"><style>{STYLE}</style>'
        f"{''.join(parts)}</svg>\n"
    )
