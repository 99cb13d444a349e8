"""Draw a topology as SVG, with link loads if known.

Small topologies are nodes and cables, placed by `ir.layout`; larger ones an adjacency matrix, whose
rows send and whose columns receive, with a cell for each pair of nodes or of ranges of nodes.

A cable is one straight line for all links between two nodes.
"""

import struct
import zlib
from base64 import b64encode
from dataclasses import dataclass
from html import escape

import numpy as np
from numpy.typing import NDArray

from alltoall.ir.arrays import Floats
from alltoall.ir.layout import DrawnGroup, Layout, layout
from alltoall.ir.topology import Topology
from alltoall.ir.words import counted, one_line

INK, SOFT, PALE = "#1f2d3a", "#5b6b7b", "#f3f6f9"
"""Letters, lesser letters, and the ground of groups."""

TERMINAL, SWITCH, CABLE = "#20639b", "#ffffff", "#8899aa"
"""Colours of terminals, switches, and cables without loads."""

RAMP = np.array([[0xC3, 0xCE, 0xD8], [0xF2, 0xA9, 0x3B], [0xC0, 0x20, 0x20]], dtype=np.float64)
"""The colours of links with no load, half of the greatest, and the greatest."""

HEADER, FOOTER, LEAST_WIDTH = 66.0, 58.0, 560.0
"""Room for the title and for the legend, and the width that they need."""

LONGEST_TITLE = 66
"""Characters of a name that fit into a title."""


def colours(shares: Floats) -> NDArray[np.uint8]:
    """Return red, green and blue of loads, which are shares of the greatest."""
    at = np.linspace(0, 1, len(RAMP))
    channels = [np.interp(shares, at, channel) for channel in RAMP.T]
    return np.asarray(np.rint(np.stack(channels, axis=-1)), dtype=np.uint8)


def ramp(share: float) -> str:
    """Return the colour of a load, given as a share of the largest."""
    return "#" + colours(np.array(share)).tobytes().hex()


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
    """Return a whole SVG: a title, a picture, and a legend of some width below it."""
    width = max(size[0], LEAST_WIDTH, below[1] + 48)
    height = HEADER + size[1] + FOOTER
    name = one_line(topology.name)
    title = text(24, 28, shortened(name, LONGEST_TITLE), 20)
    low, high = int(topology.out_degree.min()), int(topology.out_degree.max())
    ways = "both ways" if topology.bidirectional else "one way"
    words = [
        counted(topology.nodes, "node"),
        f"{counted(topology.links, 'link')} {ways}",
        f"degree {low}" if low == high else f"degree {low} to {high}",
    ]
    if len(topology.terminals) < topology.nodes:
        words.insert(1, counted(len(topology.terminals), "terminal"))
    return f"""<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width:.0f} {height:.0f}" \
width="{width:.0f}" height="{height:.0f}" font-family="Helvetica,Arial,sans-serif">
<title>{escape(name)}</title>
<rect width="100%" height="100%" fill="white"/>
{title.replace("<text ", '<text font-weight="600" ')}
{text(24, 52, ", ".join(words), 13, colour=SOFT)}
<g transform="translate({(width - size[0]) / 2:.1f} {HEADER:.1f})">
{inner}
</g>
<g transform="translate(24 {HEADER + size[1] + FOOTER / 2:.1f})">{below[0]}</g>
</svg>
"""


def shortened(name: str, most: int) -> str:
    """Return a name, cut to `most` characters if it is longer."""
    return name if len(name) <= most else name[: most - 1] + "…"


def legend(
    topology: Topology,
    share: Floats | None,
    one_way: bool = False,
    around: bool = False,
    halo: bool = False,
    matrix: bool = False,
) -> tuple[str, float]:
    """Return the legend of a picture as a row, and its width."""
    hosts = len(topology.terminals) * (3 if halo else 1)  # with their NIC halves
    rows = (
        (not matrix, DOT.format(TERMINAL, ""), "terminal"),
        (not matrix and hosts < topology.nodes, DOT.format(SWITCH, EDGE), "switch"),
        (matrix, SQUARE, "link from row to column"),
        (not matrix and not one_way, _stroke(""), "cable, both ways"),
        (not matrix and one_way, _stroke("") + TIP, "link, one way"),
        (around, _stroke(' stroke-dasharray="4 3"'), "goes around"),
        (halo, RING, "host bandwidth"),
    )
    drawn, at = [], 0.0
    for mark, words in (entry for shown, *entry in rows if shown):
        drawn.append(f'<g transform="translate({at:.0f} 0)">{mark}{text(30, 0, words, 12)}</g>')
        at += 30 + 6.4 * len(words) + 22
    if share is not None:
        drawn.append(f'<g transform="translate({at:.0f} 0)">{_scale(share)}</g>')
        at += 300
    return "".join(drawn), at


