"""`Grid`: the sides of a torus, mesh, hypercube or HyperX, and where its nodes are.

A grid is the Cartesian product of lines: paths, cycles and complete graphs. `ir.find_grid` finds it
from the links of a topology.
"""

from dataclasses import dataclass
from enum import StrEnum
from functools import cached_property
from math import prod

import numpy as np

from alltoall.errors import TopologyError
from alltoall.ir.arrays import Ints, frozen


class Line(StrEnum):
    """How the nodes of a grid line are joined: up to two always as a path, three never as cliques.

    So every line has one name: what is joined both ways round is a cycle first.
    """

    PATH = "path"
    CYCLE = "cycle"
    CLIQUE = "clique"

    @property
    def shortest(self) -> int:
        """The fewest nodes of a line that is called so."""
        return {Line.PATH: 1, Line.CYCLE: 3, Line.CLIQUE: 4}[self]

    def pairs(self, side: int) -> tuple[Ints, Ints]:
        """Return the positions on a line of so many nodes that are joined, each pair once."""
        if self is Line.CLIQUE:
            low, high = np.triu_indices(side, 1)
            return low.astype(np.int64), high.astype(np.int64)
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
        object.__setattr__(self, "node", frozen(self.node, np.int64))
        if len(self.lines) != len(self.shape) or len(self.node) != prod(self.shape):
            raise TopologyError(
                f"a grid of sides {self.shape} with {len(self.lines)} kinds of line and "
                f"{len(self.node)} nodes; expected a kind for each side and a node for each place"
            )

    @cached_property
    def place(self) -> Ints:
        """The place of each node."""
        place = np.empty(len(self.node), dtype=np.int64)
        place[self.node] = np.arange(len(self.node))
        return frozen(place, np.int64)

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
