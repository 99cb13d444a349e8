"""All schedule methods by name, and sweeps over steps and chunks."""

from dataclasses import dataclass, replace
from functools import partial
from os import PathLike
from pathlib import Path
from typing import Any

from alltoall.check.limits import check_limits, missed_goals
from alltoall.check.schedule import check_schedule
from alltoall.errors import UsageError
from alltoall.flows import sizes, solve
from alltoall.flows.matching import require_same_network
from alltoall.flows.symmetry.translations import find_translations
from alltoall.ir.files.artefacts import read_as
from alltoall.ir.flow import Status
from alltoall.ir.problem import Problem
from alltoall.ir.schedule import Schedule
from alltoall.ir.units import Units, normal_units, shard_unit
from alltoall.ir.words import beyond_rounding
from alltoall.schedules.by_list import bounding_flow, find_by_list, numbers_of, orders
from alltoall.schedules.found import FoundSchedule
from alltoall.schedules.orders import Ordered, cheaper, orders_of
from alltoall.schedules.placed import place_chunks
from alltoall.schedules.renew import refuse_with_last, renew_schedule
from alltoall.schedules.sccl import synthesise
from alltoall.schedules.search import Finder, chunk_curve, find_timestepped
from alltoall.schedules.steps import best_flow, least_steps, timed_flows
from alltoall.schedules.timed_chunks import most_chunks
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
    >>> problem = alltoall.Problem.all_to_all(alltoall.build("bipartite:4x4"))
    >>> found = alltoall.find_schedule(problem, settings=alltoall.ScheduleSettings(chunks=1))
    >>> found.schedule.steps, str(found.status), round(found.curve[1], 3)
    (2, 'gap_not_reached', 0.2)
    """
    require_method(method)
    settings = (settings or ScheduleSettings()).begin()
    _refuse(method, settings)
    asked = settings
    if last is not None:
        refuse_with_last(method, settings)
        before = last if isinstance(last, Schedule) else read_as(Path(last), Schedule)
        require_same_network(before.problem.topology, problem.topology)
        asked = replace(settings, chunks=before.chunks_per_shard)
    # Numbers of chunks refer to a shard of size 1, unless none is given.
    searched = asked.chunks is None and method != "sccl"
    units = normal_units(problem, shard_unit(problem) if searched else 1.0)
    costs = (settings.latency / units.time, settings.operation_cost / units.time)
    asked = replace(asked, latency=costs[0], operation_cost=costs[1])
    if last is None:
        found = _finder(units.problem, method, asked)(units.problem, asked)
    else:
        found = renew_schedule(units.problem, before, asked)
    found = _in_own_units(found, units)
    check_limits(found.schedule, vars(settings))
    return replace(
        found,
        status=_proven_status(found, settings).unless(settings.solve.stopped()),
        notes=missed_goals(found.schedule, vars(settings)),
    )


def require_method(method: str) -> None:
    """Raise unless there is a method of this name."""
    if method not in METHODS:
        raise UsageError(f"unknown method {method!r}; expected one of {', '.join(METHODS)}")


def _refuse(method: str, settings: ScheduleSettings) -> None:
    """Refuse settings that a method lacks."""
    if settings.robust is not None and method not in ("auto", "list"):
        raise UsageError(f"a robust schedule by {method}; expected the method list, or auto")
    reasons = {"sccl": "which takes the least steps", "list": "which sends what waits"}
    if settings.operation_cost and method in reasons:
        raise UsageError(
            f"operation cost {settings.operation_cost:g} with method {method}, {reasons[method]}; "
            "expected method tsmcf"
        )
    if settings.max_chunks is not None and method == "sccl":
        raise UsageError("most chunks with method sccl, which searches no numbers; give chunks")


def _by_shard(losses: dict[float, float], shard: float) -> dict[float, float]:
    """Return losses by chunks per shard of size 1, whole numbers as they are."""
    return losses if shard == 1 else {chunks / shard: loss for chunks, loss in losses.items()}


def _in_own_units(found: FoundSchedule, units: Units) -> FoundSchedule:
    """Return a schedule in the problem's own units.

    Losses are by the chunks of a shard of size 1; lists count those of the largest shard.
    """
    shard = units.demand if found.schedule.method == "tsmcf" else 1
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


def _proven_status(found: FoundSchedule, settings: ScheduleSettings) -> Status:
    """Check a schedule; return the status by its gap, or else by the end of the search."""
    gap = check_schedule(found.schedule).gap
    otherwise = Status.TIME_LIMIT if settings.solve.out_of_time() else found.status
    return Status.of_gap(gap, settings.solve.gap, otherwise)


def _finder(problem: Problem, method: str, settings: ScheduleSettings) -> Finder:
    """Return the function of a method; `auto` takes the time-stepped program if it is small.

    Symmetry makes the program small and its schedules symmetric, unlike lists. If a small program
    is far above the bound, a list is tried too, and the better one taken.
    """
    if method in ("list", "sccl"):
        return find_by_list if method == "list" else _find_by_sccl
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
    """Return the schedule of the SCCL baseline, with the certificate of the flow."""
    schedule = synthesise(problem, settings.chunks or 1, settings.steps, settings=settings.solve)
    certificate = solve(problem, "grouped", settings.solve).certificate
    return FoundSchedule.single(replace(schedule, certificate=certificate), certificate.bound)


METHODS = ("auto", "tsmcf", "list", "sccl")
"""All methods by name."""


@dataclass(frozen=True)
class Sweep:
    """The time by number of steps, and for the best number the loss by chunks.

    With `tsmcf`, times are fractional, and losses are relative to the best of them. With `list`,
    times are those of the number of chunks of least loss, and losses relative to the bound.
    """

    topology: str
    method: str
    bound: float
    times: dict[int, float]
    steps: int
    losses: dict[int, float]

    def summary(self) -> dict[str, Any]:
        """Return both curves as plain values."""
        losses = {chunks: beyond_rounding(loss) for chunks, loss in self.losses.items()}
        return {
            "topology": self.topology,
            "method": self.method,
            "bound": self.bound,
            "by_steps": [{"steps": steps, "time": time} for steps, time in self.times.items()],
            "steps": self.steps,
            "by_chunks": [{"chunks_per_shard": c, "loss": loss} for c, loss in losses.items()],
        }


def sweep_schedules(problem: Problem, settings: ScheduleSettings, method: str = "auto") -> Sweep:
    """Return time by steps, and for the best number of steps loss by chunks."""
    _require_swept(settings)
    if method == "auto":
        method = "list" if is_listed(problem, settings) else "tsmcf"
    if method not in ("tsmcf", "list"):
        raise UsageError(f"a sweep of the method {method}; expected one of auto, tsmcf, list")
    settings, units = settings.begin(), normal_units(problem, shard_unit(problem))
    settings = replace(settings, latency=settings.latency / units.time)
    sweep = _sweep_lists if method == "list" else _sweep_timestepped
    bound, times, steps, losses = sweep(units.problem, settings)
    times = {count: time * units.time for count, time in times.items()}
    return Sweep(problem.topology.name, method, bound * units.time, times, steps, losses)


Curves = tuple[float, dict[int, float], int, dict[int, float]]
"""A bound, times by steps, the best number of steps, and losses by chunks."""


def _sweep_timestepped(problem: Problem, settings: ScheduleSettings) -> Curves:
    """Sweep over steps of fractional schedules, and over chunks in the best number of steps."""
    master = solve(problem, "grouped", settings.solve)
    translations = find_translations(problem, settings.solve.symmetry)
    flows = list(timed_flows(master, settings.solve, settings.step_tolerance, translations))
    best = best_flow(flows, master.bound, settings.latency)
    numbers = range(1, most_chunks(problem, settings.max_chunks) + 1)
    times = {flow.expansion.steps: flow.time for flow in flows}
    losses = chunk_curve(best, numbers, settings.solve)
    return master.bound, times, best.expansion.steps, losses


def _sweep_lists(problem: Problem, settings: ScheduleSettings) -> Curves:
    """Sweep over numbers of chunks, and over quotas for the number of least loss."""
    flow, latency = bounding_flow(problem, settings.solve), settings.latency
    found: dict[int, Ordered] = {}
    for chunks in numbers_of(problem, settings.max_chunks):
        if found and settings.solve.out_of_time():
            break
        placed = place_chunks(flow, chunks, settings.solve)
        for order in orders(placed, flow.bound, settings):
            finest = order.placed.chunks.most
            found[finest] = cheaper(found.get(finest, order), order, latency)
    best = min(found.values(), key=lambda order: order.cost(latency))
    times = _least_times([*orders_of(best.placed, settings, every=True), best])
    losses = {chunks: found[chunks].time / flow.bound - 1 for chunks in sorted(found)}
    return flow.bound, times, best.steps, losses


def _least_times(orders: list[Ordered]) -> dict[int, float]:
    """Return the times of numbers of steps that are below those of fewer steps."""
    least: dict[int, float] = {}
    for order in sorted(orders, key=lambda order: (order.steps, order.time)):
        if not least or order.time < min(least.values()) * (1 - 1e-9):
            least[order.steps] = order.time
    return least


def _require_swept(settings: ScheduleSettings) -> None:
    """Refuse settings that a sweep would ignore."""
    for name in ("steps", "chunks", "robust", "operation_cost"):
        if getattr(settings, name) != getattr(ScheduleSettings, name):
            raise UsageError(
                f"a sweep goes over all steps and chunks, and has no use for "
                f"{name.replace('_', ' ')}; leave it out, or ask for one schedule"
            )
