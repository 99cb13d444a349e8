"""What steps and chunks cost: time against steps, and loss against chunks."""

from dataclasses import dataclass
from typing import Any

from a2aflow.errors import UsageError
from a2aflow.flows import solve
from a2aflow.flows.symmetry.translations import find_translations
from a2aflow.ir.problem import Problem
from a2aflow.ir.units import normal_units
from a2aflow.ir.words import beyond_rounding
from a2aflow.schedules.search import chunk_curve
from a2aflow.schedules.steps import best_flow, timed_flows
from a2aflow.settings import ScheduleSettings

SWEPT = "tsmcf"
"""The method whose curves these are."""


@dataclass(frozen=True)
class Sweep:
    """The fractional time of each number of steps, and of the best one the loss by chunks."""

    topology: str
    bound: float
    times: dict[int, float]
    steps: int
    losses: dict[int, float]

    def summary(self) -> dict[str, Any]:
        """Return both curves as plain values."""
        losses = {chunks: beyond_rounding(loss) for chunks, loss in self.losses.items()}
        return {
            "topology": self.topology,
            "bound": self.bound,
            "by_steps": [{"steps": steps, "time": time} for steps, time in self.times.items()],
            "steps": self.steps,
            "by_chunks": [{"chunks_per_shard": c, "loss": loss} for c, loss in losses.items()],
        }


def sweep_schedules(problem: Problem, settings: ScheduleSettings) -> Sweep:
    """Return time against steps, and for the best number of steps, loss against chunks."""
    _require_swept(settings)
    settings = settings.begin()
    units = normal_units(problem, demand=False)
    master = solve(units.problem, "grouped", settings.solve)
    translations = find_translations(units.problem, settings.solve.symmetry)
    flows = list(timed_flows(master, settings.solve, settings.step_tolerance, translations))
    best = best_flow(flows, master.bound, settings.latency / units.time)
    return Sweep(
        topology=problem.topology.name,
        bound=master.bound * units.time,
        times={flow.expansion.steps: flow.time * units.time for flow in flows},
        steps=best.expansion.steps,
        losses=chunk_curve(best, range(1, settings.max_chunks + 1), settings.solve),
    )


def _require_swept(settings: ScheduleSettings) -> None:
    """Refuse what a sweep has no use for, so that nobody takes it for a part of the answer."""
    for name in ("steps", "chunks", "robust", "operation_cost"):
        if getattr(settings, name) != getattr(ScheduleSettings, name):
            raise UsageError(
                f"a sweep goes over all steps and chunks of fractional schedules, and has no use "
                f"for {name.replace('_', ' ')}; leave it out, or ask for one schedule"
            )
