r"""Max-min fair rates of several jobs on one fabric, level by level, each with its proof.

With D_j the demand of job j and w_j its weight, rates are max-min fair if no job can have more
without one that has less, by weight, having still less. The rates of the jobs below are fixed, and
the others rise together:

    maximise    t
    subject to  B x[s]  =  sum over fixed j of r_j D_j[s]  +  t sum over the others of w_j D_j[s]
                sum over s of x[s, l]  <=  cap[l]               for every link l
                x[s, l] >= 0                                    for every source s

The duals of the links are lengths by which every job of the next level pays for a unit of its rate;
a job that pays nothing is not blocked, and rises on. So each level blocks at least one, by lengths
that `check.jobs` proves it with. At the end one flow carries all jobs at once, exactly.
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
from alltoall.lp.matrix import Entries, sparse_matrix
from alltoall.lp.program import LinearProgram, LPResult
from alltoall.lp.solve import solve_program, solvers_to_try
from alltoall.paths.shortest import shortest_distances
from alltoall.settings import SolveSettings

Flags: TypeAlias = NDArray[np.bool_]
"""One for each job."""

BLOCKED = 1e-7
"""The share of what all jobs pay from which on one of them is taken to be blocked."""


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
        result = _risen(topology, jobs, rate, free, settings)
        prices = np.maximum(-np.asarray(result.row_dual)[-topology.links :], 0.0)
        paid = weight * _priced(topology, jobs, prices) * free
        blocked = free & (paid > BLOCKED * paid.sum())
        rate[blocked] = float(np.asarray(result.x)[-1]) * weight[blocked]
        level[blocked] = len(lengths)
        lengths.append(prices / prices.max())
    flow = solve_sources(Problem(topology, joint_demand(jobs, rate)), settings)
    # What a solver returned is off by its tolerance: all rates are taken to what the flow carries.
    rate = rate * flow.rate
    exact = Problem(topology, joint_demand(jobs, rate))
    proof = Certificate(flow.certificate.lengths, flow.certificate.bound * flow.rate)
    flow = replace(flow, problem=exact, rate=1.0, certificate=proof)
    bound = _bounds(topology, jobs, rate, level, lengths)
    return JobRates(tuple(jobs), flow, rate, level, np.array(lengths), bound)


def _risen(
    topology: Topology,
    jobs: Sequence[Job],
    rate: Floats,
    free: Flags,
    settings: SolveSettings,
) -> LPResult:
    """Solve the program of a level; its last variable is t."""
    program = _level_program(topology, jobs, rate, free)
    result = None
    for solver in solvers_to_try(settings.solver, program.size):
        result = solve_program(program, solver, settings.lp_settings())
        if result.x is not None and result.row_dual is not None and result.x[-1] > 0:
            return result
    status = "nothing" if result is None else result.status.value
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
    rising = _wanted(topology, groups.source, joint_demand(jobs, weight))
    fixed = np.zeros_like(rising)
    if not free.all():
        fixed = _wanted(topology, groups.source, joint_demand(jobs, rate))
    group, link = all_variables(topology, groups)
    balance, rise = conservation(topology, replace(groups, wanted=rising), group, link)
    still = conservation(topology, replace(groups, wanted=fixed), group, link)[1]
    rows = np.flatnonzero(rise)
    column = Entries(-rise[rows], rows, np.full(len(rows), len(link)))
    sums = link_sums(link).moved(rows=len(rise))
    return LinearProgram(
        cost=np.append(np.zeros(len(link)), -1.0),
        matrix=sparse_matrix((len(rise) + topology.links, len(link) + 1), balance, column, sums),
        row_lower=np.concatenate([still, np.full(topology.links, -np.inf)]),
        row_upper=np.concatenate([still, topology.capacity]),
    )


def _wanted(topology: Topology, sources: Ints, demand: Demand) -> Floats:
    rows = np.zeros((len(sources), topology.nodes))
    rows[:, topology.terminals] = demand.rows(sources)
    return rows


def _priced(topology: Topology, jobs: Sequence[Job], lengths: Floats) -> Floats:
    """Return what each job pays for a unit of its rate: its demands times their distances."""
    apart = shortest_distances(topology, lengths, topology.terminals)[:, topology.terminals]
    return np.array([float(products(job.demand.table(), apart).sum()) for job in jobs])


def _bounds(
    topology: Topology, jobs: Sequence[Job], rate: Floats, level: Ints, lengths: list[Floats]
) -> Floats:
    """Return what the lengths of each level prove, given the rates of the levels below."""
    weight = np.array([job.weight for job in jobs])
    found = []
    for index, each in enumerate(lengths):
        priced = _priced(topology, jobs, each)
        lower = level < index
        left = float(topology.capacity @ each) - float((rate * priced)[lower].sum())
        found.append(left / float((weight * priced)[~lower].sum()))
    return np.array(found)
