"""`alltoall.solve` and `alltoall.describe`: the maximum rate of a topology, with its proof."""

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

from alltoall.check.flow import check_flow
from alltoall.errors import UsageError
from alltoall.flows import solve as solve_problem
from alltoall.flows.by_lp import with_status
from alltoall.grammar import SEARCH, SOLVE, read_words
from alltoall.ir.answer import made_now
from alltoall.ir.fabric import Rate
from alltoall.ir.flow import Flow
from alltoall.ir.jobs import Job, JobRates
from alltoall.ir.problem import Problem
from alltoall.ir.summaries import shard_size
from alltoall.ir.topology import Topology
from alltoall.lp.settings import never, silent
from alltoall.registry import load
from alltoall.routes.baselines.tables import shortest_path_reach
from alltoall.settings import ALONE, SolveSettings, Team, search_settings
from alltoall.topologies.background import GivenBackground, without_background
from alltoall.topologies.given import (
    Given,
    GivenDemand,
    GivenJobs,
    collected,
    jobs_in,
    jobs_of,
    problem_of,
    topology_of,
    with_unit,
)
from alltoall.topologies.groups import GivenGroups

if TYPE_CHECKING:
    from alltoall.flows.bounds import Description


def solve(
    given: Given,
    method: str = "auto",
    *,
    demand: GivenDemand = None,
    groups: GivenGroups = None,
    background: GivenBackground = None,
    link_bandwidth: Rate | None = None,
    bytes: str | int | None = None,
    gap: float = 1e-6,
    time_limit: str | float | None = None,
    threads: int | None = None,
    progress: Callable[[str], None] = silent,
    stop: Callable[[], bool] = never,
    team: Team = ALONE,
) -> Flow:
    """Find the best all-to-all rate and prove it.

    The flow has its `time` (of one shard over a link of capacity 1), the certified `bound` on the
    time of any all-to-all, the `gap` between the two, and its `status`. An independent check has
    found the same. With jobs as demand, the flow carries every job at its max-min fair rate
    (`fair_rates`).

    >>> import alltoall
    >>> flow = alltoall.solve("torus:3x3x3")
    >>> round(flow.time, 6), round(flow.bound, 6), str(flow.status)
    (9.0, 9.0, 'optimal')

    """
    name, words = read_words("method", method, SOLVE, SEARCH)
    settings = search_settings(words, gap, time_limit, threads, progress, stop, team)
    demand = collected(demand)
    problem = problem_of(given, demand, groups, background, link_bandwidth)
    jobs = jobs_in(demand, problem.topology)
    learnt: dict[str, Any] = shard_size(problem, bytes)
    if jobs is None:
        flow = find_flow(problem, name, settings)
    else:
        if name != "auto":
            raise UsageError(f"jobs with method {name}, which fair rates do not use; leave it out")
        rates = find_job_rates(problem.topology, jobs, settings)
        flow, learnt = rates.flow, learnt | rates.summary()
    known = settings.known()
    learnt |= shortest_path_reach(flow, settings)
    return made_now(flow, learnt, command="alltoall.solve", **known)


def fair_rates(
    given: Given,
    jobs: GivenJobs,
    *,
    background: GivenBackground = None,
    link_bandwidth: Rate | None = None,
    gap: float = 1e-6,
    time_limit: str | float | None = None,
    threads: int | None = None,
    progress: Callable[[str], None] = silent,
    stop: Callable[[], bool] = never,
) -> JobRates:
    """Find the max-min fair rates of jobs that share a fabric, with a proof of every level.

    Job j is carried at `rate[j]` times its demand. The lengths of a level prove that jobs of this
    level and above cannot all have more, by their weights, without one below having less; an
    independent check has found the same.

    >>> import alltoall
    >>> groups = [alltoall.Demand.of_groups(4, [each]) for each in ((0, 1), (0, 1, 2, 3))]
    >>> jobs = [alltoall.Job(f"job {n}", each) for n, each in enumerate(groups)]
    >>> alltoall.fair_rates("ring:4", jobs).rate.round(6).tolist()
    [0.4, 0.4]

    """
    settings = search_settings({}, gap, time_limit, threads, progress, stop)
    topology = with_unit(without_background(topology_of(given), background), link_bandwidth)
    return find_job_rates(topology, jobs_of(jobs, topology), settings)


def find_job_rates(
    topology: Topology, jobs: Sequence[Job], settings: SolveSettings | None = None
) -> JobRates:
    """Find fair rates of jobs, and check them."""
    rates: JobRates = load("alltoall.flows.jobs:fair_job_rates")(
        topology, jobs, settings or SolveSettings()
    )
    load("alltoall.check.jobs:check_job_rates")(rates)
    return rates


def find_flow(
    problem: Problem, method: str = "auto", settings: SolveSettings | None = None
) -> Flow:
    """Solve a problem, and check the answer."""
    settings = settings or SolveSettings()
    if settings.team.size > 1:
        if method not in ("auto", "first-order"):
            raise UsageError(
                "several MPI ranks with another --method than first-order; leave it out, or solve "
                "in one process"
            )
        method = "first-order"
    flow = solve_problem(problem, method, settings)
    check_flow(flow)
    return with_status(flow, flow.status.unless(settings.stopped()), settings)


def describe(
    given: Given, *, demand: GivenDemand = None, groups: GivenGroups = None
) -> "Description":
    """Describe a topology, with the bounds on its all-to-all that need no solver.

    >>> import alltoall
    >>> found = alltoall.describe("torus:3x3x3")
    >>> found.nodes, found.diameter, found.automorphisms, found.bounds["cut"]
    (27, 3, 1296, 9.0)

    """
    problem = problem_of(given, demand, groups)
    found: Description = load("alltoall.flows.bounds:describe_problem")(problem)
    return found
