"""`list`: a schedule is routes plus an order. Chunks get paths first, and then steps.

Every shard is cut into chunks, and each chunk is given a path as `single` and `few` do, with loads
near the certified bound; then the chunks are served link by link (`serve`). The time is at least
that of the paths' largest load, and list scheduling seldom loses much to it, so the time-stepped
program, which grows with the steps, is not needed. Fewer steps cost time: quotas from that of one
long step down to that of many short ones are tried, which draws the curve of one against the other.
"""

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace

import numpy as np

from a2aflow.errors import InputError
from a2aflow.flows import sizes
from a2aflow.flows.methods import solve_master, solve_sources
from a2aflow.ir.arrays import Floats, Ints, inner_index
from a2aflow.ir.certificate import Certificate
from a2aflow.ir.chunks import Chunks
from a2aflow.ir.flow import Flow, Status
from a2aflow.ir.paths import Paths
from a2aflow.ir.problem import Problem
from a2aflow.ir.routes import Routes
from a2aflow.ir.schedule import Schedule
from a2aflow.lp.settings import never
from a2aflow.paths.any_path import Chunks as CutChunks
from a2aflow.paths.any_path import Table
from a2aflow.routes import route
from a2aflow.routes.judge import judge
from a2aflow.routes.route_chunks import RouteChunks
from a2aflow.routes.single import spread_chunks
from a2aflow.schedules.search import FoundSchedule, find_in_normal_units
from a2aflow.schedules.serve import Served, Ways, serve, ways_of
from a2aflow.schedules.timed_chunks import MOST_SCHEDULE_CHUNKS
from a2aflow.settings import RouteSettings, ScheduleSettings, SolveSettings

METHOD = "list"
"""Its name among the methods, which its answers carry."""

QUOTAS = (1, 2, 4, 6, 8, 12, 16, 24, 32, 48, 64, 96, 128)
"""Parts of the paths' time that steps are to take, in turn, as far as more steps may pay."""

SHORTEST_STEP = 0.125
"""The share of a quota below which a step is not cut short, though a link may run dry in it."""

NEGOTIATED = 2_000
"""Chunks up to which paths are negotiated; with more of them, cutting finer gains as much."""

ROBUST_CHUNKS = 8
"""Chunks per shard of a template, unless another number is asked for."""

MANY_CHUNKS = 100_000
"""Chunks from which on only the quotas of `FEW_QUOTAS` are tried."""

MOST_TRIED = 400_000
"""Chunks of all shards up to which more of them are tried for a smaller loss."""

FEW_QUOTAS = (8, 16)
"""Quotas that are mostly without loss."""

COARSE_LIST_GAP = 5e-4
"""The certified gap that is asked of the bound, at least, where primal-dual steps prove it."""

SOLVING_SHARE = 0.3
"""The share of the time left that is for the flow, whose bound all else aims at."""


@dataclass(frozen=True, eq=False)
class Placed:
    """All chunks of a problem, in the order of their pairs, each with its path and its size."""

    problem: Problem
    chunks: Chunks
    paths: Paths
    chunk: Ints
    size: Floats

    @property
    def time(self) -> float:
        """The largest load of the paths over capacity: no order of theirs takes less."""
        topology = self.problem.topology
        return float((self.paths.load(self.size, topology.links) / topology.capacity).max())


def find_by_list(problem: Problem, settings: ScheduleSettings) -> FoundSchedule:
    """Return a checked schedule by list scheduling.

    It has the fewest chunks per shard that keep within the loss of the certified bound, or the best
    number found.
    """
    return find_in_normal_units(problem, settings, _find)


