"""The time of a template: of routes or a schedule under another demand than their own.

The amount of each pair is spread over its routes in proportion to their weights, or over its chunks
evenly. Links and steps stay, so the time follows from the sums. The bound for the new demand is
proven by lengths of links, which anyone may have found (`check.flow.recompute_bound`).
"""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from alltoall.check.flow import recompute_bound
from alltoall.errors import DemandError
from alltoall.ir.arrays import Floats, Ints
from alltoall.ir.demand import Demand
from alltoall.ir.problem import Problem
from alltoall.ir.routes import Routes
from alltoall.ir.schedule import Schedule

Template = Routes | Schedule


@dataclass(frozen=True)
class TemplateReport:
    """The time of a template under a demand, the bound for that demand, and the gap."""

    template_time: float
    template_bound: float
    template_loss: float


def check_template(template: Template, demand: Demand, lengths: Floats) -> TemplateReport:
    """Return the time of a template under a demand, against the bound that lengths prove of it."""
    time = template_time(template, demand)
    bound, trouble = recompute_bound(Problem(template.problem.topology, demand), lengths)
    if trouble:
        raise DemandError(f"the lengths prove nothing about the demand: {trouble[0]}")
    return TemplateReport(time, bound, time / bound - 1.0)


def template_time(template: Template, demand: Demand) -> float:
    """Return the time of routes, or of all steps of a schedule, under a demand."""
    topology = template.problem.topology
    # Raise unless every pair with a demand has a path in the template.
    terminals = len(template.problem.topology.terminals)
    if demand.terminals != terminals:
        raise DemandError(
            f"a demand between {demand.terminals} terminals for a template of {terminals}; "
            "expected one row and column per terminal"
        )
    missing: NDArray[np.bool_] = demand.table() > 0
    missing[template.source, template.destination] = False
    found: Ints = np.argwhere(missing)
    if len(found):
        raise DemandError(
            f"the demand has {demand.of(*found[:1].T)[0]:g} "
            f"{template.problem.topology.pair_name(*found[0])}, for which the template has no "
            "path; expected a template of the uniform all-to-all, or of all these pairs"
        )
    if isinstance(template, Routes):
        own = template.problem.demand.of(template.source, template.destination)
        amount = demand.of(template.source, template.destination) * template.weight / own
        key, carried = template.link, amount[template.path_of_link]
    else:
        key = template.step * topology.links + template.link
        chunks = template.chunks.of(template.source, template.destination)
        carried = demand.of(template.source, template.destination) / chunks
    used, place = np.unique(key, return_inverse=True)
    fullness = np.bincount(place, carried) / topology.capacity[used % topology.links]
    # Routes are all under way at once, which is a schedule of one step.
    step = used // topology.links
    first = np.flatnonzero(np.diff(step, prepend=-1))
    return float(np.maximum.reduceat(fullness, first).sum())
