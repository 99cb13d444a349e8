"""From a problem to a verified chunk schedule: how many steps, how many chunks."""

from collections.abc import Callable
from dataclasses import dataclass, replace

import numpy as np

from alltoall.flows import sizes
from alltoall.flows.methods import solve_master
from alltoall.flows.symmetry.translations import find_translations
from alltoall.ir.flow import Flow, Status
from alltoall.ir.problem import Problem
from alltoall.schedules.chunks import round_flow, schedule_from, squeezed
from alltoall.schedules.found import FoundSchedule
from alltoall.schedules.steps import (
    best_flow,
    flow_in_steps_of,
    flow_of_steps,
    least_steps,
    narrowed,
    share_without_delay,
    timed_flows,
)
from alltoall.schedules.timed_chunks import (
    Rounded,
    choices_of,
    floor_of,
    least_loss,
    mean_shard,
    most_chunks,
    on_grid,
    rounding_work,
)
from alltoall.schedules.timestepped import COARSE_GAP, TimedFlow, is_large, written_out
from alltoall.settings import ScheduleSettings, SolveSettings


@dataclass(frozen=True)
class ChunkSearchParams:
    """Effort of time-stepped schedules; `benchmarks/chunk_schedules.py` measures it.

    If more than `tight_share` of the pairs are as far apart as any, the least number of steps is a
    tight one. Whole durations are tried up to a loss of `worst_loss`. Another method is tried above
    a gap of `worth_another`, or the loss if that is larger; the steps are then at most `most_waits`
    times those of the longest path, for more of them only fill long paths.
    """

    tight_share: float = 0.05
    worst_loss: float = 2.0
    worth_another: float = 0.05
    most_waits: float = 2.0


Finder = Callable[[Problem, ScheduleSettings], FoundSchedule]
"""A method: it finds a schedule for a problem in normal units."""


def find_timestepped(
    problem: Problem, settings: ScheduleSettings, other: Finder | None = None
) -> FoundSchedule:
    """Find a schedule as near to the fractional optimum as was asked for, in normal units.

    The numbers of chunks that divide the fractional time evenly are tried for a loss of nothing;
    failing that, the smallest number within the loss is taken, and failing that, the best found.
    Where that leaves much to the bound, the `other` method is tried too, and the better schedule
    taken. That one goes first where the fractional schedule alone leaves so much; if it is no
    slower than the fractional one, no whole chunks in as many steps are faster.
    """
    master = solve_master(problem, _plain_settings(problem, settings.solve).sharing())
    if master.status is Status.INTERRUPTED:
        raise KeyboardInterrupt
    stepping = replace(settings, solve=settings.solve.sharing())
    most_waits = np.inf if other is None else ChunkSearchParams.most_waits
    flow = _even_flow(master, stepping) or choose_flow(master, stepping, most_waits)
    if other is None:
        return _with_chunks(master, flow, settings)
    enough = master.bound * (1 + max(settings.loss, ChunkSearchParams.worth_another))
    others = [other(problem, settings)] if flow.time > enough else []
    if others and _cost(others[0], settings) <= flow.time + settings.latency * flow.expansion.steps:
        return others[0]
    stepped = _with_chunks(master, flow, settings)
    if not others and stepped.schedule.time > enough and not settings.solve.out_of_time():
        others = [other(problem, settings)]
    return min((stepped, *others), key=lambda each: _cost(each, settings))


def _cost(found: FoundSchedule, settings: ScheduleSettings) -> float:
    return found.schedule.time + settings.latency * found.schedule.steps


def _with_chunks(master: Flow, flow: TimedFlow, settings: ScheduleSettings) -> FoundSchedule:
    """Return a schedule of whole chunks for a flow in steps."""
    problem = master.problem
    rounded, curve = _search(flow, settings)
    schedule = replace(schedule_from(rounded, master.certificate, "tsmcf"), problem=problem)
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
    within = master.bound * (1 + max(settings.solve.gap, 1e-9))
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
    tight = share_without_delay(master.problem) > ChunkSearchParams.tight_share
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
    flows = _forms(flow)
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
    while (
        most_loss < ChunkSearchParams.worst_loss
        and on_grid(flows[0], chunks)
        and not solving.out_of_time()
    ):
        rounded = _round(flows, chunks, most_loss, solving, refine)
        if rounded is not None:
            return rounded
        most_loss, refine = 2 * most_loss + 1 / chunks, False
    each = (squeezed(flow, chunks, enough, solving) for flow in flows)
    return min(each, key=lambda rounded: rounded.loss)
