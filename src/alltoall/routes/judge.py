"""How a template does under demands that it was not made with: its losses, each certified."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from alltoall.check.template import Template, check_template
from alltoall.flows.methods import solve_master
from alltoall.ir.arrays import Floats
from alltoall.ir.demand import Demand
from alltoall.ir.problem import Problem
from alltoall.ir.routes import Routes
from alltoall.ir.units import normal_units
from alltoall.routes.robust import worst_of_hose
from alltoall.routes.skews import Family
from alltoall.settings import SolveSettings

JUDGED = 12
"""Demands that a template is judged by."""

BOUND_GAP = 5e-3
"""The certified gap that is asked of the bound of each of them."""

OTHER_SEED = 2**31
"""What keeps the demands that a template is judged by apart from those that made it."""


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
    for matrix in _matrices(template, family, seed):
        if settings.out_of_time():
            break
        demand = Demand(problem.demand.terminals, matrix)
        posed = normal_units(Problem(problem.topology, demand)).problem
        flow = solve_master(posed, replace(settings, gap=max(settings.gap, BOUND_GAP)))
        losses.append(check_template(template, demand, flow.certificate.lengths).template_loss)
    return Judged(family.names, tuple(sorted(losses))) if losses else None


def _matrices(template: Template, family: Family, seed: int) -> Floats:
    """Return what to judge by: demands that are drawn, all given ones, or the worst of a hose."""
    if family.hose and isinstance(template, Routes):
        demand = template.problem.demand.of(template.source, template.destination)
        return worst_of_hose(template.problem, template, template.weight / demand)[:JUDGED]
    return family.draw(np.random.default_rng([OTHER_SEED, seed]), JUDGED)
