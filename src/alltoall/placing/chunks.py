"""Chunks to place, and tables of their paths."""

from dataclasses import dataclass
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

from alltoall.ir.arrays import Floats, Ints

Table: TypeAlias = NDArray[np.int32]
"""A path per row: its links in order, then `NOTHING`. An empty row is a chunk without a path."""


@dataclass(frozen=True, eq=False)
class Chunks:
    """Chunks from node `start` to node `end` of a network, each of a `size`."""

    start: Ints
    end: Ints
    size: Floats

    def select(self, rows: Ints) -> "Chunks":
        """Return some of the chunks."""
        return Chunks(self.start[rows], self.end[rows], self.size[rows])
