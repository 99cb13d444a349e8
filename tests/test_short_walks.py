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

CLOCKS = {"SolveSettings", "search_settings"}
"""Calls that start a clock: settings have one from the moment that they are made."""

OWN_CLOCK = {"search_settings", "prove", "flow_content", "_measured", "_published"}
"""Functions besides the public ones: these make settings for others, or know no time limit."""


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
        ("jellyfish:n=110,d=5,seed=1", {"gap": 1e-2}),
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
        ("genkautz:n=72,d=4", {"chunks": 1}),
        ("mesh:2x3", {"steps": 4}),
    ],
)
def test_schedule_is_a_short_walk(spec: str, named: dict[str, Any]) -> None:
    """By the time-stepped program, by a list, and with a number of steps or chunks."""
    assert 1 < frames_to_solver(alltoall.schedule, spec, **named) <= MOST_FRAMES


def test_only_public_functions_start_the_clock() -> None:
    """All stages of a call share the clock that it started, or have a share of what it has left."""
    public = set(alltoall.__all__)
    methods = {name for name in vars(alltoall.Solver) if not name.startswith("_")}
    for path in PACKAGE.rglob("*.py"):
        tree = ast.parse(path.read_text())
        defaults = {
            id(part)
            for node in ast.walk(tree)
            if isinstance(node, ast.BoolOp) and ast.unparse(node.values[0]) == "settings"
            for part in node.values
        }
        for function in ast.walk(tree):
            if not isinstance(function, ast.FunctionDef):
                continue
            calls = [node for node in ast.walk(function) if isinstance(node, ast.Call)]
            starts = [each for each in calls if id(each) not in defaults]
            started = CLOCKS & {ast.unparse(each.func) for each in starts}
            assert not started or function.name in public | methods | OWN_CLOCK, (
                f"{path}: {function.name} calls {', '.join(started)}"
            )
            again = [key for each in calls for key in each.keywords if key.arg == "started"]
            assert not again or path.name == "settings.py", f"{path}: {function.name}"
