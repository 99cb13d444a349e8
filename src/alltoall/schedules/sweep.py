"""What steps and chunks cost: time against steps, and loss against chunks."""

from dataclasses import dataclass, replace
from typing import Any

from alltoall.errors import UsageError
from alltoall.flows import solve
from alltoall.flows.symmetry.translations import find_translations
from alltoall.ir.problem import Problem
from alltoall.ir.units import normal_units, shard_unit
from alltoall.ir.words import beyond_rounding
from alltoall.schedules.by_list import bounding_flow, numbers_of, orders
from alltoall.schedules.chunk_numbers import most_chunks
from alltoall.schedules.methods import is_listed
from alltoall.schedules.orders import Ordered, cheaper, orders_of
from alltoall.schedules.placed import place_chunks
from alltoall.schedules.search import chunk_curve
from alltoall.schedules.steps import best_flow, timed_flows
from alltoall.settings import ScheduleSettings


@dataclass(frozen=True)
class Sweep:
    """The time of each number of steps, and of the best one the loss by chunks.

    By `tsmcf` times are fractional, and losses are over the best of them. By `list` times are those
    of whole chunks, as many as lose least, and losses are over the certified bound.
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
    """Return time against steps, and for the best number of steps, loss against chunks."""
    _require_swept(settings)
    if method == "auto":
        method = "list" if is_listed(problem, settings) else "tsmcf"
    if method not in ("tsmcf", "list"):
        raise UsageError(f"a sweep of the method {method}; expected one of auto, tsmcf, list")
    sweep = _sweep_lists if method == "list" else _sweep_timestepped
    return sweep(problem, settings.begin())


def _sweep_timestepped(problem: Problem, settings: ScheduleSettings) -> Sweep:
    """Sweep over the fractional schedules of more and more steps, and chunks in the best."""
    units = normal_units(problem, shard_unit(problem))
    master = solve(units.problem, "grouped", settings.solve)
    translations = find_translations(units.problem, settings.solve.symmetry)
    flows = list(timed_flows(master, settings.solve, settings.step_tolerance, translations))
    best = best_flow(flows, master.bound, settings.latency / units.time)
    most = most_chunks(units.problem, settings.max_chunks)
    return Sweep(
        topology=problem.topology.name,
        method="tsmcf",
        bound=master.bound * units.time,
        times={flow.expansion.steps: flow.time * units.time for flow in flows},
        steps=best.expansion.steps,
        losses=chunk_curve(best, range(1, most + 1), settings.solve),
    )


def _sweep_lists(problem: Problem, settings: ScheduleSettings) -> Sweep:
    """Sweep over numbers of chunks, and over quotas of those that lose least."""
    units = normal_units(problem, shard_unit(problem))
    flow, latency = bounding_flow(units.problem, settings.solve), settings.latency / units.time
    settings = replace(settings, latency=latency)
    found: dict[int, Ordered] = {}
    for chunks in numbers_of(units.problem, settings.max_chunks):
        if found and settings.solve.out_of_time():
            break
        placed = place_chunks(flow, chunks, settings.solve)
        for each in orders(placed, flow.bound, settings):
            finest = each.placed.chunks.most
            found[finest] = cheaper(found.get(finest, each), each, latency)
    best = min(found.values(), key=lambda each: each.cost(latency))
    several = [*orders_of(best.placed, settings, every=True), best]
    return Sweep(
        topology=problem.topology.name,
        method="list",
        bound=flow.bound * units.time,
        times={steps: time * units.time for steps, time in _least_times(several).items()},
        steps=best.steps,
        losses={chunks: found[chunks].time / flow.bound - 1 for chunks in sorted(found)},
    )


def _least_times(orders: list[Ordered]) -> dict[int, float]:
    """Return the time of each number of steps that no fewer steps reach."""
    least: dict[int, float] = {}
    for each in sorted(orders, key=lambda each: (each.steps, each.time)):
        if not least or each.time < min(least.values()) * (1 - 1e-9):
            least[each.steps] = each.time
    return least


def _require_swept(settings: ScheduleSettings) -> None:
    """Refuse what a sweep has no use for, so that nobody takes it for a part of the answer."""
    for name in ("steps", "chunks", "robust", "operation_cost"):
        if getattr(settings, name) != getattr(ScheduleSettings, name):
            raise UsageError(
                f"a sweep goes over all steps and chunks, and has no use for "
                f"{name.replace('_', ' ')}; leave it out, or ask for one schedule"
            )
