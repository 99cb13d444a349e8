"""Places of nodes in pictures and reports: `layout(topology) -> Layout`.

The layout fits the kind of topology, found from its links wherever possible:

| kind | for | places |
|---|---|---|
| grid | tori, meshes, slices | unrolled; a third dimension goes aside, more are blocks |
| grid | HyperX: every line is a clique | every line around a circle, of which the next is made |
| levels | trees of switches, complete bipartite graphs | terminals in a row, switches above |
| groups | Dragonfly and the like, hosts by name | each a circle, all of them around a circle |
| circle | regular graphs, such as circulant and Kautz | by number around a circle |
| springs | small irregular graphs | by forces between them |

Links are straight lines. Groups are drawn only if names or the family indicate them, since random
graphs show groups, too. A layout takes milliseconds, at most a second for 3,000 nodes.
"""

from collections.abc import Callable
from dataclasses import dataclass, field, replace
from math import prod
from typing import NamedTuple

import igraph
import numpy as np
from numpy.typing import NDArray

from alltoall.ir.arrays import Floats, Ints
from alltoall.ir.grid import grid_of
from alltoall.ir.topology import Topology

MOST_SEARCHED = 3_000
"""Nodes above which all are put on a circle, without a search."""

GROUPED = ("boardfly", "bundlefly", "dragonfly", "megafly", "polarstar")
"""Families whose nodes come in groups."""

GRIDS = ("torus", "mesh", "hyperx", "tpuv4", "tpuv5p", "ubmesh")
"""Families whose names begin with the sides of a grid."""

LEAST_MODULARITY = 0.2
"""Least modularity of groups of successive nodes."""

MOST_GROUPS = 64
"""More groups than this are no help to the eye."""

PADDING, APART = 0.55, 0.5
"""Room around the nodes of a group, and between groups, in distances of nodes."""

MOST_SPRINGS = 100
"""Nodes up to which forces between them give a picture that shows more than a circle."""

SKEW = 0.9
"""Offset of a block from the one before, in node distances."""

BETWEEN, TURN = 1.2, 0.35
"""Distance of circles around a larger one, in their widths, and their rotation."""

WITHIN_LEVEL = 0.25
"""Share of the links that may join nodes of one level."""


class DrawnGroup(NamedTuple):
    """Nodes that belong together, their label, and the circle around them."""

    label: str
    nodes: Ints
    centre: tuple[float, float]
    radius: float


@dataclass(frozen=True, eq=False)
class Layout:
    """Places of nodes, x to the right and y down, scaled so that the larger side is 1.

    `place` has shape [nodes, 2]. A link is drawn from `host[tail]` to `host[head]`: the host of a
    NIC half is the node that it belongs to, of other nodes the node itself. `wraps[link]` is the
    dimension in which a link of a grid goes around, else -1, and `towards` the direction of each
    dimension in the picture.
    """

    kind: str
    place: Floats
    host: Ints
    wraps: Ints
    towards: Floats = field(default_factory=lambda: np.zeros((0, 2)))
    groups: tuple[DrawnGroup, ...] = ()

    @property
    def size(self) -> tuple[float, float]:
        """Width and height of all places; the larger is 1, but for a single node."""
        width, height = self.place.max(axis=0) - self.place.min(axis=0)
        return float(width), float(height)


def layout(topology: Topology) -> Layout:
    """Return the deterministic layout of a topology."""
    host = _hosts(topology)
    members = np.unique(host)
    core = _core(topology, host, members)
    searched = topology.nodes <= MOST_SEARCHED and core.links > 0
    ways = WAYS if searched else (_on_circle,)
    found = next(each for way in ways if (each := way(core)) is not None)
    low = found.place.min(axis=0)
    span = max(float((found.place.max(axis=0) - low).max()), 1e-9)
    wraps = np.full(topology.links, -1, dtype=np.int64)
    wraps[host[topology.tail] != host[topology.head]] = found.wraps
    groups = [
        DrawnGroup(label, members[nodes], (x, y), radius / span)
        for label, nodes, centre, radius in found.groups
        for x, y in [((np.array(centre) - low) / span).tolist()]
    ]
    place = ((found.place - low) / span)[np.searchsorted(members, host)]
    return Layout(found.kind, place, host, wraps, found.towards / span, tuple(groups))


