"""The expected Fourier transform of the grid.

Up to a limit rank 0 gathers the result and compares it with numpy's `fftn`. At any size, the result
F of the grid g must have the right random sums: with random phases u, v, w,

    sum over k of  u[kx] v[ky] w[kz] F[k]  =  sum over r of  U[x] V[y] W[z] g[r],

where U, V, W are the transforms of u, v, w by definition. Every point of F is in each sum, so a
wrong point changes it almost surely, and each rank sums its part without gathering. (Equal energies
would miss swapped or negated points.) A relative error of 1e-6 in one of 10 million numbers is
found.
"""

import math
import re
import reprlib
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from alltoall.errors import UsageError
from alltoall.ir.arrays import Ints, starts_of
from alltoall.ir.chunks import PerShard
from alltoall.workloads.ranks import Ranks

ITEM_BYTES = 16
"""Of a complex number in double precision."""

MAX_SIDE = 1 << 20
MAX_POINTS = 1 << 40
"""Limits on sides and points of a grid."""

Grid = tuple[int, int, int]


Box = tuple[slice, slice, slice]
"""A part of a grid, by its sides."""


@dataclass(frozen=True)
class Pencils:
    """A grid, cut among `rows` times `columns` ranks; with one column its parts are slabs.

    Rank p * columns + q first has part p of x, part q of y, and all of z. An exchange among the
    ranks of a row makes that all of y and part q of z, and one among those of a column all of x and
    part p of y.
    """

    grid: Grid
    rows: int
    columns: int = 1

    def __post_init__(self) -> None:
        x, y, z = self.grid
        most = (min(x, y), min(y, z) if self.columns > 1 else 1)
        if not (1 <= self.rows <= most[0] and 1 <= self.columns <= most[1]):
            if self.columns == 1:
                raise UsageError(
                    f"{self.ranks} ranks for a grid of {words(self.grid)}; expected at most "
                    f"{most[0]}, as every rank has planes of the first two sides"
                )
            raise UsageError(
                f"pencils {self.rows}x{self.columns} for a grid of {words(self.grid)}; expected at "
                f"most {most[0]}x{most[1]}, as every rank has a part of two sides"
            )

    @property
    def ranks(self) -> int:
        """The number of ranks."""
        return self.rows * self.columns

    @property
    def points(self) -> int:
        """The number of grid points."""
        return math.prod(self.grid)

    @property
    def even(self) -> bool:
        """Whether all ranks have equal parts."""
        x, y, z = self.grid
        return not (x % self.rows or y % self.rows or y % self.columns or z % self.columns)

    @cached_property
    def cuts(self) -> tuple[Ints, Ints, Ints, Ints]:
        """Where the parts begin, and where the last ends: of x, of y before, y after, and z."""
        x, y, z = self.grid
        both = ((x, self.rows), (y, self.columns), (y, self.rows), (z, self.columns))
        # Parts differ by one at most, the larger ones first.
        sizes = [side // n + (np.arange(n) < side % n) for side, n in both]
        return tuple(map(starts_of, sizes))  # type: ignore[return-value]

    def before(self, rank: int) -> Box:
        """Return a rank's part before the exchange."""
        p, q = divmod(rank, self.columns)
        return _part(self.cuts[0], p), _part(self.cuts[1], q), slice(0, self.grid[2])

    def between(self, rank: int) -> Box:
        """Return the part that a rank has after the exchange in its row."""
        p, q = divmod(rank, self.columns)
        return _part(self.cuts[0], p), slice(0, self.grid[1]), _part(self.cuts[3], q)

    def after(self, rank: int) -> Box:
        """Return the part that a rank has in the end."""
        p, q = divmod(rank, self.columns)
        return slice(0, self.grid[0]), _part(self.cuts[2], p), _part(self.cuts[3], q)

    def row_shard(self) -> PerShard:
        """Return the bytes that every rank sends every other in the exchange in rows."""
        x, y, _, z = map(np.diff, self.cuts)
        counts = np.einsum("p,q,r,ps->pqsr", x, y, z, np.eye(self.rows, dtype=np.int64))
        return self._shard(counts)

    def shard(self) -> PerShard:
        """Return the bytes that every rank sends every other in the last exchange."""
        x, _, y, z = map(np.diff, self.cuts)
        if self.columns == 1 and self.even:
            return PerShard(self.ranks, int(x[0] * y[0] * z[0]) * ITEM_BYTES)
        return self._shard(
            np.einsum("p,s,q,qr->pqsr", x, y, z, np.eye(self.columns, dtype=np.int64))
        )

    def _shard(self, counts: Ints) -> PerShard:
        return PerShard(self.ranks, counts=counts.reshape(self.ranks, self.ranks) * ITEM_BYTES)


def parse_grid(given: str | int | tuple[int, ...]) -> Grid:
    """Return the sides of a grid: `216` is a cube, `10x9x7` a box."""
    text = given if isinstance(given, str) else "x".join(map(str, np.atleast_1d(given)))
    sides = [int(each) for each in text.split("x")] if _GRID.fullmatch(text) else []
    x, y, z = sides * 3 if len(sides) == 1 else (sides if len(sides) == 3 else (0, 0, 0))
    if not 1 <= min(x, y, z) <= max(x, y, z) <= MAX_SIDE or x * y * z > MAX_POINTS:
        raise UsageError(
            f"grid {reprlib.repr(text)}; expected a side such as 64, or three such as 64x48x32, of "
            f"at most {MAX_POINTS:,} points"
        )
    return (x, y, z)


def parse_pencils(given: str | tuple[int, ...]) -> tuple[int, int]:
    """Return the rows and columns of a grid of ranks, such as `4x8`."""
    text = given if isinstance(given, str) else "x".join(map(str, given))
    sides = [int(each) for each in text.split("x")] if _GRID.fullmatch(text) else []
    if len(sides) != 2 or min(sides) < 2:
        raise UsageError(
            f"pencils {reprlib.repr(text)}; expected rows and columns of ranks, such as 4x8, at "
            "least two of each: one column is slabs"
        )
    return sides[0], sides[1]


def words(grid: Grid) -> str:
    """Return a grid as people write it."""
    return "x".join(map(str, grid))


_GRID = re.compile(r"[0-9]{1,8}(x[0-9]{1,8}){0,2}")


def _part(cuts: Ints, index: int) -> slice:
    return slice(int(cuts[index]), int(cuts[index + 1]))


Complex = NDArray[np.complex128]
SUMS = 4
"""Number of random sums compared."""

TOLERANCE = 1e-12
"""The largest relative error, of the largest value or of a mean sum."""


def planes(grid: Grid, seed: int, box: Box) -> Complex:
    """Return a part of the grid: random numbers, each plane of x its own, at whatever rank."""
    found = np.empty(shape_of(box), dtype=np.complex128)
    for place, x in zip(found, range(box[0].start, box[0].stop), strict=True):
        random = np.random.default_rng((seed, x))
        plane = random.standard_normal((*grid[1:], 2)).view(np.complex128)[..., 0]
        place[...] = plane[box[1:]]
    return found


def shape_of(box: Box) -> Grid:
    """Return the sides of a part."""
    x, y, z = (each.stop - each.start for each in box)
    return (x, y, z)


class Truth:
    """Compares the results of all ranks with the expected one, and with the first."""

    def __init__(
        self, ranks: Ranks, cut: Pencils, given: Complex, seed: int, gathered_points: int
    ) -> None:
        self._ranks, self._cut, self._seed = ranks, cut, seed
        self._phases = [_phases(cut.grid, seed, index) for index in range(SUMS)]
        expected = [
            _weighted(given, tuple(map(_dft, phases)), cut.before(ranks.rank))
            for phases in self._phases
        ]
        energy = float(np.vdot(given, given).real)
        shared = ranks.gather([*expected, energy])
        self._expected = np.sum([each[:SUMS] for each in shared], axis=0)
        # By Parseval, the length of the result: what a sum with random phases is of in the mean.
        self._scale = float(np.sqrt(sum(each[SUMS] for each in shared) * cut.points))
        self._whole = cut.points <= gathered_points
        self.kind = "fftn" if self._whole else "sums"
        self._fftn: Complex | None = None
        self._first: Complex | None = None

    def compare(self, result: Complex, subject: str, again: bool) -> tuple[float, list[str]]:
        """Return the error of a result and its violations, equal at all ranks.

        Later results are not gathered: they must equal the first one bit for bit.
        """
        errors = [self._error_of_sums(result)]
        if self._whole and not again:
            errors.append(self._error_of_all(result))
        error = float(max(errors))
        violations = []
        if not error <= TOLERANCE:  # nor is what is not a number
            violations.append(
                f"{subject}: the transform is off by {error:.1e}; expected at most {TOLERANCE:g}"
            )
        if self._first is None:
            self._first = result.copy()
        differing = self._ranks.gather(not np.array_equal(result, self._first))
        violations += [
            f"{subject}: rank {rank} has another result than by the first way, bit for bit"
            for rank, differs in enumerate(differing)
            if differs
        ]
        return error, violations

    def _error_of_sums(self, result: Complex) -> float:
        box = self._cut.after(self._ranks.rank)
        own = [_weighted(result, phases, box) for phases in self._phases]
        found = np.sum(self._ranks.gather(own), axis=0)
        return _largest(found - self._expected) / self._scale

    def _error_of_all(self, result: Complex) -> float:
        """Return the largest error of any point, which rank 0 finds."""
        parts = self._ranks.collect(result)
        found = 0.0
        if parts is not None:
            if self._fftn is None:
                grid = self._cut.grid
                whole = Pencils(grid, 1).before(0)
                self._fftn = np.fft.fftn(planes(grid, self._seed, whole))
            difference = -self._fftn
            for rank, part in enumerate(parts):
                difference[self._cut.after(rank)] += part
            found = _largest(difference) / _largest(self._fftn)
        return float(self._ranks.gather(found)[0])


def _largest(values: Complex) -> float:
    return float(np.abs(values).max())


def _phases(grid: Grid, seed: int, index: int) -> tuple[Complex, ...]:
    """Return random numbers of size 1 for each of the sides."""
    random = np.random.default_rng((seed, sum(grid), index))
    return tuple(np.exp(2j * np.pi * random.random(side)) for side in grid)


def _dft(values: Complex) -> Complex:
    """Return the Fourier transform by its definition, a row at a time."""
    side = len(values)
    at = np.arange(side)
    roots = np.exp(-2j * np.pi * at / side)
    return np.array([values @ roots[at * k % side] for k in range(side)])


def _weighted(values: Complex, factors: tuple[Complex, ...], box: Box) -> complex:
    """Return the sum of the values of a part times the factors of their place."""
    x, y, z = (factor[side] for factor, side in zip(factors, box, strict=True))
    return complex(x @ ((values @ z) @ y))
