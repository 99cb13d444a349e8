"""`LinearProgram` in, `LPResult` out: what every solver takes and gives."""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from alltoall.lp.matrix import ColumnMatrix
from alltoall.lp.settings import LPStatus

Vector = NDArray[np.float64]


@dataclass(frozen=True, eq=False)
class LinearProgram:
    """Minimise `cost @ x` with `row_lower <= matrix @ x <= row_upper` and `x >= 0`.

    `integer` marks the variables that must be whole. Only `mip` heeds it: to the other solvers it
    is the relaxation that they solve.
    """

    cost: Vector
    matrix: ColumnMatrix
    row_lower: Vector
    row_upper: Vector
    integer: NDArray[np.bool_] | None = None

    @property
    def size(self) -> int:
        """The number of variables."""
        return len(self.cost)


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
