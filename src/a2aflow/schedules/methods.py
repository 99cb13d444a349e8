"""The ways to a schedule, ours and the baseline, behind one signature in one dict."""

from collections.abc import Callable
from dataclasses import replace

from a2aflow.errors import UsageError
from a2aflow.flows import sizes, solve
from a2aflow.flows.symmetry.translations import find_translations
from a2aflow.ir.flow import Status
from a2aflow.ir.problem import Problem
from a2aflow.schedules.by_list import find_by_list
from a2aflow.schedules.sccl import synthesise
from a2aflow.schedules.search import FoundSchedule, find_timestepped, proven_status
from a2aflow.schedules.steps import least_steps
from a2aflow.schedules.tradeoff import find_cheapest
from a2aflow.settings import ScheduleSettings

AUTO = "auto"
"""The method that takes another by the size of the problem."""

Scheduler = Callable[[Problem, ScheduleSettings], FoundSchedule]


def find_schedule(
    problem: Problem, method: str = AUTO, settings: ScheduleSettings | None = None
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
    if settings.robust is not None and method not in (AUTO, "list"):
        raise UsageError(f"a robust schedule by {method}; expected the method list, or auto")
    found = METHODS[method](problem, settings)
    return replace(found, status=found.status.unless(settings.solve.stopped()))


def require_method(method: str) -> None:
    """Raise unless there is a method of this name."""
    if method not in METHODS:
        raise UsageError(f"unknown method {method!r}; expected one of {', '.join(METHODS)}")


def find_by_size(problem: Problem, settings: ScheduleSettings) -> FoundSchedule:
    """Return the schedule of the time-stepped program where it is small, else that of a list.

    Symmetry makes the program small, and its schedules symmetric, which lists do not reach.
    """
    grown = len(problem.sources) * problem.topology.links * least_steps(problem)
    large = grown > sizes.LISTED_VARIABLES and not _symmetric(problem, settings)
    by_list = settings.robust is not None or (large and not settings.operation_cost)
    return METHODS["list" if by_list else "tsmcf"](problem, settings)


def _symmetric(problem: Problem, settings: ScheduleSettings) -> bool:
    return find_translations(problem, settings.solve.symmetry).order > 1


def synthesised(problem: Problem, settings: ScheduleSettings) -> FoundSchedule:
    """Return the schedule of the SCCL baseline, checked, with the certificate of the flow."""
    _refuse_cost(settings, "sccl, which takes the least steps")
    schedule = synthesise(problem, settings.chunks or 1, settings.steps, settings=settings.solve)
    certificate = solve(problem, "grouped", settings.solve).certificate
    schedule = replace(schedule, certificate=certificate)
    status = proven_status(schedule, Status.GAP_NOT_REACHED, settings.solve)
    curve = {schedule.chunks_per_shard: schedule.loss}
    return FoundSchedule(schedule, curve, {}, status, certificate.bound)


def listed(problem: Problem, settings: ScheduleSettings) -> FoundSchedule:
    """Return the schedule of routes that are served by a list."""
    _refuse_cost(settings, "list, which sends what waits")
    return find_by_list(problem, settings)


def _refuse_cost(settings: ScheduleSettings, method: str) -> None:
    if settings.operation_cost:
        raise UsageError(
            f"operation cost {settings.operation_cost:g} with method {method}; expected method "
            "tsmcf"
        )


def timestepped(problem: Problem, settings: ScheduleSettings) -> FoundSchedule:
    """Return the fastest schedule found, or the cheapest one where operations cost something."""
    find = find_cheapest if settings.operation_cost else find_timestepped
    return find(problem, settings)


METHODS: dict[str, Scheduler] = {
    AUTO: find_by_size,
    "tsmcf": timestepped,
    "list": listed,
    "sccl": synthesised,
}
"""All methods by name."""
