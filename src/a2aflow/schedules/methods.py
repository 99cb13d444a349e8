"""The ways to a schedule, ours and the baseline, behind one signature in one dict."""

from collections.abc import Callable
from dataclasses import replace

from a2aflow.errors import UsageError
from a2aflow.flows import solve
from a2aflow.ir.flow import Status
from a2aflow.ir.problem import Problem
from a2aflow.schedules.sccl import synthesise
from a2aflow.schedules.search import FoundSchedule, find_timestepped, proven_status
from a2aflow.schedules.tradeoff import find_cheapest
from a2aflow.settings import ScheduleSettings

Scheduler = Callable[[Problem, ScheduleSettings], FoundSchedule]


def find_schedule(
    problem: Problem, method: str = "tsmcf", settings: ScheduleSettings | None = None
) -> FoundSchedule:
    """Return a checked schedule by a method, with all that was learnt on the way to it.

    >>> import a2aflow
    >>> problem = a2aflow.Problem.all_to_all(a2aflow.build("bipartite:4x4"))
    >>> found = a2aflow.find_schedule(problem, settings=a2aflow.ScheduleSettings(chunks=1))
    >>> found.schedule.steps, str(found.status), round(found.curve[1], 3)
    (2, 'gap_not_reached', 0.2)
    """
    require_method(method)
    settings = (settings or ScheduleSettings()).begin()
    found = METHODS[method](problem, settings)
    return replace(found, status=found.status.unless(settings.solve.stopped()))


def require_method(method: str) -> None:
    """Raise unless there is a method of this name."""
    if method not in METHODS:
        raise UsageError(f"unknown method {method!r}; expected one of {', '.join(METHODS)}")


def synthesised(problem: Problem, settings: ScheduleSettings) -> FoundSchedule:
    """Return the schedule of the SCCL baseline, checked, with the certificate of the flow."""
    if settings.operation_cost:
        raise UsageError(
            f"operation cost {settings.operation_cost:g} with method sccl, which takes the least "
            "steps; expected method tsmcf"
        )
    schedule = synthesise(problem, settings.chunks or 1, settings.steps, settings=settings.solve)
    certificate = solve(problem, "grouped", settings.solve).certificate
    schedule = replace(schedule, certificate=certificate)
    status = proven_status(schedule, Status.GAP_NOT_REACHED, settings.solve)
    curve = {schedule.chunks_per_shard: schedule.loss}
    return FoundSchedule(schedule, curve, {}, status, certificate.bound)


def timestepped(problem: Problem, settings: ScheduleSettings) -> FoundSchedule:
    """Return the fastest schedule found, or the cheapest one where operations cost something."""
    find = find_cheapest if settings.operation_cost else find_timestepped
    return find(problem, settings)


METHODS: dict[str, Scheduler] = {"tsmcf": timestepped, "sccl": synthesised}
"""All methods by name."""
