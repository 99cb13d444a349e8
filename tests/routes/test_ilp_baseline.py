"""The ILP baselines: branch and bound, its bound, its start, and the programs it solves."""

import numpy as np
import pytest
from baseline_cases import case, settings
from scipy.sparse import csc_array

from alltoall.ir.problem import Problem
from alltoall.lp.highs import mip
from alltoall.lp.program import LinearProgram
from alltoall.lp.settings import LPSettings, LPStatus
from alltoall.lp.solve import solve_program
from alltoall.paths.candidates import candidate_paths
from alltoall.routes.baselines import ilp
from alltoall.routes.baselines.ilp import Choosing, choose_paths, common_measure
from alltoall.topologies.spec import build


def knapsack() -> LinearProgram:
    """Minimise -5x - 4y with 6x + 4y <= 24 and x + 2y <= 6: -21, or -20 by whole numbers."""
    return LinearProgram(
        cost=np.array([-5.0, -4.0]),
        matrix=csc_array(np.array([[6.0, 4.0], [1.0, 2.0]])),
        row_lower=np.full(2, -np.inf),
        row_upper=np.array([24.0, 6.0]),
        integer=np.array([True, True]),
    )


def test_mip_finds_whole_numbers_and_proves_them() -> None:
    """The optimum is whole, its bound meets it, and there are no duals to mistake for prices."""
    result = mip(knapsack(), LPSettings())
    assert result.status is LPStatus.OPTIMAL
    assert result.x == pytest.approx([4, 0])
    assert result.bound == pytest.approx(-20)
    assert result.row_dual is None


def test_other_solvers_take_the_relaxation() -> None:
    """Whole numbers are asked of `mip` only, and only it proves a bound."""
    result = solve_program(knapsack(), "simplex", LPSettings())
    assert result.x == pytest.approx([3, 1.5])
    assert result.bound is None


def test_mip_without_time_returns_its_start() -> None:
    """The best found so far is at worst what the caller knew."""
    result = mip(knapsack(), LPSettings(time_limit=0.0), np.array([1.0, 1.0]))
    assert result.x is not None
    assert knapsack().cost @ result.x <= -9 + 1e-9


def test_choice_is_bounded_by_its_candidates_not_by_the_certificate() -> None:
    """On K4,4 one path per pair cannot beat 3, while the certificate stays at 2.5."""
    problem = case("bipartite:4x4")
    asked = settings(60.0, gap=1e-6)
    choice = choose_paths(Choosing(problem, candidate_paths(problem, asked)), asked)
    assert (choice.time, choice.bound, choice.status) == (3.0, 3.0, LPStatus.OPTIMAL)
    assert ilp.route_ilp_disjoint(problem, asked).bound == pytest.approx(2.5)


def test_time_limit_keeps_the_quick_choice() -> None:
    """Without time for a search the heuristic's choice is within a third of the bound."""
    problem = Problem.all_to_all(build("genkautz:n=40,d=4"))
    asked = settings(seconds=1e-6)
    longer = settings(seconds=60.0, gap=0.05)
    choosing = Choosing(problem, candidate_paths(problem, longer))
    choice = choose_paths(choosing, asked)
    assert choice.bound <= choice.time
    better = choose_paths(choosing, longer)
    assert better.bound <= better.time <= choice.time <= 4 / 3 * better.bound


def test_reports_the_bound_over_its_candidates() -> None:
    """The last line of progress says what no choice of candidates can beat."""
    lines: list[str] = []
    asked = settings(60.0, gap=1e-6)
    object.__setattr__(asked.solve, "report", lines.append)
    ilp.route_ilp_shortest(case("hypercube:3"), asked)
    assert lines[-1] == "ilp-shortest: optimal, 0.00% at most from the best choice of these paths"


@pytest.mark.parametrize(
    ("amounts", "capacities", "unit"),
    [
        ([1.0], [1.0], 1.0),
        ([1.0], [1.0, 2.0], 0.5),
        ([1.0], [2.0, 3.0], 1 / 6),
        ([0.5, 5.0], [1e-6, 2e-6], 0.25e6),
        ([1.0, np.pi], [1.0], None),
        (np.arange(1.0, 100.0), [1.0], None),
    ],
)
def test_common_measure(amounts: list[float], capacities: list[float], unit: float | None) -> None:
    """All amounts over all capacities are whole multiples, or there is no small measure."""
    found = common_measure(np.array(amounts), np.array(capacities))
    assert found == (None if unit is None else pytest.approx(unit))