def _scale(share: Floats) -> str:
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


EDGE = ' stroke="#5b6b7b" stroke-width="1.4"'
DOT = '<circle cx="14" cy="0" r="7" fill="{}"{}/>'
RING = f'<circle cx="14" cy="0" r="7" fill="none" stroke="{CABLE}" stroke-width="3"/>'
SQUARE = f'<rect x="8" y="-6" width="12" height="12" fill="{CABLE}"/>'
TIP = f'<path d="M26,0 l-7,-3.5 v7 z" fill="{CABLE}"/>'
"""Marks of the legend."""


def _stroke(dash: str) -> str:
    return f'<path d="M2,0 H24" stroke="{CABLE}" stroke-width="2" fill="none"{dash}/>'


THIN, THICK = 0.8, 4.6
"""Widths of links with no load and with the greatest."""

LEAST, WIDEST = 1.3, 4.0
"""Widths of cables without loads: of the least capacity, and the largest."""

CROWD = 120
"""Number of cables above which lines get thinner."""

STUB = 24.0
"""Largest length of the ends of a wrap-around cable."""

MOST_STUB_LABELS = 256
"""Most nodes with labels on the ends of twisted cables."""


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
    """Return the cables: links between two nodes, with equal wrap-around, are one."""
    tail, head = found.host[topology.tail], found.host[topology.head]
    low, high = np.minimum(tail, head), np.maximum(tail, head)
    key = (low * topology.nodes + high) * (len(found.towards) + 2) + found.wraps + 1
    _, first, which = np.unique(key, return_index=True, return_inverse=True)
    forth, count = np.bincount(which, tail <= head), np.bincount(which)
    most = np.zeros(len(first))
    np.maximum.at(most, which, topology.capacity if share is None else share)
    top = max(float(most.max(initial=0.0)), 1e-300)
    if share is None:
        widths = np.minimum(LEAST * np.sqrt(most / most.min(initial=np.inf)), WIDEST)
    else:
        widths = THIN + most / top * (THICK - THIN)
    widths *= min(1.0, (CROWD / max(len(first), 1)) ** 0.35)
    words = "each of" if share is None else "load over"
    return [
        Cable(
            ends=(int(tail[link]), int(head[link])),
            wraps=int(found.wraps[link]),
            one_way=bool(forth[each] in (0, count[each]) and tail[link] != head[link]),
            colour=CABLE if share is None else ramp(float(most[each]) / top),
            width=float(widths[each]),
            about=f"{counted(int(count[each]), 'link')}, {words} capacity {most[each]:.4g}",
        )
        for each, link in enumerate(first.tolist())
    ]


def line_of(cable: Cable, place: Floats, radius: float) -> str:
    """Return a cable as a line from disc to disc, with an arrow if it leads one way only."""
    begin, end = place[cable.ends[0]], place[cable.ends[1]]
    into = _unit(end - begin)
    start, tip = begin + into * radius, end - into * (radius + 0.5)
    reach = 3.0 + 2.0 * cable.width
    stop = tip - into * reach * 0.8 if cable.one_way else tip
    line = (
        f'<path d="M{_at(start)} L{_at(stop)}" stroke="{cable.colour}" '
        f'stroke-width="{cable.width:.1f}" fill="none" class="cable">'
        f"<title>{escape(cable.about)}</title></path>"
    )
    return line + (_arrow(tip, into, reach, cable.colour) if cable.one_way else "")


def stubs_of(
    topology: Topology, cable: Cable, found: Layout, place: Floats, radius: float, scale: float
) -> list[str]:
    """Return the two ends of a wrap-around cable, with labels if it is twisted."""
    step = found.towards[cable.wraps] * scale
    apart = place[cable.ends[1]] - place[cable.ends[0]]
    sign = 1.0 if float(apart @ step) < 0 else -1.0
    twisted = not np.allclose(_unit(apart), -sign * _unit(step), atol=1e-3)
    parts = []
    for (own, other), way in ((cable.ends, sign), (cable.ends[::-1], -sign)):
        towards = way * _unit(step)
        start = place[own] + towards * radius
        length = float(np.clip(0.45 * np.linalg.norm(step) - radius, 5.0, STUB))
        stop = start + towards * length
        name = topology.node_name(other)
        title = f"<title>to {escape(name)}, {escape(cable.about)}</title>"
        parts.append(
            f'<path d="M{_at(start)} L{_at(stop)}" stroke="{cable.colour}" fill="none" '
            f'stroke-width="{cable.width:.1f}" stroke-dasharray="4 3" class="around">{title}</path>'
        )
        if twisted and len(np.unique(found.host)) <= MOST_STUB_LABELS:
            at = stop + towards * 6
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


