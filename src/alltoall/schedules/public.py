"""`alltoall.schedule` and `alltoall.Solver`: chunk schedules for fabrics where hosts forward."""

from collections.abc import Callable
from os import PathLike
from typing import Any

from alltoall.errors import UsageError
from alltoall.grammar import SCHEDULE, SEARCH, read_words
from alltoall.ir.answer import made_now
from alltoall.ir.arguments import check_arguments
from alltoall.ir.fabric import Fabric, Rate
from alltoall.ir.problem import Problem
from alltoall.ir.quantities import parse_seconds, parse_size, plain_number
from alltoall.ir.routes import Routes
from alltoall.ir.schedule import Schedule
from alltoall.ir.summaries import shard_size
from alltoall.lp.settings import never, silent
from alltoall.routes.baselines.tables import shortest_path_reach
from alltoall.schedules.found import FoundSchedule
from alltoall.schedules.methods import find_schedule
from alltoall.schedules.resolve import resolved_routes, resolved_schedule
from alltoall.settings import ScheduleSettings, SolveSettings, cores, search_settings
from alltoall.topologies.background import GivenBackground
from alltoall.topologies.given import Given, GivenDemand, problem_of, topology_of
from alltoall.topologies.groups import GivenGroups


def schedule(
    given: Given,
    method: str = "auto",
    *,
    demand: GivenDemand = None,
    groups: GivenGroups = None,
    background: GivenBackground = None,
    link_bandwidth: Rate | None = None,
    bytes: str | int | None = None,
    steps: int | None = None,
    chunks: int | None = None,
    latency: str | float = 0.0,
    from_: Schedule | str | PathLike[str] | None = None,
    gap: float = 1e-6,
    time_limit: str | float | None = None,
    threads: int | None = None,
    progress: Callable[[str], None] = silent,
    stop: Callable[[], bool] = never,
) -> Schedule:
    """Compute which chunk crosses which link in which step, for fabrics where hosts forward.

    The `time` is the sum over the steps of the largest link load, in shards; `fractional_time` is
    that of the linear program with as many steps, and `loss` the cost of whole chunks over it.
    After a failure, start from the last schedule to move few chunks.

    >>> import alltoall
    >>> found = alltoall.schedule("bipartite:4x4")
    >>> round(found.time, 6), found.steps, found.chunks_per_shard
    (2.5, 2, 2)

    """
    name, words = read_words("method", method, SCHEDULE, SEARCH)
    solving = search_settings(words, gap, time_limit, threads, progress, stop)
    problem = problem_of(given, demand, groups, background, link_bandwidth)
    costs = {"latency": latency, "operation_cost": words.pop("operation_cost", 0.0)}
    in_shards: dict[str, Any] = {
        key: shard_times(problem, key, cost, bytes) for key, cost in costs.items()
    }
    size = shard_size(problem, bytes)
    settings = ScheduleSettings(steps, chunks, solve=solving, **in_shards, **words)
    found = find_schedule(problem, name, settings, from_)
    known = settings.solve.known()
    learnt = (
        size
        | found.learnt()
        | _step_cost(found, settings)
        | shortest_path_reach(found.schedule, settings.solve)
    )
    return made_now(found.schedule, learnt, command="alltoall.schedule", **known)


def _step_cost(found: FoundSchedule, settings: ScheduleSettings) -> dict[str, float]:
    """Return the cost of a step besides its time, including message costs."""
    chosen = next((each for each in found.learnt().get("tradeoff", ()) if each["chosen"]), None)
    if chosen is None:
        return {"step_latency": settings.latency}
    return {"step_latency": (chosen["total"] - chosen["time"]) / chosen["steps"]}


def shard_times(problem: Problem, name: str, cost: str | float, bytes: str | int | None) -> float:
    """Return a cost in shard times: numbers are shard times, texts such as `2us` are times."""
    plain = plain_number(cost)
    if plain is not None:
        return plain
    seconds, rate = parse_seconds(cost), problem.topology.bytes_per_second
    if rate is None or bytes is None:
        raise UsageError(
            f"{name.replace('_', ' ')} {cost} is a time; add the size of a shard (--bytes) and "
            "what a link carries (--link-bandwidth), or give it in shard times, as a number"
        )
    return Fabric(problem.topology, rate).shard_times(seconds, parse_size(bytes))


class Solver:
    """Solve successive demands on one topology, each in a fraction of a second.

    Answers are checked, and have the certificate of their own demand.

    >>> import alltoall
    >>> solver = alltoall.Solver("torus:3x3")
    >>> demand = [[0.0 if s == d else 1.0 + s % 3 for d in range(9)] for s in range(9)]
    >>> solver.schedule(demand).gap <= 0.05, solver.route(demand).gap <= 0.02
    (True, True)

    """

    @check_arguments
    def __init__(self, given: Given, *, threads: int | None = None) -> None:
        self.topology = topology_of(given)
        self.threads = cores() if threads is None else threads

    @check_arguments
    def schedule(
        self, demand: GivenDemand, *, loss: float = 0.02, time_limit: float | None = None
    ) -> Schedule:
        """Return a schedule for a demand, at most `loss` above its certified bound, or the best.

        The time limit, in seconds, ends the search for a smaller loss.
        """
        settings = SolveSettings(time_limit=time_limit, workers=self.threads)
        found = resolved_schedule(problem_of(self.topology, demand), loss, settings)
        return made_now(found, {}, command="alltoall.Solver", **settings.known())

    @check_arguments
    def route(
        self, demand: GivenDemand, *, loss: float = 0.02, time_limit: float | None = None
    ) -> Routes:
        """Return routes for a demand, at most `loss` above its certified bound, or the best.

        They have no layers. The time limit, in seconds, ends the search for a smaller loss.
        """
        settings = SolveSettings(time_limit=time_limit, workers=self.threads)
        found = resolved_routes(problem_of(self.topology, demand), loss, settings)
        return made_now(found, {}, command="alltoall.Solver", **settings.known())
