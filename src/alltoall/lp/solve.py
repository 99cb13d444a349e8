r"""Solve a linear program with a solver of the table, by name or by size.

Solvers have absolute tolerances, so programs are scaled until numbers are near 1. With positive
diagonal matrices R of the rows and C of the columns, and numbers b and c,

    apply    minimise (C cost / c) x'  with  R lower / b  <=  (R A C) x'  <=  R upper / b
    invert   x = b C x',   dual = c R dual',   bound = b c bound'

R and C bring the entries of every row and column near to 1 in turn, by the geometric mean of the
smallest and the largest (Fulkerson and Wolfe); b and c the right-hand sides and costs. All are
powers of two: nothing is rounded on the way there or back, and numbers that are 1 stay as they are.
"""

from collections.abc import Callable
from dataclasses import dataclass, replace
from importlib import import_module
from importlib.util import find_spec

import numpy as np
from numpy.typing import NDArray

from alltoall.errors import MissingComponentError, how_to_install
from alltoall.lp import AUTO, EXTRAS, SMALL_SIZE, SOLVERS, require_solver
from alltoall.lp.program import LinearProgram, LPResult, SparseMatrix, Vector
from alltoall.lp.settings import LPSettings, LPStatus
from alltoall.registry import load

PASSES = 4
"""How often rows and columns are scaled in turn; further passes change little."""


@dataclass(frozen=True, eq=False)
class Scaling:
    """Factors of rows and columns, and the units of right-hand sides and costs."""

    row: Vector
    column: Vector
    bound: float
    cost: float

    def apply(self, program: LinearProgram) -> LinearProgram:
        """Return the program in units in which its numbers are near 1."""
        matrix = program.matrix
        entries = matrix.data * self.row[matrix.indices]
        entries *= np.repeat(self.column, np.diff(matrix.indptr))
        return replace(
            program,
            cost=program.cost * self.column / self.cost,
            matrix=SparseMatrix(entries, matrix.indices, matrix.indptr, matrix.shape),
            row_lower=program.row_lower * self.row / self.bound,
            row_upper=program.row_upper * self.row / self.bound,
        )

    def invert(self, result: LPResult) -> LPResult:
        """Return the answer to the scaled program as one to the program itself."""
        x, dual, bound = result.x, result.row_dual, result.bound
        return replace(
            result,
            x=None if x is None else x * self.column * self.bound,
            row_dual=None if dual is None else dual * self.row * self.cost,
            bound=None if bound is None else bound * self.bound * self.cost,
        )


def find_scaling(program: LinearProgram) -> Scaling:
    """Return the scaling of a program."""
    matrix = program.matrix
    size = np.abs(matrix.data)
    present = size > 0
    size, row = size[present], matrix.indices[present]
    column = np.repeat(np.arange(program.size), np.diff(matrix.indptr))[present]
    exponent = np.log2(size)
    rows, columns = np.zeros(matrix.shape[0]), np.zeros(matrix.shape[1])
    for _ in range(PASSES if len(exponent) and np.ptp(exponent) > 0 else 1):
        rows = -_middle(row, exponent + columns[column], len(rows))
        columns = -_middle(column, exponent + rows[row], len(columns))
    row_scale, column_scale = np.exp2(np.rint(rows)), np.exp2(np.rint(columns))
    sides = np.concatenate((program.row_lower * row_scale, program.row_upper * row_scale))
    return Scaling(row_scale, column_scale, _unit(sides), _unit(program.cost * column_scale))


def _middle(group: NDArray[np.integer], value: Vector, count: int) -> Vector:
    """Return halfway between the least and the largest value of each group; 0 if it has none."""
    least, largest = np.full(count, np.inf), np.full(count, -np.inf)
    np.minimum.at(least, group, value)
    np.maximum.at(largest, group, value)
    empty = least > largest
    least[empty] = largest[empty] = 0.0
    return np.asarray((least + largest) / 2)


def _unit(values: Vector) -> float:
    """Return the power of two nearest to the largest of the finite values, 1 if all are zero."""
    largest = np.abs(values[np.isfinite(values)]).max(initial=0.0)
    return float(np.exp2(np.rint(np.log2(largest)))) if largest > 0 else 1.0


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
