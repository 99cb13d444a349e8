"""`Job`, one of several that share a fabric, and `JobRates`: their max-min fair rates."""

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from alltoall.errors import DemandError, InputError
from alltoall.ir.arguments import read_fields
from alltoall.ir.arrays import Floats, Ints, freeze
from alltoall.ir.demand import Demand
from alltoall.ir.flow import Flow
from alltoall.ir.noun import Noun
from alltoall.ir.words import number

MOST_JOBS = 10_000
"""Most jobs that share a fabric; each may need a level with its own program."""


@dataclass(frozen=True, eq=False, repr=False)
class Job(Noun):
    """A demand from `start` on, in seconds, whose share is in proportion to its `weight`."""

    TITLE = "name"
    BRIEF = ("demand", "weight", "start")

    name: str
    demand: Demand
    weight: float = 1.0
    start: float = 0.0

    def __post_init__(self) -> None:
        read_fields(self)
        if not 0 < self.weight < math.inf:
            raise InputError(f"job {self.name} has weight {self.weight:g}; expected more than 0")
        if not 0 <= self.start < math.inf:
            raise InputError(f"job {self.name} starts at {self.start:g}; expected 0 s or later")

    def _facts(self) -> dict[str, str]:
        return {
            "demand": f"{self.demand._title()}, {number(self.demand.total)} shards",
            "weight": number(self.weight),
            "start": f"{self.start:g} s",
        }


def joint_demand(jobs: Sequence[Job], factor: Sequence[float] | Floats | None = None) -> Demand:
    """Return the sum of the demands of jobs, each by its weight, or by a factor of its own."""
    if not jobs:
        raise InputError("no jobs; expected at least one")
    terminals = jobs[0].demand.terminals
    total = np.zeros((terminals, terminals))
    factors = [job.weight for job in jobs] if factor is None else factor
    for job, each in zip(jobs, factors, strict=True):
        if job.demand.terminals != terminals:
            raise DemandError(
                f"job {job.name} is between {job.demand.terminals} terminals and job "
                f"{jobs[0].name} between {terminals}; expected jobs on one topology"
            )
        total += float(each) * job.demand.table()
    return Demand(terminals, total)


@dataclass(frozen=True, eq=False, repr=False)
class JobRates(Noun):
    """Max-min fair rates: job j is carried at `rate[j]` times its demand, all by one `flow`.

    Levels are numbered from the lowest. `lengths[k]` prove that if the jobs of lower levels have
    these rates, not all others can have more than `bound[k]` times their weight; jobs of level k
    have that, up to the gap.
    """

    TITLE = "flow.problem.topology.name"
    BRIEF = ("jobs", "levels")

    jobs: tuple[Job, ...]
    flow: Flow
    rate: Floats
    level: Ints
    lengths: Floats
    bound: Floats

    def __post_init__(self) -> None:
        freeze(self, np.float64, "rate", "lengths", "bound")
        freeze(self, np.int64, "level")
        count, links = len(self.jobs), self.flow.problem.topology.links
        shapes = (self.rate.shape, self.level.shape, self.lengths.shape)
        if shapes != ((count,), (count,), (self.levels, links)):
            raise InputError(
                "the arrays of the rates do not fit together; expected a rate and a level for each "
                "job, and a bound and a length for every link for each level"
            )

    @property
    def levels(self) -> int:
        """The number of levels."""
        return len(self.bound)

    def fair_share(self) -> Floats:
        """Return the rate of each job over its weight."""
        return np.asarray(self.rate / np.array([job.weight for job in self.jobs]))

    def gaps(self) -> Floats:
        """Return the gap of each level to its bound, as a share."""
        fair = self.fair_share()
        least = [float(fair[self.level >= level].min()) for level in range(self.levels)]
        return np.asarray(self.bound / np.array(least) - 1.0)

    def summary(self) -> dict[str, Any]:
        """Return the jobs and the levels as plain values; a time is that of one all-to-all."""
        rows = zip(self.jobs, self.rate.tolist(), self.level.tolist(), strict=True)
        levels = zip(self.bound.tolist(), self.gaps().tolist(), strict=True)
        return {
            "jobs": [
                {
                    "name": job.name,
                    "weight": job.weight,
                    "start": job.start,
                    "rate": rate,
                    "time": 1.0 / rate,
                    "level": level,
                }
                for job, rate, level in rows
            ],
            "levels": [
                {"level": level, "bound": bound, "gap": max(0.0, gap)}
                for level, (bound, gap) in enumerate(levels)
            ],
        }

    def _facts(self) -> dict[str, str]:
        return {"jobs": str(len(self.jobs)), "levels": str(self.levels)}

    def _columns(self) -> dict[str, Iterable[object]]:
        return {
            "job": [job.name for job in self.jobs],
            "weight": [job.weight for job in self.jobs],
            "rate": self.rate,
            "level": self.level,
        }
