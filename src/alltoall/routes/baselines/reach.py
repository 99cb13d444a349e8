"""What shortest-path routing reaches: the comparison beside every answer."""

from typing import Any

from alltoall.ir.answer import Answer
from alltoall.ir.problem import Problem
from alltoall.routes.baselines.tables import route_sssp
from alltoall.settings import RouteSettings, SolveSettings

METHOD = "sssp"
"""The baseline beside every answer."""

MOST_PAIRS = 1_000_000
"""Pairs up to which the comparison takes a second at most."""


def shortest_path_time(problem: Problem) -> float | None:
    """Return the time of shortest-path routing, None where that would take long to find."""
    if len(problem.sources) * len(problem.topology.terminals) > MOST_PAIRS:
        return None
    return route_sssp(problem, RouteSettings()).time


def shortest_path_reach(answer: Answer, settings: SolveSettings) -> dict[str, Any]:
    """Return the time of shortest-path routing, for the summary of an answer by another method."""
    late = answer.method == METHOD or settings.out_of_time()
    time = None if late else shortest_path_time(answer.problem)
    return {} if time is None else {"shortest_path_time": time}
