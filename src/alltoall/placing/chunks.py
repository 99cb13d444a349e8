"""Chunks to place, and tables of their paths."""

from dataclasses import dataclass
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

from alltoall.ir.arrays import Floats, Ints
from alltoall.ir.paths import Paths
from alltoall.ir.topology import Topology

Table: TypeAlias = NDArray[np.int32]
"""A path per row: its links in order, then `NOTHING`. An empty row is a chunk without a path."""


def largest_load(topology: Topology, paths: Paths, size: Floats) -> float:
    """Return the largest load over capacity of chunks on paths."""
    return float((paths.load(size, topology.links) / topology.capacity).max())


def path_room(hops: int, longest: int) -> int:
    """Return room for detours: paths of more than twice the hops are not worth their load."""
    return min(longest, 2 * hops + 4)


@dataclass(frozen=True, eq=False)
class Chunks:
    """Chunks from node `start` to node `end` of a network, each of a `size`."""

    start: Ints
    end: Ints
    size: Floats

    def select(self, rows: Ints) -> "Chunks":
        """Return some of the chunks."""
        return Chunks(self.start[rows], self.end[rows], self.size[rows])
