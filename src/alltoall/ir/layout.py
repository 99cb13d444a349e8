"""Where the nodes of a topology are drawn: `layout(topology) -> Layout`.

The layout fits what the topology is, found from its links wherever possible:

| kind | for | places |
|---|---|---|
| grid | tori, meshes, slices | unrolled; a third dimension goes aside, more are blocks |
| grid | HyperX: every line is a clique | every line around a circle, of which the next is made |
| levels | trees of switches, complete bipartite graphs | terminals in a row, switches above |
| groups | Dragonfly and the like, hosts by name | each a circle, all of them around a circle |
| circle | regular graphs, such as circulant and Kautz | by number around a circle |
| springs | small irregular graphs | by forces between them |

Pictures and reports share it, and draw straight lines from node to node. Groups are drawn where
names or the family say that there are any; nobody is told of groups that only chance made.

A layout takes milliseconds, at most a second for 3,000 nodes.
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
"""Nodes above which nothing is searched for, and nodes are put on a circle."""

GROUPED = ("boardfly", "bundlefly", "dragonfly", "megafly", "polarstar")
"""Families whose nodes come in groups."""

LEAST_MODULARITY = 0.2
"""How much more links groups of successive nodes must have within than chance would give."""

MOST_GROUPS = 64
"""More groups than this are no help to the eye."""

PADDING, APART = 0.55, 0.5
"""Room around the nodes of a group, and between groups, in distances of nodes."""

MOST_SPRINGS = 100
"""Nodes up to which forces between them give a picture that shows more than a circle."""

SKEW = 0.9
"""How far a block is moved aside from the one before it, in distances of nodes."""

BETWEEN, TURN = 1.2, 0.35
"""How far circles are apart that stand around a larger one, in their widths, and turned."""

WITHIN_LEVEL = 0.25
"""Share of the links that may join nodes of one level."""


class DrawnGroup(NamedTuple):
    """Nodes that belong together: their label, who they are, and the circle around them."""

    label: str
    nodes: Ints
    centre: tuple[float, float]
    radius: float


@dataclass(frozen=True, eq=False)
class Layout:
    """Places of nodes, x to the right and y down, scaled so that the larger side is 1.

    `place` has shape [nodes, 2]. `host[v]` is the node at whose place v is drawn: v itself, or for
    the two NIC halves of a host that host, so that a link is drawn from `host[tail]` to
    `host[head]`, and one between a host and its own half has the same twice. `wraps[link]` is the
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
        """Width and height of what the places span; the larger is 1, but for a single node."""
        width, height = self.place.max(axis=0) - self.place.min(axis=0)
        return float(width), float(height)


def layout(topology: Topology) -> Layout:
    """Return where the nodes of a topology are drawn; the same every time."""
    host = _hosts(topology)
    core = _core(topology, host)
    searched = topology.nodes <= MOST_SEARCHED and core.links > 0
    ways = WAYS if searched else (_on_circle,)
    found = next(each for way in ways if (each := way(core)) is not None)
    number = np.cumsum(host == np.arange(topology.nodes)) - 1
    kept = host[topology.tail] != host[topology.head]
    wraps = np.full(topology.links, -1, dtype=np.int64)
    wraps[kept] = found.wraps
    members = np.flatnonzero(host == np.arange(topology.nodes))
    return _scaled(
        replace(
            found,
            place=found.place[number[host]],
            host=host,
            wraps=wraps,
            groups=tuple(each._replace(nodes=members[each.nodes]) for each in found.groups),
        )
    )


