"""Throughput under deadlock freedom: sound routes, known optima, more layers never worse."""

import re
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from alltoall import Problem, SolveSettings, Topology, build
from alltoall.check.routes import check_routes
from alltoall.errors import InputError, UsageError
from alltoall.flows import solve
from alltoall.ir.routes import Routes
from alltoall.routes.deadlock_free import search
from alltoall.routes.deadlock_free.best import deadlock_free_by_layers, solve_deadlock_free
from alltoall.routes.deadlock_free.graph import layered_graph
from alltoall.routes.deadlock_free.orders import improve_orders, order_bounds, up_down_orders
from alltoall.routes.deadlock_free.search import least_time
from alltoall.routes.extp import routes_of_flow
from alltoall.settings import RouteSettings
from strategies import problems

SETTINGS = RouteSettings(solve=SolveSettings(workers=1))
ENOUGH = 8
"""More layers than the optimum of any problem here needs."""


def solved(spec: str, layers: int) -> Routes:
    """Return checked routes on a topology."""
    routes = solve_deadlock_free(Problem.all_to_all(build(spec)), layers, SETTINGS)
    check_routes(routes)
    assert (routes.layers or 0) <= layers
    return routes


def forward(routes: Routes, orders: np.ndarray) -> bool:
    """Whether every route goes forward in the order of its layer."""
    assert routes.layer is not None
    place = np.argsort(orders, axis=1)[routes.layer[routes.path_of_link], routes.link]
    within = routes.path_of_link[1:] == routes.path_of_link[:-1]
    return bool((place[1:] > place[:-1])[within].all())


@settings(max_examples=15)
@given(problem=problems(max_nodes=5))
def test_enough_layers_reach_the_unrestricted_optimum(problem: Problem) -> None:
    """With a layer for every conflict nothing is lost, and the certificate shows it."""
    routes = solve_deadlock_free(problem, ENOUGH, SETTINGS)
    check_routes(routes)
    assert routes.time == pytest.approx(solve(problem, "grouped").time, rel=1e-6)


@settings(max_examples=15)
@given(problem=problems(max_nodes=5))
def test_more_layers_are_never_worse(problem: Problem) -> None:
    """Each answer is sound, within its own bound, and no slower than with a layer less."""
    last = np.inf
    for count, answer in enumerate(deadlock_free_by_layers(problem, 3, SETTINGS), start=1):
        if answer is None:
            assert last == np.inf
            continue
        report = check_routes(answer.routes)
        assert (report.layers or 0) <= count
        assert forward(answer.routes, answer.orders)
        assert report.bound * (1 - 1e-6) <= answer.order_bound <= report.time * (1 + 1e-6)
        assert report.time <= last * (1 + 1e-9)
        last = report.time


@settings(max_examples=25)
@given(problem=problems(), layers=st.integers(1, 3), seed=st.integers(0, 99))
def test_annealing_keeps_orders_and_never_raises_the_score(
    problem: Problem, layers: int, seed: int
) -> None:
    """Every order stays a permutation of the links; under one length the bound cannot grow."""
    rng = np.random.default_rng(seed)
    links = problem.topology.links
    orders = np.stack([rng.permutation(links) for _ in range(layers)])
    bounds = order_bounds(problem, [rng.random(links) + 0.1])
    better = improve_orders(bounds, orders, 400, seed)
    assert (np.sort(better, axis=1) == np.arange(links)).all()
    assert bounds.of(better)[0] <= bounds.of(orders)[0] * (1 + 1e-9)


@settings(max_examples=25)
@given(problem=problems(), layers=st.integers(1, 3), seed=st.integers(0, 99))
def test_program_and_bounds_agree(problem: Problem, layers: int, seed: int) -> None:
    """The duals of the program prove its optimum, by a pass over the links that shares no code."""
    rng = np.random.default_rng(seed)
    links = problem.topology.links
    orders = np.stack([rng.permutation(links) for _ in range(layers)])
    connected = np.isfinite(order_bounds(problem, [np.ones(links)]).of(orders)).all()
    if connected:
        time, dual = least_time(layered_graph(problem, orders), SETTINGS.solve)
        assert order_bounds(problem, [dual]).of(orders)[0] == pytest.approx(time, rel=1e-5)


def test_a_ring_in_one_layer_loses_a_third() -> None:
    """With one layer each direction of a ring of 5 is cut once; this is the best cut."""
    assert solved("ring:5", 1).time == pytest.approx(4.0)
    assert solved("ring:5", 2).time == pytest.approx(3.0)


