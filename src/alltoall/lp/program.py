"""`LinearProgram` in, `LPResult` out, for every solver.

Matrices are the three arrays by column that HiGHS takes, without an import of scipy.
"""

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, NamedTuple, Protocol

import numpy as np
from numpy.typing import NDArray

from alltoall.lp.settings import LPStatus

if TYPE_CHECKING:
    from scipy.sparse import csc_array


class ColumnMatrix(Protocol):
    """Any matrix by column; scipy's `csc_array` is one too."""

    @property
    def data(self) -> NDArray[Any]:
        """The values, column by column."""

    @property
    def indices(self) -> NDArray[Any]:
        """The row of each value."""

    @property
    def indptr(self) -> NDArray[Any]:
        """The starts of the columns, and the end of the last."""

    @property
    def shape(self) -> tuple[int, int]:
        """Rows and columns."""


@dataclass(frozen=True, eq=False)
class SparseMatrix:
    """A matrix by column, with the rows of each column in order."""

    data: NDArray[np.float64]
    indices: NDArray[np.int32]
    indptr: NDArray[np.int32]
    shape: tuple[int, int]


class Entries(NamedTuple):
    """Values of a block of a matrix, with the row and the column of each."""

    value: NDArray[np.float64]
    row: NDArray[np.int64]
    column: NDArray[np.int64]

    def shift(self, rows: int = 0, columns: int = 0) -> "Entries":
        """Return the block shifted by rows and columns."""
        return Entries(self.value, self.row + rows, self.column + columns)


def sparse_matrix(shape: tuple[int, int], *blocks: Entries) -> SparseMatrix:
    """Return the matrix of blocks without common entries."""
    value, row, column = (np.concatenate(each) for each in zip(*blocks, strict=True))
    order = np.argsort(column * shape[0] + row, kind="stable")
    start = np.zeros(shape[1] + 1, dtype=np.int32)
    np.cumsum(np.bincount(column, minlength=shape[1]), out=start[1:])
    return SparseMatrix(value[order], row[order].astype(np.int32), start, shape)


def to_scipy(matrix: ColumnMatrix) -> "csc_array":
    """Return a matrix as scipy's, for slices and products."""
    from scipy.sparse import csc_array  # noqa: PLC0415 (slow to import, and rarely needed)

    return csc_array((matrix.data, matrix.indices, matrix.indptr), shape=matrix.shape)


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


def least_time(
    balance: Entries,
    wanted: Vector,
    load: Entries,
    room: Vector,
    budget: NDArray[np.int64] | None = None,
) -> LinearProgram:
    """Return the program that minimises times z, over variables x and then z.

    Rows are `balance @ x = wanted`, which has every variable, and then `load @ x <= room z`. Row r
    of these takes the time `z[budget[r]]`, or the only one.
    """
    rows, size, first = len(room), 1 + int(balance.column.max(initial=-1)), len(wanted)
    budget = np.zeros(rows, dtype=np.int64) if budget is None else budget
    times = int(budget.max(initial=0)) + 1
    time = Entries(-room, np.arange(rows), budget)
    return LinearProgram(
        cost=np.concatenate((np.zeros(size), np.ones(times))),
        matrix=sparse_matrix(
            (first + rows, size + times), balance, load.shift(first), time.shift(first, size)
        ),
        row_lower=np.concatenate((wanted, np.full(rows, -np.inf))),
        row_upper=np.concatenate((wanted, np.zeros(rows))),
    )
