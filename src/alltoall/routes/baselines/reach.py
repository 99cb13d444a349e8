"""What shortest-path routing reaches: the comparison beside every answer."""

from typing import Any

from alltoall.ir.answer import Answer
from alltoall.routes.baselines.tables import route_sssp
from alltoall.settings import RouteSettings, SolveSettings

METHOD = "sssp"
"""The baseline beside every answer."""

MOST_PAIRS = 1_000_000
"""Pairs up to which the comparison takes a second at most."""


def shortest_path_reach(answer: Answer, settings: SolveSettings) -> dict[str, Any]:
    """Return the time of shortest-path routing, for the summary of an answer by another method."""
    pairs = len(answer.problem.sources) * len(answer.problem.topology.terminals)
    if answer.method == METHOD or pairs > MOST_PAIRS or settings.out_of_time():
        return {}
    return {"shortest_path_time": route_sssp(answer.problem, RouteSettings(solve=settings)).time}
