"""`alltoall.schedule` and `alltoall.sweep`: chunk schedules for fabrics where hosts forward."""

from collections.abc import Callable, Sequence
from os import PathLike

from alltoall.ir.answer import made_now
from alltoall.ir.arguments import check_arguments
from alltoall.ir.routes import Routes
from alltoall.ir.schedule import Schedule
from alltoall.lp.settings import never, silent
from alltoall.schedules.methods import Sweep, find_schedule, sweep_schedules
from alltoall.schedules.resolve import resolved_routes, resolved_schedule
from alltoall.settings import STEP_TOLERANCE, ScheduleSettings, SolveSettings, cores
from alltoall.topologies.background import GivenBackground
from alltoall.topologies.given import (
    Given,
    GivenDemand,
    GivenGroups,
    GivenJobs,
    problem_of,
    topology_of,
)
from alltoall.topologies.operators import with_host_bandwidth


def schedule(
    given: Given,
    *,
    demand: GivenDemand = None,
    groups: GivenGroups = None,
    jobs: GivenJobs = None,
    background: GivenBackground = None,
    host_bandwidth: float | None = None,
    method: str = "auto",
    steps: int | None = None,
    latency: float = 0.0,
    step_tolerance: float = STEP_TOLERANCE,
    chunks: int | None = None,
    max_chunks: int | None = None,
    loss: float = 0.01,
    operation_cost: float = 0.0,
    robust: Sequence[str] | None = None,
    last: Schedule | str | PathLike[str] | None = None,
    solver: str = "auto",
    gap: float = 1e-6,
    time_limit: float | None = None,
    workers: int | None = None,
    symmetry: bool = True,
    progress: Callable[[str], None] = silent,
    stop: Callable[[], bool] = never,
) -> Schedule:
    """Return which chunk crosses which link in which step, checked.

    The `time` is the sum over the steps of the largest link load, in shards; `fractional_time` is
    that of the linear program with as many steps, and `loss` what whole chunks cost over it.
    `alltoall.find_schedule` does the same from settings, and also tells what it learnt on the way.

    Args:
        given: a SPEC, the path of a file, a networkx graph, a `Topology`, a `Problem`, or an answer
            to one.
        demand: as for `solve`; uniform if left out.
        groups: all-to-all only within groups of terminals, each by name or number, or a file of
            them with one a line; in the place of a demand.
        jobs: jobs that share the fabric, or the path of a file of them; in the place of a demand.
            The sum of their demands, each by its weight, is scheduled.
        background: what others use of the links, taken away from them: a rate of each, a flow or
            routes at full speed, or the path of a file of `tail,head,rate`, a flow or routes;
            `"FILE@0.5"` is half of that.
        host_bandwidth: make all that passes a node pass its host, at so many units of one link.
        method: `"tsmcf"`, the program in steps; `"list"`, routes and an order, for all that is
            large and irregular; the baseline `"sccl"` for a handful of nodes; or `"auto"`.
        steps: how many at most; the best number if left out.
        latency: what a step costs, in shard times.
        step_tolerance: the share by which a further step must lower the time.
        chunks: how many per shard; the fewest that do if left out.
        max_chunks: most chunks to try per shard of mean size; if left out 16, or up to 1,024 where
            few pairs send.
        loss: how much longer than the fractional optimum it may take.
        operation_cost: what each message costs the rank that sends or receives it, in shard times;
            the schedule is then the one of least time, latency and cost in all that was found with
            fewer relays, steps and chunks too.
        robust: make a template against these demands: names of families, `"skew"`, `"pairs"`,
            `"destinations"` or `"hose"`, or files of demands; it is one of the method `"list"`.
        last: a schedule, or the path of one, to begin with: of this problem before links or nodes
            failed; it keeps its chunks per shard, and is put in order by the method `"list"`.
        solver: `"auto"`, or a solver of linear programs.
        gap: the certified gap to aim for.
        time_limit: seconds after which the best schedule so far is returned.
        workers: threads and processes to use; as many as there are cores if left out.
        symmetry: let one source stand for all that are symmetric to it.
        progress: called with a line now and then.
        stop: asked now and then; once it says so, the time limit is over.

    >>> import alltoall
    >>> found = alltoall.schedule("bipartite:4x4")
    >>> round(found.time, 6), found.steps, found.chunks_per_shard
    (2.5, 2, 2)

    """
    solving = SolveSettings(
        gap=gap,
        solver=solver,
        time_limit=time_limit,
        workers=cores() if workers is None else workers,
        report=progress,
        symmetry=symmetry,
        stopped=stop,
    )
    settings = ScheduleSettings(
        steps,
        chunks,
        latency,
        step_tolerance,
        loss,
        max_chunks,
        robust=None if robust is None else tuple(robust),
        solve=solving,
        operation_cost=operation_cost,
    )
    problem = problem_of(given, demand, host_bandwidth, groups, jobs, background)
    settings = settings.begin()
    found = find_schedule(problem, method, settings, last).schedule
    return made_now(found, command="alltoall.schedule", **settings.solve.known())