def _hosts(topology: Topology) -> Ints:
    """Return the terminal of each NIC half, and of other nodes the node itself.

    A half that receives has one link, to its host, which has no other link in; a half that sends is
    the other way round.
    """
    host = np.arange(topology.nodes, dtype=np.int64)
    switch = np.ones(topology.nodes, dtype=np.bool_)
    switch[topology.terminals] = False
    one_in, one_out = topology.in_degree == 1, topology.out_degree == 1
    into = switch[topology.tail] & one_out[topology.tail] & one_in[topology.head]
    out_of = switch[topology.head] & one_in[topology.head] & one_out[topology.tail]
    into &= ~switch[topology.head]
    out_of &= ~switch[topology.tail]
    both = np.intersect1d(topology.head[into], topology.tail[out_of])
    into &= np.isin(topology.head, both)
    out_of &= np.isin(topology.tail, both)
    host[topology.tail[into]] = topology.head[into]
    host[topology.head[out_of]] = topology.tail[out_of]
    return host


def _core(topology: Topology, host: Ints, members: Ints) -> Topology:
    """Return the topology without NIC halves, whose links are those of their hosts."""
    if len(members) == topology.nodes:
        return topology
    tail, head = (np.searchsorted(members, host[end]) for end in (topology.tail, topology.head))
    kept, names = tail != head, topology.names
    return Topology(
        topology.name,
        len(members),
        tail[kept],
        head[kept],
        topology.capacity[kept],
        np.searchsorted(members, topology.terminals),
        names=None if names is None else tuple(names[node] for node in members.tolist()),
    )


def _layout(
    topology: Topology, kind: str, place: Floats, groups: tuple[DrawnGroup, ...] = ()
) -> Layout:
    wraps = np.full(topology.links, -1, dtype=np.int64)
    return Layout(kind, place, np.arange(topology.nodes), wraps, groups=groups)


def _by_grid(topology: Topology) -> Layout | None:
    """Unroll a grid: wrap-around links join its opposite ends."""
    found = _coordinates(topology)
    if found is None:
        return None
    shape, at = found
    large = [axis for axis, side in enumerate(shape) if side > 1]
    if len(large) < 2 and (not large or _goes_around(topology, shape)):
        return None  # A cycle or a clique is a circle.
    towards = _directions([shape[axis] for axis in large])
    kept = at[:, large]
    step = kept[topology.head] - kept[topology.tail]
    sides = np.array(shape, dtype=np.int64)[large]
    cliques = _of_cliques(step, sides)
    short = sides[np.argmax(np.abs(step), axis=1)] <= 3
    if cliques.any() and (cliques | short).all():
        return _layout(topology, "grid", _of_circles(kept, sides.tolist()))
    ends = (np.abs(step) == sides - 1) & (sides > 2)
    around = ends.any(axis=1) & (np.abs(step).sum(axis=1) > 1) & ~cliques
    wraps = np.where(around, np.argmax(ends, axis=1), -1)
    return replace(_layout(topology, "grid", kept @ towards), wraps=wraps, towards=towards)


def _coordinates(topology: Topology) -> tuple[tuple[int, ...], Ints] | None:
    """Return sides and coordinates of a grid, by its links or else by its name."""
    grid = grid_of(topology)
    if grid is not None:
        return grid.shape, np.asarray(grid.coordinates)
    family, _, words = topology.name.partition(":")
    sides = words.partition(",")[0].split("x")
    if family not in GRIDS or not all(side.isdecimal() for side in sides):
        return None
    shape = tuple(map(int, sides))
    if prod(shape) != topology.nodes:
        return None  # Some nodes are gone, and with them the numbering.
    return shape, np.stack(np.unravel_index(np.arange(topology.nodes), shape), axis=1)


def _goes_around(topology: Topology, shape: tuple[int, ...]) -> bool:
    """Whether a line of nodes has more links than a path."""
    return len(np.unique(np.sort([topology.tail, topology.head], axis=0), axis=1).T) >= max(shape)


def _of_cliques(step: Ints, sides: Ints) -> NDArray[np.bool_]:
    """Return whether a link belongs to a line that is a clique."""
    far = np.abs(step)
    straight = (far > 0).sum(axis=1) == 1
    inner: NDArray[np.bool_] = (far > 1) & (far < sides - 1) & straight[:, None]
    found: NDArray[np.bool_] = straight & np.any(inner, axis=0)[np.argmax(far, axis=1)]
    return found


