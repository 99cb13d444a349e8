"""One demand after the other on one topology: quick answers, checked and certified as any."""

import numpy as np
import pytest
from hypothesis import given, settings

import alltoall
from alltoall.check.routes import check_routes
from alltoall.check.schedule import check_schedule
from alltoall.errors import DemandError, UsageError
from alltoall.ir.problem import Problem
from alltoall.schedules.resolve import resolved_routes, resolved_schedule
from alltoall.settings import SolveSettings
from alltoall.topologies.operators import scale_capacities
from uneven_cases import uneven_problems

SOLVER = alltoall.Solver("genkautz:n=16,d=3")


def skewed(seed: int) -> np.ndarray:
    """Return a matrix of amounts of all sizes."""
    matrix = np.random.default_rng(seed).lognormal(0, 1, (16, 16))
    np.fill_diagonal(matrix, 0.0)
    return matrix


@pytest.mark.parametrize("seed", range(3))
def test_near_the_bound_of_each_demand(seed: int) -> None:
    """The gap is what the checker finds, and the bound is one of the demand itself."""
    schedule, routes = SOLVER.schedule(skewed(seed)), SOLVER.route(skewed(seed))
    optimum = alltoall.solve(SOLVER.topology, demand=skewed(seed)).time
    assert check_schedule(schedule).gap == pytest.approx(schedule.gap, abs=1e-9)
    assert schedule.gap <= 0.06
    assert check_routes(routes).gap <= 0.02
    for answer in (schedule, routes):
        assert optimum * 0.98 <= answer.bound <= optimum * (1 + 1e-9)
        assert answer.method == "resolve"


def test_a_smaller_loss_is_worth_finer_chunks() -> None:
    """What is asked for decides how finely shards are cut."""
    rough, fine = (SOLVER.schedule(skewed(4), loss=loss) for loss in (0.2, 0.02))
    assert rough.chunks.total < fine.chunks.total
    assert fine.time < rough.time


@given(problem=uneven_problems())
@settings(max_examples=20)
def test_every_demand_has_an_answer(problem: Problem) -> None:
    """Whatever pairs have nothing to send and whatever stores nothing: correct answers."""
    schedule = resolved_schedule(problem, 0.1, SolveSettings())
    assert check_schedule(schedule).time == pytest.approx(schedule.time)
    routes = resolved_routes(problem, 0.1, SolveSettings())
    assert check_routes(routes).time == pytest.approx(routes.time)


def test_units_are_those_of_the_caller() -> None:
    """Narrower links and larger shards change the unit of the time, and nothing else."""
    narrow = alltoall.Solver(scale_capacities(SOLVER.topology, 0.25))
    assert narrow.schedule(skewed(1)).time == pytest.approx(4 * SOLVER.schedule(skewed(1)).time)


def test_time_limits_leave_the_first_answer() -> None:
    """An answer is given, however little time there is."""
    found = SOLVER.schedule(skewed(2), loss=1e-3, time_limit=1e-6)
    assert check_schedule(found).gap < 1.0


def test_what_cannot_be_meant_is_refused() -> None:
    """A loss of nothing, and the demand of another topology."""
    with pytest.raises(UsageError, match="loss 0; expected a share above 0"):
        SOLVER.schedule(skewed(1), loss=0.0)
    with pytest.raises(DemandError, match="16"):
        SOLVER.route(np.ones((4, 4)))
