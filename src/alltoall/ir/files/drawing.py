"""A topology as an SVG picture, with the load of its links if that is known.

Small enough, it is nodes and cables, placed by `ir.layout`; above that an adjacency matrix, whose
rows send and whose columns receive. A cable is one line, however many links it has.
"""

from html import escape

import numpy as np

from alltoall.ir.arrays import Floats
from alltoall.ir.files.drawing_cables import Cable, cables_of, line_of, stubs_of
from alltoall.ir.files.drawing_matrix import matrix_image
from alltoall.ir.files.drawing_style import INK, PALE, SOFT, SWITCH, TERMINAL, legend, page, text
from alltoall.ir.layout import Group, Layout, layout
from alltoall.ir.topology import Topology

WIDTH, HEIGHT, MARGIN = 864.0, 720.0, 48.0
"""The most that nodes may span, and the room around them."""

MOST_CABLES = {"grid": 4_000, "groups": 1_600, "levels": 2_000, "circle": 700, "springs": 700}
"""How many cables of each kind of layout an eye can follow; above that there is a matrix."""

MOST_NODES = 1_500
"""More discs than this are dust."""

LONGEST_LABEL = 8
"""Characters of a name that are drawn; all of it shows when the mouse is on the node."""

SMALLEST_LABEL = 6.0
"""A label in smaller letters than this is left out."""


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
    """Return the picture of nodes and cables."""
    low, high = _extent(found)
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
    """Return how large discs can be: a third of the way to the nearest other."""
    own = place[np.unique(found.host)]
    if len(own) == 1:
        return 16.0
    nearest = min(float(np.partition(np.linalg.norm(own - each, axis=1), 1)[1]) for each in own)
    return float(np.clip(0.36 * nearest, 2.0, 17.0))


def _extent(found: Layout) -> tuple[Floats, Floats]:
    """Return the corners of what nodes and groups take."""
    centres = np.array([each.centre for each in found.groups]).reshape(-1, 2)
    radii = np.array([each.radius for each in found.groups])[:, None]
    points = np.concatenate([found.place, centres - radii, centres + radii])
    return points.min(axis=0), points.max(axis=0)


def _group_mark(group: Group, middle: Floats, low: Floats, scale: float) -> str:
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
    ring = ""
    if halo is not None:
        ring = (
            f'<circle cx="{x:.1f}" cy="{y:.1f}" r="{radius + 2.2:.1f}" fill="none" '
            f'stroke="{halo.colour}" stroke-width="{max(1.6, radius / 5):.1f}" class="host"/>'
        )
    title = f"<title>{escape(topology.node_name(node))}</title>"
    edge = "" if terminal else f' stroke="{SOFT}" stroke-width="{max(0.8, radius / 9):.1f}"'
    shape = (
        f'<circle cx="{x:.1f}" cy="{y:.1f}" r="{radius:.1f}" class="node" '
        f'fill="{TERMINAL if terminal else SWITCH}"{edge}>{title}</circle>'
    )
    label = _label(topology, node, found)
    letters = min(radius * 1.05, 2.9 * radius / max(len(label), 1))
    if letters < SMALLEST_LABEL:
        return ring + shape
    colour = "white" if terminal else INK
    return ring + shape + text(x, y, label, letters, anchor="middle", colour=colour)


def _label(topology: Topology, node: int, found: Layout) -> str:
    """Return what stands in a disc: the name without its group's, cut where it is too long."""
    name = topology.node_name(node)
    if found.groups and ":" in name:
        name = name.partition(":")[2]
    return name if len(name) <= LONGEST_LABEL else name[: LONGEST_LABEL - 1] + "…"
