"""Programs of any units are solved as well as those of numbers near 1."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.sparse import csc_array

from alltoall.lp.program import LinearProgram, to_scipy
from alltoall.lp.settings import LPSettings, LPStatus
from alltoall.lp.solve import find_scaling, solve_program, solvers_to_try

exponents = st.integers(-30, 30)


def diet(rows: list[float], columns: list[float], side: float, price: float) -> LinearProgram:
    """Return the same small program in other units of its rows, columns, sides and costs."""
    matrix = np.array([[2.0, 1.0, 0.0], [1.0, 3.0, 1.0]])
    row, column = np.array(rows), np.array(columns)
    lower = side * row * np.array([4.0, 6.0])
    cost = price * column * np.array([3.0, 4.0, 2.0])
    scaled = csc_array(row[:, None] * matrix * column)
    return LinearProgram(cost, scaled, lower, np.full(2, np.inf))


@given(
    st.lists(exponents, min_size=2, max_size=2),
    st.lists(exponents, min_size=3, max_size=3),
    exponents,
    exponents,
)
def test_units_do_not_matter(rows: list[int], columns: list[int], side: int, price: int) -> None:
    """Whatever rows, columns, sides and costs are multiplied by, the answer is the same."""
    row, column = np.exp2(rows), np.exp2(columns)
    program = diet(row.tolist(), column.tolist(), 2.0**side, 2.0**price)
    result = solve_program(program, "simplex", LPSettings())
    assert result.status is LPStatus.OPTIMAL
    assert result.x is not None
    assert result.row_dual is not None
    assert result.x * column / 2.0**side == pytest.approx([1.2, 1.6, 0.0], abs=1e-12)
    assert result.row_dual * row / 2.0**price == pytest.approx([1.0, 1.0], abs=1e-12)


@given(st.lists(exponents, min_size=2, max_size=2), st.lists(exponents, min_size=3, max_size=3))
def test_scaled_numbers_are_near_1(rows: list[int], columns: list[int]) -> None:
    """What the solver sees is within a small power of two of 1, and there and back is exact."""
    program = diet(np.exp2(rows).tolist(), np.exp2(columns).tolist(), 1e9, 1e-9)
    scaling = find_scaling(program)
    scaled = scaling.apply(program)
    assert 0.125 <= scaled.matrix.data.min() <= scaled.matrix.data.max() <= 8
    assert 0.5 <= np.abs(scaled.row_lower).max() <= 2
    assert 0.5 <= scaled.cost.max() <= 2
    back = scaled.row_lower / scaling.row * scaling.bound
    assert np.array_equal(back, program.row_lower)


def test_numbers_that_are_1_stay() -> None:
    """A program without units is passed on as it is."""
    matrix = csc_array(np.array([[1.0, -1.0], [0.0, 1.0]]))
    program = LinearProgram(np.ones(2), matrix, np.array([0.0, 1.0]), np.full(2, np.inf))
    scaled = find_scaling(program).apply(program)
    assert np.array_equal(to_scipy(scaled.matrix).toarray(), matrix.toarray())
    assert np.array_equal(scaled.cost, program.cost)


def test_a_small_error_is_refined_away() -> None:
    """What is far below the solver's tolerance is still right to the last digits."""
    matrix = csc_array(np.array([[1.0, 1.0, 0.0], [0.0, 1.0, -1e-9]]))
    program = LinearProgram(
        np.array([1.0, 2.0, 1e-3]), matrix, np.array([1.0, 0.0]), np.array([1.0, 0.0])
    )
    result = solve_program(program, "simplex", LPSettings())
    assert result.x is not None
    assert result.x == pytest.approx([1.0, 0.0, 0.0], abs=1e-15)
    assert np.abs(matrix @ result.x - program.row_lower).max() <= 1e-16


def test_small_programs_have_more_than_one_solver() -> None:
    """One takes over where another fails; a solver that was named has the last word."""
    assert solvers_to_try("auto", 100)[:2] == ["simplex", "ipm"]
    assert solvers_to_try("auto", 1_000_000) == ["auto"]
    assert solvers_to_try("ipm", 100) == ["ipm"]


def test_rows_and_columns_without_entries_are_no_trouble() -> None:
    """A row that nothing enters and a variable in no row have no scale of their own."""
    matrix = csc_array(np.array([[4.0, 0.0], [0.0, 0.0]]))
    program = LinearProgram(np.ones(2), matrix, np.array([8.0, 0.0]), np.array([8.0, 0.0]))
    assert solve_program(program, "simplex", LPSettings()).x == pytest.approx([2.0, 0.0])
