"""Public functions reach the solver in at most ten frames, and start the clock once."""

import ast
import inspect
import sys
from collections.abc import Callable
from pathlib import Path
from types import FrameType
from typing import Any

import pytest

import alltoall
from alltoall.flows.first_order import answer_by_steps
from alltoall.lp.solve import solve_program

MOST_FRAMES = 10
"""Frames from a public function to a solver, both included."""

SOLVERS = {answer_by_steps.__code__, solve_program.__code__}
"""The entries of the first-order method and of all linear programs."""

PACKAGE = Path(alltoall.__file__).parent

STARTERS = {"solve", "fair_rates", "schedule", "route", "find_schedule", "sweep_schedules"}
"""Functions and methods of `Solver` that start the clock; `find_design` is all of `design`."""


def frames_to_solver(function: Callable[..., Any], *args: Any, **named: Any) -> int:
    """Call a public function; return the most frames of the package from it to a solver."""
    first, found = inspect.unwrap(function).__code__, [0]

    def count(frame: FrameType, event: str, _: Any) -> None:
        if event != "call" or frame.f_code not in SOLVERS:
            return
        at: FrameType | None = frame
        frames = 0
        while at is not None:
            frames += str(at.f_globals.get("__name__")).startswith("alltoall")
            if at.f_code is first:
                found.append(frames)
                return
            at = at.f_back

    sys.setprofile(count)
    try:
        function(*args, **named)
    finally:
        sys.setprofile(None)
    return max(found)


@pytest.mark.parametrize(
    ("spec", "named"),
    [
        ("torus:3x3", {}),
        ("torus:3x3", {"method": "link"}),
        ("genkautz:n=12,d=3", {"method": "decomposed-lp"}),
        ("jellyfish:n=20,d=3,seed=1", {"method": "first-order"}),
        ("genkautz:n=120,d=4", {"symmetry": False, "gap": 1e-2}),
    ],
)
def test_solve_is_a_short_walk(spec: str, named: dict[str, Any]) -> None:
    """Whatever the method and the solver."""
    assert 1 < frames_to_solver(alltoall.solve, spec, **named) <= MOST_FRAMES


@pytest.mark.parametrize(
    ("spec", "named"),
    [
        ("bipartite:3x4", {}),
        ("torus:3x3", {"method": "tsmcf"}),
        ("genkautz:n=12,d=3", {"method": "list"}),
        ("genkautz:n=72,d=4", {"max_chunks": 1, "loss": 1.0}),
        ("mesh:2x3", {"operation_cost": 0.1}),
    ],
)
def test_schedule_is_a_short_walk(spec: str, named: dict[str, Any]) -> None:
    """By the time-stepped program, by a list, and with a cost of operations."""
    assert 1 < frames_to_solver(alltoall.schedule, spec, **named) <= MOST_FRAMES


@pytest.mark.parametrize("room", ["flows", "schedules", "designs", "simulation", "lp"])
def test_only_public_functions_start_the_clock(room: str) -> None:
    """All stages of a call share the clock that it started."""
    for path in (PACKAGE / room).rglob("*.py"):
        for function in ast.walk(ast.parse(path.read_text())):
            if isinstance(function, ast.FunctionDef) and function.name not in STARTERS:
                calls = [node for node in ast.walk(function) if isinstance(node, ast.Call)]
                started = any(ast.unparse(call.func).endswith(".begin") for call in calls)
                assert not started or function.name == "find_design", f"{path}: {function.name}"
