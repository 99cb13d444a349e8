"""Routes and schedules under a demand that they were not made for: predicted, and certified."""

from pathlib import Path

import numpy as np
import pytest

import alltoall
from alltoall.check.template import template_time
from alltoall.errors import DemandError, UsageError
from alltoall.ir.demand import Demand
from alltoall.verification import predict
from command_line import Run

TORUS = alltoall.topology("torus:3x3")
ROUTES = alltoall.route(TORUS)
SCHEDULE = alltoall.schedule(TORUS, chunks=2)
TEMPLATES: dict[str, alltoall.Routes | alltoall.Schedule] = {"routes": ROUTES, "schedule": SCHEDULE}


def skewed(seed: int) -> np.ndarray:
    """Return a matrix of amounts of all sizes."""
    matrix = np.random.default_rng(seed).lognormal(0, 1, (9, 9))
    np.fill_diagonal(matrix, 0.0)
    return matrix


@pytest.mark.parametrize("name", TEMPLATES)
def test_its_own_demand_takes_its_own_time(name: str) -> None:
    """A template under the demand that it was made for is what it was made as, at any scale."""
    template = TEMPLATES[name]
    for factor in (1.0, 2.5):
        demand = Demand(9, factor * (1 - np.eye(9)))
        assert template_time(template, demand) == pytest.approx(factor * template.time)


@pytest.mark.parametrize("name", TEMPLATES)
def test_times_are_those_of_the_template_made_again(name: str) -> None:
    """Word for word: the time is that of routes or sends with the amounts of the new demand."""
    template, matrix = TEMPLATES[name], skewed(1)
    report = predict(template, matrix)
    assert report.template_time == pytest.approx(by_hand(template, matrix))
    optimum = alltoall.solve(TORUS, demand=matrix).time
    assert report.template_bound == pytest.approx(optimum, rel=1e-5)
    assert report.template_loss == pytest.approx(report.template_time / optimum - 1, abs=1e-4)


def by_hand(template: alltoall.Routes | alltoall.Schedule, matrix: np.ndarray) -> float:
    """Add up every link of every route, or every send of every step, one by one."""
    loads: dict[tuple[int, int], float] = {}
    if isinstance(template, alltoall.Routes):
        for route in range(template.count):
            amount = matrix[template.source[route], template.destination[route]]
            for link in template.link[template.start[route] : template.start[route + 1]]:
                loads[0, link] = loads.get((0, link), 0.0) + amount * template.weight[route]
    else:
        for send in range(template.sends):
            ends = template.source[send], template.destination[send]
            key = int(template.step[send]), int(template.link[send])
            size = matrix[ends] / template.chunks.of(*(np.array([each]) for each in ends))[0]
            loads[key] = loads.get(key, 0.0) + size
    steps = {step for step, _ in loads}
    return sum(max(load for (at, _), load in loads.items() if at == step) for step in steps)


def test_pairs_without_a_way_are_named() -> None:
    """A template of some pairs serves no demand of others; zeros need no way."""
    only = alltoall.route(TORUS, groups=[(0, 1)])
    matrix = np.zeros((9, 9))
    matrix[0, 1] = 3.0
    assert predict(only, matrix).template_time == pytest.approx(3 * only.weight[0])
    matrix[4, 2] = 1.0
    with pytest.raises(DemandError, match="1 from node 4 to node 2, for which the template has no"):
        predict(only, matrix)


def test_the_verb_prints_time_bound_and_loss(tmp_path: Path, run: Run) -> None:
    """`verify FILE --demand` is the same prediction; a demand needs a template."""
    np.savetxt(tmp_path / "matrix.csv", skewed(2), delimiter=",")
    SCHEDULE.save(tmp_path / "s.json")
    demand = ("--demand", str(tmp_path / "matrix.csv"))
    found = run("verify", str(tmp_path / "s.json"), *demand, "--json").json
    report = predict(SCHEDULE, skewed(2))
    assert found["template_time"] == pytest.approx(report.template_time)
    assert found["template_loss"] == pytest.approx(report.template_loss)
    assert found["template_bound"] <= found["template_time"]
    with pytest.raises(UsageError, match="a demand without a template"):
        alltoall.verify(alltoall.solve(TORUS), demand=skewed(2))


def test_another_number_of_terminals_is_refused() -> None:
    """The demand of another network is none of this template's."""
    with pytest.raises(DemandError, match="between 4 terminals for a template of 9"):
        template_time(ROUTES, Demand(4))
