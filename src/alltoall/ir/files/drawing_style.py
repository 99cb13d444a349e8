"""What all pictures have in common: colours, a title, a legend."""

from html import escape

import numpy as np

from alltoall.ir.arrays import Floats
from alltoall.ir.topology import Topology
from alltoall.ir.words import counted, one_line

INK, SOFT, PALE = "#1f2d3a", "#5b6b7b", "#f3f6f9"
"""Letters, lesser letters, and the ground of groups."""

TERMINAL, SWITCH, CABLE = "#20639b", "#ffffff", "#8899aa"
"""Discs of terminals and of switches, and cables of which no load is known."""

RAMP = np.array([[0xC3, 0xCE, 0xD8], [0xF2, 0xA9, 0x3B], [0xC0, 0x20, 0x20]], dtype=np.float64)
"""The colours of what carries nothing, half, and most."""

HEADER, FOOTER, LEAST_WIDTH = 66.0, 58.0, 560.0
"""Room for the title and for the legend, and the width that they need."""

LONGEST_TITLE = 66
"""Characters of a name that fit into a title."""


def ramp(share: float) -> str:
    """Return the colour of a load that is such a share of the greatest."""
    at = min(max(share, 0.0), 1.0) * (len(RAMP) - 1)
    low = min(int(at), len(RAMP) - 2)
    red, green, blue = np.rint(RAMP[low] + (at - low) * (RAMP[low + 1] - RAMP[low])).astype(int)
    return f"#{red:02x}{green:02x}{blue:02x}"


def text(
    x: float, y: float, words: str, size: float, anchor: str = "start", colour: str = INK
) -> str:
    """Return a text, centred on a height."""
    return (
        f'<text x="{x:.1f}" y="{y:.1f}" font-size="{size:.1f}" text-anchor="{anchor}" '
        f'dominant-baseline="central" fill="{colour}">{escape(words)}</text>'
    )


def page(
    topology: Topology, size: tuple[float, float], inner: str, below: tuple[str, float]
) -> str:
    """Return a whole SVG: a title, what is drawn, and a legend of some width below it."""
    width = max(size[0], LEAST_WIDTH, below[1] + 48)
    height = HEADER + size[1] + FOOTER
    name = one_line(topology.name)
    shown = name if len(name) <= LONGEST_TITLE else name[: LONGEST_TITLE - 1] + "…"
    title = text(24, 28, shown, 20).replace("<text ", '<text font-weight="600" ')
    return "\n".join(
        (
            f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width:.0f} {height:.0f}" '
            f'width="{width:.0f}" height="{height:.0f}" font-family="Helvetica,Arial,sans-serif">',
            f"<title>{escape(name)}</title>",
            '<rect width="100%" height="100%" fill="white"/>',
            title,
            text(24, 52, _facts(topology), 13, colour=SOFT),
            f'<g transform="translate({(width - size[0]) / 2:.1f} {HEADER:.1f})">',
            inner,
            "</g>",
            f'<g transform="translate(24 {HEADER + size[1] + FOOTER / 2:.1f})">{below[0]}</g>',
            "</svg>\n",
        )
    )


def _facts(topology: Topology) -> str:
    """Return the line below the title."""
    low, high = int(topology.out_degree.min()), int(topology.out_degree.max())
    ways = "both ways" if topology.bidirectional else "one way"
    words = [
        counted(topology.nodes, "node"),
        f"{counted(topology.links, 'link')} {ways}",
        f"degree {low}" if low == high else f"degree {low} to {high}",
    ]
    if len(topology.terminals) < topology.nodes:
        words.insert(1, counted(len(topology.terminals), "terminal"))
    return ", ".join(words)


def legend(
    topology: Topology,
    share: Floats | None,
    one_way: bool = False,
    around: bool = False,
    halo: bool = False,
    matrix: bool = False,
) -> tuple[str, float]:
    """Return what the marks of a picture mean, in a row, and how wide that is."""
    entries = [] if matrix else [(_dot(TERMINAL), "terminal")]
    if not matrix and _has_switches(topology, halo):
        entries.append((_dot(SWITCH), "switch"))
    if matrix:
        entries.append((_square(CABLE), "link from row to column"))
    else:
        kind = "link, one way" if one_way else "cable, both ways"
        entries.append((_stroke(one_way), kind))
    if around:
        entries.append((_stroke(False, dashed=True), "goes around"))
    if halo:
        entries.append((_ring(), "host bandwidth"))
    drawn, at = [], 0.0
    for mark, words in entries:
        drawn.append(f'<g transform="translate({at:.0f} 0)">{mark}{text(30, 0, words, 12)}</g>')
        at += 30 + 6.4 * len(words) + 22
    if share is not None:
        drawn.append(f'<g transform="translate({at:.0f} 0)">{_scale(share)}</g>')
        at += 300
    return "".join(drawn), at


def _has_switches(topology: Topology, halo: bool) -> bool:
    """Whether there are nodes that neither send nor receive, besides NIC halves."""
    halves = 2 * len(topology.terminals) if halo else 0
    return len(topology.terminals) + halves < topology.nodes


def _scale(share: Floats) -> str:
    """Return the colours of loads, from none to the greatest."""
    stops = "".join(
        f'<stop offset="{at:g}" stop-color="{ramp(at)}"/>' for at in (0.0, 0.25, 0.5, 0.75, 1.0)
    )
    most = float(share.max(initial=0.0))
    return (
        f'<defs><linearGradient id="load">{stops}</linearGradient></defs>'
        f"{text(0, 0, 'load over capacity', 12)}{text(118, 0, '0', 12)}"
        '<rect x="132" y="-6" width="110" height="12" rx="2" fill="url(#load)"/>'
        f"{text(250, 0, f'{most:.4g}', 12)}"
    )


def _dot(colour: str) -> str:
    edge = ' stroke="#5b6b7b" stroke-width="1.4"' if colour == SWITCH else ""
    return f'<circle cx="14" cy="0" r="7" fill="{colour}"{edge}/>'


def _ring() -> str:
    return f'<circle cx="14" cy="0" r="7" fill="none" stroke="{CABLE}" stroke-width="3"/>'


def _square(colour: str) -> str:
    return f'<rect x="8" y="-6" width="12" height="12" fill="{colour}"/>'


def _stroke(arrow: bool, dashed: bool = False) -> str:
    dash = ' stroke-dasharray="4 3"' if dashed else ""
    line = f'<path d="M2,0 H24" stroke="{CABLE}" stroke-width="2" fill="none"{dash}/>'
    return line + (f'<path d="M26,0 l-7,-3.5 v7 z" fill="{CABLE}"/>' if arrow else "")
