"""`a2aflow.solve` and `a2aflow.describe`: what a topology can carry, and the proof of it."""

from collections.abc import Callable
from dataclasses import replace
from os import PathLike
from pathlib import Path

from a2aflow.check.flow import check_flow
from a2aflow.errors import UsageError
from a2aflow.flows import METHODS
from a2aflow.flows import solve as solve_problem
from a2aflow.flows.description import Description, describe_problem
from a2aflow.flows.warm import repair as repaired
from a2aflow.flows.warm import solve_from
from a2aflow.ir.answer import made_now
from a2aflow.ir.files.artefacts import read_as
from a2aflow.ir.flow import Flow
from a2aflow.ir.problem import Problem
from a2aflow.lp.settings import never, silent
from a2aflow.settings import SolveSettings, cores
from a2aflow.topologies.given import Given, GivenDemand, GivenGroups, problem_of


def solve(
    given: Given,
    *,
    demand: GivenDemand = None,
    groups: GivenGroups = None,
    host_bandwidth: float | None = None,
    method: str = "auto",
    solver: str = "auto",
    gap: float = 1e-6,
    time_limit: float | None = None,
    workers: int | None = None,
    symmetry: bool = True,
    cluster: str | None = None,
    last: Flow | str | PathLike[str] | None = None,
    repair: bool = False,
    progress: Callable[[str], None] = silent,
    stop: Callable[[], bool] = never,
) -> Flow:
    """Return the best all-to-all rate and its proof.

    The flow has its `time` (of one shard over a link of capacity 1), the certified `bound` on the
    time of any all-to-all, the `gap` between the two, and its `status`.

    Args:
        given: a SPEC such as `"torus:3x3x3"`, the path of a file, a networkx graph, a `Topology`, a
            `Problem`, or an answer to one.
        demand: who sends how much to whom: a `Demand`, a matrix over the terminals, or the path of
            a file; one shard from each terminal to each other if left out.
        groups: all-to-all only within groups of terminals, each by name or number, or a file of
            them with one a line; in the place of a demand.
        host_bandwidth: make all that passes a node pass its host, at so many units of one link.
        method: `"auto"`, or a name in `a2aflow.flows.METHODS`; all have the same optimum.
        solver: `"auto"`, or a solver of linear programs.
        gap: the certified gap to aim for.
        time_limit: seconds after which the best certified answer so far is returned.
        workers: threads and processes to use; as many as there are cores if left out.
        symmetry: let one source stand for all that are symmetric to it.
        cluster: the address of a Dask scheduler, which you trust, for the work per source.
        last: a flow, or the path of one, to start from: of this problem before links or nodes
            failed, or capacities or demands changed.
        repair: with `last`, only reroute what cannot stay, and stop there.
        progress: called with a line now and then.
        stop: asked now and then; once it says so, the time limit is over.

    >>> import a2aflow
    >>> flow = a2aflow.solve("torus:3x3x3")
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
    )
    problem = problem_of(given, demand, host_bandwidth, groups)
    settings = settings.begin()
    flow = find_flow(problem, method, settings, last, repair)
    return made_now(flow, command="a2aflow.solve", **settings.known())


def find_flow(
    problem: Problem,
    method: str = "auto",
    settings: SolveSettings | None = None,
    last: Flow | str | PathLike[str] | None = None,
    repair: bool = False,
) -> Flow:
    """Solve a problem from scratch, or from the last flow; `solve` says what may be asked."""
    settings = (settings or SolveSettings()).begin()
    flow = _solved(problem, method, settings, last, repair)
    if method in METHODS and method not in METHODS.known:
        check_flow(flow)  # What others register is not taken at its word.
    return replace(flow, status=flow.status.unless(settings.stopped()))


def _solved(
    problem: Problem,
    method: str,
    settings: SolveSettings,
    last: Flow | str | PathLike[str] | None,
    repair: bool,
) -> Flow:
    if last is None:
        if repair:
            raise UsageError("--repair without a flow to repair; add --from FILE")
        return solve_problem(problem, method, settings)
    if method not in ("auto", "first-order"):
        raise UsageError(
            f"--from with --method {method}; only first-order starts from a flow, leave it out"
        )
    flow = last if isinstance(last, Flow) else read_as(Path(last), Flow)
    return repaired(problem, flow, settings) if repair else solve_from(problem, flow, settings)


def describe(
    given: Given,
    *,
    demand: GivenDemand = None,
    groups: GivenGroups = None,
    host_bandwidth: float | None = None,
) -> Description:
    """Return what tells a topology apart, and the bounds on its all-to-all that need no solver.

    Args:
        given: a SPEC, the path of a file, a networkx graph, a `Topology` or a `Problem`.
        demand: what the bounds are for; the uniform all-to-all if left out.
        groups: all-to-all only within groups of terminals, each by name or number, or a file of
            them with one a line; in the place of a demand.
        host_bandwidth: make all that passes a node pass its host, at so many units of one link.

    >>> import a2aflow
    >>> found = a2aflow.describe("torus:3x3x3")
    >>> found.nodes, found.diameter, found.automorphisms, found.bounds["cut"]
    (27, 3, 1296, 9.0)

    """
    return describe_problem(problem_of(given, demand, host_bandwidth, groups))
