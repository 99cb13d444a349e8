"""Injection control: few flows at once, within the stated loss."""

from functools import cache

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from alltoall.errors import InputError, UsageError
from alltoall.ir.arrays import Floats
from alltoall.ir.problem import Problem
from alltoall.ir.routes import Routes
from alltoall.routes.phases import Phases, split_phases
from alltoall.routes.single import route_single
from alltoall.settings import RouteSettings
from alltoall.topologies.spec import build
from strategies import problems

SETTINGS = RouteSettings()


@cache
def single(spec: str) -> Routes:
    """Return one route per pair."""
    return route_single(Problem.all_to_all(build(spec)), SETTINGS)


def times_of(phases: Phases) -> Floats:
    """Recompute the time of each phase, route by route."""
    routes = phases.routes
    load = np.zeros((phases.count, routes.problem.topology.links))
    for route in range(routes.count):
        links = routes.link[routes.start[route] : routes.start[route + 1]]
        load[phases.phase[route], links] += routes.weight[route]
    return np.asarray((load / routes.problem.topology.capacity).max(axis=1), dtype=np.float64)


@pytest.mark.parametrize(
    ("spec", "loss", "least"),
    [("hypercube:3", 0.0, 4), ("torus:3x3x3", 0.0, 9), ("genkautz:n=30,d=4", 0.1, 8)],
)
def test_as_many_phases_as_the_loss_allows(spec: str, loss: float, least: int) -> None:
    """A phase per unit of load on symmetric networks, at no loss."""
    phases = split_phases(single(spec), None, loss)
    assert phases.count >= least
    assert phases.time <= phases.routes.time * (1 + loss) * (1 + 1e-9)
    assert phases.times == pytest.approx(times_of(phases))
    summary = phases.summary()
    assert summary["phases"] == phases.count
    assert summary["mean_active_flows"] == pytest.approx(phases.routes.count / phases.count)
    assert summary["max_active_flows_per_source"] <= summary["max_active_flows"]
    assert int(phases.active_of_source.sum()) == phases.routes.count


def test_a_stated_number_of_phases() -> None:
    """Exactly as many as asked for, with the least loss found."""
    phases = split_phases(single("torus:3x3x3"), 3, 0.5)
    assert phases.count == 3
    assert phases.loss == pytest.approx(0.0)
    assert phases.active.max() < 0.5 * phases.routes.count


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
    phases = split_phases(route_single(problem, SETTINGS), None, loss)
    assert times_of(phases).sum() <= phases.routes.time * (1 + loss) * (1 + 1e-6)
    assert phases.active.min() > 0


def test_same_answer_twice() -> None:
    """Splitting is deterministic."""
    routes = single("genkautz:n=30,d=4")
    once, again = (split_phases(routes, 4, 0.2).phase for _ in range(2))
    assert np.array_equal(once, again)


def test_phases_must_fit_their_routes() -> None:
    """One phase per route, and none left out."""
    routes = single("hypercube:3")
    with pytest.raises(InputError, match="one per route"):
        Phases(routes, np.zeros(3, dtype=np.int64))
    with pytest.raises(InputError, match="gaps"):
        Phases(routes, np.full(routes.count, 1))
