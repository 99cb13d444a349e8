"""From a problem to a certified flow: every method has one signature and sits in one dict.

`benchmarks/scale.py` measures the numbers that tune them.
"""

from typing import Any, cast

from alltoall.errors import UsageError
from alltoall.flows import sizes
from alltoall.flows.methods import (
    Method,
    method_for_size,
    solve_decomposed,
    solve_decomposed_lp,
    solve_first_order,
    solve_grouped,
    solve_link,
)
from alltoall.ir.flow import Flow
from alltoall.ir.problem import Problem
from alltoall.ir.units import normal_units
from alltoall.registry import Registry, returned
from alltoall.settings import SolveSettings

REFERENCE_GAP = 1e-3
"""The certified gap of reference bounds on large problems."""


def _method(_: str, function: Any) -> Method | None:
    """Return a registered function if it returns a flow, else None."""
    return cast("Method", function) if returned(function) == Flow.__name__ else None


METHODS: Registry[Method] = Registry(
    "method",
    "alltoall.methods",
    {
        "link": solve_link,
        "decomposed": solve_decomposed,
        "decomposed-lp": solve_decomposed_lp,
        "grouped": solve_grouped,
        "first-order": solve_first_order,
    },
    _method,
)
"""All methods by name; others are added by `alltoall.register_method`."""


def solve(problem: Problem, method: str = "auto", settings: SolveSettings | None = None) -> Flow:
    """Return a feasible flow with its certificate, within the requested gap of the optimum."""
    if method != "auto" and method not in METHODS:
        raise UsageError(f"unknown method {method!r}; expected one of auto, {', '.join(METHODS)}")
    chosen = method_for_size(problem) if method == "auto" else METHODS[method]
    units = normal_units(problem)
    return units.restored(chosen(units.problem, settings or SolveSettings()))


def prove(problem: Problem) -> Flow:
    """Return a flow whose bound is a reference for other answers, within 0.1 % if large."""
    large = len(problem.sources) * problem.topology.links > sizes.FIRST_ORDER_VARIABLES
    return solve(problem, "grouped", SolveSettings(gap=REFERENCE_GAP) if large else None)


__all__ = ["METHODS", "Method", "SolveSettings", "prove", "solve"]
