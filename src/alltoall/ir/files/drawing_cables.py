"""The cables of a picture: one straight line for all links between two nodes."""

from dataclasses import dataclass
from html import escape

import numpy as np

from alltoall.ir.arrays import Floats, Ints
from alltoall.ir.files.drawing_style import CABLE, SOFT, ramp, text
from alltoall.ir.layout import Layout
from alltoall.ir.topology import Topology
from alltoall.ir.words import counted

THIN, THICK = 0.8, 4.6
"""Widths of what carries nothing and of what carries most."""

PLAIN, WIDEST = 1.3, 4.0
"""Widths of the least capacity, and the most of a greater one, where no load is known."""

CROWD = 120
"""Cables above which all are thinner, the more there are."""

STUB = 24.0
"""Length of the ends of a cable that goes around, at most."""

MOST_STUB_LABELS = 256
"""Nodes up to which the ends of a twisted cable say where it leads."""


@dataclass(frozen=True)
class Cable:
    """All links between two nodes; equal ends are a host and its NIC halves."""

    ends: tuple[int, int]
    wraps: int
    one_way: bool
    colour: str
    width: float
    about: str


def cables_of(topology: Topology, found: Layout, share: Floats | None) -> list[Cable]:
    """Return the cables: links between the same two nodes, and in the same way around, are one."""
    tail, head = found.host[topology.tail], found.host[topology.head]
    low, high = np.minimum(tail, head), np.maximum(tail, head)
    key = (low * topology.nodes + high) * (len(found.towards) + 2) + found.wraps + 1
    _, first, which = np.unique(key, return_index=True, return_inverse=True)
    forth = np.bincount(which, tail <= head)
    count = np.bincount(which)
    values = share if share is not None else topology.capacity
    most = _greatest(which, values)
    widths = _widths(most, share is not None) * min(1.0, (CROWD / max(len(first), 1)) ** 0.35)
    top = max(float(most.max(initial=0.0)), 1e-300)
    return [
        Cable(
            ends=(int(tail[link]), int(head[link])),
            wraps=int(found.wraps[link]),
            one_way=bool(forth[each] in (0, count[each]) and tail[link] != head[link]),
            colour=CABLE if share is None else ramp(float(most[each]) / top),
            width=float(widths[each]),
            about=_about(int(count[each]), float(most[each]), share is not None),
        )
        for each, link in enumerate(first.tolist())
    ]


def _widths(most: Floats, loaded: bool) -> Floats:
    """Return how wide cables are: by load if that is known, else by capacity."""
    if loaded:
        widths: Floats = THIN + most / max(float(most.max(initial=0.0)), 1e-300) * (THICK - THIN)
        return widths
    capped: Floats = np.minimum(PLAIN * np.sqrt(most / most.min(initial=np.inf)), WIDEST)
    return capped


def _about(links: int, most: float, loaded: bool) -> str:
    """Return what shows when the mouse is on a cable."""
    return f"{counted(links, 'link')}, {'load over' if loaded else 'each of'} capacity {most:.4g}"


def _greatest(which: Ints, values: Floats) -> Floats:
    """Return the greatest value of each cable's links."""
    most = np.zeros(int(which.max(initial=-1)) + 1)
    np.maximum.at(most, which, values)
    return most


def line_of(cable: Cable, place: Floats, radius: float) -> str:
    """Return a cable as a line from disc to disc, with an arrow if it leads one way only."""
    begin, end = place[cable.ends[0]], place[cable.ends[1]]
    into = _unit(end - begin)
    start, tip = begin + into * radius, end - into * (radius + 0.5)
    reach = 3.0 + 2.0 * cable.width
    stop = tip - into * reach * 0.8 if cable.one_way else tip
    path = f"M{_at(start)} L{_at(stop)}"
    title = f"<title>{escape(cable.about)}</title>"
    line = (
        f'<path d="{path}" stroke="{cable.colour}" stroke-width="{cable.width:.1f}" fill="none" '
        f'class="cable">{title}</path>'
    )
    return line + (_arrow(tip, into, reach, cable.colour) if cable.one_way else "")


def stubs_of(
    topology: Topology, cable: Cable, found: Layout, place: Floats, radius: float, scale: float
) -> list[str]:
    """Return the two ends of a cable that goes around, and where it leads if it is twisted."""
    step = found.towards[cable.wraps] * scale
    apart = place[cable.ends[1]] - place[cable.ends[0]]
    sign = 1.0 if float(apart @ step) < 0 else -1.0
    twisted = not np.allclose(_unit(apart), -sign * _unit(step), atol=1e-3)
    parts = []
    for own, other, way in (
        (cable.ends[0], cable.ends[1], sign),
        (cable.ends[1], cable.ends[0], -sign),
    ):
        towards = way * _unit(step)
        start = place[own] + towards * radius
        length = float(np.clip(0.45 * np.linalg.norm(step) - radius, 5.0, STUB))
        stop = start + towards * length
        title = f"<title>to {escape(topology.node_name(other))}, {escape(cable.about)}</title>"
        parts.append(
            f'<path d="M{_at(start)} L{_at(stop)}" stroke="{cable.colour}" fill="none" '
            f'stroke-width="{cable.width:.1f}" stroke-dasharray="4 3" class="around">{title}</path>'
        )
        if twisted and len(np.unique(found.host)) <= MOST_STUB_LABELS:
            at = stop + towards * 6
            name = topology.node_name(other)
            parts.append(text(at[0], at[1], name, 7.5, anchor="middle", colour=SOFT))
    return parts


def _arrow(tip: Floats, into: Floats, reach: float, colour: str) -> str:
    aside = np.array([-into[1], into[0]]) * reach * 0.45
    back = tip - into * reach
    return f'<path d="M{_at(tip)} L{_at(back + aside)} L{_at(back - aside)} z" fill="{colour}"/>'


def _unit(vector: Floats) -> Floats:
    length = float(np.linalg.norm(vector))
    found: Floats = vector / length if length > 1e-9 else vector * 0
    return found


def _at(point: Floats) -> str:
    return f"{point[0]:.1f},{point[1]:.1f}"
