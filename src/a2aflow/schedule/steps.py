"""How many steps: each one costs latency, and up to a point saves bandwidth time."""

from collections.abc import Iterator

import numpy as np

from a2aflow.errors import InputError
from a2aflow.ir.problem import Problem
from a2aflow.solve.paths import shortest_distances
from a2aflow.solve.settings import SolveSettings
from a2aflow.solve.timestepped import TimedFlow, solve_timestepped

TOLERANCE = 1e-4
"""A further step must lower the time by more than this share, or it is not taken."""


def least_steps(problem: Problem) -> int:
    """Return the diameter between terminals; passing a switch takes no step of its own."""
    topology = problem.topology
    arrives = np.isin(topology.head, topology.terminals).astype(np.float64)
    distance = shortest_distances(topology, arrives, topology.terminals)[:, topology.terminals]
    wanted = problem.demand.rows(np.arange(len(topology.terminals))) > 0
    return int(distance[wanted].max())


def timed_flows(problem: Problem, bound: float, settings: SolveSettings) -> Iterator[TimedFlow]:
    """Yield optimal flows of more and more steps, until more steps no longer help."""
    steps, last = least_steps(problem), np.inf
    while True:
        settings.report(f"time-stepped flow over {steps} steps")
        flow = solve_timestepped(problem, steps, settings)
        yield flow
        if flow.time <= bound * (1 + 1e-9) or flow.time > last * (1 - TOLERANCE):
            return
        if settings.out_of_time():
            return
        steps, last = steps + 1, flow.time


def best_flow(
    problem: Problem, bound: float, latency: float, steps: int | None, settings: SolveSettings
) -> TimedFlow:
    """Return the flow of the given number of steps, or of the best one.

    A step costs `latency` in units of shard time. Since the time of T steps is never below
    `bound`, the search ends when latency alone has used up what could still be gained.
    """
    if steps is not None:
        if steps < least_steps(problem):
            raise InputError(
                f"{steps} steps; {problem.topology.name} needs at least {least_steps(problem)}, "
                "its diameter"
            )
        return solve_timestepped(problem, steps, settings)
    flows = timed_flows(problem, bound, settings)
    best = next(flows)
    for flow in flows:
        if _cost(flow, latency) < _cost(best, latency) * (1 - TOLERANCE):
            best = flow
        if bound + latency * (flow.expansion.steps + 1) >= _cost(best, latency):
            break
    return best


def _cost(flow: TimedFlow, latency: float) -> float:
    return flow.time + latency * flow.expansion.steps
