"""From a problem to a verified chunk schedule: how many steps, how many chunks."""

from dataclasses import dataclass, field, replace

from a2aflow.errors import InputError, UsageError
from a2aflow.ir.flow import Flow, Status
from a2aflow.ir.problem import Problem
from a2aflow.ir.schedule import Schedule
from a2aflow.ir.verify_schedule import check_schedule
from a2aflow.schedule.chunks import Rounded, least_loss, round_flow, schedule_from
from a2aflow.schedule.steps import TOLERANCE, best_flow, flow_of_steps, timed_flows
from a2aflow.solve.master import solve_master
from a2aflow.solve.settings import SolveSettings
from a2aflow.solve.timestepped import TimedFlow
from a2aflow.solve.translations import find_translations

WORST_LOSS = 1.0
"""The largest loss that may be asked for: twice the fractional time."""

SYMMETRY_VARIABLES = 20_000
"""Sources times links below which a schedule is found for all sources at once.

The schedules that translations allow are fewer, so small cases may do without for quality.
"""

WIDENINGS = 20
"""How often the loss is doubled before a number of chunks is given up."""


@dataclass(frozen=True)
class ScheduleSettings:
    """What a caller may ask of a schedule.

    `steps` and `chunks` fix what is otherwise searched for; `latency` is the cost of a step in
    shard times; a further step must save a share of more than `step_tolerance`; `loss` is how much
    longer than the fractional optimum whole chunks may take.
    """

    steps: int | None = None
    chunks: int | None = None
    latency: float = 0.0
    step_tolerance: float = TOLERANCE
    loss: float = 0.01
    max_chunks: int = 16
    solve: SolveSettings = field(default_factory=SolveSettings)

    def __post_init__(self) -> None:
        if not self.latency >= 0:
            raise UsageError(f"latency {self.latency:g}; expected shard times of at least 0")
        if not 0 < self.step_tolerance < 1:
            raise UsageError(f"step tolerance {self.step_tolerance:g}; expected a share below 1")
        if not 0 <= self.loss <= WORST_LOSS:
            raise UsageError(f"loss {self.loss:g}; expected a share from 0 to {WORST_LOSS:g}")
        for name, value in (("chunks", self.chunks), ("chunks", self.max_chunks)):
            if value is not None and not 1 <= value <= 4096:
                raise UsageError(f"{value} {name} per shard; expected 1 to 4096")
        if self.steps is not None and self.steps < 1:
            raise UsageError(f"{self.steps} steps; expected at least 1")


@dataclass(frozen=True, eq=False)
class Found:
    """A schedule, and what was learnt about numbers of chunks on the way to it.

    `curve` has the loss of every number of chunks that was tried to the end, `floor` the loss that
    no schedule with so many chunks can be below, because durations are whole.
    """

    schedule: Schedule
    curve: dict[int, float]
    floor: dict[int, float]
    status: Status


def find_schedule(problem: Problem, settings: ScheduleSettings) -> Found:
    """Return a checked schedule as near to the fractional optimum as was asked for.

    The numbers of chunks that divide the fractional time evenly are tried for a loss of nothing;
    failing that, the smallest number within the loss is taken, and failing that, the best found.
    """
    solving = settings.solve
    if len(problem.sources) * problem.topology.links < SYMMETRY_VARIABLES:
        solving = replace(solving, symmetry=False)
    master = solve_master(problem, solving)
    flow = choose_flow(master, replace(settings, solve=solving))
    rounded, curve = _search(flow, settings)
    schedule = schedule_from(rounded, flow, master.certificate, "tsmcf")
    check_schedule(schedule)
    choices = range(1, settings.max_chunks + 1)
    floor = {chunks: max(0.0, least_loss(flow, chunks)) for chunks in choices}
    return Found(schedule, curve, floor, flow.status)


def choose_flow(master: Flow, settings: ScheduleSettings) -> TimedFlow:
    """Return the fractional schedule of the steps asked for, or of the best number of them."""
    translations = find_translations(master.problem, settings.solve.symmetry)
    if settings.steps is not None:
        return flow_of_steps(master, settings.steps, settings.solve, translations)
    flows = timed_flows(master, settings.solve, settings.step_tolerance, translations)
    return best_flow(flows, master.bound, settings.latency)


def _search(flow: TimedFlow, settings: ScheduleSettings) -> tuple[Rounded, dict[int, float]]:
    if settings.chunks is not None:
        only = _smallest_loss(flow, settings.chunks, settings.solve)
        return only, {settings.chunks: only.loss}
    choices = range(1, settings.max_chunks + 1)
    exact = [chunks for chunks in choices if least_loss(flow, chunks) < 1e-6]
    for most, several in ((0.0, exact), (settings.loss, choices)):
        for chunks in several:
            if settings.solve.out_of_time():
                break
            settings.solve.report(f"{chunks} chunks per shard, within {most:.2%}")
            rounded = round_flow(flow, chunks, most, settings.solve)
            if rounded is not None:
                return rounded, {chunks: rounded.loss}
    found = {}
    for chunks in choices:
        found[chunks] = _smallest_loss(flow, chunks, settings.solve)
        if settings.solve.out_of_time():
            break
    best = min(found.values(), key=lambda each: (each.loss, each.chunks_per_shard))
    return best, {chunks: each.loss for chunks, each in found.items()}


def chunk_curve(flow: TimedFlow, choices: range, solving: SolveSettings) -> dict[int, float]:
    """Return the loss of each number of chunks."""
    return {chunks: _smallest_loss(flow, chunks, solving).loss for chunks in choices}


def _smallest_loss(flow: TimedFlow, chunks: int, solving: SolveSettings) -> Rounded:
    """Return the best schedule found with a given number of chunks."""
    most, refine = 0.01, not solving.out_of_time()
    for _ in range(WIDENINGS):
        rounded = round_flow(flow, chunks, most, solving, refine)
        if rounded is not None:
            return rounded
        most, refine = 2 * most + 1 / chunks, False
    raise InputError(
        f"no schedule of {chunks} chunks per shard was found on "
        f"{flow.expansion.problem.topology.name}; try more chunks"
    )