SIDE, ASIDE = 640.0, 56.0
"""Side of the matrix, and the room around it."""

MOST_CELLS = 400
"""Cells in a row; in a larger topology each is several nodes."""

SHADES = 64
"""Number of different shades."""

FULLEST = (0x20, 0x63, 0x9B)
"""The colour of the cells with most links, without loads."""


def matrix_image(topology: Topology, share: Floats | None) -> tuple[str, tuple[float, float]]:
    """Return the matrix and the size it takes: rows send, columns receive."""
    cells = min(topology.nodes, MOST_CELLS)
    row, column = (end * cells // topology.nodes for end in (topology.tail, topology.head))
    value = np.zeros((cells, cells))
    if share is None:
        np.add.at(value, (row, column), topology.capacity)
    else:
        np.maximum.at(value, (row, column), share)
    linked = np.zeros((cells, cells), dtype=np.bool_)
    linked[row, column] = True
    level = np.ceil(value / max(float(value.max()), 1e-300) * (SHADES - 1)).astype(np.int64)
    at = np.linspace(0, 1, SHADES)
    if share is None:
        palette = np.rint(190 + at[:, None] ** 0.5 * (np.array(FULLEST) - 190)).astype(np.uint8)
    else:
        palette = colours(at)
    pixels = palette[level]
    pixels[~linked] = 255
    data = b64encode(_png(pixels)).decode()
    each = -(-topology.nodes // cells)
    label = "each cell is a node" if each == 1 else f"each cell is {each} nodes or fewer"
    parts = (
        f'<rect x="{ASIDE}" y="{ASIDE}" width="{SIDE}" height="{SIDE}" fill="white" '
        'stroke="#b8c4d0"/>',
        f'<image x="{ASIDE}" y="{ASIDE}" width="{SIDE}" height="{SIDE}" '
        f'style="image-rendering:pixelated" href="data:image/png;base64,{data}"/>',
        text(ASIDE + SIDE / 2, ASIDE - 34, f"to node ({label})", 13, "middle", SOFT),
        text(ASIDE, ASIDE - 14, "0", 12, "middle", SOFT),
        text(ASIDE + SIDE, ASIDE - 14, str(topology.nodes - 1), 12, "middle", SOFT),
        text(ASIDE - 10, ASIDE + 6, "0", 12, "end", SOFT),
        text(ASIDE - 10, ASIDE + SIDE - 6, str(topology.nodes - 1), 12, "end", SOFT),
        f'<g transform="translate({ASIDE - 34:.0f} {ASIDE + SIDE / 2:.0f}) rotate(-90)">'
        f"{text(0, 0, 'from node', 13, 'middle', SOFT)}</g>",
    )
    return "\n".join(parts), (SIDE + 2 * ASIDE, SIDE + 1.4 * ASIDE)


def _png(pixels: NDArray[np.uint8]) -> bytes:
    """Return rows of red, green and blue as a PNG file."""
    height, width, _ = pixels.shape
    # Each row begins with its filter: none.
    rows = np.pad(pixels.reshape(height, -1), ((0, 0), (1, 0)))
    header = struct.pack(">IIBBBBB", width, height, 8, 2, 0, 0, 0)
    chunks = ((b"IHDR", header), (b"IDAT", zlib.compress(rows.tobytes(), 9)), (b"IEND", b""))
    return b"\x89PNG\r\n\x1a\n" + b"".join(
        struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))
        for kind, data in chunks
    )


WIDTH, HEIGHT, MARGIN = 864.0, 720.0, 48.0
"""Largest extent of the nodes, and the room around them."""

MOST_CABLES = {"grid": 4_000, "groups": 1_600, "levels": 2_000, "circle": 700, "springs": 700}
"""Most cables drawn in each kind of layout; above that a matrix is drawn."""

MOST_NODES = 1_500
"""More discs than this are dust."""

LONGEST_LABEL = 8
"""Characters of a drawn name; the tooltip has the whole name."""

SMALLEST_LABEL = 6.0
"""Smallest letters of a label; smaller labels are omitted."""


