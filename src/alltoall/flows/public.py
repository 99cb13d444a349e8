"""`alltoall.solve` and `alltoall.describe`: what a topology can carry, and the proof of it."""

from collections.abc import Callable, Sequence
from os import PathLike
from pathlib import Path
from typing import TYPE_CHECKING

from alltoall.check.flow import check_flow
from alltoall.errors import UsageError
from alltoall.flows import solve as solve_problem
from alltoall.flows.by_lp import with_status
from alltoall.ir.answer import made_now
from alltoall.ir.flow import Flow
from alltoall.ir.jobs import Job, JobRates
from alltoall.ir.problem import Problem
from alltoall.ir.topology import Topology
from alltoall.lp.settings import never, silent
from alltoall.registry import load
from alltoall.settings import SolveSettings, cores
from alltoall.topologies.background import GivenBackground
from alltoall.topologies.given import (
    Given,
    GivenDemand,
    GivenGroups,
    GivenJobs,
    jobs_of,
    problem_of,
)

if TYPE_CHECKING:
    from alltoall.flows.description import Description


def solve(
    given: Given,
    *,
    demand: GivenDemand = None,
    groups: GivenGroups = None,
    jobs: GivenJobs = None,
    background: GivenBackground = None,
    host_bandwidth: float | None = None,
    method: str = "auto",
    solver: str = "auto",
    gap: float = 1e-6,
    time_limit: float | None = None,
    workers: int | None = None,
    symmetry: bool = True,
    cluster: str | None = None,
    checkpoint: str | PathLike[str] | None = None,
    progress: Callable[[str], None] = silent,
    stop: Callable[[], bool] = never,
) -> Flow:
    """Return the best all-to-all rate and its proof.

    The flow has its `time` (of one shard over a link of capacity 1), the certified `bound` on the
    time of any all-to-all, the `gap` between the two, and its `status`. An independent check has
    found the same.

    Args:
        given: a SPEC such as `"torus:3x3x3"`, the path of a file, a networkx graph, a `Topology`, a
            `Problem`, or an answer to one.
        demand: who sends how much to whom: a `Demand`, a matrix over the terminals, or the path of
            a file; one shard from each terminal to each other if left out.
        groups: all-to-all only within groups of terminals, each by name or number, or a file of
            them with one a line; in the place of a demand.
        jobs: jobs that share the fabric, or the path of a file of them; in the place of a demand.
            The flow carries every job at its max-min fair rate (`fair_rates`).
        background: what others use of the links, taken away from them: a rate of each, a flow or
            routes at full speed, or the path of a file of `tail,head,rate`, a flow or routes;
            `"FILE@0.5"` is half of that.
        host_bandwidth: make all that passes a node pass its host, at so many units of one link.
        method: `"auto"`, or a name in `alltoall.flows.METHODS`; all have the same optimum.
        solver: `"auto"`, or a solver of linear programs.
        gap: the certified gap to aim for.
        time_limit: seconds after which the best certified answer so far is returned.
        workers: threads and processes to use; as many as there are cores if left out.
        symmetry: let one source stand for all that are symmetric to it.
        cluster: the address of a Dask scheduler, which you trust, for the work per source.
        checkpoint: a file for the state of a long solve, which goes on from one that is there.
        progress: called with a line now and then.
        stop: asked now and then; once it says so, the time limit is over.

    >>> import alltoall
    >>> flow = alltoall.solve("torus:3x3x3")
    >>> round(flow.time, 6), round(flow.bound, 6), str(flow.status)
    (9.0, 9.0, 'optimal')

    """
    settings = SolveSettings(
        gap=gap,
        solver=solver,
        time_limit=time_limit,
        workers=cores() if workers is None else workers,
        report=progress,
        cluster=cluster,
        symmetry=symmetry,
        stopped=stop,
        checkpoint=None if checkpoint is None else Path(checkpoint),
    )
    problem = problem_of(given, demand, host_bandwidth, groups, jobs, background)
    settings = settings.begin()
    if jobs is not None:
        refuse_with_jobs(method)
        flow = find_job_rates(problem.topology, jobs_of(jobs, problem.topology), settings).flow
    else:
        flow = find_flow(problem, method, settings)
    return made_now(flow, command="alltoall.solve", **settings.known())


