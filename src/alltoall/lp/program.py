"""`LinearProgram` in, `LPResult` out, for every solver."""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from alltoall.lp.matrix import ColumnMatrix
from alltoall.lp.settings import LPStatus

Vector = NDArray[np.float64]


@dataclass(frozen=True, eq=False)
class LinearProgram:
    """Minimise `cost @ x` with `row_lower <= matrix @ x <= row_upper` and `x >= 0`.

    `integer` marks integer variables. Only `mip` heeds it; other solvers solve the relaxation.
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
    """The answer of a solver.

    `x` and `row_dual` may be approximate, or None if the solver has none. The dual of a row is the
    derivative of the optimum by the row's bound, so it is at most 0 on a row `... <= upper` of a
    minimisation. `bound` is the lower bound that branch and bound has proven.
    """

    status: LPStatus
    x: Vector | None
    row_dual: Vector | None
    iterations: int = 0
    bound: float | None = None
