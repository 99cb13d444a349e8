"""The ways to a schedule, ours and the baseline, behind one signature in one dict."""

from dataclasses import replace
from os import PathLike
from pathlib import Path

from alltoall.check.limits import check_limits, missed_goals
from alltoall.errors import UsageError
from alltoall.flows import sizes, solve
from alltoall.flows.matching import require_same_network
from alltoall.flows.symmetry.translations import find_translations
from alltoall.ir.files.artefacts import read_as
from alltoall.ir.flow import Status
from alltoall.ir.problem import Problem
from alltoall.ir.schedule import Schedule
from alltoall.schedules.by_list import find_by_list, list_in_normal_units
from alltoall.schedules.renew import refuse_with_last, renew_schedule
from alltoall.schedules.sccl import synthesise
from alltoall.schedules.search import Finder, FoundSchedule, find_timestepped, proven_status
from alltoall.schedules.steps import least_steps
from alltoall.schedules.tradeoff import find_cheapest
from alltoall.settings import ScheduleSettings

AUTO = "auto"
"""The method that takes another by the size of the problem."""


def find_schedule(
    problem: Problem,
    method: str = AUTO,
    settings: ScheduleSettings | None = None,
    last: Schedule | str | PathLike[str] | None = None,
) -> FoundSchedule:
    """Return a checked schedule by a method, with all that was learnt on the way to it.

    With the last schedule, of a problem a little different, it is that which is renewed.

    >>> import alltoall
    >>> problem = alltoall.Problem.all_to_all(alltoall.build("bipartite:4x4"))
    >>> found = alltoall.find_schedule(problem, settings=alltoall.ScheduleSettings(chunks=1))
    >>> found.schedule.steps, str(found.status), round(found.curve[1], 3)
    (2, 'gap_not_reached', 0.2)
    """
    require_method(method)
    settings = (settings or ScheduleSettings()).begin()
    if settings.robust is not None and method not in (AUTO, "list"):
        raise UsageError(f"a robust schedule by {method}; expected the method list, or auto")
    if last is None:
        found = METHODS[method](problem, settings)
    else:
        refuse_with_last(method, settings)
        before = last if isinstance(last, Schedule) else read_as(Path(last), Schedule)
        require_same_network(before.problem.topology, problem.topology)
        found = renew_schedule(problem, before, settings)
    check_limits(found.schedule, vars(settings))
    notes = missed_goals(found.schedule, vars(settings))
    return replace(found, status=found.status.unless(settings.solve.stopped()), notes=notes)


def require_method(method: str) -> None:
    """Raise unless there is a method of this name."""
    if method not in METHODS:
        raise UsageError(f"unknown method {method!r}; expected one of {', '.join(METHODS)}")


def find_by_size(problem: Problem, settings: ScheduleSettings) -> FoundSchedule:
    """Return the schedule of the time-stepped program where it is small, else that of a list.

    Symmetry makes the program small, and its schedules symmetric, which lists do not reach. Where a
    small program leaves much to the bound, a list is tried too, and the better of both is taken.
    """
    if settings.operation_cost:
        return timestepped(problem, settings)
    if settings.robust is not None or is_listed(problem, settings):
        return listed(problem, settings)
    asked = settings.steps is not None or settings.chunks is not None
    return find_timestepped(problem, settings, None if asked else list_in_normal_units)


def is_listed(problem: Problem, settings: ScheduleSettings) -> bool:
    """Whether a problem is so large that its chunks are put on routes and served by a list.

    Where one source stands for all, the program stays small, and its schedules lose nothing.
    """
    sources = len(problem.sources) / find_translations(problem, settings.solve.symmetry).order
    grown = sources * problem.topology.links * least_steps(problem)
    return sources > 1 and grown > sizes.LISTED_VARIABLES


def synthesised(problem: Problem, settings: ScheduleSettings) -> FoundSchedule:
    """Return the schedule of the SCCL baseline, checked, with the certificate of the flow."""
    _refuse_cost(settings, "sccl, which takes the least steps")
    if settings.max_chunks is not None:
        raise UsageError("most chunks with method sccl, which searches no numbers; give chunks")
    schedule = synthesise(problem, settings.chunks or 1, settings.steps, settings=settings.solve)
    certificate = solve(problem, "grouped", settings.solve).certificate
    schedule = replace(schedule, certificate=certificate)
    status = proven_status(schedule, Status.GAP_NOT_REACHED, settings.solve)
    curve: dict[float, float] = {schedule.chunks_per_shard: schedule.loss}
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


METHODS: dict[str, Finder] = {
    AUTO: find_by_size,
    "tsmcf": timestepped,
    "list": listed,
    "sccl": synthesised,
}
"""All methods by name."""