def fair_rates(
    given: Given,
    jobs: GivenJobs,
    *,
    background: GivenBackground = None,
    host_bandwidth: float | None = None,
    solver: str = "auto",
    gap: float = 1e-6,
    time_limit: float | None = None,
    progress: Callable[[str], None] = silent,
    stop: Callable[[], bool] = never,
) -> JobRates:
    """Return the max-min fair rates of jobs that share a fabric, with a proof of every level.

    Job j is carried at `rate[j]` times its demand. The lengths of a level prove that jobs of this
    level and above cannot all have more, by their weights, without one below having less; an
    independent check has found the same.

    Args:
        given: a SPEC, the path of a file, a networkx graph, a `Topology` or a `Problem`.
        jobs: `Job`s, or the path of a file of them.
        background: what others use of the links, as for `solve`.
        host_bandwidth: make all that passes a node pass its host, at so many units of one link.
        solver: `"auto"`, or a solver of linear programs.
        gap: the certified gap to aim for.
        time_limit: seconds after which the search ends.
        progress: called with a line now and then.
        stop: asked now and then; once it says so, the time limit is over.

    >>> import alltoall
    >>> groups = [alltoall.Demand.of_groups(4, [each]) for each in ((0, 1), (0, 1, 2, 3))]
    >>> jobs = [alltoall.Job(f"job {n}", each) for n, each in enumerate(groups)]
    >>> alltoall.fair_rates("ring:4", jobs).rate.round(6).tolist()
    [0.4, 0.4]

    """
    settings = SolveSettings(
        gap=gap, solver=solver, time_limit=time_limit, report=progress, stopped=stop
    )
    topology = problem_of(given, None, host_bandwidth, None, jobs, background).topology
    return find_job_rates(topology, jobs_of(jobs, topology), settings.begin())


def refuse_with_jobs(method: str) -> None:
    """Raise if a method is asked of fair rates, which have one of their own."""
    if method != "auto":
        raise UsageError("--jobs with --method, which fair rates do not use; leave it out")


def find_job_rates(
    topology: Topology, jobs: Sequence[Job], settings: SolveSettings | None = None
) -> JobRates:
    """Find fair rates of jobs, and check them; `fair_rates` says what may be asked."""
    rates: JobRates = load("alltoall.flows.jobs:fair_job_rates")(
        topology, jobs, settings or SolveSettings()
    )
    load("alltoall.check.jobs:check_job_rates")(rates)
    return rates


def find_flow(
    problem: Problem, method: str = "auto", settings: SolveSettings | None = None
) -> Flow:
    """Solve a problem, and check the answer; `solve` says what may be asked."""
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
    given: Given,
    *,
    demand: GivenDemand = None,
    groups: GivenGroups = None,
    host_bandwidth: float | None = None,
) -> "Description":
    """Return what tells a topology apart, and the bounds on its all-to-all that need no solver.

    Args:
        given: a SPEC, the path of a file, a networkx graph, a `Topology` or a `Problem`.
        demand: what the bounds are for; the uniform all-to-all if left out.
        groups: all-to-all only within groups of terminals, each by name or number, or a file of
            them with one a line; in the place of a demand.
        host_bandwidth: make all that passes a node pass its host, at so many units of one link.

    >>> import alltoall
    >>> found = alltoall.describe("torus:3x3x3")
    >>> found.nodes, found.diameter, found.automorphisms, found.bounds["cut"]
    (27, 3, 1296, 9.0)

    """
    problem = problem_of(given, demand, host_bandwidth, groups)
    found: Description = load("alltoall.flows.description:describe_problem")(problem)
    return found
