"""From a problem to a certified flow: every method has one signature and sits in one dict."""

from collections.abc import Callable

from a2aflow.errors import UsageError
from a2aflow.ir.flow import Flow
from a2aflow.ir.problem import Problem
from a2aflow.solve.decomposed import solve_decomposed, solve_grouped
from a2aflow.solve.link import solve_link
from a2aflow.solve.settings import SolveSettings

Method = Callable[[Problem, SolveSettings], Flow]

METHODS: dict[str, Method] = {
    "link": solve_link,
    "decomposed": solve_decomposed,
    "grouped": solve_grouped,
}

AUTO_METHOD = "decomposed"
"""The default: the same optimum as `link` at every size, and never slower by much."""


def solve(problem: Problem, method: str = "auto", settings: SolveSettings | None = None) -> Flow:
    """Return a feasible flow with its certificate, as near to optimal as was asked for."""
    name = AUTO_METHOD if method == "auto" else method
    if name not in METHODS:
        raise UsageError(f"unknown method {method!r}; expected one of auto, {', '.join(METHODS)}")
    return METHODS[name](problem, settings or SolveSettings())


__all__ = ["AUTO_METHOD", "METHODS", "Method", "SolveSettings", "solve"]
