"""Whole chunks: few of them, at little or no loss."""

import numpy as np
import pytest
from hypothesis import given, settings

from a2aflow.errors import InputError, UsageError
from a2aflow.ir.json import schedule_from_json, schedule_to_json
from a2aflow.ir.problem import Problem
from a2aflow.ir.topology import Topology
from a2aflow.ir.verify_schedule import check_schedule
from a2aflow.schedule.chunks import rounded_to
from a2aflow.schedule.search import ScheduleSettings, find_schedule
from a2aflow.topologies.operators import drop_links, drop_nodes, with_host_bandwidth
from a2aflow.topologies.spec import build
from strategies import problems

EXACT = ["hypercube:3", "twisted-hypercube:3", "bipartite:4x4", "torus:3x3x3"]
TORUS = build("torus:3x3x3")
NEAR = {
    "genkautz n=16": build("genkautz:n=16,d=4"),
    "genkautz n=32": build("genkautz:n=32,d=4"),
    "hosted torus": with_host_bandwidth(TORUS, 4.0),
    **{f"links {seed}": drop_links(TORUS, 3, seed) for seed in range(10)},
    **{f"nodes {seed}": drop_nodes(TORUS, 3, seed) for seed in range(10)},
}


@pytest.mark.parametrize("spec", EXACT)
def test_symmetric_fabrics_lose_nothing(spec: str) -> None:
    """At most 16 chunks, time equal to the certified bound of any all-to-all."""
    schedule = find_schedule(Problem.all_to_all(build(spec)), ScheduleSettings()).schedule
    report = check_schedule(schedule)
    assert schedule.chunks_per_shard <= 16
    assert report.gap == pytest.approx(0.0, abs=1e-9)


@pytest.mark.parametrize("name", NEAR)
def test_other_fabrics_lose_at_most_two_percent(name: str) -> None:
    """At most 16 chunks and 2 % above the bound of any all-to-all, not just of the fraction."""
    problem = Problem.all_to_all(NEAR[name])
    schedule = find_schedule(problem, ScheduleSettings(loss=0.01)).schedule
    assert schedule.chunks_per_shard <= 16
    assert check_schedule(schedule).gap <= 0.02


@given(problem=problems(max_nodes=5))
@settings(max_examples=25)
def test_schedules_of_random_problems_are_correct_and_survive_json(problem: Problem) -> None:
    """Any demand, capacities and switches: checked, written, read back, checked again."""
    schedule = find_schedule(problem, ScheduleSettings(loss=0.2, max_chunks=4)).schedule
    report = check_schedule(schedule)
    assert report.time >= schedule.bound * (1 - 1e-9)
    value = schedule_to_json(schedule)
    again = schedule_from_json(value, "file")
    assert check_schedule(again) == report
    assert schedule_to_json(again) == value


def test_a_given_number_of_chunks_is_used() -> None:
    """K4,4 needs two chunks; with one it takes longer and says how much."""
    problem = Problem.all_to_all(build("bipartite:4x4"))
    one = find_schedule(problem, ScheduleSettings(chunks=1)).schedule
    assert one.chunks_per_shard == 1
    assert one.loss == pytest.approx(0.2)
    assert find_schedule(problem, ScheduleSettings(chunks=4)).schedule.loss == pytest.approx(0.0)


def test_the_same_call_gives_the_same_schedule() -> None:
    """No hidden randomness."""
    problem = Problem.all_to_all(build("genkautz:n=9,d=3"))
    first, second = (
        schedule_to_json(find_schedule(problem, ScheduleSettings()).schedule) for _ in range(2)
    )
    assert first == second


def test_too_few_steps_are_refused() -> None:
    """Data cannot travel faster than one hop a step."""
    with pytest.raises(InputError, match="needs at least 3"):
        find_schedule(Problem.all_to_all(TORUS), ScheduleSettings(steps=2))


def test_given_steps_are_kept() -> None:
    """Fewer steps than the best take longer; the bound stays that of any schedule."""
    problem = Problem.all_to_all(build("genkautz:n=16,d=4"))
    schedule = find_schedule(problem, ScheduleSettings(steps=2)).schedule
    assert schedule.steps == 2
    assert schedule.time == pytest.approx(8.0)
    assert schedule.bound == pytest.approx(53 / 7)


@pytest.mark.parametrize(
    "wrong",
    [
        {"latency": -1.0},
        {"loss": -0.1},
        {"loss": 2.0},
        {"chunks": 0},
        {"max_chunks": 0},
        {"steps": 0},
    ],
)
def test_bad_settings_are_refused(wrong: dict[str, float]) -> None:
    """Each with the range that is expected."""
    with pytest.raises(UsageError, match="expected"):
        ScheduleSettings(**wrong)  # type: ignore[arg-type]


def test_rounding_keeps_the_sum() -> None:
    """Largest remainders get the units that are left."""
    assert rounded_to(np.array([1.5, 2.25, 2.25]), 6).tolist() == [2, 2, 2]
    assert rounded_to(np.array([0.4, 0.4, 0.2]), 1).tolist() == [1, 0, 0]


def test_uneven_capacities_are_respected() -> None:
    """A fat link carries proportionally more in the same step."""
    ring = Topology.from_links("fat", 3, [(0, 1, 4.0), (1, 2, 4.0), (2, 0, 4.0), (1, 0, 0.5)])
    schedule = find_schedule(Problem.all_to_all(ring), ScheduleSettings()).schedule
    assert (schedule.loads() <= schedule.step_times()[:, None] * ring.capacity + 1e-9).all()