def _hosts(topology: Topology) -> Ints:
    """Return for each node the terminal whose NIC half it is, or the node itself.

    A half that receives has no link but to its host, whose only links in are from there, and a half
    that sends the other way round.
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


def _core(topology: Topology, host: Ints) -> Topology:
    """Return the topology whose nodes are the hosts with their NIC halves."""
    own = host == np.arange(topology.nodes)
    if own.all():
        return topology
    number = np.cumsum(own) - 1
    tail, head = number[host[topology.tail]], number[host[topology.head]]
    kept = tail != head
    names = None
    if topology.names is not None:
        names = tuple(topology.names[node] for node in np.flatnonzero(own).tolist())
    return Topology(
        topology.name,
        int(own.sum()),
        tail[kept],
        head[kept],
        topology.capacity[kept],
        number[topology.terminals],
        names=names,
    )


def _scaled(found: Layout) -> Layout:
    """Return a layout whose places begin at 0 and whose larger side is 1."""
    low = found.place.min(axis=0)
    span = max(float((found.place.max(axis=0) - low).max()), 1e-9)
    groups = tuple(
        each._replace(
            centre=(
                (each.centre[0] - float(low[0])) / span,
                (each.centre[1] - float(low[1])) / span,
            ),
            radius=each.radius / span,
        )
        for each in found.groups
    )
    return replace(
        found, place=(found.place - low) / span, towards=found.towards / span, groups=groups
    )


def _made(
    topology: Topology, kind: str, place: Floats, groups: tuple[DrawnGroup, ...] = ()
) -> Layout:
    wraps = np.full(topology.links, -1, dtype=np.int64)
    everyone = np.arange(topology.nodes, dtype=np.int64)
    return Layout(kind, np.asarray(place, dtype=np.float64), everyone, wraps, groups=groups)


# ---------------------------------------------------------------- grids


def _by_grid(topology: Topology) -> Layout | None:
    """Unroll a grid: the links that go around are those that lead from one end to the other."""
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
        return _made(topology, "grid", _of_circles(kept, sides.tolist()))
    ends = (np.abs(step) == sides - 1) & (sides > 2)
    around = ends.any(axis=1) & (np.abs(step).sum(axis=1) > 1) & ~cliques
    wraps = np.where(around, np.argmax(ends, axis=1), -1)
    return replace(_made(topology, "grid", kept @ towards), wraps=wraps, towards=towards)


def _coordinates(topology: Topology) -> tuple[tuple[int, ...], Ints] | None:
    """Return sides and coordinates of a grid, by its links or else by what its name says."""
    grid = grid_of(topology)
    if grid is not None:
        return grid.shape, np.asarray(grid.coordinates)
    family, _, words = topology.name.partition(":")
    sides = words.partition(",")[0].split("x")
    if family not in ("torus", "mesh", "hyperx", "tpuv4", "tpuv5p", "ubmesh") or not all(
        side.isdecimal() for side in sides
    ):
        return None
    shape = tuple(map(int, sides))
    if prod(shape) != topology.nodes:
        return None  # Some nodes are gone, and with them the numbering.
    return shape, np.stack(np.unravel_index(np.arange(topology.nodes), shape), axis=1)


def _goes_around(topology: Topology, shape: tuple[int, ...]) -> bool:
    """Whether a line of nodes has more links than a path."""
    return len(np.unique(np.sort([topology.tail, topology.head], axis=0), axis=1).T) >= max(shape)


def _of_cliques(step: Ints, sides: Ints) -> NDArray[np.bool_]:
    """Whether a link is one of a line whose every two nodes are linked: no way around."""
    far = np.abs(step)
    straight = (far > 0).sum(axis=1) == 1
    inner: NDArray[np.bool_] = (far > 1) & (far < sides - 1) & straight[:, None]
    found: NDArray[np.bool_] = straight & np.any(inner, axis=0)[np.argmax(far, axis=1)]
    return found


def _of_circles(at: Ints, sides: list[int]) -> Floats:
    """Put the nodes of every line around a circle, so that no link of a clique hides another."""
    place, room = np.zeros((len(at), 2)), 1.0
    for axis in range(len(sides) - 1, -1, -1):
        # Turned, for else the lines of one circle lie in those of another.
        around = circle(sides[axis], TURN * axis - np.pi / 2) * room
        place += around[at[:, axis]]
        room += BETWEEN * float(np.ptp(around, axis=0).max())
    return place


def _directions(sides: list[int]) -> Floats:
    """Return the step of each dimension: the last two across and down, a third aside, then blocks.

    Three dimensions make a block, which the next three repeat at its size, a little aside: else the
    links between blocks would lie in those within.
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


