"""From a problem to a verified chunk schedule: how many steps, how many chunks."""

from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

import numpy as np

from alltoall.check.schedule import check_schedule
from alltoall.flows import sizes
from alltoall.flows.methods import solve_master
from alltoall.flows.symmetry.translations import find_translations
from alltoall.ir.flow import Flow, Status
from alltoall.ir.problem import Problem
from alltoall.ir.schedule import Schedule
from alltoall.ir.summaries import in_order, summary_of
from alltoall.ir.units import normal_units, shard_unit
from alltoall.ir.words import beyond_rounding
from alltoall.routes.judge import Judged
from alltoall.routes.renew import Renewed
from alltoall.schedules.choice import Choice
from alltoall.schedules.chunk_numbers import (
    choices_of,
    floor_of,
    least_loss,
    mean_shard,
    most_chunks,
    on_grid,
)
from alltoall.schedules.chunks import round_flow, schedule_from, squeezed
from alltoall.schedules.narrowed import narrowed
from alltoall.schedules.steps import (
    best_flow,
    flow_in_steps_of,
    flow_of_steps,
    least_steps,
    share_without_delay,
    timed_flows,
)
from alltoall.schedules.timed_chunks import Rounded, rounding_work
from alltoall.schedules.timestepped import COARSE_GAP, TimedFlow, is_large, written_out
from alltoall.settings import ScheduleSettings, SolveSettings

TIMESTEPPED = "tsmcf"
"""The method whose schedules are those of the program in steps."""

TIGHT_SHARE = 0.05
"""Share of pairs as far apart as any above which the least number of steps is a tight one."""

WORST_WIDENED = 2.0
"""The loss up to which whole durations are tried before they are given up."""

WORTH_ANOTHER = 0.05
"""The gap, or the loss if that is larger, above which another way is worth trying."""

MOST_WAITS = 2.0
"""Steps over those of the longest path at most, where there is another way: a flow that needs more
of them fills long ways, which takes ever more steps."""

EVEN_LOSS = 1e-6
"""What loading links evenly may cost."""

MASTER_SHARE, STEPPING_SHARE = 0.3, 0.5
"""Shares of the time left: for the plain flow, then for flows in steps; the rest is for chunks."""


@dataclass(frozen=True, eq=False)
class FoundSchedule:
    """A schedule, and what was learnt about numbers of chunks on the way to it.

    `curve` has the loss of every number of chunks that was tried to the end, `floor` the loss that
    no schedule with so many chunks can be below, because durations are whole. `status` is that of
    the schedule against the certified bound of any all-to-all; `fractional_bound` is what is proven
    about the fractional schedules of as many steps. `tradeoff` is what else there was to choose
    from where operations cost something, `robust` the losses of a template under demands that it
    was not made with, `renewed` what the last schedule loses after a failure, and `notes` say
    which goal was missed.
    """

    schedule: Schedule
    curve: dict[float, float]
    floor: dict[float, float]
    status: Status
    fractional_bound: float
    tradeoff: tuple[Choice, ...] = ()
    robust: Judged | None = None
    renewed: Renewed | None = None
    notes: tuple[str, ...] = ()

    def summary(self) -> dict[str, Any]:
        """Return everything that is worth printing, as plain values."""
        found = summary_of(self.schedule)
        found["notes"] += self.notes
        found["fractional_bound"] = self.fractional_bound
        found["loss_by_chunks"] = {
            f"{each:g}": beyond_rounding(loss) for each, loss in self.curve.items()
        }
        found["least_loss_by_chunks"] = {f"{each:g}": loss for each, loss in self.floor.items()}
        found["status"] = self.status.value
        if self.tradeoff:
            found["tradeoff"] = [each.summary() for each in self.tradeoff]
        if self.robust is not None:
            found["robust"] = self.robust.summary()
        if self.renewed is not None:
            found["last"] = self.renewed.losses()
        return in_order(found)


Finder = Callable[[Problem, ScheduleSettings], FoundSchedule]
"""What finds a schedule."""


def find_timestepped(
    problem: Problem, settings: ScheduleSettings, other: Finder | None = None
) -> FoundSchedule:
    """Return a checked schedule as near to the fractional optimum as was asked for.

    The numbers of chunks that divide the fractional time evenly are tried for a loss of nothing;
    failing that, the smallest number within the loss is taken, and failing that, the best found.
    Where that leaves much to the bound, an `other` way is tried too, and the better of both taken.
    """
    find = _find if other is None else partial(_find_either, other=other)
    return find_in_normal_units(problem, settings, find)


def find_in_normal_units(
    problem: Problem, settings: ScheduleSettings, find: Finder
) -> FoundSchedule:
    """Search in normal units, with the clock running; return what was found in the problem's own.

    The schedule is checked, and its status is what the check proves.
    """
    settings = settings.begin()
    units = normal_units(problem, demand_unit(problem, settings))
    found = find(units.problem, replace(settings, latency=settings.latency / units.time))
    schedule = units.restored(found.schedule)
    return replace(
        _by_shards(found, units.demand),
        schedule=schedule,
        status=proven_status(schedule, found.status, settings.solve),
        fractional_bound=found.fractional_bound * units.time,
    )


