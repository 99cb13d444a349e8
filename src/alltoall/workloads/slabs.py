"""Slabs of a grid: planes of x before the exchange, planes of y after it.

    rank s has  a[x in X_s, all y, all z]  and sends rank d  a[x in X_s, y in Y_d, all z]

Where sides do not divide by the ranks, the first ones have a plane more. What rank d receives, by
source, is `a[all x, y in Y_d, all z]` in order: it needs no unpacking.
"""

import math
import re
import reprlib
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from alltoall.errors import UsageError
from alltoall.ir.arrays import Ints, starts_of
from alltoall.ir.chunks import PerShard

ITEM_BYTES = 16
"""Of a complex number in double precision."""

MAX_SIDE = 1 << 20
MAX_POINTS = 1 << 40
"""The longest side and the largest grid that may be asked for."""

Grid = tuple[int, int, int]


@dataclass(frozen=True)
class Slabs:
    """A grid, cut among so many ranks."""

    grid: Grid
    ranks: int

    def __post_init__(self) -> None:
        if not 1 <= self.ranks <= min(self.grid[:2]):
            raise UsageError(
                f"{self.ranks} ranks for a grid of {words(self.grid)}; expected at most "
                f"{min(self.grid[:2])}, as every rank has planes of the first two sides"
            )

    @property
    def points(self) -> int:
        """How many points the grid has."""
        return math.prod(self.grid)

    @property
    def even(self) -> bool:
        """Whether all ranks have as much."""
        return not any(side % self.ranks for side in self.grid[:2])

    @cached_property
    def x_cuts(self) -> Ints:
        """Where the planes of x of each rank begin, and where the last ones end."""
        return _cuts(self.grid[0], self.ranks)

    @cached_property
    def y_cuts(self) -> Ints:
        """Where the planes of y of each rank begin, and where the last ones end."""
        return _cuts(self.grid[1], self.ranks)

    def before(self, rank: int) -> Grid:
        """Return the shape of what a rank has before the exchange."""
        return (int(np.diff(self.x_cuts)[rank]), self.grid[1], self.grid[2])

    def after(self, rank: int) -> Grid:
        """Return the shape of what a rank has after the exchange."""
        return (self.grid[0], int(np.diff(self.y_cuts)[rank]), self.grid[2])

    def shard(self) -> PerShard:
        """Return the bytes that every rank sends every other."""
        counts = np.outer(np.diff(self.x_cuts), np.diff(self.y_cuts)) * self.grid[2] * ITEM_BYTES
        if self.even:
            return PerShard(self.ranks, int(counts[0, 0]))
        return PerShard(self.ranks, counts=counts)


def parse_grid(given: str | int | tuple[int, ...]) -> Grid:
    """Return the sides of a grid: `216` is a cube, `10x9x7` has three sides of its own."""
    text = given if isinstance(given, str) else "x".join(map(str, np.atleast_1d(given)))
    sides = [int(each) for each in text.split("x")] if _GRID.fullmatch(text) else []
    x, y, z = sides * 3 if len(sides) == 1 else (sides if len(sides) == 3 else (0, 0, 0))
    if not 1 <= min(x, y, z) <= max(x, y, z) <= MAX_SIDE or x * y * z > MAX_POINTS:
        raise UsageError(
            f"grid {reprlib.repr(text)}; expected a side such as 64, or three such as 64x48x32, of "
            f"at most {MAX_POINTS:,} points"
        )
    return (x, y, z)


def words(grid: Grid) -> str:
    """Return a grid as people write it."""
    return "x".join(map(str, grid))


_GRID = re.compile(r"[0-9]{1,8}(x[0-9]{1,8}){0,2}")


def _cuts(side: int, ranks: int) -> Ints:
    """Return the cuts of a side into parts that differ by one at most, the larger ones first."""
    sizes = side // ranks + (np.arange(ranks) < side % ranks)
    return starts_of(sizes)