# ---------------------------------------------------------------- groups, levels, circles


def _by_names(topology: Topology) -> Layout | None:
    """Group nodes by what stands before the colon of their names, as in host3:gpu5."""
    if topology.names is None or sum(":" in name for name in topology.names) < topology.nodes / 2:
        return None
    prefixes = [name.partition(":")[0] if ":" in name else "" for name in topology.names]
    labels = list(dict.fromkeys(prefixes))
    if not 2 <= len(labels) <= MOST_GROUPS:
        return None
    group = np.array([labels.index(each) for each in prefixes], dtype=np.int64)
    return _in_groups(topology, group, labels)


def _by_groups(topology: Topology) -> Layout | None:
    """Group successive nodes of such a family, or else those that random walks do not leave."""
    if topology.name.partition(":")[0] not in GROUPED:
        return None
    sizes = [
        size
        for size in range(3, topology.nodes // 3 + 1)
        if topology.nodes % size == 0 and topology.nodes // size <= MOST_GROUPS
    ]
    everyone = np.arange(topology.nodes)
    best = max(sizes, key=lambda size: _modularity(topology, everyone // size), default=0)
    if best and _modularity(topology, everyone // best) >= LEAST_MODULARITY:
        return _in_groups(topology, everyone // best)
    group = np.array(
        _graph(topology).community_walktrap().as_clustering().membership, dtype=np.int64
    )
    return _in_groups(topology, group) if 2 <= int(group.max()) + 1 <= MOST_GROUPS else None


def _modularity(topology: Topology, group: Ints) -> float:
    """Return the share of links within groups, less what chance would give."""
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
    for each, (own, radius, angle) in enumerate(zip(members, radii, angles.tolist(), strict=True)):
        centre = around * np.array([np.cos(angle), np.sin(angle)]) * (1 if count > 1 else 0)
        ring, middle = seats(topology, own)
        place[ring] = centre + circle(len(ring), angle)
        place[middle] = centre + circle(len(middle), angle)
        label = labels[each] if labels is not None else f"group {each}"
        groups.append(DrawnGroup(label, own, (float(centre[0]), float(centre[1])), radius))
    return _made(topology, "groups", place, tuple(groups))


def _by_levels(topology: Topology) -> Layout | None:
    """Put terminals in a row and switches above, by how many hops they are from a terminal."""
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
    return _made(topology, "levels", place)


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
    """Let springs find the places, where degrees differ much and there are few nodes."""
    degree = topology.out_degree + topology.in_degree
    if topology.nodes > MOST_SPRINGS or degree.max() - degree.min() <= 2:
        return None
    graph = _graph(topology)
    placed = graph.layout_kamada_kawai(seed=graph.layout_circle())
    return _made(topology, "springs", np.array(placed.coords))


def _on_circle(topology: Topology) -> Layout:
    return _made(topology, "circle", circle(topology.nodes, -np.pi / 2))


def _graph(topology: Topology) -> igraph.Graph:
    """Return the undirected graph of the links."""
    pairs = np.unique(np.sort(np.c_[topology.tail, topology.head], axis=1), axis=0)
    return igraph.Graph(n=topology.nodes, edges=pairs.tolist())


WAYS: tuple[Callable[[Topology], Layout | None], ...] = (
    *(_by_grid, _by_names, _by_levels, _by_circulant, _by_groups, _by_forces, _on_circle),
)
"""The layouts in the order in which they are tried; the last one takes everything."""


def circle(count: int, begin: float) -> Floats:
    """Return places one apart around a circle, clockwise from an angle."""
    angle = begin + 2 * np.pi * np.arange(count) / max(count, 1)
    radius = 0.0 if count == 1 else 0.5 / np.sin(np.pi / max(count, 2))
    places: Floats = radius * np.stack([np.cos(angle), np.sin(angle)], axis=1)
    return places


def seats(topology: Topology, own: Ints) -> tuple[Ints, Ints]:
    """Return the nodes around the circle of a group, and those in its middle.

    A switch stands beside the nodes that it serves, so that its links do not cross all others, and
    in the middle if it serves most of them.
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
