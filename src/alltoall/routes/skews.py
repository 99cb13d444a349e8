"""Families of skewed demands: what a template is made for, and judged by.

| name | amount from s to d, times that of the problem |
|---|---|
| pairs | lognormal with sigma 1, for each pair by itself |
| destinations | lognormal with sigma 0.8, the same for all sources: some are popular |
| skew | half of the matrices are of the one kind, half of the other |
| hose | any, as long as no terminal sends or receives more than its share: permutations are worst |

Anything else is the name of a file with one demand in it.
"""

from collections.abc import Callable, Sequence
from pathlib import Path

import numpy as np
from scipy.optimize import linear_sum_assignment

from alltoall.errors import UsageError
from alltoall.ir.arrays import Floats
from alltoall.ir.files.node_tables import read_demand
from alltoall.ir.problem import Problem

HOSE, SKEW = "hose", "skew"
"""Families that are known by what they allow, and that mix both kinds of lognormal amounts."""

PAIR_SIGMA, DESTINATION_SIGMA = 1.0, 0.8
"""The spread of lognormal amounts: of each pair, and of each destination."""

MOST_FILES = 1000
"""Demands that may be given as files."""

Draw = Callable[[np.random.Generator, int, int], Floats]
"""From a generator, how many and between how many terminals, to factors [count, n, n]."""


def _pairs(random: np.random.Generator, count: int, size: int) -> Floats:
    return random.lognormal(0.0, PAIR_SIGMA, (count, size, size))


def _destinations(random: np.random.Generator, count: int, size: int) -> Floats:
    popular = random.lognormal(0.0, DESTINATION_SIGMA, (count, 1, size))
    return np.broadcast_to(popular, (count, size, size)).copy()


def _skew(random: np.random.Generator, count: int, size: int) -> Floats:
    half = count // 2
    return np.concatenate((_pairs(random, count - half, size), _destinations(random, half, size)))


def _permutations(random: np.random.Generator, count: int, size: int) -> Floats:
    """Return random permutations without fixed points: those of one cycle through all."""
    factors = np.zeros((count, size, size))
    for each in factors:
        cycle = random.permutation(size)
        each[cycle, np.roll(cycle, 1)] = 1.0
    return factors


SKEWS: dict[str, Draw] = {
    SKEW: _skew,
    "pairs": _pairs,
    "destinations": _destinations,
    HOSE: _permutations,
}
"""The families that matrices are drawn from, by name."""


class Family:
    """The demands that a template is to serve: some families, or the files of some demands."""

    def __init__(self, problem: Problem, names: Sequence[str]) -> None:
        self.names = tuple(names)
        if not self.names or len(self.names) > MOST_FILES:
            raise UsageError(
                f"{len(self.names)} families or files; expected 1 to {MOST_FILES}, of "
                f"{', '.join(SKEWS)} or files of demands"
            )
        self.base = problem.demand.table()
        files = [name for name in self.names if name not in SKEWS]
        if files and len(files) < len(self.names):
            raise UsageError("families and files at once; expected names of families, or files")
        for name in files:
            if not Path(name).is_file():
                raise UsageError(
                    f"robust against {name!r}, which is no file; expected one of "
                    f"{', '.join(SKEWS)}, or files of demands"
                )
        self.given = (
            np.stack([self._given(name, problem) for name in files]) if files else np.zeros(0)
        )

    @property
    def hose(self) -> bool:
        """Whether the worst of all matrices is asked for, and not the mean of some."""
        return self.names == (HOSE,)

    def draw(self, random: np.random.Generator, count: int) -> Floats:
        """Return matrices of the family [count, n, n], each of the total of the problem's demand.

        Given matrices are all there are.
        """
        if len(self.given):
            return self.given
        size, parts = len(self.base), len(self.names)
        counts = [(count + each) // parts for each in range(parts)]
        drawn = [
            SKEWS[name](random, some, size)
            for name, some in zip(self.names, counts, strict=True)
            if some
        ]
        matrices = np.concatenate(drawn) * self.base
        matrices[~matrices.any(axis=(1, 2))] = self.base  # of permutations among other pairs
        return self._scaled(matrices)

    def _given(self, name: str, problem: Problem) -> Floats:
        matrix = read_demand(Path(name), problem.topology).table()
        if np.any((matrix > 0) & (self.base == 0)):
            raise UsageError(
                f"{name} has amounts between pairs without any in the problem; expected a template "
                "for all pairs: leave the demand and the groups out"
            )
        return np.asarray(self._scaled(matrix[None])[0])

    def _scaled(self, matrices: Floats) -> Floats:
        total = np.maximum(matrices.sum(axis=(1, 2)), 1e-300)
        return np.asarray(matrices * (self.base.sum() / total)[:, None, None])


def worst_permutations(shares: Floats) -> Floats:
    """Return for each link the matrix of the hose model that loads it most, [links, n, n].

    `shares` [links, n, n] has what one unit of each pair takes of a link's time. A link's load is
    linear in the matrix, so its largest one is at a permutation: an assignment problem.
    """
    found = np.zeros_like(shares)
    for link, share in enumerate(shares):
        found[link][linear_sum_assignment(-share)] = 1.0
    return found
