"""Every baseline on every problem: valid routes that carry the demand, never below the optimum."""

import numpy as np
import pytest
from baseline_cases import CASES, case, optimum, settings
from hypothesis import given

from alltoall.check.routes import check_routes
from alltoall.errors import InputError
from alltoall.flows import solve
from alltoall.ir.problem import Problem
from alltoall.routes import ROUTERS, route
from alltoall.routes.baselines import BASELINES
from strategies import problems

ANYWHERE = sorted(BASELINES.keys() - {"dor", "updown"})
SINGLE = ("ecmp", "sssp", "ilp-disjoint", "ilp-shortest")


@pytest.mark.parametrize("method", ANYWHERE)
@pytest.mark.parametrize("name", CASES)
def test_routes_are_valid_and_not_below_the_optimum(name: str, method: str) -> None:
    """The checker passes, and no routes beat the certified bound of the MCF."""
    routes = ROUTERS[method](case(name), settings())
    report = check_routes(routes)
    assert routes.method == method
    assert report.time >= optimum(name) * (1 - 1e-9)
    if method in SINGLE:
        assert report.max_routes_per_pair == 1


@pytest.mark.parametrize("method", ANYWHERE)
@given(problem=problems())
def test_random_problems(method: str, problem: Problem) -> None:
    """Parallel links, switches, uneven demands and capacities: all are routed."""
    report = check_routes(ROUTERS[method](problem, settings()))
    assert report.time >= solve(problem, "grouped").bound * (1 - 1e-6)


@pytest.mark.parametrize("method", [*ANYWHERE, "dor", "updown"])
def test_same_seed_same_answer(method: str) -> None:
    """Nothing depends on the clock or on the order of sets."""
    first, second = (ROUTERS[method](case("torus:3x3x3"), settings(60.0)) for _ in range(2))
    for key in ("source", "destination", "start", "link", "weight"):
        assert np.array_equal(getattr(first, key), getattr(second, key))


@pytest.mark.parametrize("method", [*ANYWHERE, "dor", "updown"])
def test_out_of_time_is_still_an_answer(method: str) -> None:
    """A time limit that has passed already returns what there is, valid all the same."""
    routes = route(case("torus:3x3x3"), method, settings(seconds=1e-6))
    assert check_routes(routes).time >= 9.0 * (1 - 1e-9)


@pytest.mark.parametrize(
    "name", ["fattree:k=4", "punctured torus", "node-punctured torus", "hosted ring"]
)
def test_dor_refuses_what_is_not_a_whole_grid(name: str) -> None:
    """Only whole grids have dimensions to order."""
    with pytest.raises(InputError, match="dimension-ordered routing is defined for"):
        ROUTERS["dor"](case(name), settings())