class Solver:
    """One topology, and the demands on it as they come: each in a fraction of a second.

    It is made once, which loads all that is compiled; a call then takes no search. Answers are
    checked, and have the certificate of their own demand.

    Args:
        given: a SPEC, the path of a file, a networkx graph, a `Topology`, a `Problem`, or an answer
            to one.
        host_bandwidth: make all that passes a node pass its host, at so many units of one link.
        workers: threads to use; as many as there are cores if left out.

    >>> import alltoall
    >>> solver = alltoall.Solver("torus:3x3")
    >>> demand = [[0.0 if s == d else 1.0 + s % 3 for d in range(9)] for s in range(9)]
    >>> solver.schedule(demand).gap <= 0.05, solver.route(demand).gap <= 0.02
    (True, True)

    """

    @check_arguments
    def __init__(
        self, given: Given, *, host_bandwidth: float | None = None, workers: int | None = None
    ) -> None:
        topology = topology_of(given)
        if host_bandwidth is not None:
            topology = with_host_bandwidth(topology, host_bandwidth)
        self.topology = topology
        self.workers = cores() if workers is None else workers

    @check_arguments
    def schedule(
        self, demand: GivenDemand, *, loss: float = 0.02, time_limit: float | None = None
    ) -> Schedule:
        """Return a schedule for a demand, at most `loss` above its certified bound, or the best.

        The time limit, in seconds, ends the search for a smaller loss.
        """
        settings = SolveSettings(time_limit=time_limit, workers=self.workers).begin()
        found = resolved_schedule(problem_of(self.topology, demand), loss, settings)
        return made_now(found, command="alltoall.Solver", **settings.known())

    @check_arguments
    def route(
        self, demand: GivenDemand, *, loss: float = 0.02, time_limit: float | None = None
    ) -> Routes:
        """Return routes for a demand, at most `loss` above its certified bound, or the best.

        They have no layers. The time limit, in seconds, ends the search for a smaller loss.
        """
        settings = SolveSettings(time_limit=time_limit, workers=self.workers).begin()
        found = resolved_routes(problem_of(self.topology, demand), loss, settings)
        return made_now(found, command="alltoall.Solver", **settings.known())


def sweep(
    given: Given,
    *,
    demand: GivenDemand = None,
    groups: GivenGroups = None,
    host_bandwidth: float | None = None,
    method: str = "auto",
    settings: ScheduleSettings | None = None,
) -> Sweep:
    """Return what steps and chunks cost: time against steps, and loss against chunks.

    Args:
        given: a SPEC, the path of a file, a networkx graph, a `Topology` or a `Problem`.
        demand: as for `solve`; uniform if left out.
        groups: all-to-all only within groups of terminals, each by name or number, or a file of
            them with one a line; in the place of a demand.
        host_bandwidth: make all that passes a node pass its host, at so many units of one link.
        method: `"tsmcf"`, `"list"`, or `"auto"`, which takes one of these by size.
        settings: what else may be asked; `max_chunks` is how far the chunks go.

    >>> import alltoall
    >>> curves = alltoall.sweep("bipartite:4x4", settings=alltoall.ScheduleSettings(max_chunks=2))
    >>> curves.steps, {each: round(loss, 3) for each, loss in curves.losses.items()}
    (2, {1: 0.2, 2: 0.0})

    """
    problem = problem_of(given, demand, host_bandwidth, groups)
    return sweep_schedules(problem, settings or ScheduleSettings(), method)
