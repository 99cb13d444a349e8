"""Throughput under deadlock freedom: sound routes, known optima, more layers never worse."""

import re

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from alltoall import Problem, Topology, core
from alltoall.check.routes import check_routes
from alltoall.errors import InputError, UsageError
from alltoall.flows import solve
from alltoall.ir.arrays import Floats, Ints
from alltoall.ir.routes import Routes
from alltoall.routes.deadlock_free.best import solve_deadlock_free
from alltoall.routes.deadlock_free.by_program import layered_graph, solve_layered
from alltoall.routes.deadlock_free.lanes import Lanes, up_down_orders
from alltoall.routes.weights import routes_of_flow
from alltoall.settings import RouteSettings, SolveSettings
from alltoall.topologies.spec import build
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


def distance(lanes: Lanes, order: Ints, lengths: Floats) -> float:
    """Return the sum of demand times shortest path forward, far above any if there is none."""
    wanted = np.ascontiguousarray(lanes.problem.demand.table().T, dtype=np.float32)
    single = lengths[lanes.link].astype(np.float32)
    graph = core.Graph(lanes.copies * lanes.problem.topology.nodes, *lanes.ends)
    return core.improve_order(order, graph, lanes.terminals, single, wanted, 0, 0)


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
    for count in range(1, 4):
        try:
            report = check_routes(solve_deadlock_free(problem, count, SETTINGS))
        except InputError:
            assert last == np.inf
            continue
        assert (report.layers or 0) <= count
        assert report.time <= last * (1 + 1e-9)
        last = report.time


@given(problem=problems(), layers=st.integers(1, 3), change=st.booleans(), seed=st.integers(0, 99))
def test_program_and_distances_agree(
    problem: Problem, layers: int, change: bool, seed: int
) -> None:
    """The duals of the program prove its optimum, by a pass over the order that shares no code."""
    lanes = Lanes(problem, layers, change)
    order = np.random.default_rng(seed).permutation(len(lanes.link))
    layered = layered_graph(lanes, order)
    reach = np.zeros((len(layered.program.groups.start), layered.graph.nodes), dtype=bool)
    row, link = layered.variables()
    reach[row, layered.graph.head[link]] = True
    if not reach[layered.program.groups.wanted > 0].all():
        return
    result, _ = solve_layered(layered, SETTINGS.solve)
    assert result.x is not None
    assert result.row_dual is not None
    links = problem.topology.links
    dual = np.maximum(-result.row_dual[-links:], 0.0)
    proven = distance(lanes, order, dual) / float(problem.topology.capacity @ dual)
    assert proven == pytest.approx(result.x[-1], rel=1e-4)


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
    """Up to the root and down again is a path forward, in every layer by itself."""
    problem = Problem.all_to_all(build("jellyfish:n=16,d=3,seed=1"))
    links, lanes = problem.topology.links, Lanes(problem, 1, change=False)
    for order in up_down_orders(problem, 2):
        # A pair without a path would count more than twice all links.
        assert distance(lanes, order, np.ones(links)) < 16 * 15 * links


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
        found = re.search(r"order tried: ([-0-9.]+)% above", message)
        heard.extend([float(found[1]) / 100] if found else [])

    problem = Problem.all_to_all(build("genkautz:n=12,d=3"))
    settings = SolveSettings(report=listen, stopped=lambda: bool(heard))
    routes = solve_deadlock_free(problem, 1, RouteSettings(solve=settings))
    assert heard
    assert routes.time <= routes.bound * (1 + heard[-1]) * 1.001
