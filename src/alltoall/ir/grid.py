"""`Grid`: the sides of a torus, mesh, hypercube or HyperX, and the place of every node.

A grid is the Cartesian product of lines: paths, cycles and complete graphs. `grid_of` finds it from
the links of a topology. Where nodes are numbered row by row, the neighbours of node 0 give the
sides. Otherwise it traces the lines through a corner: neighbours of a node in two dimensions have
one more neighbour in common, the opposite corner of a square, and those in one line have none. The
same squares then give every other node its place. The result is compared with all links, so that a
grid is never guessed. A cycle of four nodes has the links of two lines of two, and is found as
these unless nodes are numbered row by row.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from enum import StrEnum
from functools import cached_property
from math import prod

import numpy as np

from alltoall.errors import InputError, TopologyError
from alltoall.ir.arrays import Ints, freeze, frozen
from alltoall.ir.topology import Topology


class Line(StrEnum):
    """How the nodes of a line are joined: two as a path, three as a path or a cycle."""

    PATH = "path"
    CYCLE = "cycle"
    CLIQUE = "clique"

    @property
    def shortest(self) -> int:
        """The fewest nodes of such a line."""
        return {Line.PATH: 1, Line.CYCLE: 3, Line.CLIQUE: 4}[self]

    def pairs(self, side: int) -> tuple[Ints, Ints]:
        """Return the joined positions on a line of `side` nodes, each pair once."""
        if self is Line.CLIQUE:
            return np.triu_indices(side, 1)
        low = np.arange(side if self is Line.CYCLE else side - 1, dtype=np.int64)
        return low, (low + 1) % side


@dataclass(frozen=True, eq=False)
class Grid:
    """The sides of a grid, the kind of line in each dimension, and the node at each place.

    Places are numbered row by row: the last coordinate varies fastest.
    """

    shape: tuple[int, ...]
    lines: tuple[Line, ...]
    node: Ints

    def __post_init__(self) -> None:
        freeze(self, np.int64, "node")
        if len(self.lines) != len(self.shape) or len(self.node) != prod(self.shape):
            raise TopologyError(
                f"a grid of sides {self.shape} with {len(self.lines)} kinds of line and "
                f"{len(self.node)} nodes; expected a kind for each side and a node for each place"
            )

    @cached_property
    def place(self) -> Ints:
        """The place of each node."""
        return frozen(np.argsort(self.node), np.int64)

    @cached_property
    def coordinates(self) -> Ints:
        """The coordinates of each node, shape [nodes, dimensions]."""
        return frozen(np.stack(np.unravel_index(self.place, self.shape), axis=1), np.int64)

    def links(self, axis: int) -> tuple[Ints, Ints]:
        """Return tail and head of every link of the lines in one dimension, both ways."""
        sides = (prod(self.shape[:axis]), self.shape[axis], prod(self.shape[axis + 1 :]))
        rows = self.node.reshape(sides)
        low, high = self.lines[axis].pairs(self.shape[axis])
        left, right = rows[:, low].ravel(), rows[:, high].ravel()
        return np.concatenate((left, right)), np.concatenate((right, left))


MOST_FIRST = (Line.CLIQUE, Line.CYCLE, Line.PATH)
"""The kinds of line, from most links to fewest."""

Sides = list[tuple[int, Line]]


def grid_of(topology: Topology) -> Grid | None:
    """Return the grid of a topology in any numbering, or None; parallel links count once."""
    links = _Links(topology)
    for sides in _row_by_row(links, 1):
        shape, lines = zip(*reversed(sides), strict=True)
        grid = Grid(shape, lines, np.arange(topology.nodes))
        if links.are_those_of(grid):
            return grid
    found = _trace_grid(links)
    return found if found is not None and links.are_those_of(found) else None


def grid_of_shape(topology: Topology, shape: tuple[int, ...]) -> Grid:
    """Return the grid of these sides, numbered row by row, with most of the links of a topology."""
    words = "x".join(map(str, shape))
    if not shape or min(shape) < 1 or prod(shape) != topology.nodes:
        raise InputError(
            f"{topology.name}: the shape {words or 'of no sides'} for {topology.nodes} nodes; "
            "expected sides of 1 or more whose product is that number"
        )
    links, places = _Links(topology), np.arange(topology.nodes)
    kinds: list[Line] = []
    for axis, side in enumerate(shape):
        known = (line for line in MOST_FIRST if line.shortest <= side)
        grids = (Grid(shape, (line,) * len(shape), places) for line in known)
        found = next((grid for grid in grids if links.have(grid.links(axis))), None)
        if found is None:
            raise InputError(
                f"{topology.name}: some nodes that are neighbours in dimension {axis} of a grid of "
                f"{words}, numbered row by row, have no link; check the shape and the numbering"
            )
        kinds.append(found.lines[axis])
    return Grid(shape, tuple(kinds), places)


class _Links:
    """The links of a topology as a set of pairs, and the neighbours of every node."""

    def __init__(self, topology: Topology) -> None:
        self.nodes = topology.nodes
        self._keys = np.unique(self._key((topology.tail, topology.head)))
        self._head = self._keys % self.nodes
        self._start = np.searchsorted(self._keys, np.arange(self.nodes + 1) * self.nodes)

    def _key(self, ends: tuple[Ints, Ints]) -> Ints:
        return np.asarray(ends[0] * self.nodes + ends[1], dtype=np.int64)

    def have(self, ends: tuple[Ints, Ints]) -> bool:
        """Whether all these links exist."""
        return bool(np.isin(self._key(ends), self._keys).all())

    def are_those_of(self, grid: Grid) -> bool:
        """Return whether these are exactly the links of the grid."""
        keys = [self._key(grid.links(axis)) for axis in range(len(grid.shape))]
        return bool(np.array_equal(np.unique(np.concatenate(keys)), self._keys))

    def degree(self) -> Ints:
        """Return the number of neighbours of every node."""
        return np.diff(self._start)

    def of(self, node: int) -> Ints:
        """Return the neighbours of a node, ascending."""
        return self._head[self._start[node] : self._start[node + 1]]

    def common(self, one: int, other: int) -> list[int]:
        """Return the neighbours that two nodes have in common."""
        found: list[int] = np.intersect1d(self.of(one), self.of(other), assume_unique=True).tolist()
        return found


def _row_by_row(links: _Links, stride: int) -> Iterator[Sides]:
    """Yield the sides, the last dimension first, that the neighbours of node 0 allow.

    A dimension joins node 0 to multiples of its stride below the next stride, which is a neighbour
    too.
    """
    if stride == links.nodes:
        yield []
        return
    near = links.of(0)
    later = near[(near > stride) & (near % stride == 0)].tolist()
    for end in [*later, links.nodes]:
        if end % stride or links.nodes % end:
            continue
        side = end // stride
        line = _line_of(near[(near >= stride) & (near < end)], stride, side)
        if line is not None:
            yield from ([(side, line), *more] for more in _row_by_row(links, end))


def _line_of(near: Ints, stride: int, side: int) -> Line | None:
    """Return the kind of line whose first node has exactly these neighbours."""
    for line in MOST_FIRST:
        low, high = line.pairs(side)
        ends = np.concatenate((high[low == 0], low[high == 0]))
        if line.shortest <= side and np.array_equal(near, np.unique(ends) * stride):
            return line
    return None


def _trace_grid(links: _Links) -> Grid | None:
    """Return the grid spanned by the lines through a corner, if squares fill it."""
    corner = int(np.argmin(links.degree()))
    left = links.of(corner).tolist()
    rows: list[list[int]] = []
    lines: list[Line] = []
    while left:
        clique = [node for node in links.common(corner, left[0]) if node in left]
        row = [corner, left[0], *clique] if clique else _follow_line(links, corner, left[0])
        around = len(row) > 2 and not clique and row[-1] in left
        cycle = around or (len(row) == 3 and bool(clique))
        lines.append(Line.CLIQUE if clique and not cycle else Line.CYCLE if cycle else Line.PATH)
        rows.append(row)
        left = [node for node in left if node not in row]
        if prod(map(len, rows)) > links.nodes:
            return None
    return _fill_places(links, rows, lines)


def _follow_line(links: _Links, first: int, second: int) -> list[int]:
    """Follow a line from its first two nodes to its end, or once around."""
    row = [first, second]
    while len(row) <= links.nodes:
        before, here = row[-2:]
        near = (node for node in links.of(here).tolist() if node != before)
        on = [node for node in near if links.common(before, node) == [here]]
        if len(on) != 1 or on[0] == first:
            break
        row.append(on[0])
    return row


def _fill_places(links: _Links, rows: list[list[int]], lines: list[Line]) -> Grid | None:
    """Place all other nodes, as opposite corners of squares."""
    shape = tuple(map(len, rows))
    if prod(shape) != links.nodes:
        return None
    stride = [prod(shape[axis + 1 :]) for axis in range(len(shape))]
    node = [-1] * links.nodes
    for place, coordinates in enumerate(np.ndindex(shape)):
        moved = [axis for axis, at in enumerate(coordinates) if at]
        if len(moved) < 2:
            axis = moved[0] if moved else 0
            node[place] = rows[axis][coordinates[axis]]
            continue
        one, other = stride[moved[0]], stride[moved[1]]
        square = links.common(node[place - one], node[place - other])
        corners = [each for each in square if each != node[place - one - other]]
        if len(corners) != 1:
            return None
        node[place] = corners[0]
    if len(set(node)) != links.nodes:
        return None
    return Grid(shape, tuple(lines), np.array(node, dtype=np.int64))
