r"""Max-min fair rates of several jobs on one fabric, level by level, each with its proof.

With D_j the demand of job j and w_j its weight, rates are max-min fair if no job can gain without
a loss for one that has less by weight. At each level the rates of blocked jobs are fixed, and the
others rise together:

    maximise    t
    subject to  B x[s]  =  sum over fixed j of r_j D_j[s]  +  t sum over the others of w_j D_j[s]
                sum over s of x[s, l]  <=  cap[l]               for every link l
                x[s, l] >= 0                                    for every source s

The link duals are lengths, under which every rising job has a price per unit of its rate; a job
with price 0 is not blocked, and rises on. So each level blocks at least one job, and its lengths
are the proof for `check.jobs`. At the end one flow carries all jobs at once, exactly.
"""

from collections.abc import Sequence
from dataclasses import replace
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

from alltoall.errors import InputError
from alltoall.flows.by_lp import all_variables, conservation, link_sums, require_program_memory
from alltoall.flows.exact import by_source
from alltoall.flows.methods import solve_sources
from alltoall.ir.answer import Certificate
from alltoall.ir.arrays import Floats, Ints, products
from alltoall.ir.demand import Demand
from alltoall.ir.jobs import MOST_JOBS, Job, JobRates, joint_demand
from alltoall.ir.problem import Problem
from alltoall.ir.topology import Topology
from alltoall.lp.program import Entries, LinearProgram, sparse_matrix
from alltoall.lp.solve import solve_program, solvers_to_try
from alltoall.paths.shortest import shortest_distances
from alltoall.settings import SolveSettings

Flags: TypeAlias = NDArray[np.bool_]
"""One for each job."""

BLOCKED_SHARE = 1e-7
"""A job is blocked if its share of all prices is larger than this."""


def fair_job_rates(topology: Topology, jobs: Sequence[Job], settings: SolveSettings) -> JobRates:
    """Return max-min fair rates of jobs, with one flow that carries all of them."""
    if not 1 <= len(jobs) <= MOST_JOBS:
        raise InputError(f"{len(jobs)} jobs; expected 1 to {MOST_JOBS:,}")
    weight = np.array([job.weight for job in jobs])
    rate, level = np.zeros(len(jobs)), np.full(len(jobs), -1)
    lengths: list[Floats] = []
    while np.any(level < 0):
        settings.report(f"level {len(lengths)}: {int((level < 0).sum())} of {len(jobs)} jobs rise")
        free = level < 0
        common, prices = _solve_level(topology, jobs, rate, free, settings)
        paid = weight * _unit_prices(topology, jobs, prices) * free
        blocked = free & (paid > BLOCKED_SHARE * paid.sum())
        rate[blocked] = common * weight[blocked]
        level[blocked] = len(lengths)
        lengths.append(prices / prices.max())
    flow = solve_sources(Problem(topology, joint_demand(jobs, rate)), settings)
    # Solvers have tolerances: scale all rates to the exact flow.
    rate = rate * flow.rate
    exact = Problem(topology, joint_demand(jobs, rate))
    proof = Certificate(flow.certificate.lengths, flow.certificate.bound * flow.rate)
    flow = replace(flow, problem=exact, rate=1.0, certificate=proof)
    bound = _bounds(topology, jobs, rate, level, lengths)
    return JobRates(tuple(jobs), flow, rate, level, np.array(lengths), bound)


def _solve_level(
    topology: Topology, jobs: Sequence[Job], rate: Floats, free: Flags, settings: SolveSettings
) -> tuple[float, Floats]:
    """Solve the program of a level; return t, its last variable, and the link prices."""
    program, status = _level_program(topology, jobs, rate, free), "nothing"
    for solver in solvers_to_try(settings.solver, program.size):
        result = solve_program(program, solver, settings.lp_settings())
        if result.x is not None and result.row_dual is not None and result.x[-1] > 0:
            return float(result.x[-1]), np.maximum(-result.row_dual[-topology.links :], 0.0)
        status = result.status.value
    raise InputError(
        f"the program of fair rates ended with {status} and no rates; allow more time "
        "(--time-limit), or choose another solver="
    )


def _level_program(
    topology: Topology, jobs: Sequence[Job], rate: Floats, free: Flags
) -> LinearProgram:
    every = joint_demand(jobs)
    groups = by_source(Problem(topology, every))
    require_program_memory(topology, len(groups.start))
    weight = [job.weight if free[index] else 0.0 for index, job in enumerate(jobs)]
    rising = _demand_rows(topology, groups.source, joint_demand(jobs, weight))
    fixed = np.zeros_like(rising)
    if not free.all():
        fixed = _demand_rows(topology, groups.source, joint_demand(jobs, rate))
    group, link = all_variables(topology, groups)
    balance, rise = conservation(topology, replace(groups, wanted=rising), group, link)
    still = conservation(topology, replace(groups, wanted=fixed), group, link)[1]
    rows = np.flatnonzero(rise)
    column = Entries(-rise[rows], rows, np.full(len(rows), len(link)))
    sums = link_sums(link).shift(rows=len(rise))
    return LinearProgram(
        cost=np.append(np.zeros(len(link)), -1.0),
        matrix=sparse_matrix((len(rise) + topology.links, len(link) + 1), balance, column, sums),
        row_lower=np.concatenate([still, np.full(topology.links, -np.inf)]),
        row_upper=np.concatenate([still, topology.capacity]),
    )


def _demand_rows(topology: Topology, sources: Ints, demand: Demand) -> Floats:
    rows = np.zeros((len(sources), topology.nodes))
    rows[:, topology.terminals] = demand.rows(sources)
    return rows


def _unit_prices(topology: Topology, jobs: Sequence[Job], lengths: Floats) -> Floats:
    """Return the price of a unit of each job's rate: its demands times their distances."""
    apart = shortest_distances(topology, lengths, topology.terminals)[:, topology.terminals]
    return np.array([float(products(job.demand.table(), apart).sum()) for job in jobs])


def _bounds(
    topology: Topology, jobs: Sequence[Job], rate: Floats, level: Ints, lengths: list[Floats]
) -> Floats:
    """Return the bound by the lengths of each level, given the rates of the levels below."""
    weight = np.array([job.weight for job in jobs])
    bounds = []
    for index, each in enumerate(lengths):
        price, lower = _unit_prices(topology, jobs, each), level < index
        left = float(topology.capacity @ each) - float((rate * price)[lower].sum())
        bounds.append(left / float((weight * price)[~lower].sum()))
    return np.array(bounds)
