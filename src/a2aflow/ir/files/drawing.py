"""A topology as an SVG picture."""

from html import escape

import igraph
import numpy as np

from a2aflow.ir.arrays import Floats
from a2aflow.ir.topology import Topology
from a2aflow.ir.words import one_line

SIZE, MARGIN = 640.0, 32.0
ARROW = (
    '<defs><marker id="arrow" viewBox="0 0 6 6" refX="6" refY="3" markerWidth="5" '
    'markerHeight="5" orient="auto"><path d="M0,0 L6,3 L0,6 z" fill="#667788"/></marker></defs>'
)
LONGEST_LABEL = 8
"""Characters of a name that are drawn; all of it shows when the mouse is on the node."""

CIRCLE_ABOVE = 600
"""Above this many nodes a force-directed layout is slow and shows no more than a circle does."""


MOST_LINKS = 5_000
"""Beyond this a picture in a notebook is a dark blot of a megabyte."""

IDLE, FULL = np.array([0x88, 0x99, 0xAA]), np.array([0xC0, 0x20, 0x20])
"""The colours of a link that carries nothing and of the fullest."""


def picture(topology: Topology, load: Floats | None = None) -> str | None:
    """Return the SVG of a topology for a notebook, or None if it has too many links for one."""
    return draw_svg(topology, load) if topology.links <= MOST_LINKS else None


def draw_svg(topology: Topology, load: Floats | None = None) -> str:
    """Return an SVG: one line per link, with an arrow unless all links go both ways.

    With the `load` of each link, the fuller a link is, the redder it is.
    """
    place = _layout(topology)
    radius = float(np.clip(140 / np.sqrt(topology.nodes), 2.5, 14))
    colour = _colours(topology, load)
    links = (_line(topology, link, place, radius, colour[link]) for link in range(topology.links))
    nodes = (_disc(topology, node, place, radius) for node in range(topology.nodes))
    return "\n".join(
        (
            f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {SIZE:g} {SIZE:g}" '
            f'width="{SIZE:g}" height="{SIZE:g}" font-family="sans-serif">',
            f"<title>{escape(one_line(topology.name))}</title>",
            ARROW,
            '<rect width="100%" height="100%" fill="white"/>',
            *links,
            *nodes,
            "</svg>\n",
        )
    )


def _layout(topology: Topology) -> Floats:
    """Return a position for each node within the margins; the same one every time."""
    graph = igraph.Graph(n=topology.nodes, edges=np.c_[topology.tail, topology.head].tolist())
    graph.to_undirected()
    layout = graph.layout_circle()
    if topology.nodes <= CIRCLE_ABOVE:
        layout = graph.layout_kamada_kawai(seed=layout)
    place = np.array(layout.coords)
    spread = np.maximum(place.max(axis=0) - place.min(axis=0), 1e-9)
    scaled = (place - place.min(axis=0)) / spread
    return np.asarray(MARGIN + scaled * (SIZE - 2 * MARGIN), dtype=np.float64)


def _colours(topology: Topology, load: Floats | None) -> list[str]:
    """Return the colour of each link, between idle and full."""
    share = np.zeros(topology.links) if load is None else load / topology.capacity
    share = share / max(float(share.max(initial=0.0)), 1e-300)
    mixed = np.rint(IDLE + share[:, None] * (FULL - IDLE)).astype(np.int64)
    return [f"#{red:02x}{green:02x}{blue:02x}" for red, green, blue in mixed.tolist()]


def _line(topology: Topology, link: int, place: Floats, radius: float, colour: str) -> str:
    """Draw a link beside the straight line, on its right, so that both directions show."""
    begin, end = place[topology.tail[link]], place[topology.head[link]]
    along = (end - begin) / max(float(np.linalg.norm(end - begin)), 1e-9)
    aside = np.array([-along[1], along[0]]) * radius * 0.3
    begin, end = begin + aside + along * radius, end + aside - along * radius
    arrow = "" if topology.bidirectional else ' marker-end="url(#arrow)"'
    return (
        f'<line x1="{begin[0]:.1f}" y1="{begin[1]:.1f}" x2="{end[0]:.1f}" y2="{end[1]:.1f}" '
        f'stroke="{colour}" stroke-width="{max(0.4, radius / 8):.1f}"{arrow}/>'
    )


def _disc(topology: Topology, node: int, place: Floats, radius: float) -> str:
    x, y = place[node]
    terminal = node in topology.terminals
    shape = (
        f'<circle cx="{x:.1f}" cy="{y:.1f}" r="{radius:.1f}" '
        f'fill="{"#20639b" if terminal else "#c8d2dc"}"/>'
    )
    if topology.names is not None:
        title = f"<title>{escape(topology.names[node])}</title>"
        shape = shape.removesuffix("/>") + f">{title}</circle>"
    if radius < 6:
        return shape
    return shape + (
        f'<text x="{x:.1f}" y="{y:.1f}" font-size="{radius:.1f}" text-anchor="middle" '
        f'dominant-baseline="central" fill="{"white" if terminal else "black"}">'
        f"{escape(_label(topology, node))}</text>"
    )


def _label(topology: Topology, node: int) -> str:
    """Return what stands in a disc: the name, cut where it is too long for one."""
    name = topology.node_name(node)
    return name if len(name) <= LONGEST_LABEL else name[: LONGEST_LABEL - 1] + "…"
