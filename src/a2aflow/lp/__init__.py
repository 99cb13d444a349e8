"""Linear programs and the solvers behind one interface; knows nothing of networks.

`SOLVERS` holds what is always there, `EXTRAS` what a user may have: each of those is one file,
imported when it is asked for and not before. `auto` picks by size.
"""

import threading
from collections.abc import Callable
from importlib import import_module
from importlib.util import find_spec

from a2aflow.errors import MissingComponentError, UsageError
from a2aflow.lp import highs
from a2aflow.lp.program import LinearProgram, LPResult, LPSettings, LPStatus
from a2aflow.lp.scaling import find_scaling

Solver = Callable[[LinearProgram, LPSettings], LPResult]

SOLVERS: dict[str, Solver] = {
    "simplex": highs.simplex,
    "ipm": highs.ipm,
    "hipo": highs.hipo,
    "pdlp": highs.pdlp,
}

EXTRAS = {"gurobi": "gurobipy", "clarabel": "clarabel"}
"""Optional solvers, each in the file of its name, and the distribution that it needs."""

AUTO = ((2_000, "simplex"), (400_000, "ipm"))
"""Largest number of variables for which `auto` takes a solver; above the last, `hipo`."""


SMALL_SIZE = AUTO[0][0]
"""Variables up to which there is time to try one solver after the other."""


def solvers_to_try(solver: str, size: int) -> list[str]:
    """Return the solvers for a program of a size, one to take over where another fails."""
    if solver != "auto" or size > SMALL_SIZE:
        return [solver]
    extra = ["clarabel"] if find_spec(EXTRAS["clarabel"]) else []
    return ["simplex", "ipm", *extra]


def solver_is_running() -> bool:
    """Whether a solver that did not stop in time still runs in a thread of its own."""
    return any(thread.name == highs.THREAD_NAME for thread in threading.enumerate())


def solver_names() -> list[str]:
    """Return every name that `solve_program` takes."""
    return ["auto", *SOLVERS, *EXTRAS]


def require_solver(name: str) -> None:
    """Raise unless there is a solver of this name."""
    if name not in solver_names():
        raise UsageError(f"unknown solver {name!r}; expected one of {', '.join(solver_names())}")


def solve_program(program: LinearProgram, solver: str, settings: LPSettings) -> LPResult:
    """Solve `program` with the named solver, in units in which its numbers are near 1.

    Without time left, say so and build nothing.
    """
    require_solver(solver)
    if settings.time_limit is not None and settings.time_limit <= 0:
        return LPResult(LPStatus.TIME_LIMIT, None, None)
    if solver == "auto":
        solver = next((name for limit, name in AUTO if program.size <= limit), "hipo")
    chosen = _extra(solver) if solver in EXTRAS else SOLVERS[solver]
    scaling = find_scaling(program)
    return scaling.invert(chosen(scaling.apply(program), settings))


def _extra(name: str) -> Solver:
    try:
        module = import_module(f"a2aflow.lp.{name}")
    except ImportError:
        raise MissingComponentError(
            f"the solver {name!r} needs {EXTRAS[name]}, which is not installed; "
            f"pip install 'a2aflow[{name}]', or choose one of {', '.join(SOLVERS)}"
        ) from None
    solve: Solver = module.solve
    return solve


__all__ = [
    "AUTO",
    "EXTRAS",
    "SMALL_SIZE",
    "SOLVERS",
    "LPResult",
    "LPSettings",
    "LPStatus",
    "LinearProgram",
    "Solver",
    "require_solver",
    "solve_program",
    "solver_is_running",
    "solver_names",
    "solvers_to_try",
]