def _of_circles(at: Ints, sides: list[int]) -> Floats:
    """Put the nodes of every line around a circle: no link of a clique hides another."""
    place, room = np.zeros((len(at), 2)), 1.0
    for axis in range(len(sides) - 1, -1, -1):
        # Turned, for else the lines of one circle lie in those of another.
        around = _circle(sides[axis], TURN * axis - np.pi / 2) * room
        place += around[at[:, axis]]
        room += BETWEEN * float(np.ptp(around, axis=0).max())
    return place


def _directions(sides: list[int]) -> Floats:
    """Return the step of each dimension: the last two across and down, a third aside.

    Three dimensions make a block, which the next three repeat at its size, a little aside, so that
    links between blocks do not cover those within.
    """
    towards = np.zeros((len(sides), 2))
    width = height = 1.0
    for last in range(len(sides), 0, -3):
        block = sides[max(0, last - 3) : last]
        across, down = block[-1], block[-2] if len(block) > 1 else 1
        depth = block[-3] if len(block) > 2 else 1
        room = 1.0 if depth == 1 else 1.35
        skew = SKEW if last < len(sides) else 0.0
        towards[last - 1] = (width * room, skew)
        if len(block) > 1:
            towards[last - 2] = (-skew, height * room)
        if len(block) > 2:
            aside = room / (depth + 0.45)
            towards[last - 3] = (width * aside + skew, -height * aside)
        width *= room * across + 1.0
        height *= room * down + 1.0
    return towards


def _by_names(topology: Topology) -> Layout | None:
    """Group nodes by the part of their names before a colon, as in host3:gpu5."""
    if topology.names is None or sum(":" in name for name in topology.names) < topology.nodes / 2:
        return None
    prefixes = [name.partition(":")[0] if ":" in name else "" for name in topology.names]
    labels = list(dict.fromkeys(prefixes))
    if not 2 <= len(labels) <= MOST_GROUPS:
        return None
    group = np.array([labels.index(each) for each in prefixes], dtype=np.int64)
    return _in_groups(topology, group, labels)


