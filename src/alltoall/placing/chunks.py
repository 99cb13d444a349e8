"""Chunks to place, tables of their paths, and the loop that all placements share."""

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Protocol, TypeAlias

import numpy as np
from numpy.typing import NDArray

from alltoall.ir.arrays import Floats, Ints
from alltoall.ir.paths import Paths
from alltoall.ir.topology import Topology
from alltoall.settings import Late

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


class Placing(Protocol):
    """Chunks with places, which move in rounds."""

    @property
    def count(self) -> int:
        """The number of moves of a round."""

    def move(self, begin: int, steepness: float) -> int:
        """Make a bounded number of moves from `begin` on; return where it stopped."""

    def end_round(self) -> bool:
        """Take stock after a round; return whether to stop."""


def grow_steeper(placing: Placing, steepness: Iterable[float], late: Late) -> None:
    """Let chunks move in rounds, one per steepness, until they are placed well or it is `late`.

    A round is done in parts, so that Ctrl-C and the time limit are heard in between.
    """
    for each in steepness:
        begin = 0
        while begin < placing.count:
            if late():
                return
            begin = placing.move(begin, each)
        if placing.end_round():
            return
