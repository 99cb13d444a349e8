"""Draw a topology as SVG, with link loads if known.

Small topologies are nodes and cables, placed by `ir.layout`; larger ones an adjacency matrix, whose
rows send and whose columns receive, with a cell for each pair of nodes or of ranges of nodes.
"""

import struct
import zlib
from base64 import b64encode
from html import escape

import numpy as np
from numpy.typing import NDArray

from alltoall.ir.arrays import Floats
from alltoall.ir.files.drawing_marks import (
    INK,
    PALE,
    SOFT,
    SWITCH,
    TERMINAL,
    Cable,
    cables_of,
    colours,
    legend,
    line_of,
    page,
    shortened,
    stubs_of,
    text,
)
from alltoall.ir.layout import DrawnGroup, Layout, layout
from alltoall.ir.topology import Topology

SIDE, ASIDE = 640.0, 56.0
"""Side of the matrix, and the room around it."""

MOST_CELLS = 400
"""Cells in a row; in a larger topology each is several nodes."""

SHADES = 64
"""Number of different shades."""

PLAIN = (0x20, 0x63, 0x9B)
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
        palette = np.rint(190 + at[:, None] ** 0.5 * (np.array(PLAIN) - 190)).astype(np.uint8)
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