def _by_groups(topology: Topology) -> Layout | None:
    """Group successive nodes of a grouped family, or else nodes by random walks."""
    if topology.name.partition(":")[0] not in GROUPED:
        return None
    nodes = topology.nodes
    sizes = [size for size in range(3, nodes // 3 + 1) if nodes % size == 0]
    groupings = [np.arange(nodes) // size for size in sizes if nodes // size <= MOST_GROUPS]
    best = max(groupings, key=lambda group: _modularity(topology, group), default=None)
    if best is not None and _modularity(topology, best) >= LEAST_MODULARITY:
        return _in_groups(topology, best)
    walks = _graph(topology).community_walktrap().as_clustering().membership
    group = np.array(walks, dtype=np.int64)
    return _in_groups(topology, group) if 2 <= int(group.max()) + 1 <= MOST_GROUPS else None


def _modularity(topology: Topology, group: Ints) -> float:
    """Return the modularity of groups: the share of inner links, less that of random graphs."""
    within = float(np.mean(group[topology.tail] == group[topology.head]))
    ends = np.bincount(group, weights=topology.out_degree + topology.in_degree)
    return within - float(((ends / ends.sum()) ** 2).sum())


def _in_groups(topology: Topology, group: Ints, labels: list[str] | None = None) -> Layout:
    """Put the nodes of each group on a circle, and the groups around another."""
    count = int(group.max()) + 1
    members = [np.flatnonzero(group == each) for each in range(count)]
    # Neighbours on the small circle are as far apart as 1; the large one has room for all.
    radii = [0.5 / np.sin(np.pi / max(len(each), 2)) + PADDING for each in members]
    # Between few groups the way along the circle is much longer than the straight one.
    longer = (np.pi / count) / np.sin(np.pi / max(count, 2))
    around = longer * sum(2 * radius + APART for radius in radii) / (2 * np.pi)
    arcs = np.cumsum([0.0, *(2 * radius + APART for radius in radii)])
    angles = 2 * np.pi * (arcs[:-1] + arcs[1:]) / 2 / arcs[-1] - np.pi / 2
    place = np.empty((topology.nodes, 2))
    groups = []
    labels = labels or [f"group {each}" for each in range(count)]
    for label, own, radius, angle in zip(labels, members, radii, angles.tolist(), strict=True):
        centre = around * np.array([np.cos(angle), np.sin(angle)]) * (1 if count > 1 else 0)
        for some in _seats(topology, own):
            place[some] = centre + _circle(len(some), angle)
        groups.append(DrawnGroup(label, own, (float(centre[0]), float(centre[1])), radius))
    return _layout(topology, "groups", place, tuple(groups))


def _by_levels(topology: Topology) -> Layout | None:
    """Put terminals in a row and switches above, by their hops from a terminal."""
    level = _bipartite_sides(topology)
    if level is None:
        if len(topology.terminals) == topology.nodes:
            return None
        paths = _graph(topology).distances(source=topology.terminals.tolist())
        hops = np.min(np.asarray(paths, dtype=np.float64), axis=0)
        if np.isinf(hops).any():
            return None
        level = hops.astype(np.int64)
    inner = level[topology.tail] == level[topology.head]
    lowest = (level[topology.tail] == 0) & inner
    if lowest.any() or inner.mean() > WITHIN_LEVEL:
        return None
    place = np.empty((topology.nodes, 2))
    rows = [np.flatnonzero(level == each) for each in range(int(level.max()) + 1)]
    wide = max(map(len, rows))
    for up, row in enumerate(rows):
        place[row, 0] = (np.arange(len(row)) + 0.5) * wide / len(row)
        place[row, 1] = -up * max(0.32 * wide, 1.6) * (1.0 if len(rows) <= 2 else 0.55)
    return _layout(topology, "levels", place)


def _bipartite_sides(topology: Topology) -> Ints | None:
    """Return the two sides of a complete bipartite graph as levels."""
    graph = _graph(topology)
    two, sides = graph.is_bipartite(return_types=True)
    if not two or topology.nodes < 4:
        return None
    side = np.array(sides, dtype=np.int64)
    complete = int(side.sum()) * (topology.nodes - int(side.sum()))
    return side if graph.simplify().ecount() == complete else None


def _by_circulant(topology: Topology) -> Layout | None:
    """Put the nodes on a circle if adding one to their numbers changes no link."""
    nodes = topology.nodes
    keys = topology.tail * nodes + topology.head
    moved = (topology.tail + 1) % nodes * nodes + (topology.head + 1) % nodes
    return _on_circle(topology) if np.array_equal(np.sort(keys), np.sort(moved)) else None


def _by_forces(topology: Topology) -> Layout | None:
    """Place few nodes of very different degrees by springs."""
    degree = topology.out_degree + topology.in_degree
    if topology.nodes > MOST_SPRINGS or degree.max() - degree.min() <= 2:
        return None
    graph = _graph(topology)
    placed = graph.layout_kamada_kawai(seed=graph.layout_circle())
    return _layout(topology, "springs", np.array(placed.coords))


def _on_circle(topology: Topology) -> Layout:
    return _layout(topology, "circle", _circle(topology.nodes, -np.pi / 2))


def _graph(topology: Topology) -> igraph.Graph:
    pairs = np.unique(np.sort(np.c_[topology.tail, topology.head], axis=1), axis=0)
    return igraph.Graph(n=topology.nodes, edges=pairs.tolist())


WAYS: tuple[Callable[[Topology], Layout | None], ...] = (
    *(_by_grid, _by_names, _by_levels, _by_circulant, _by_groups, _by_forces, _on_circle),
)
"""The layouts in the order in which they are tried; the last one takes everything."""


def _circle(count: int, begin: float) -> Floats:
    """Return places one apart around a circle, clockwise from an angle."""
    angle = begin + 2 * np.pi * np.arange(count) / max(count, 1)
    radius = 0.0 if count == 1 else 0.5 / np.sin(np.pi / max(count, 2))
    places: Floats = radius * np.stack([np.cos(angle), np.sin(angle)], axis=1)
    return places


def _seats(topology: Topology, own: Ints) -> tuple[Ints, Ints]:
    """Return the nodes around the circle of a group, and those in its middle.

    A switch is beside the nodes that it serves, so that its links do not cross all others, or in
    the middle if it serves most of them.
    """
    terminal = np.isin(own, topology.terminals)
    number = np.full(topology.nodes, -1, dtype=np.int64)
    number[own] = np.arange(len(own))
    seat, central = np.arange(len(own), dtype=np.float64), np.zeros(len(own), dtype=np.bool_)
    for switch in np.flatnonzero(~terminal):
        near = number[topology.head[topology.tail == own[switch]]]
        served = np.unique(near[(near >= 0) & terminal[near]])
        central[switch] = 2 * len(served) > max(int(terminal.sum()), 3)
        if len(served):
            seat[switch] = served.mean() + 0.25
    if 3 * central.sum() > len(own):
        central[:] = False  # A middle of so many would be a circle of its own.
    ring = np.flatnonzero(~central)
    return own[ring[np.argsort(seat[ring], kind="stable")]], own[central]
