"""`list`: give chunks paths first, and then steps by list scheduling.

Every shard is cut into chunks, and each chunk gets a path as in `single` and `few`, with loads near
the certified bound; then list scheduling orders the chunks (`orders`). The time is at least the
largest load of the paths, and list scheduling seldom loses much to it, so the time-stepped program,
which grows with the steps, is not needed. A small order above the loss is shortened (`tighten`),
and compared with chunks in rounds (`rounds`). Rounds take many chunks, so the usual numbers of
chunks come first.

After a failure a schedule is renewed, starting from its paths. The sends of a chunk are a path, so
a schedule has a route per chunk. These routes are renewed (`routes.renew`) without cutting any
chunk; then a list orders the chunks. The steps of the last schedule are not used, for one chunk on
another path delays others.
"""

from collections.abc import Iterator
from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from alltoall.check.schedule import check_schedule
from alltoall.errors import InputError, UsageError
from alltoall.flows import sizes
from alltoall.flows.methods import solve_master, solve_sources
from alltoall.ir.arrays import Ints
from alltoall.ir.chunks import Chunks, chunks_of
from alltoall.ir.flow import Flow, Status
from alltoall.ir.problem import Problem
from alltoall.ir.routes import Routes
from alltoall.ir.schedule import Schedule
from alltoall.routes import route
from alltoall.routes.renew import renew_routes
from alltoall.routes.robust import judge
from alltoall.schedules.chunks import common_shard, most_chunks
from alltoall.schedules.found import FoundSchedule
from alltoall.schedules.orders import (
    ListParams,
    Ordered,
    Placed,
    best_order,
    cheaper,
    most_per_shard,
    orders_of,
    per_shard,
    place_chunks,
    place_routes,
)
from alltoall.schedules.rounds import in_rounds, pipeline, rounds_for, short_cycle, tighten
from alltoall.schedules.timestepped import COARSE_GAP
from alltoall.settings import USUAL_MOST_CHUNKS, RouteSettings, ScheduleSettings, SolveSettings


def find_by_list(problem: Problem, settings: ScheduleSettings) -> FoundSchedule:
    """Find a schedule by list scheduling, for a problem in normal units.

    It has the fewest chunks per shard within the loss of the certified bound, or else the best
    number found.
    """
    if settings.robust is not None:
        return _find_robust(problem, settings, settings.robust)
    flow = bounding_flow(problem, settings.solve.sharing())
    if flow.status is Status.INTERRUPTED:
        raise KeyboardInterrupt
    best: Ordered | None = None
    curve: dict[float, float] = {}
    for found in _candidates(flow, settings):
        finest = found.placed.chunks.most
        curve[finest] = min(curve.get(finest, np.inf), found.time / flow.time - 1)
        best = found if best is None else cheaper(best, found, settings.latency)
        if best.time <= _enough(flow.bound, settings) or settings.solve.out_of_time():
            break
    if best is None:
        raise InputError("no number of chunks to try; expected at least one chunk per shard")
    schedule = best.write(flow.certificate, flow.time)
    curve = dict(sorted(curve.items()))
    return FoundSchedule(schedule, curve, {}, Status.GAP_NOT_REACHED, flow.bound)


def _candidates(flow: Flow, settings: ScheduleSettings) -> Iterator[Ordered]:
    """Yield orders of usual numbers of chunks, of these in rounds, and of more chunks."""
    usual: list[Placed] = []
    most = per_shard(flow.problem, USUAL_MOST_CHUNKS)
    finer = choices(flow.problem, flow.bound, settings)
    while finer and (not usual or finer[0] <= most):
        usual.append(place_chunks(flow, finer.pop(0), settings.solve))
        yield _best_list(usual[-1], flow.bound, settings)
    for placed in usual:
        yield from _in_rounds(placed, flow.bound, settings)
    for chunks in finer:
        yield from orders(place_chunks(flow, chunks, settings.solve), flow.bound, settings)


