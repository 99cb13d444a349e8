"""What the Fourier transform of the grid must be.

Up to some size rank 0 gathers all of the result and compares it with numpy's `fftn`. Of any size,
the result F of the grid g has to have the right random sums: with random phases u, v, w,

    sum over k of  u[kx] v[ky] w[kz] F[k]  =  sum over r of  U[x] V[y] W[z] g[r],

where U, V, W are the transforms of u, v, w, taken here by their definition. Every point of F is in
each sum, so that a wrong one changes it but by an accident of the phases, and each rank adds up
what it has: nothing is gathered. (That the energies are equal would not tell a point from another
one, or from its negative.) One number among 10 million that is off by a millionth of itself is
found.
"""

import numpy as np
from numpy.typing import NDArray

from alltoall.workloads.ranks import Ranks
from alltoall.workloads.slabs import Grid, Slabs

Complex = NDArray[np.complex128]
SUMS = 4
"""How many random sums are compared."""

TOLERANCE = 1e-12
"""The largest error, as a share of the largest value, or of what a sum is of in the mean."""


def planes(grid: Grid, seed: int, which: range) -> Complex:
    """Return planes of x of the grid: random numbers, each plane's its own, at whatever rank."""
    found = np.empty((len(which), *grid[1:]), dtype=np.complex128)
    for place, x in zip(found, which, strict=True):
        random = np.random.default_rng((seed, x))
        place[...] = random.standard_normal((*grid[1:], 2)).view(np.complex128)[..., 0]
    return found


class Truth:
    """Compares results of all ranks with what they must be, and with the first one."""

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
        """Return the error of a result, and what is wrong with it; the same at all ranks.

        What is compared again is not gathered again: it has to be the first result, bit for bit.
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
