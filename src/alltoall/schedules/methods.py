"""All schedule methods by name."""

from dataclasses import replace
from functools import partial
from os import PathLike
from pathlib import Path

from alltoall.check.limits import check_limits, missed_goals
from alltoall.check.schedule import check_schedule
from alltoall.errors import UsageError
from alltoall.flows import sizes, solve
from alltoall.flows.symmetry.translations import find_translations
from alltoall.ir.files.artefacts import read_as
from alltoall.ir.flow import Status
from alltoall.ir.problem import Problem
from alltoall.ir.schedule import Schedule
from alltoall.ir.units import Units, normal_units, shard_unit
from alltoall.routes.renew import require_same_network
from alltoall.schedules import taccl
from alltoall.schedules.by_list import find_by_list, refuse_with_last, renew_schedule
from alltoall.schedules.found import FoundSchedule
from alltoall.schedules.sccl import synthesise
from alltoall.schedules.search import METHOD, Finder, find_decomposed, find_timestepped, least_steps
from alltoall.schedules.tradeoff import find_cheapest
from alltoall.settings import ScheduleSettings


def find_schedule(
    problem: Problem,
    method: str = "auto",
    settings: ScheduleSettings | None = None,
    last: Schedule | str | PathLike[str] | None = None,
) -> FoundSchedule:
    """Return a checked schedule by a method, with facts of the search.

    The search is in normal units. The `last` schedule, of a similar problem, is renewed, with the
    same chunks per shard.

    >>> import alltoall
    >>> problem = alltoall.Problem.all_to_all(alltoall.topology("bipartite:4x4"))
    >>> found = find_schedule(problem, settings=ScheduleSettings(chunks=1))
    >>> found.schedule.steps, str(found.status), round(found.curve[1], 3)
    (2, 'gap_not_reached', 0.2)
    """
    settings = settings or ScheduleSettings()
    _refuse(method, settings)
    asked = settings
    if last is not None:
        refuse_with_last(method, settings)
        before = last if isinstance(last, Schedule) else read_as(Path(last), Schedule)
        require_same_network(before.problem.topology, problem.topology)
        asked = replace(settings, chunks=before.chunks_per_shard)
    # Numbers of chunks refer to a shard of size 1, unless none is given.
    searched = asked.chunks is None and method not in BASELINES
    units = normal_units(problem, shard_unit(problem) if searched else 1.0)
    costs = (settings.latency / units.time, settings.operation_cost / units.time)
    asked = replace(asked, latency=costs[0], operation_cost=costs[1])
    if last is None:
        found = _finder(units.problem, method, asked)(units.problem, asked)
    else:
        found = renew_schedule(units.problem, before, asked)
    found = _in_own_units(found, units)
    schedule, solving = found.schedule, settings.solve
    check_limits(schedule, vars(settings))
    ended = Status.TIME_LIMIT if solving.out_of_time() else found.status
    status = Status.of_gap(check_schedule(schedule).gap, solving.gap, ended)
    notes = missed_goals(schedule, vars(settings))
    return replace(found, status=status.unless(solving.stopped()), notes=notes)


def _refuse(method: str, settings: ScheduleSettings) -> None:
    """Refuse methods that are not known, and settings that a method lacks."""
    if method not in METHODS:
        raise UsageError(f"unknown method {method!r}; expected one of {', '.join(METHODS)}")
    if settings.robust is not None and method not in ("auto", "list"):
        raise UsageError(f"a robust schedule by {method}; expected the method list, or auto")
    reasons = {
        "sccl": "which takes the least steps",
        "list": "which sends what waits",
        **dict.fromkeys((METHOD, "taccl"), "which has no such cost"),
    }
    if settings.operation_cost and method in reasons:
        raise UsageError(
            f"operation cost {settings.operation_cost:g} with method {method}, {reasons[method]}; "
            "expected method tsmcf"
        )
    if settings.max_chunks is not None and method in BASELINES:
        raise UsageError(
            f"most chunks with method {method}, which searches no numbers; give chunks"
        )
    if settings.steps is not None and method == "taccl":
        raise UsageError("steps with method taccl, which has no number of them; leave them out")


def _by_shard(losses: dict[float, float], shard: float) -> dict[float, float]:
    """Return losses by chunks per shard of size 1, with integers as such."""
    return losses if shard == 1 else {chunks / shard: loss for chunks, loss in losses.items()}


def _in_own_units(found: FoundSchedule, units: Units) -> FoundSchedule:
    """Return a schedule in the problem's own units.

    Losses are by the chunks of a shard of size 1; lists count those of the largest shard.
    """
    shard = units.demand if found.schedule.method in ("tsmcf", METHOD) else 1
    return replace(
        found,
        schedule=units.restored(found.schedule),
        curve=_by_shard(found.curve, shard),
        floor=_by_shard(found.floor, shard),
        fractional_bound=found.fractional_bound * units.time,
        tradeoff=tuple(
            replace(each, time=each.time * units.time, total=each.total * units.time)
            for each in found.tradeoff
        ),
    )


def _finder(problem: Problem, method: str, settings: ScheduleSettings) -> Finder:
    """Return the function of a method; `auto` takes the time-stepped program if it is small.

    Symmetry makes the program small and its schedules symmetric, unlike lists. If a small program
    is far above the bound, a list is tried too, and the better one taken.
    """
    own = {"list": find_by_list, METHOD: find_decomposed}
    own |= {"sccl": _find_by_sccl, "taccl": _find_by_taccl}
    if method in own:
        return own[method]
    if settings.operation_cost:
        return find_cheapest
    if method == "auto" and (settings.robust is not None or is_listed(problem, settings)):
        return find_by_list
    fixed = method == "tsmcf" or settings.steps is not None or settings.chunks is not None
    return partial(find_timestepped, other=None if fixed else find_by_list)


def is_listed(problem: Problem, settings: ScheduleSettings) -> bool:
    """Return whether a problem is so large that `auto` takes a list.

    If one source stands for all, the program stays small, and its schedules lose nothing.
    """
    sources = len(problem.sources) / find_translations(problem, settings.solve.symmetry).order
    grown = sources * problem.topology.links * least_steps(problem)
    return sources > 1 and grown > sizes.LISTED_VARIABLES


def _find_by_sccl(problem: Problem, settings: ScheduleSettings) -> FoundSchedule:
    schedule = synthesise(problem, settings.chunks or 1, settings.steps, settings=settings.solve)
    return _certified(schedule, settings)


def _find_by_taccl(problem: Problem, settings: ScheduleSettings) -> FoundSchedule:
    schedule = taccl.synthesise(problem, settings.chunks or 1, settings.latency, settings.solve)
    return _certified(schedule, settings)


def _certified(schedule: Schedule, settings: ScheduleSettings) -> FoundSchedule:
    certificate = solve(schedule.problem, "grouped", settings.solve).certificate
    return FoundSchedule.single(replace(schedule, certificate=certificate), certificate.bound)


BASELINES = ("sccl", "taccl")
"""Methods of other tools, with whole shards and fixed numbers."""

METHODS = ("auto", "tsmcf", METHOD, "list", *BASELINES)
"""All methods by name."""
