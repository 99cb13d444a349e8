"""All solvers behind the one interface agree on answers, duals and statuses."""

import importlib.util
import os
import subprocess
import sys
from collections.abc import Sequence

import numpy as np
import pytest
from scipy.sparse import csc_array

from alltoall.errors import MissingComponentError, UsageError
from alltoall.lp import AUTO, EXTRAS, SOLVERS, solver_names
from alltoall.lp.program import LinearProgram
from alltoall.lp.settings import LPSettings, LPStatus
from alltoall.lp.solve import solve_program

EVERY = [*SOLVERS, *EXTRAS]


def available(solver: str) -> str:
    """Return the solver, or skip the test where its distribution is not installed."""
    if solver in EXTRAS and importlib.util.find_spec(EXTRAS[solver]) is None:
        pytest.skip(f"{EXTRAS[solver]} is not installed")
    return solver


def program(
    cost: Sequence[float],
    rows: Sequence[Sequence[float]],
    lower: Sequence[float],
    upper: Sequence[float],
) -> LinearProgram:
    """Build a small program from plain lists."""
    matrix = csc_array(np.array(rows, dtype=np.float64))
    return LinearProgram(
        np.array(cost, float), matrix, np.array(lower, float), np.array(upper, float)
    )


@pytest.mark.parametrize("solver", EVERY)
def test_optimum_and_duals(solver: str) -> None:
    """Minimise -x - 2y with x + y <= 4, y <= 3, x - y = -2: x 1, y 3, duals -1 and -2 add up."""
    small = program([-1, -2], [[1, 1], [0, 1], [1, -1]], [-np.inf, -np.inf, -2], [9, 3, -2])
    result = solve_program(small, available(solver), LPSettings(tolerance=1e-8))
    assert result.status is LPStatus.OPTIMAL
    assert result.x == pytest.approx([1, 3], abs=1e-5)
    assert result.row_dual == pytest.approx([0, -3, -1], abs=1e-5)


@pytest.mark.parametrize("solver", EVERY)
def test_infeasible_is_a_status(solver: str) -> None:
    """A variable that must be 1 and 2 at once is told, not raised."""
    impossible = program([1], [[1], [1]], [1, 2], [1, 2])
    assert solve_program(impossible, available(solver), LPSettings()).status is LPStatus.INFEASIBLE


@pytest.mark.parametrize("solver", ["simplex", "ipm", "clarabel"])
def test_unbounded_is_a_status(solver: str) -> None:
    """Minimising -x without an upper bound is told as unbounded, or as infeasible-or-unbounded."""
    endless = program([-1], [[1]], [0], [np.inf])
    status = solve_program(endless, available(solver), LPSettings()).status
    assert status in (LPStatus.UNBOUNDED, LPStatus.INFEASIBLE, LPStatus.STOPPED)


def test_thread_counts_may_change_between_solves() -> None:
    """HiGHS' one pool per process does not leak into the next call."""
    small = program([1], [[1]], [1], [2])
    for threads in (2, 1, None, 2):
        result = solve_program(small, "simplex", LPSettings(threads=threads))
        assert result.status is LPStatus.OPTIMAL


def test_auto_takes_a_known_solver_at_every_size() -> None:
    """The table of sizes is ordered and names solvers that exist."""
    limits = [limit for limit, _ in AUTO]
    assert limits == sorted(limits)
    assert {name for _, name in AUTO} <= set(SOLVERS)
    assert solve_program(program([1], [[1]], [1], [2]), "auto", LPSettings()).x == pytest.approx(
        [1]
    )


def test_unknown_solver_lists_the_known_ones() -> None:
    """The message names every choice."""
    with pytest.raises(UsageError, match="unknown solver 'cplex'") as caught:
        solve_program(program([1], [[1]], [1], [2]), "cplex", LPSettings())
    assert all(name in str(caught.value) for name in solver_names())


def test_missing_extra_says_how_to_install_it(monkeypatch: pytest.MonkeyPatch) -> None:
    """An optional solver that is not there is exit code 5 and a command."""
    monkeypatch.setitem(EXTRAS, "nosuch", "nosuch-dist")
    with pytest.raises(MissingComponentError, match=r"pip install '\.\[nosuch\]' in a clone"):
        solve_program(program([1], [[1]], [1], [2]), "nosuch", LPSettings())


LIMITED = """
import resource, sys
resource.setrlimit(resource.RLIMIT_AS, (int(sys.argv[1]) << 20,) * 2)
from alltoall.cli import main
sys.argv = ["alltoall", "solve", "torus:3x3"]
main()
"""


@pytest.mark.parametrize("mebibytes", [256, 320])
def test_too_little_address_space_is_refused(mebibytes: int) -> None:
    """The constructor of OpenBLAS, in which HiGHS would wait for memory, is not reached."""
    found = subprocess.run(
        [sys.executable, "-c", LIMITED, str(mebibytes)],
        env=os.environ | {"OPENBLAS_NUM_THREADS": "2"},
        capture_output=True,
        check=False,
        text=True,
        timeout=60,
    )
    assert found.returncode == 5
    assert "the solver HiGHS needs" in found.stderr
    assert "ulimit -v" in found.stderr
