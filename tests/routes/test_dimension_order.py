"""Dimension order: at the bound on grids, in the fewest layers that are known."""

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from alltoall import Problem, Topology
from alltoall.check.routes import check_routes
from alltoall.errors import InputError
from alltoall.flows.program import certify
from alltoall.ir.grid import grid_of
from alltoall.ir.routes import Routes
from alltoall.routes import route
from alltoall.routes.deadlock_free.best import solve_deadlock_free
from alltoall.routes.dimension_order import (
    dimension_orders,
    enough_layers,
    pack_by_dimension,
    route_by_dimension,
)
from alltoall.routes.layers.assign import assign_layers, layers_in_time
from alltoall.routes.layers.dependencies import dependencies_of
from alltoall.settings import RouteSettings, SolveSettings
from alltoall.topologies.spec import build

SETTINGS = RouteSettings(solve=SolveSettings(workers=1))

BEST: dict[str, tuple[float, int, int]] = {
    "torus:4x4": (8, 1, 1),
    "torus:5x5": (15, 3, 3),
    "torus:6x6": (27, 3, 4),
    "torus:8x8": (64, 3, 4),
    "torus:3x3x3": (9, 1, 1),
    "torus:4x4x4": (32, 1, 1),
    "torus:5x5x5": (75, 4, 6),
    "hypercube:4": (8, 1, 1),
    "mesh:3x4": (12, 1, 1),
}
"""The optimum, the layers of dimension order at it, and those that OpenSM's LASH needs."""


def by_dimension(topology: Topology) -> Routes:
    """Return routes of a grid in dimension order, with the layers that suit them."""
    grid = grid_of(topology)
    assert grid is not None
    problem = Problem.all_to_all(topology)
    routes = route_by_dimension(problem, grid, certify(problem, []), "test")
    packing = pack_by_dimension(topology, grid, dependencies_of(routes), enough_layers(grid))
    assert packing is not None
    return replace(routes, layer=packing[0])


@pytest.mark.parametrize("spec", BEST)
def test_dimension_order_is_optimal_in_few_layers(spec: str) -> None:
    """One route per pair at the bound, in no more layers than OpenSM's LASH needs."""
    time, layers, lash = BEST[spec]
    report = check_routes(by_dimension(build(spec)))
    assert report.time == time
    assert report.layers == layers <= lash


@given(
    sides=st.lists(st.integers(2, 9), min_size=1, max_size=2),
    kind=st.sampled_from(["torus", "mesh", "hyperx"]),
    seed=st.integers(0, 99),
)
def test_enough_layers_are_enough(sides: list[int], kind: str, seed: int) -> None:
    """Whatever the sides and the numbering, all routes go forward and the checker agrees."""
    spec = f"{kind}:{'x'.join(map(str, sides))}"
    straight = build(spec)
    node = np.random.default_rng(seed).permutation(straight.nodes)
    crooked = replace(straight, tail=node[straight.tail], head=node[straight.head])
    for topology in (straight, crooked):
        routes = by_dimension(topology)
        check_routes(routes)
        assert (routes.routes_per_pair() == 1).all()


@pytest.mark.parametrize("layers", [1, 2, 5])
def test_orders_are_permutations_of_the_links(layers: int) -> None:
    """Every layer orders all links, also where there are more layers than are needed."""
    topology = build("torus:5x6")
    grid = grid_of(topology)
    assert grid is not None
    orders = dimension_orders(topology, grid, layers)
    assert orders.shape == (layers, topology.links)
    assert (np.sort(orders, axis=1) == np.arange(topology.links)).all()


@pytest.mark.parametrize("method", ["single", "extp"])
@pytest.mark.parametrize(
    "spec", ["torus:4x4", "torus:5x5", "torus:6x6", "torus:3x3x3", "hypercube:4", "mesh:3x4"]
)
def test_our_methods_need_no_more_layers_than_lash(spec: str, method: str) -> None:
    """At the optimum, in as few layers as OpenSM's LASH needs or fewer."""
    time, _, lash = BEST[spec]
    routes = route(Problem.all_to_all(build(spec)), method, SETTINGS)
    layered, notes = layers_in_time(routes, "lash-sequential", None, SETTINGS.solve)
    report = check_routes(layered)
    assert report.time == pytest.approx(time, rel=1e-9)
    assert (report.layers or 0) <= lash
    assert layered.method == method
    assert all("as fast" in note for note in notes)


@pytest.mark.parametrize("spec", ["torus:4x4", "torus:4x4x4", "hypercube:4", "mesh:3x4"])
def test_one_layer_at_the_bound_is_found_at_once(spec: str) -> None:
    """No round of the search is needed where dimension order is optimal in one layer."""
    said: list[str] = []
    watched = replace(SETTINGS, solve=replace(SETTINGS.solve, report=said.append))
    routes = solve_deadlock_free(Problem.all_to_all(build(spec)), 1, watched)
    report = check_routes(routes)
    assert report.layers == 1
    assert report.time == pytest.approx(BEST[spec][0], rel=1e-6)
    assert not [line for line in said if "round" in line]


def routes_on_uneven_links() -> Routes:
    """Return routes on a torus whose links are of two widths: faster than in dimension order."""
    plain = build("torus:4x4")
    capacity = np.random.default_rng(1).choice([1.0, 2.0], plain.links)
    return route(Problem.all_to_all(replace(plain, capacity=capacity)), "single", SETTINGS)


def test_time_against_layers_is_the_users_choice() -> None:
    """Both points are printed; a limit on the layers takes the slower one, or says what it needs.

    Other algorithms, and methods that promise certain routes, keep theirs.
    """
    routes = routes_on_uneven_links()
    solving = SETTINGS.solve
    fast, notes = layers_in_time(routes, "lash-sequential", None, solving)
    assert fast.time == pytest.approx(routes.time)
    assert "another choice" in notes[0]
    allowed = (fast.layers or 0) - 1
    assert f"--max-layers {allowed}" in notes[0]
    slow, notes = layers_in_time(routes, "lash-sequential", allowed, solving)
    assert (check_routes(slow).layers or 0) <= allowed
    assert slow.time > fast.time
    assert notes[0].startswith("routes in dimension order: time")
    with pytest.raises(InputError, match="0 are allowed"):
        layers_in_time(routes, "lash-sequential", 0, solving)
    assert layers_in_time(routes, "lash", None, solving)[1] == ()
    tables = replace(routes, method="ecmp")
    assert layers_in_time(tables, "lash-sequential", None, solving)[1] == ()


def test_lash_sequential_knows_the_orders_of_a_grid() -> None:
    """Where routes are in dimension order already, they get the layers that suit it."""
    routes = replace(by_dimension(build("torus:5x5x5")), layer=None)
    assert (assign_layers(routes).layers or 0) <= 4
