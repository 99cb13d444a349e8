"""Solve a linear program with a solver of the table, by name or by size."""

from collections.abc import Callable
from importlib import import_module
from importlib.util import find_spec

from alltoall.errors import MissingComponentError, how_to_install
from alltoall.lp import AUTO, EXTRAS, SMALL_SIZE, SOLVERS, require_solver
from alltoall.lp.program import LinearProgram, LPResult
from alltoall.lp.scaling import find_scaling
from alltoall.lp.settings import LPSettings, LPStatus
from alltoall.registry import load

Solver = Callable[[LinearProgram, LPSettings], LPResult]


def solve_program(program: LinearProgram, solver: str, settings: LPSettings) -> LPResult:
    """Solve `program` with the named solver, scaled so that its numbers are near 1."""
    require_solver(solver)
    if settings.time_limit is not None and settings.time_limit <= 0:
        return LPResult(LPStatus.TIME_LIMIT, None, None)
    if solver == "auto":
        solver = next((name for limit, name in AUTO if program.size <= limit), "hipo")
    chosen: Solver = _extra(solver) if solver in EXTRAS else load(SOLVERS[solver])
    scaling = find_scaling(program)
    return scaling.invert(chosen(scaling.apply(program), settings))


def solvers_to_try(solver: str, size: int) -> list[str]:
    """Return the solvers for a program of a size, each to take over where the last fails."""
    if solver != "auto" or size > SMALL_SIZE:
        return [solver]
    extra = ["clarabel"] if find_spec(EXTRAS["clarabel"]) else []
    return ["simplex", "ipm", *extra]


def _extra(name: str) -> Solver:
    try:
        module = import_module(f"alltoall.lp.{name}")
    except ImportError:
        raise MissingComponentError(
            f"the solver {name!r} needs {EXTRAS[name]}, which is not installed; "
            f"{how_to_install(name)}, or choose one of {', '.join(SOLVERS)}"
        ) from None
    solve: Solver = module.solve
    return solve