@pytest.mark.parametrize("spec", ["mesh:3x3", "complete:5", "fattree:k=4", "slimfly:q=3"])
def test_some_topologies_lose_nothing_in_one_layer(spec: str) -> None:
    """Where an order of the links leaves room for an optimum, one layer reaches it."""
    assert solved(spec, 1).gap <= 1e-6


@pytest.mark.parametrize("spec", ["torus:3x3", "hypercube:3", "genkautz:n=12,d=3", "bipartite:4x4"])
def test_two_layers_reach_the_optimum(spec: str) -> None:
    """The families of the paper need one layer more than none at all."""
    assert solved(spec, 2).gap <= 1e-6


def test_the_same_seed_gives_the_same_routes() -> None:
    """Nothing but the seed is random."""
    first, second = (solved("torus:3x3", 1) for _ in range(2))
    for key in ("link", "weight", "layer", "start"):
        assert np.array_equal(getattr(first, key), getattr(second, key))


def test_an_up_down_order_connects_all_pairs() -> None:
    """Up to the root and down again is a way forward, in every layer by itself."""
    problem = Problem.all_to_all(build("jellyfish:n=16,d=3,seed=1"))
    first, second = up_down_orders(problem, 2)
    bounds = order_bounds(problem, [np.ones(problem.topology.links)])
    assert np.isfinite(bounds.of(first[None])).all()
    assert np.isfinite(bounds.of(second[None])).all()


def test_too_few_layers_for_any_route_are_an_input_error() -> None:
    """On a one-way ring of 5, one layer leaves some pair without any route."""
    one_way = Topology.from_links("one way", 5, [(node, (node + 1) % 5) for node in range(5)])
    problem = Problem.all_to_all(one_way)
    with pytest.raises(InputError, match="allow more layers"):
        solve_deadlock_free(problem, 1, SETTINGS)
    check_routes(solve_deadlock_free(problem, 4, SETTINGS))


def test_no_layers_are_a_usage_error() -> None:
    """At least one layer is needed to route at all."""
    with pytest.raises(UsageError, match="at least 1"):
        solve_deadlock_free(Problem.all_to_all(build("ring:4")), 0, SETTINGS)


def test_without_time_the_routes_are_still_sound() -> None:
    """A time limit returns the best so far, at worst shortest ways forward."""
    hurry = RouteSettings(solve=SolveSettings(workers=1, time_limit=1e-6))
    routes = solve_deadlock_free(Problem.all_to_all(build("torus:3x3")), 1, hurry)
    assert check_routes(routes).layers == 1


def test_peeled_routes_load_no_link_more_than_the_flow() -> None:
    """Routes of a flow carry the same, per source and per pair."""
    problem = Problem.all_to_all(build("genkautz:n=12,d=3"))
    for method in ("grouped", "decomposed"):
        flow = solve(problem, method)
        routes = routes_of_flow(flow)
        check_routes(routes)
        assert (routes.load() <= flow.load() * flow.time + 1e-9).all()


def test_stopped_in_the_search_the_best_found_is_the_answer() -> None:
    """A signal ends the search, and not what it has found: that has its routes already."""
    heard: list[float] = []

    def listen(message: str) -> None:
        found = re.search(r"round \d+: ([-0-9.]+)% above", message)
        heard.extend([float(found[1]) / 100] if found else [])

    problem = Problem.all_to_all(build("genkautz:n=12,d=3"))
    settings = SolveSettings(report=listen, stopped=lambda: bool(heard))
    routes = solve_deadlock_free(problem, 1, RouteSettings(solve=settings))
    assert heard
    assert routes.time <= routes.bound * (1 + heard[-1]) * 1.001


def test_half_a_vertex_is_no_answer(monkeypatch: pytest.MonkeyPatch) -> None:
    """What a solver leaves of a vertex at its limit is not taken for one."""
    problem, asked = Problem.all_to_all(build("mesh:3x3")), SolveSettings()
    layered = layered_graph(problem, up_down_orders(problem, 1))
    known = search.from_the_inside(layered, asked)
    assert known.x is not None
    nothing = replace(known, x=np.zeros_like(known.x))
    monkeypatch.setattr(search, "_solve", lambda *_, vertex: nothing)
    volumes, _ = search.least_volumes(layered, asked, known)
    assert layered.program.time(volumes) == pytest.approx(known.x[-1], rel=1e-6)
    slower, _ = search.least_volumes(layered, asked, None)
    assert layered.program.time(slower) > 1.1 * known.x[-1]