def orders(placed: Placed, bound: float, settings: ScheduleSettings) -> Iterator[Ordered]:
    """Yield the best order of chunks on their paths, and orders in rounds if these may help."""
    best = _best_list(placed, bound, settings)
    yield best
    if best.time > _enough(bound, settings):
        yield from _in_rounds(placed, bound, settings)


def _enough(bound: float, settings: ScheduleSettings) -> float:
    """Return the largest time within the loss."""
    return bound * (1 + settings.loss) * (1 + 1e-9)


def _best_list(placed: Placed, bound: float, settings: ScheduleSettings) -> Ordered:
    """Return the best order of a list; shorten a small one that is above the loss."""
    enough = _enough(bound, settings)
    several = list(orders_of(placed, settings))
    if min(each.time for each in several) > enough:
        shortened = tighten(placed, bound, enough, settings.solve.out_of_time)
        several += [] if shortened is None else [shortened]
    return best_order(several, settings)


def _in_rounds(placed: Placed, bound: float, settings: ScheduleSettings) -> Iterator[Ordered]:
    """Yield orders in rounds: of a short cycle, and of a pipeline."""
    most, total = settings.max_chunks, ListParams.most_chunks
    if most is None:
        most, total = ListParams.most_in_rounds, ListParams.few_chunks
    most = min(total // len(placed.size), most // placed.chunks.most)
    if settings.chunks is not None or settings.steps is not None or most <= 1:
        return
    enough, late = _enough(bound, settings), settings.solve.out_of_time
    for cycle in (short_cycle(placed, late), pipeline(placed)):
        rounds = None if cycle is None else rounds_for(cycle, enough)
        if cycle is not None and rounds is not None:
            yield in_rounds(cycle, min(rounds, most))
            if rounds <= most:
                return


def _find_robust(
    problem: Problem, settings: ScheduleSettings, names: tuple[str, ...]
) -> FoundSchedule:
    """Return a template whose chunks follow robust routes."""
    routing = RouteSettings(robust=names, solve=settings.solve.sharing())
    routes = route(problem, "robust", routing)
    most = settings.max_chunks or USUAL_MOST_CHUNKS
    placed = place_routes(routes, settings.chunks or min(USUAL_MOST_CHUNKS, most))
    order = best_order(list(orders_of(placed, settings)), settings)
    schedule = order.write(routes.certificate, routes.time)
    judged = judge(schedule, names, routing.seed, settings.solve)
    return FoundSchedule.single(schedule, routes.bound, robust=judged)


def bounding_flow(problem: Problem, solving: SolveSettings) -> Flow:
    """Return a flow of the requested gap; a coarser one for large problems."""
    variables = len(problem.sources) * problem.topology.links
    if variables <= sizes.FIRST_ORDER_VARIABLES:
        return solve_sources(problem, solving)
    return solve_master(problem, replace(solving, gap=max(solving.gap, COARSE_GAP)))


def choices(problem: Problem, bound: float, settings: ScheduleSettings) -> list[int]:
    """Return the numbers of chunks per shard of size 1 to try, the fewest first."""
    if settings.chunks is not None:
        return [settings.chunks]
    tried = numbers_of(problem, settings.max_chunks)
    whole = [each for each in tried if _least_loss(problem, each, bound) <= settings.loss]
    return whole or tried


def numbers_of(problem: Problem, most: int | None) -> list[int]:
    """Return numbers of chunks per shard of size 1: 1, 2, 3, ... if all chunks can be equal.

    Else 1, 2, 4, ...: the numbers in between make chunks no more equal.
    """
    up_to, shard = most_chunks(problem, most), common_shard(problem)
    largest = most_per_shard(problem, up_to)
    equal = [max(1, round(each / shard)) for each in range(1, up_to + 1)] if shard else []
    every = [each for each in equal if each <= largest]
    if not every:
        powers = (min(2**each, up_to) for each in range(up_to.bit_length() + 1))
        every = [min(largest, per_shard(problem, each)) for each in powers]
    doubling = (2**power for power in range(ListParams.most_in_rounds.bit_length()))
    finer = (per_shard(problem, each) for each in doubling if most is None)
    few = [each for each in finer if _chunks(problem, each) <= ListParams.few_chunks]
    first, *others = sorted({*every, *few})
    return [first, *(each for each in others if _chunks(problem, each) <= ListParams.most_chunks)]


def _chunks(problem: Problem, per_shard: int) -> int:
    """Return the number of all chunks."""
    return Chunks.of_demand(problem.demand, per_shard).total


def _least_loss(problem: Problem, chunks: int, bound: float) -> float:
    """Return the least loss of whole chunks over the bound; 0 unless links and chunks are equal."""
    capacity, shard = problem.topology.capacity, common_shard(problem)
    if shard is None or np.ptp(capacity) > 0:
        return 0.0
    exact = bound * float(capacity.max()) * int(chunks_of(np.array([shard]), chunks)[0]) / shard
    return float(np.ceil(exact * (1 - 1e-9)) / exact - 1)


def refuse_with_last(method: str, settings: ScheduleSettings) -> None:
    """Refuse settings that a renewed schedule does not use."""
    asked = {
        f"--method {method}": method not in ("auto", "list"),
        "demands=": settings.robust is not None,
        "message-cost=": settings.operation_cost > 0,
        "--chunks": settings.chunks is not None,
        "max-chunks=": settings.max_chunks is not None,
    }
    for words in (each for each, given in asked.items() if given):
        raise UsageError(
            f"{words} with a schedule to begin with (--from), which keeps its chunks and is "
            "put in order by the method list; leave it out, or schedule what is left anew"
        )


def renew_schedule(problem: Problem, last: Schedule, settings: ScheduleSettings) -> FoundSchedule:
    """Renew the routes of all chunks of the last schedule, and put these in order."""
    check_schedule(last)  # Only the sends of a correct one are paths.
    found = renew_routes(problem, routes_of(last), settings.solve.sharing())
    routes = found.routes
    placed = place_routes(routes, last.chunks_per_shard)
    several = orders(placed, routes.bound, settings)
    order = min(several, key=lambda order: order.cost(settings.latency))
    # A shortened order may use other paths, so it may end below the routes.
    schedule = order.write(routes.certificate, min(routes.time, order.time))
    return FoundSchedule.single(schedule, routes.bound, renewed=found)


def routes_of(schedule: Schedule) -> Routes:
    """Return a route per chunk of a correct schedule, by pair, with the size of the chunk."""
    topology = schedule.problem.topology
    by_chunk = np.lexsort((schedule.step, schedule.chunk, schedule.destination, schedule.source))
    ends = (schedule.source, schedule.destination, schedule.chunk)
    fresh = np.logical_or.reduce([np.diff(each[by_chunk], prepend=-1) != 0 for each in ends])
    moment = np.cumsum(fresh | (np.diff(schedule.step[by_chunk], prepend=-1) != 0))
    link = schedule.link[by_chunk]
    place = _places(moment, topology.tail[link], topology.head[link], topology.position >= 0)
    link = link[np.lexsort((place, moment))]
    first = np.flatnonzero(fresh)
    some = by_chunk[first]
    return Routes(
        problem=schedule.problem,
        source=schedule.source[some],
        destination=schedule.destination[some],
        start=np.append(first, len(link)),
        link=link,
        weight=schedule.sizes()[some],
        certificate=schedule.certificate,
        method=schedule.method,
    )


def _places(moment: Ints, tail: Ints, head: Ints, stores: NDArray[np.bool_]) -> Ints:
    """Return the number of switches before each send, within a step of a chunk."""
    key = moment * len(stores) + tail
    order = np.argsort(key)
    place = np.zeros(len(key), dtype=np.int64)
    at, passed = np.flatnonzero(stores[tail]), 0
    while len(at):
        into = at[~stores[head[at]]]
        at = order[np.searchsorted(key, moment[into] * len(stores) + head[into], sorter=order)]
        passed += 1
        place[at] = passed
    return place