def _find(problem: Problem, settings: ScheduleSettings) -> FoundSchedule:
    """Find a schedule for a problem in normal units."""
    if settings.robust is not None:
        return _find_robust(problem, settings, settings.robust)
    flow = bounding_flow(problem, settings.solve.sharing(SOLVING_SHARE))
    if flow.status is Status.INTERRUPTED:
        raise KeyboardInterrupt
    best: Schedule | None = None
    curve: dict[int, float] = {}
    for chunks in _choices(problem, flow.bound, settings):
        if best is not None and (_many(problem, chunks) or settings.solve.out_of_time()):
            break
        placed = place_chunks(flow, chunks, settings.solve)
        schedule = schedule_placed(placed, flow.certificate, flow.time, settings)
        curve[chunks] = schedule.loss
        best = schedule if best is None or schedule.time < best.time * (1 - 1e-9) else best
        if schedule.time <= flow.bound * (1 + settings.loss):
            break
    if best is None:
        raise InputError("no number of chunks to try; expected at least one chunk per shard")
    return FoundSchedule(best, curve, {}, Status.GAP_NOT_REACHED, flow.bound)


def _find_robust(
    problem: Problem, settings: ScheduleSettings, names: tuple[str, ...]
) -> FoundSchedule:
    """Return a template whose chunks are spread as robust routes are."""
    routing = RouteSettings(robust=names, solve=settings.solve.sharing(SOLVING_SHARE))
    routes = route(problem, "robust", routing)
    placed = place_routes(routes, settings.chunks or ROBUST_CHUNKS)
    schedule = schedule_placed(placed, routes.certificate, routes.time, settings)
    judged = judge(schedule, names, routing.seed, settings.solve)
    curve = {schedule.chunks_per_shard: schedule.loss}
    return FoundSchedule(schedule, curve, {}, Status.GAP_NOT_REACHED, routes.bound, robust=judged)


def place_routes(routes: Routes, per_shard: int) -> Placed:
    """Cut all shards into chunks, spread over the routes of their pair by largest remainders."""
    chunks = Chunks.of_demand(routes.problem.demand, per_shard)
    require_few(chunks.total)
    cut = RouteChunks(routes, per_shard, never)
    paths = cut.paths.select(cut.rounded().path)
    return Placed(routes.problem, chunks, paths, inner_index(cut.counts), cut.size)


def bounding_flow(problem: Problem, solving: SolveSettings) -> Flow:
    """Return a flow whose bound is as sharp as asked, or as whole chunks can follow it."""
    variables = len(problem.sources) * problem.topology.links
    if variables <= sizes.FIRST_ORDER_VARIABLES:
        return solve_sources(problem, solving)
    return solve_master(problem, replace(solving, gap=max(solving.gap, COARSE_LIST_GAP)))


def _choices(problem: Problem, bound: float, settings: ScheduleSettings) -> list[int]:
    """Return the numbers of chunks per shard of size 1 to try, the fewest first."""
    if settings.chunks is not None:
        return [settings.chunks]
    if problem.demand.uniform:
        every = range(1, settings.max_chunks + 1)
        whole = [each for each in every if _least_loss(problem, each, bound) <= settings.loss]
        return whole or list(every)
    powers = (min(2**each, settings.max_chunks) for each in range(settings.max_chunks.bit_length()))
    return sorted({per_shard(problem, each) for each in powers})


def per_shard(problem: Problem, chunks: int) -> int:
    """Return the chunks of a shard of size 1, if one of mean size is cut into `chunks`."""
    amounts = problem.demand.table()
    return max(1, round(chunks / float(amounts[amounts > 0].mean())))


def _many(problem: Problem, chunks: int) -> bool:
    """Whether so many chunks per shard are more than are worth trying for a smaller loss."""
    return Chunks.of_demand(problem.demand, chunks).total > MOST_TRIED


def _least_loss(problem: Problem, chunks: int, bound: float) -> float:
    """Return what whole chunks cost at least against the bound, where all links are as wide."""
    capacity = problem.topology.capacity
    exact = bound * chunks * float(capacity.max())
    return float(np.ceil(exact * (1 - 1e-9)) / exact - 1) if np.ptp(capacity) == 0 else 0.0


def place_chunks(flow: Flow, per_shard: int, solving: SolveSettings) -> Placed:
    """Cut all shards into chunks, `per_shard` of size 1, and give every chunk a path."""
    settings = RouteSettings(solve=solving)
    return place_all(
        flow.problem,
        per_shard,
        lambda cut: spread_chunks(flow, per_shard, cut, settings, METHOD, NEGOTIATED),
    )


