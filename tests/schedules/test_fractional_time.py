"""The fractional time is that of the linear program in as many steps as the schedule has."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from alltoall.ir.demand import Demand
from alltoall.ir.problem import Problem
from alltoall.ir.topology import Topology
from alltoall.schedules.found import FoundSchedule
from alltoall.schedules.methods import find_schedule
from alltoall.schedules.timestepped import solve_timestepped
from alltoall.settings import ScheduleSettings, SolveSettings
from alltoall.topologies.spec import build
from strategies import problems

LINKS = [
    (2, 0, 3.5), (0, 3, 1.0), (3, 1, 1.0), (1, 2, 1.0), (0, 2, 0.5), (0, 1, 2.0), (1, 0, 1.0),
]  # fmt: skip
DEMAND = np.array([[0, 1, 0, 0], [2, 0, 1, 2], [1, 3, 0, 1], [0, 0, 1, 0]], dtype=float)


def require_its_own(problem: Problem, found: FoundSchedule) -> None:
    """Hold the fractional time, its bound and the losses against a program of as many steps."""
    schedule = found.schedule
    optimum = solve_timestepped(problem, schedule.steps, SolveSettings()).time
    assert schedule.fractional_time == pytest.approx(optimum, rel=1e-6)
    assert schedule.bound * (1 - 1e-9) <= found.fractional_bound <= optimum * (1 + 1e-9)
    losses = found.curve.values()
    assert min(losses) == pytest.approx(schedule.loss, abs=1e-8)
    assert min(losses) >= -1e-8


@pytest.mark.parametrize("chunks", [None, 1])
def test_steps_that_chunks_leave_unused_are_not_counted(chunks: int | None) -> None:
    """The flow has five or more steps, the schedule of its chunks four, or two."""
    problem = Problem(Topology.from_links("unused", 4, LINKS), Demand(4, DEMAND))
    found = find_schedule(problem, "tsmcf", ScheduleSettings(chunks=chunks))
    require_its_own(problem, found)
    assert (found.schedule.steps, found.schedule.loss > 0) == ((4, True) if not chunks else (2, 0))


@given(problem=problems(max_nodes=5), chunks=st.sampled_from([1, 2]))
@settings(max_examples=15)
def test_fractional_times_of_any_problem(problem: Problem, chunks: int) -> None:
    """Few chunks leave steps unused most often."""
    require_its_own(problem, find_schedule(problem, "tsmcf", ScheduleSettings(chunks=chunks)))


def test_a_schedule_with_fewer_relays_is_held_against_all_of_them() -> None:
    """Idle terminals may pass chunks on: what is proven without some does not hold with all."""
    matrix = np.zeros((6, 6))
    matrix[:3, :3] = 1 - np.eye(3)
    problem = Problem(build("complete:6"), Demand(6, matrix))
    asked = ScheduleSettings(steps=2, max_chunks=3, operation_cost=0.02)
    found = find_schedule(problem, "tsmcf", asked)
    assert found.schedule.steps == 2
    assert found.schedule.time == pytest.approx(2 / 3)
    require_its_own(problem, found)
    assert found.schedule.fractional_time == pytest.approx(4 / 7)
