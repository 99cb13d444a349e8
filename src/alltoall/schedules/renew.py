"""Renew a schedule after a failure, starting from its paths.

The sends of a chunk are a path, so a schedule has a route per chunk. These routes are renewed
(`routes.renew`) without cutting any chunk; then a list orders the chunks (`by_list`). The steps of
the last schedule are not used, for one chunk on another path delays others.
"""

import numpy as np
from numpy.typing import NDArray

from alltoall.check.schedule import check_schedule
from alltoall.errors import UsageError
from alltoall.ir.arrays import Ints
from alltoall.ir.problem import Problem
from alltoall.ir.routes import Routes
from alltoall.ir.schedule import Schedule
from alltoall.routes.renew import renew_routes
from alltoall.schedules.by_list import orders
from alltoall.schedules.found import FoundSchedule
from alltoall.schedules.placed import place_routes
from alltoall.settings import ScheduleSettings


def refuse_with_last(method: str, settings: ScheduleSettings) -> None:
    """Refuse settings that mean nothing to a renewed schedule."""
    asked = {
        f"--method {method}": method not in ("auto", "list"),
        "demands=": settings.robust is not None,
        "message-cost=": settings.operation_cost > 0,
        "--chunks": settings.chunks is not None,
        "max-chunks=": settings.max_chunks is not None,
    }
    for words in (each for each, given in asked.items() if given):
        raise UsageError(
            f"{words} with a schedule to begin with (--from, last=), which keeps its chunks and is "
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