def demand_unit(problem: Problem, settings: ScheduleSettings) -> float:
    """Return the shard that numbers of chunks refer to; that of size 1 if a number is given."""
    return shard_unit(problem) if settings.chunks is None else 1.0


def _by_shards(found: FoundSchedule, unit: float) -> FoundSchedule:
    """Return losses by the chunks of a shard of size 1; lists count those of the largest shard."""
    if unit == 1.0 or found.schedule.method != TIMESTEPPED:
        return found
    curve, floor = (
        {chunks / unit: loss for chunks, loss in losses.items()}
        for losses in (found.curve, found.floor)
    )
    return replace(found, curve=curve, floor=floor)


def proven_status(schedule: Schedule, otherwise: Status, settings: SolveSettings) -> Status:
    """Check a schedule; return what the check proves, or else how the search ended."""
    gap = check_schedule(schedule).gap
    late = settings.out_of_time()
    return Status.of_gap(gap, settings.gap, Status.TIME_LIMIT if late else otherwise)


def _find(problem: Problem, settings: ScheduleSettings) -> FoundSchedule:
    """Find a schedule for a problem in normal units."""
    return _with_chunks(*_fractional(problem, settings), settings)


def _find_either(problem: Problem, settings: ScheduleSettings, other: Finder) -> FoundSchedule:
    """Find a schedule; where much is left to the bound, also by another way.

    That goes first where the fractional schedule alone leaves so much, and if it is no slower than
    that, no whole chunks in as many steps are faster.
    """
    master, flow = _fractional(problem, settings, MOST_WAITS)
    enough = master.bound * (1 + max(settings.loss, WORTH_ANOTHER))
    others = [other(problem, settings)] if flow.time > enough else []
    if others and _cost(others[0], settings) <= flow.time + settings.latency * flow.expansion.steps:
        return others[0]
    stepped = _with_chunks(master, flow, settings)
    if not others and stepped.schedule.time > enough and not settings.solve.out_of_time():
        others = [other(problem, settings)]
    return min((stepped, *others), key=lambda each: _cost(each, settings))


def _cost(found: FoundSchedule, settings: ScheduleSettings) -> float:
    return found.schedule.time + settings.latency * found.schedule.steps


def _fractional(
    problem: Problem, settings: ScheduleSettings, most_waits: float = np.inf
) -> tuple[Flow, TimedFlow]:
    """Return the plain flow, and the flow in steps."""
    master = solve_master(problem, _plain_settings(problem, settings.solve).sharing(MASTER_SHARE))
    if master.status is Status.INTERRUPTED:
        raise KeyboardInterrupt
    stepping = replace(settings, solve=settings.solve.sharing(STEPPING_SHARE))
    even = _even_flow(master, stepping)
    return master, even or choose_flow(master, stepping, most_waits)


def _with_chunks(master: Flow, flow: TimedFlow, settings: ScheduleSettings) -> FoundSchedule:
    """Return a schedule of whole chunks for a flow in steps."""
    problem = master.problem
    rounded, curve = _search(flow, settings)
    schedule = replace(schedule_from(rounded, master.certificate, TIMESTEPPED), problem=problem)
    if schedule.steps < flow.expansion.steps:
        fewer = flow_in_steps_of(schedule, flow, master, settings.solve)
        schedule = replace(schedule, fractional_time=fewer.time)
        longer = fewer.time / flow.time
        curve = {chunks: (1 + loss) / longer - 1 for chunks, loss in curve.items()}
        flow = fewer
    numbers = choices_of(flow, settings.max_chunks)
    floor: dict[float, float] = {chunks: floor_of(flow, chunks) for chunks in numbers}
    return FoundSchedule(schedule, curve, floor, flow.status, max(flow.bound, master.bound))


def _even_flow(master: Flow, settings: ScheduleSettings) -> TimedFlow | None:
    """Return a fractional schedule over links no wider than needed, if that costs no time."""
    narrow = narrowed(master.problem)
    if narrow is master.problem:
        return None
    found = solve_master(narrow, _plain_settings(narrow, settings.solve))
    if found.status is Status.INTERRUPTED:
        raise KeyboardInterrupt
    within = master.bound * (1 + EVEN_LOSS)
    flow = choose_flow(found, settings) if found.time <= within else None
    return flow if flow is not None and flow.time <= within else None


def _plain_settings(problem: Problem, solving: SolveSettings) -> SolveSettings:
    """Return what is asked of the plain flow, which only gives the bound and a number of steps."""
    large = len(problem.sources) * problem.topology.links > sizes.SHARP_BOUND_VARIABLES
    return replace(solving, gap=max(solving.gap, COARSE_GAP)) if large else solving


