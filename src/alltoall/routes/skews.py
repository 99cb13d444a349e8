"""Families of skewed demands, and the losses of templates under demands of a family.

| name | amount from s to d, times that of the problem |
|---|---|
| pairs | lognormal with sigma 1, for each pair by itself |
| destinations | lognormal with sigma 0.8, the same for all sources: some are popular |
| skew | half of the matrices are of the one kind, half of the other |
| hose | any, as long as no terminal sends or receives more than its share: permutations are worst |

Anything else is the name of a file with one demand in it. `benchmarks/templates.py` judges by them.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
from scipy.optimize import linear_sum_assignment

from alltoall.check.template import Template, check_template
from alltoall.errors import InputError, UsageError
from alltoall.flows.methods import solve_master
from alltoall.ir.arrays import Floats
from alltoall.ir.demand import Demand
from alltoall.ir.files.node_tables import read_demand
from alltoall.ir.files.text import is_file
from alltoall.ir.paths import Paths
from alltoall.ir.problem import Problem
from alltoall.ir.routes import Routes
from alltoall.ir.units import normal_units
from alltoall.routes.single import COARSE_BOUND_GAP
from alltoall.settings import SolveSettings

HOSE, SKEW = "hose", "skew"
"""The family of all demands within the shares of terminals, and the mixture of lognormal ones."""

PAIR_SIGMA, DESTINATION_SIGMA = 1.0, 0.8
"""The spread of lognormal amounts: of each pair, and of each destination."""

MOST_FILES = 1000
"""Demands that may be given as files."""

Draw = Callable[[np.random.Generator, int, int], Floats]
"""Draws factors [count, n, n] from a generator, a count and a number of terminals."""


def _pairs(random: np.random.Generator, count: int, size: int) -> Floats:
    return random.lognormal(0.0, PAIR_SIGMA, (count, size, size))


def _destinations(random: np.random.Generator, count: int, size: int) -> Floats:
    popular = random.lognormal(0.0, DESTINATION_SIGMA, (count, 1, size))
    return np.broadcast_to(popular, (count, size, size)).copy()


def _permutations(random: np.random.Generator, count: int, size: int) -> Floats:
    """Return random permutations without fixed points: single cycles."""
    factors = np.zeros((count, size, size))
    for each in factors:
        cycle = random.permutation(size)
        each[cycle, np.roll(cycle, 1)] = 1.0
    return factors


SKEWS: dict[str, Draw] = {
    SKEW: lambda random, count, size: np.concatenate(
        (_pairs(random, count - count // 2, size), _destinations(random, count // 2, size))
    ),
    "pairs": _pairs,
    "destinations": _destinations,
    HOSE: _permutations,
}
"""The families that matrices are drawn from, by name."""


class Family:
    """The demands that a template serves: of some families, or from files."""

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
            raise UsageError(
                f"families and files at once: {files[0]!r} is none of {', '.join(SKEWS)}; expected "
                "names of families, or files"
            )
        for name in files:
            if not is_file(name):
                raise UsageError(
                    f"robust against {name!r}, which is no file; expected one of "
                    f"{', '.join(SKEWS)}, or files of demands"
                )
        self.given = (
            np.stack([self._given(name, problem) for name in files]) if files else np.zeros(0)
        )

    @property
    def hose(self) -> bool:
        """Whether the objective is the worst of all matrices rather than a mean."""
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


MOST_CELLS = 50_000_000
"""Links times pairs up to which the worst permutations of the hose model are looked for."""

JUDGED = 12
"""Demands by which a template is judged."""

OTHER_SEED = 2**31
"""Seed of the demands that judge a template, unlike those that made it."""


@dataclass(frozen=True)
class Judged:
    """The losses of a template, each against the certified bound of its demand, in order."""

    family: tuple[str, ...]
    losses: tuple[float, ...]

    @property
    def median(self) -> float:
        """The loss that half of the demands stay below."""
        return float(np.median(self.losses))

    @property
    def worst(self) -> float:
        """The largest loss."""
        return self.losses[-1]

    def summary(self) -> dict[str, Any]:
        """Return everything as plain values."""
        return {
            "family": list(self.family),
            "demands": len(self.losses),
            "median_loss": self.median,
            "worst_loss": self.worst,
            "losses": list(self.losses),
        }


def judge(
    template: Template, names: Sequence[str], seed: int, settings: SolveSettings
) -> Judged | None:
    """Return the losses under demands of a family with other seeds, or None if there is no time."""
    problem = template.problem
    family = Family(problem, names)
    losses: list[float] = []
    if family.hose and isinstance(template, Routes):
        share = template.weight / problem.demand.of(template.source, template.destination)
        matrices = worst_of_hose(problem, template, share)[:JUDGED]
    else:
        matrices = family.draw(np.random.default_rng([OTHER_SEED, seed]), JUDGED)
    for matrix in matrices:
        if settings.out_of_time():
            break
        demand = Demand(problem.demand.terminals, matrix)
        posed = normal_units(Problem(problem.topology, demand)).problem
        flow = solve_master(posed, replace(settings, gap=max(settings.gap, COARSE_BOUND_GAP)))
        losses.append(check_template(template, demand, flow.certificate.lengths).template_loss)
    return Judged(family.names, tuple(sorted(losses))) if losses else None


def worst_of_hose(problem: Problem, paths: Paths, share: Floats) -> Floats:
    """Return the worst matrix of the hose model for each link, the worst of all first.

    Each terminal sends and receives as much as a terminal does on average. A link's load is linear
    in the matrix, so its largest one is at a permutation: an assignment problem.
    """
    topology, size = problem.topology, len(problem.topology.terminals)
    if topology.links * size * size > MOST_CELLS:
        raise InputError(
            f"{topology.name}: {topology.links:,} links times {size * size:,} pairs; expected at "
            f"most {MOST_CELLS:,} for the hose model. Use robust skew"
        )
    taken = np.zeros((topology.links, size * size))
    taking = share[paths.path_of_link] / topology.capacity[paths.link]
    np.add.at(taken, (paths.link, paths.pair(size)[paths.path_of_link]), taking)
    shares = taken.reshape(topology.links, size, size)
    found = np.zeros_like(shares)
    for matrix, taking in zip(found, shares, strict=True):
        matrix[linear_sum_assignment(-taking)] = 1.0
    found *= taken.any(axis=0).reshape(size, size)  # What has no path sends nothing.
    loads = (found * shares).sum(axis=(1, 2))
    order = np.argsort(-loads, kind="stable")[: int((loads > 0).sum())]
    return np.asarray(found[order] * (problem.demand.total / size))
