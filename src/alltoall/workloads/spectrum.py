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
"""The longest side and the largest grid that may be asked for."""

Grid = tuple[int, int, int]


@dataclass(frozen=True)
class Slabs:
    """A grid divided among ranks."""

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
        """Return the shape of a rank's data before the exchange."""
        return (int(np.diff(self.x_cuts)[rank]), self.grid[1], self.grid[2])

    def after(self, rank: int) -> Grid:
        """Return the shape of a rank's data after the exchange."""
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


Complex = NDArray[np.complex128]
SUMS = 4
"""How many random sums are compared."""

TOLERANCE = 1e-12
"""The largest relative error, of the largest value or of a mean sum."""


def planes(grid: Grid, seed: int, which: range) -> Complex:
    """Return x planes of the grid: random numbers that depend on the plane, not the rank."""
    found = np.empty((len(which), *grid[1:]), dtype=np.complex128)
    for place, x in zip(found, which, strict=True):
        random = np.random.default_rng((seed, x))
        place[...] = random.standard_normal((*grid[1:], 2)).view(np.complex128)[..., 0]
    return found


class Truth:
    """Compares the results of all ranks with the expected one, and with the first."""

    def __init__(
        self, ranks: Ranks, slabs: Slabs, given: Complex, seed: int, gathered_points: int
    ) -> None:
        self._ranks, self._slabs, self._seed = ranks, slabs, seed
        self._phases = [_phases(slabs.grid, seed, index) for index in range(SUMS)]
        expected = [
            _weighted(given, _part(tuple(map(_dft, phases)), 0, slabs.x_cuts, ranks.rank))
            for phases in self._phases
        ]
        energy = float(np.vdot(given, given).real)
        shared = ranks.share([*expected, energy])
        self._expected = np.sum([each[:SUMS] for each in shared], axis=0)
        # By Parseval, the length of the result: what a sum with random phases is of in the mean.
        self._scale = float(np.sqrt(sum(each[SUMS] for each in shared) * slabs.points))
        self._whole = slabs.points <= gathered_points
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
        differing = self._ranks.share(not np.array_equal(result, self._first))
        violations += [
            f"{subject}: rank {rank} has another result than by the first way, bit for bit"
            for rank, differs in enumerate(differing)
            if differs
        ]
        return error, violations

    def _error_of_sums(self, result: Complex) -> float:
        rank, cuts = self._ranks.rank, self._slabs.y_cuts
        own = [_weighted(result, _part(phases, 1, cuts, rank)) for phases in self._phases]
        found = np.sum(self._ranks.share(own), axis=0)
        return _largest(found - self._expected) / self._scale

    def _error_of_all(self, result: Complex) -> float:
        """Return the largest error of any point, which rank 0 finds."""
        parts = self._ranks.collect(result)
        found = 0.0
        if parts is not None:
            if self._fftn is None:
                grid = self._slabs.grid
                self._fftn = np.fft.fftn(planes(grid, self._seed, range(grid[0])))
            difference = np.concatenate(parts, axis=1) - self._fftn
            found = _largest(difference) / _largest(self._fftn)
        return float(self._ranks.share(found)[0])


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


def _part(
    factors: tuple[Complex, ...], axis: int, cuts: NDArray[np.int64], rank: int
) -> tuple[Complex, ...]:
    """Return the factors of the points of a rank, which has a part of one axis."""
    own = slice(*cuts[rank : rank + 2].tolist())
    return tuple(each[own] if at == axis else each for at, each in enumerate(factors))


def _weighted(values: Complex, factors: tuple[Complex, ...]) -> complex:
    """Return the sum of values times the factors of their place."""
    x, y, z = factors
    return complex(x @ ((values @ z) @ y))