def place_all(problem: Problem, per_shard: int, spread: Callable[[CutChunks], Table]) -> Placed:
    """Cut all shards into chunks, and put these on the paths that `spread` finds for them."""
    terminals = problem.topology.terminals
    chunks = Chunks.of_demand(problem.demand, per_shard)
    require_few(chunks.total)
    pairs = problem.demand.pairs()
    counts = chunks.of(*pairs)
    source, destination = (np.repeat(each, counts) for each in pairs)
    size = np.repeat(problem.demand.of(*pairs) / counts, counts)
    table = spread(CutChunks(terminals[source], terminals[destination], size))
    paths = Paths.from_table(source, destination, table)
    return Placed(problem, chunks, paths, inner_index(counts), size)


def require_few(chunks: int) -> None:
    """Raise, before any is made, if there are too many chunks."""
    if chunks > MOST_SCHEDULE_CHUNKS:
        raise InputError(
            f"{chunks:,} chunks in all; expected at most {MOST_SCHEDULE_CHUNKS:,}: use fewer "
            "chunks per shard, or a demand in larger units"
        )


def schedule_placed(
    placed: Placed, certificate: Certificate, fractional_time: float, settings: ScheduleSettings
) -> Schedule:
    """Return the schedule of chunks on their paths that is best for the settings."""
    topology = placed.problem.topology
    ways = ways_of(topology, placed.paths, placed.size)
    served = best_served(list(_tried(placed, ways, settings)), ways, settings)
    return write_schedule(placed, ways, served, certificate, fractional_time)


def write_schedule(
    placed: Placed, ways: Ways, served: Served, certificate: Certificate, fractional_time: float
) -> Schedule:
    """Write chunks on their ways as the sends of each step."""
    step = np.repeat(served.step, np.diff(ways.begin))
    chunk = placed.paths.path_of_link
    order = np.lexsort((placed.paths.link, chunk, step))
    chunk = chunk[order]
    return Schedule(
        problem=placed.problem,
        chunks=placed.chunks,
        steps=served.steps,
        step=step[order],
        source=placed.paths.source[chunk],
        destination=placed.paths.destination[chunk],
        chunk=placed.chunk[chunk],
        link=placed.paths.link[order],
        certificate=certificate,
        fractional_time=fractional_time,
        method=METHOD,
    )


def _tried(placed: Placed, ways: Ways, settings: ScheduleSettings) -> Iterator[Served]:
    """Yield schedules of shorter and shorter steps, until more steps cannot pay; one at least.

    The first has as few steps as there can be, if the number of steps is given.
    """
    topology, least = placed.problem.topology, placed.time
    fewest = [(1, 1.0)] if settings.steps is not None else []
    quotas = FEW_QUOTAS if len(placed.size) > MANY_CHUNKS and not fewest else QUOTAS
    best, late = np.inf, never
    for parts, shortest in [*fewest, *((each, SHORTEST_STEP) for each in quotas)]:
        served = serve(topology, ways, least / parts, shortest, late)
        if served is None:
            return
        settings.solve.report(f"{served.steps} steps: {served.time / least - 1:.2%} over the paths")
        yield served
        late = settings.solve.out_of_time
        best = min(best, _cost(served, settings))
        none_left = least + settings.latency * served.steps >= best * (1 - 1e-9)
        if served.steps > (settings.steps or served.steps) or none_left:
            return


def best_served(several: list[Served], ways: Ways, settings: ScheduleSettings) -> Served:
    """Return the schedule of least cost, and of fewest steps among those that cost little more."""
    allowed = [each for each in several if each.steps <= (settings.steps or each.steps)]
    if not allowed:
        raise InputError(
            f"{settings.steps} steps; expected at least {ways.legs}, as many as the longest path "
            "has: ask for more, or for the method tsmcf"
        )
    least = min(_cost(each, settings) for each in allowed)
    near = [each for each in allowed if _cost(each, settings) <= least * _tolerance(settings)]
    return min(near, key=lambda each: (each.steps, each.time))


def _tolerance(settings: ScheduleSettings) -> float:
    """Return the factor by which a cost may be larger if that saves a step."""
    return 1 + settings.step_tolerance


def _cost(served: Served, settings: ScheduleSettings) -> float:
    return served.time + settings.latency * served.steps
