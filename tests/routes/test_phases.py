"""Injection control: few flows at once, within the stated loss."""

from functools import cache

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from alltoall.errors import InputError, UsageError
from alltoall.ir.arrays import Floats, Ints
from alltoall.ir.problem import Problem
from alltoall.ir.routes import Routes
from alltoall.routes.phases import even_phases, split_phases
from alltoall.routes.single import route_single
from alltoall.settings import RouteSettings
from alltoall.topologies.spec import build
from strategies import problems

SETTINGS = RouteSettings()


@cache
def single(spec: str) -> Routes:
    """Return one route per pair."""
    return route_single(Problem.all_to_all(build(spec)), SETTINGS)


def times_of(routes: Routes, phase: Ints) -> Floats:
    """Recompute the time of each phase, route by route; no phase is empty."""
    assert np.array_equal(np.unique(phase), np.arange(phase.max() + 1))
    load = np.zeros((phase.max() + 1, routes.problem.topology.links))
    for route in range(routes.count):
        links = routes.link[routes.start[route] : routes.start[route + 1]]
        load[phase[route], links] += routes.weight[route]
    return np.asarray((load / routes.problem.topology.capacity).max(axis=1), dtype=np.float64)


@pytest.mark.parametrize(
    ("spec", "loss", "least"),
    [("hypercube:3", 0.0, 4), ("torus:3x3x3", 0.0, 9), ("genkautz:n=30,d=4", 0.1, 8)],
)
def test_as_many_phases_as_the_loss_allows(spec: str, loss: float, least: int) -> None:
    """A phase per unit of load on symmetric networks, at no loss."""
    phase = split_phases(single(spec), None, loss)
    assert len(phase) == single(spec).count
    assert phase.max() + 1 >= least
    assert times_of(single(spec), phase).sum() <= single(spec).time * (1 + loss) * (1 + 1e-9)


def test_a_stated_number_of_phases() -> None:
    """Exactly as many as asked for, with the least loss found."""
    routes = single("torus:3x3x3")
    phase = split_phases(routes, 3, 0.5)
    assert phase.max() + 1 == 3
    assert times_of(routes, phase).sum() == pytest.approx(routes.time)
    assert np.bincount(phase).max() < 0.5 * routes.count


def test_too_many_phases_are_refused() -> None:
    """What cannot be had within the loss is refused with a way out."""
    with pytest.raises(InputError, match="allow a larger loss, fewer phases"):
        split_phases(single("hypercube:3"), 5, 0.1)
    for phases, loss in ((0, 0.1), (57, 0.1), (2, -1.0)):
        with pytest.raises(UsageError):
            split_phases(single("hypercube:3"), phases, loss)


@given(problem=problems(), loss=st.sampled_from([0.0, 0.2, 1.0]))
def test_the_loss_is_kept(problem: Problem, loss: float) -> None:
    """Whatever the demand and the capacities, the sum of the phases' times is within the loss."""
    routes = route_single(problem, SETTINGS)
    phase = split_phases(routes, None, loss)
    assert times_of(routes, phase).sum() <= routes.time * (1 + loss) * (1 + 1e-6)


@given(st.integers(0, 2**32 - 1), st.integers(1, 4), st.integers(0, 8))
def test_phases_are_evened_out_within_budgets(seed: int, phases: int, count: int) -> None:
    """Counts of flows come closer, loads stay true and within the budgets."""
    rng = np.random.default_rng(seed)
    routes = [rng.permutation(4)[: rng.integers(1, 4)] for _ in range(count)]
    weight, source = rng.random(count), rng.integers(0, 2, count)
    rows = [(row, np.full(len(row), each)) for row, each in zip(routes, weight, strict=True)]
    phase = rng.integers(0, phases, count)

    def measured() -> tuple[Floats, Ints]:
        load, active = np.zeros((phases, 4)), np.zeros((phases, 2), dtype=np.int64)
        for there, (links, time) in zip(phase, rows, strict=True):
            load[there, links] += time
        np.add.at(active, (phase, source), 1)
        return load, active

    load, active = measured()
    budget, before = np.full(phases, max(1.0, load.max(initial=0))), (active**2).sum()
    while even_phases(rows, source, budget, load, active, phase):
        assert (active**2).sum() < before
    expected = measured()
    assert load == pytest.approx(expected[0])
    assert np.array_equal(active, expected[1])
    assert (load <= budget[:, None] + 1e-9).all()


def test_same_answer_twice() -> None:
    """Splitting is deterministic."""
    routes = single("genkautz:n=30,d=4")
    once, again = (split_phases(routes, 4, 0.2) for _ in range(2))
    assert np.array_equal(once, again)
