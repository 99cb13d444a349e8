"""`LinearProgram` in, `LPResult` out: what every solver takes and gives."""

from collections.abc import Callable
from dataclasses import dataclass
from enum import StrEnum

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csc_array

Vector = NDArray[np.float64]
Report = Callable[[str], None]


def silent(_: str) -> None:
    """Report nothing."""


def never() -> bool:
    """Whether to stop: no."""
    return False


class LPStatus(StrEnum):
    """How a solver ended, in the same words for all solvers."""

    OPTIMAL = "optimal"
    INFEASIBLE = "infeasible"
    UNBOUNDED = "unbounded"
    TIME_LIMIT = "time_limit"
    INTERRUPTED = "interrupted"
    STOPPED = "stopped"
    """The solver gave up: an iteration limit, or trouble with the numbers."""


@dataclass(frozen=True, eq=False)
class LinearProgram:
    """Minimise `cost @ x` with `row_lower <= matrix @ x <= row_upper` and `x >= 0`.

    `integer` marks the variables that must be whole. Only `mip` heeds it: to the other solvers it
    is the relaxation that they solve.
    """

    cost: Vector
    matrix: csc_array
    row_lower: Vector
    row_upper: Vector
    integer: NDArray[np.bool_] | None = None

    @property
    def size(self) -> int:
        """The number of variables."""
        return len(self.cost)


@dataclass(frozen=True)
class LPSettings:
    """What a caller may ask of any solver.

    `tolerance` is the relative accuracy wanted from solvers that approach the optimum from the
    inside; `vertex` asks for a basic (sparse) solution where the solver can give one; a solver that
    runs for long asks `stopped` now and then, and ends if it says so.
    """

    tolerance: float = 1e-9
    time_limit: float | None = None
    threads: int | None = None
    vertex: bool = True
    report: Report = silent
    stopped: Callable[[], bool] = never


@dataclass(frozen=True, eq=False)
class LPResult:
    """What a solver found.

    `x` and `row_dual` may be approximate or, if the solver had nothing to show, None. The dual of
    a row is the derivative of the optimum by the row's bound, so it is at most 0 on a row
    `... <= upper` of a minimisation. `bound` is what a search for whole numbers has proven: no
    solution of the program costs less.
    """

    status: LPStatus
    x: Vector | None
    row_dual: Vector | None
    iterations: int = 0
    bound: float | None = None