def draw_svg(topology: Topology, load: Floats | None = None) -> str:
    """Return an SVG; with the `load` of each link, fuller cables are redder and wider."""
    share = None if load is None else load / topology.capacity
    found = layout(topology) if topology.nodes <= 3 * MOST_NODES else None
    if found is not None and np.unique(found.host).size <= MOST_NODES:
        cables = cables_of(topology, found, share)
        if len(cables) <= MOST_CABLES[found.kind]:
            return _picture(topology, found, cables, share)
    image, size = matrix_image(topology, share)
    return page(topology, size, image, legend(topology, share, matrix=True))


def _picture(topology: Topology, found: Layout, cables: list[Cable], share: Floats | None) -> str:
    centres = np.array([each.centre for each in found.groups]).reshape(-1, 2)
    radii = np.array([each.radius for each in found.groups])[:, None]
    points = np.concatenate([found.place, centres - radii, centres + radii])
    low, high = points.min(axis=0), points.max(axis=0)
    wide, tall = (high - low).tolist()
    scale = min(WIDTH / max(wide, 0.2), HEIGHT / max(tall, 1e-9))
    size = (wide * scale + 2 * MARGIN, tall * scale + 2 * MARGIN)
    place = (found.place - low) * scale + MARGIN
    radius = _radius(found, place)
    parts = [_group_mark(each, (low + high) / 2, low, scale) for each in found.groups]
    plain = [each for each in cables if each.wraps < 0 and each.ends[0] != each.ends[1]]
    parts += [line_of(each, place, radius) for each in plain]
    for each in cables:
        if each.wraps >= 0:
            parts += stubs_of(topology, each, found, place, radius, scale)
    halos = {each.ends[0]: each for each in cables if each.ends[0] == each.ends[1]}
    nodes = np.unique(found.host).tolist()
    parts += [_disc(topology, node, place, radius, found, halos.get(node)) for node in nodes]
    shown = {
        "one_way": any(each.one_way for each in plain),
        "around": any(each.wraps >= 0 for each in cables),
        "halo": bool(halos),
    }
    return page(topology, size, "\n".join(parts), legend(topology, share, **shown))


def _radius(found: Layout, place: Floats) -> float:
    """Return the radius of discs: a third of the way to the nearest other."""
    own = place[np.unique(found.host)]
    if len(own) == 1:
        return 16.0
    nearest = min(float(np.partition(np.linalg.norm(own - each, axis=1), 1)[1]) for each in own)
    return float(np.clip(0.36 * nearest, 2.0, 17.0))


def _group_mark(group: DrawnGroup, middle: Floats, low: Floats, scale: float) -> str:
    """Return the ground of a group, with its label above it, or below in the lower half."""
    x, y = (np.array(group.centre) - low) * scale + MARGIN
    radius = group.radius * scale
    above = group.centre[1] < middle[1]
    mark = (
        f'<circle cx="{x:.1f}" cy="{y:.1f}" r="{radius:.1f}" fill="{PALE}" stroke="#d5dde5" '
        'class="group"/>'
    )
    height = y - radius - 10 if above else y + radius + 10
    return mark + text(x, height, group.label, 12, anchor="middle", colour=SOFT)


def _disc(
    topology: Topology,
    node: int,
    place: Floats,
    radius: float,
    found: Layout,
    halo: Cable | None,
) -> str:
    """Return a node with its name; a halo is the bottleneck between a host and its NIC."""
    x, y = place[node].tolist()
    terminal = bool(topology.position[node] >= 0)
    ring = (
        ""
        if halo is None
        else (
            f'<circle cx="{x:.1f}" cy="{y:.1f}" r="{radius + 2.2:.1f}" fill="none" '
            f'stroke="{halo.colour}" stroke-width="{max(1.6, radius / 5):.1f}" class="host"/>'
        )
    )
    name = topology.node_name(node)
    title = f"<title>{escape(name)}</title>"
    edge = "" if terminal else f' stroke="{SOFT}" stroke-width="{max(0.8, radius / 9):.1f}"'
    shape = (
        f'<circle cx="{x:.1f}" cy="{y:.1f}" r="{radius:.1f}" class="node" '
        f'fill="{TERMINAL if terminal else SWITCH}"{edge}>{title}</circle>'
    )
    # Below the label of a group, names go without it.
    own = name.partition(":")[2] if found.groups and ":" in name else name
    label = shortened(own, LONGEST_LABEL)
    letters = min(radius * 1.05, 2.9 * radius / max(len(label), 1))
    if letters < SMALLEST_LABEL:
        return ring + shape
    colour = "white" if terminal else INK
    return ring + shape + text(x, y, label, letters, anchor="middle", colour=colour)