def choose_flow(master: Flow, settings: ScheduleSettings, most_waits: float = np.inf) -> TimedFlow:
    """Return the fractional schedule of the steps asked for, or of the best number of them.

    That is at most `most_waits` times the longest path of the plain flow.
    """
    translations = find_translations(master.problem, settings.solve.symmetry)
    if settings.steps is not None:
        return flow_of_steps(master, settings.steps, settings.solve, translations)
    steps = least_steps(master.problem)
    tight = share_without_delay(master.problem) > TIGHT_SHARE
    if settings.latency == 0 and tight and is_large(master.problem, steps, translations):
        # So few steps do not reach the bound, and are the hardest for primal-dual steps.
        steps += 1
    flows = timed_flows(
        master,
        settings.solve,
        settings.step_tolerance,
        translations,
        steps,
        _shortest_step(master.problem, settings),
        most_waits,
    )
    return best_flow(flows, master.bound, settings.latency)


def _shortest_step(problem: Problem, settings: ScheduleSettings) -> float:
    """Return how long the smallest chunk takes on the widest link, in a shard of mean size."""
    chunks = settings.chunks or most_chunks(problem, settings.max_chunks)
    return mean_shard(problem) / chunks / float(problem.topology.capacity.max())


def _search(flow: TimedFlow, settings: ScheduleSettings) -> tuple[Rounded, dict[float, float]]:
    flows = _forms(flow)
    if settings.chunks is not None:
        only = _smallest_loss(flows, settings.chunks, settings.solve)
        return only, {settings.chunks: only.loss}
    choices = choices_of(flow, settings.max_chunks)
    whole = [chunks for chunks in choices if on_grid(flow, chunks)]
    affordable = [
        chunks
        for chunks in choices
        if chunks == choices[0] or rounding_work(flow, chunks) <= sizes.AFFORDABLE_WORK
    ]
    exact = [chunks for chunks in whole if chunks in affordable and least_loss(flow, chunks) < 1e-6]
    for most_loss, several in ((0.0, exact), (settings.loss, whole)):
        for chunks in several:
            if settings.solve.out_of_time():
                break
            settings.solve.report(f"{chunks} chunks per shard, within {most_loss:.2%}")
            rounded = _round(flows, chunks, most_loss, settings.solve)
            if rounded is not None:
                return rounded, {chunks: rounded.loss}
    found = {}
    for chunks in affordable:
        settings.solve.report(f"{chunks} chunks per shard, at the least loss")
        found[chunks] = _smallest_loss(flows, chunks, settings.solve, settings.loss)
        if found[chunks].within(settings.loss) or settings.solve.out_of_time():
            break
    best = min(found.values(), key=lambda each: (each.loss, each.chunks_per_shard))
    return best, {chunks: each.loss for chunks, each in found.items()}


def _forms(flow: TimedFlow) -> list[TimedFlow]:
    """Return the forms of a flow in which chunks are to be routed, in this order.

    Where one chunk's path need not be that of its images there are more schedules to find: a ring
    of even length needs that to do with one chunk. At scale it is not needed, and not affordable.
    """
    variables = len(flow.expansion.problem.sources) * flow.expansion.graph.links
    small = flow.translations.order > 1 and variables <= sizes.WRITTEN_OUT_VARIABLES
    return [flow, written_out(flow)] if small else [flow]


def _round(
    flows: list[TimedFlow],
    chunks: int,
    most_loss: float,
    solving: SolveSettings,
    refine: bool = True,
) -> Rounded | None:
    """Return whole chunks within a loss, of the first form of the flow that allows them."""
    for flow in flows:
        rounded = round_flow(flow, chunks, most_loss, solving, refine)
        if rounded is not None:
            return rounded
    return None


def chunk_curve(flow: TimedFlow, choices: range, solving: SolveSettings) -> dict[int, float]:
    """Return the loss of each number of chunks, as far as time allows."""
    flows, solving = _forms(flow), solving.begin()
    curve: dict[int, float] = {}
    for chunks in choices:
        if curve and solving.out_of_time():
            break
        curve[chunks] = _smallest_loss(flows, chunks, solving).loss
    return curve


def whole_chunks(flow: TimedFlow, chunks: int, solving: SolveSettings) -> Rounded:
    """Return the best schedule found for a flow with a given number of chunks."""
    return _smallest_loss(_forms(flow), chunks, solving)


def _smallest_loss(
    flows: list[TimedFlow], chunks: int, solving: SolveSettings, enough: float = 0.0
) -> Rounded:
    """Return the best schedule found with a given number of chunks; `enough` ends the search."""
    most_loss, refine = 0.01, True
    while most_loss < WORST_WIDENED and on_grid(flows[0], chunks) and not solving.out_of_time():
        rounded = _round(flows, chunks, most_loss, solving, refine)
        if rounded is not None:
            return rounded
        most_loss, refine = 2 * most_loss + 1 / chunks, False
    each = (squeezed(flow, chunks, enough, solving) for flow in flows)
    return min(each, key=lambda rounded: rounded.loss)
