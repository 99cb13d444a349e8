"""The independent check of fair rates: one flow carries all jobs, and prices block each level.

For any lengths of links, and whatever the routing, demand times distance over all jobs is at most
capacity times length over all links. So if the jobs of lower levels have their rates, the others
cannot all have more than

    (sum of capacity * length - sum of rate * demand * distance over jobs of lower levels)
    / sum of weight * demand * distance over the others

times their weight. Every job of level k must have a part in the second sum: else it is not blocked.
"""

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from alltoall.check.flow import TOLERANCE, check_flow, shortest_distances
from alltoall.check.sums import raise_if
from alltoall.ir.arrays import products
from alltoall.ir.jobs import JobRates, joint_demand


@dataclass(frozen=True)
class JobsReport:
    """The bound of each level that a check of fair rates proved, and its gap."""

    bounds: tuple[float, ...]
    gaps: tuple[float, ...]

    @property
    def gap(self) -> float:
        """The largest of any level."""
        return max(self.gaps)


def check_job_rates(rates: JobRates, tolerance: float = TOLERANCE) -> JobsReport:
    """Check that the flow carries the rates, and that the bound of every level holds."""
    subject = f"rates of {len(rates.jobs)} jobs on {rates.flow.problem.topology.name}"
    raise_if(subject, list(_shape_problems(rates)))
    check_flow(rates.flow, tolerance)
    trouble = list(_carried_problems(rates, tolerance))
    bounds: list[float] = []
    for level in range(rates.levels):
        bound, found = _level_bound(rates, level)
        bounds.append(bound)
        trouble += found
        if not found and not rates.bound[level] >= bound * (1 - tolerance):
            trouble.append(
                f"level {level} claims that no more than {rates.bound[level]:.12g} can be had, but "
                f"its lengths prove {bound:.12g}"
            )
    raise_if(subject, trouble)
    fair = rates.fair_share()
    least = [float(fair[rates.level >= level].min()) for level in range(rates.levels)]
    gaps = tuple(bound / each - 1.0 for bound, each in zip(bounds, least, strict=True))
    return JobsReport(tuple(bounds), gaps)


def _shape_problems(rates: JobRates) -> Iterator[str]:
    if not np.array_equal(np.unique(rates.level), np.arange(rates.levels)):
        yield f"levels {np.unique(rates.level).tolist()}; expected jobs on each of {rates.levels}"
    if not np.all((rates.rate > 0) & np.isfinite(rates.rate)):
        yield "a rate that is not a positive number"
    lengths = rates.lengths
    if not (np.isfinite(lengths) & (lengths >= 0)).all():
        yield "a length that is not a number of 0 or more"


def _carried_problems(rates: JobRates, tolerance: float) -> Iterator[str]:
    """Compare the flow at its rate to the sum of all jobs."""
    carried = rates.flow.rate * rates.flow.problem.demand.table()
    wanted = joint_demand(rates.jobs, rates.rate).table()
    short = np.argwhere(carried < wanted * (1 - tolerance))
    if len(short):
        pair = tuple(short[0])
        yield (
            f"the flow carries {carried[pair]:.12g} {rates.flow.problem.topology.pair_name(*pair)},"
            f" where the rates of all jobs need {wanted[pair]:.12g}"
        )


def _level_bound(rates: JobRates, level: int) -> tuple[float, list[str]]:
    """Return the bound of a level by its lengths, or their fault."""
    topology = rates.flow.problem.topology
    # The least capacity times length that a unit of rate of each job takes.
    graph, ends = (topology.nodes, topology.tail, topology.head), topology.terminals
    apart = shortest_distances(*graph, rates.lengths[level], ends)[:, ends]
    prices = [float(products(job.demand.table(), apart).sum()) for job in rates.jobs]
    priced = np.array(prices)
    weight = np.array([job.weight for job in rates.jobs])
    lower, own = rates.level < level, rates.level == level
    taken = float((rates.rate * priced)[lower].sum())
    left = float(topology.capacity @ rates.lengths[level]) - taken
    shared = float((weight * priced)[~lower].sum())
    if not np.all(priced[own] > 0) or not shared > 0:
        job = rates.jobs[int(np.flatnonzero(own & ~(priced > 0))[0])].name
        return 0.0, [
            f"level {level}: its lengths ask nothing of job {job}, which they should block"
        ]
    return left / shared, []
