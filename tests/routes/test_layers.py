"""Layer assignment: acyclic by the independent checker, and as few layers as are known to do."""

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from layer_cases import random_routes, routes_over, short_paths, walk

from alltoall import Problem, Topology
from alltoall.check.routes import check_routes
from alltoall.errors import InputError, UsageError, VerificationError
from alltoall.flows import sizes, solve
from alltoall.ir.routes import Routes
from alltoall.routes.layers import lash
from alltoall.routes.layers.assign import LAYERINGS, assign_layers, layers_in_time
from alltoall.routes.layers.dependencies import (
    dependencies_of,
    forward_routes,
    layer_orders,
    pack_by_orders,
)
from alltoall.routes.weights import routes_of_flow
from alltoall.settings import SolveSettings
from alltoall.topologies.spec import build
from strategies import problems

ALGORITHMS = sorted(LAYERINGS)


@pytest.mark.parametrize("algorithm", ALGORITHMS)
@given(problem=problems(), seed=st.integers(0, 1000), per_pair=st.integers(1, 3))
def test_no_layer_can_deadlock(algorithm: str, problem: Problem, seed: int, per_pair: int) -> None:
    """Whatever the routes, the checker finds no cycle, and layers are numbered without holes."""
    layered = assign_layers(random_routes(problem, seed, per_pair), algorithm)
    assert layered.layer is not None
    check_routes(layered)
    assert set(layered.layer) == set(range(layered.layers or 0))


@pytest.mark.parametrize("algorithm", ALGORITHMS)
@pytest.mark.parametrize(
    "spec",
    [
        "torus:4x4",
        "hypercube:3",
        "genkautz:n=20,d=3",
        "jellyfish:n=16,d=4,seed=1",
        "dragonfly:a=3,h=1",
        "slimfly:q=3",
        "fattree:k=4",
        "bipartite:4x4",
        "dgx2",
    ],
)
def test_optimal_routes_get_sound_layers(algorithm: str, spec: str) -> None:
    """The routes of the maximum concurrent flow, and one random path per pair, cannot deadlock."""
    problem = Problem.all_to_all(build(spec))
    for routes in (routes_of_flow(solve(problem, "grouped")), random_routes(problem, 1, 1)):
        assert (check_routes(assign_layers(routes, algorithm)).layers or 0) <= 7


@pytest.mark.parametrize("algorithm", ALGORITHMS)
@pytest.mark.parametrize("nodes", [4, 5, 6, 9])
def test_a_ring_needs_two_layers(algorithm: str, nodes: int) -> None:
    """Shortest paths on a ring, halfway ones clockwise, wait in a circle unless split in two."""
    problem = Problem.all_to_all(build(f"ring:{nodes}"))
    paths = []
    for source in range(nodes):
        for far in range(1, nodes):
            step, hops = (1, far) if 2 * far <= nodes else (-1, nodes - far)
            stops = [(source + step * hop) % nodes for hop in range(hops + 1)]
            paths.append(walk(problem.topology, stops))
    routes = routes_over(problem, paths)
    assert check_routes(assign_layers(routes, algorithm)).layers == 2


@pytest.mark.parametrize("algorithm", ALGORITHMS)
def test_dimension_order_on_a_mesh_needs_one_layer(algorithm: str) -> None:
    """All of one dimension, then all of the other: the classic deadlock-free routing."""
    problem = Problem.all_to_all(build("mesh:3x4"))
    paths = []
    for source in range(12):
        for target in range(12):
            (a, b), (c, d) = divmod(source, 4), divmod(target, 4)
            across = range(a, c, 1 if c > a else -1)
            along = range(b, d, 1 if d > b else -1)
            stops = [x * 4 + b for x in across] + [c * 4 + y for y in along] + [target]
            if source != target:
                paths.append(walk(problem.topology, stops))
    assert assign_layers(routes_over(problem, paths), algorithm).layers == 1


@pytest.mark.parametrize("algorithm", ALGORITHMS)
def test_a_tree_needs_one_layer(algorithm: str) -> None:
    """Up and then down a tree there is nothing to wait for in a circle."""
    tree = Topology.from_edges("tree", 15, [(child, (child - 1) // 2) for child in range(1, 15)])
    routes = random_routes(Problem.all_to_all(tree), 0, 1)
    assert assign_layers(routes, algorithm).layers == 1


@pytest.mark.parametrize("algorithm", ALGORITHMS)
def test_one_hop_routes_need_one_layer(algorithm: str) -> None:
    """A route of one link holds nothing while it waits."""
    routes = random_routes(Problem.all_to_all(build("complete:5")), 0, 1)
    direct = routes_over(routes.problem, short_paths(routes.problem, np.ones(20)))
    assert assign_layers(direct, algorithm).layers == 1


@given(problem=problems(), seed=st.integers(0, 1000), per_pair=st.integers(1, 3))
def test_packing_by_orders_cannot_deadlock(problem: Problem, seed: int, per_pair: int) -> None:
    """What very many routes get, on few: acyclic, and layers numbered without holes."""
    routes = random_routes(problem, seed, per_pair)
    layer = pack_by_orders(dependencies_of(routes), seed)
    check_routes(replace(routes, layer=layer))
    assert set(layer) == set(range(layer.max() + 1))


@pytest.mark.parametrize(("spec", "most"), [("torus:4x4", 3), ("genkautz:n=64,d=4", 5)])
def test_very_many_routes_are_packed_by_orders_of_the_links(
    spec: str, most: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """About as few layers as by offering routes one by one."""
    monkeypatch.setattr(sizes, "OFFERED_DEPENDENCIES", 0)
    routes = random_routes(Problem.all_to_all(build(spec)), 1, 1)
    assert (check_routes(assign_layers(routes)).layers or 0) <= most


def test_orders_for_a_given_number_of_layers_miss_few_routes() -> None:
    """Two orders for what needs three layers: nearly all routes go forward in one of them."""
    routes = random_routes(Problem.all_to_all(build("genkautz:n=32,d=4")), 1, 1)
    dependencies = dependencies_of(routes)
    ranks = layer_orders(dependencies, 2, 0)
    assert len(ranks) == 2
    flags = [forward_routes(dependencies, rank) for rank in ranks]
    assert 1 - (flags[0] | flags[1]).mean() < 0.1
    for rank, forward in zip(ranks, flags, strict=True):
        for route in range(routes.count):
            places = rank[routes.link[routes.start[route] : routes.start[route + 1]]]
            assert forward[route] == bool((np.diff(places) > 0).all())


def test_sequential_never_needs_more_than_plain_lash() -> None:
    """Among the packings that it compares is that of `lash`."""
    for seed in range(5):
        routes = random_routes(Problem.all_to_all(build("jellyfish:n=24,d=3,seed=2")), seed, 2)
        lash, sequential = (assign_layers(routes, name) for name in ("lash", "lash-sequential"))
        assert (sequential.layers or 0) <= (lash.layers or 0)


@pytest.mark.parametrize(("spec", "asked"), [("ring:6", False), ("genkautz:n=24,d=3", True)])
def test_orders_of_the_links_are_tried_beyond_two_layers(
    spec: str, asked: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Two layers are left as they are; where there are more, a packing into fewer wins."""
    routes = random_routes(Problem.all_to_all(build(spec)), 1, 2)
    needed = assign_layers(routes).layers or 0
    assert (needed > 2) == asked
    single = np.zeros(routes.count, dtype=np.int64)
    monkeypatch.setattr(lash, "pack_by_orders", lambda *_: single)
    assert assign_layers(routes).layers == (1 if asked else 2)


def test_the_same_seed_gives_the_same_layers() -> None:
    """Random orders come from the seed alone."""
    routes = random_routes(Problem.all_to_all(build("jellyfish:n=24,d=3,seed=2")), 0, 2)
    first, second = (assign_layers(routes, seed=3) for _ in range(2))
    assert first.layer is not None
    assert np.array_equal(first.layer, second.layer)  # type: ignore[arg-type]


def test_the_seed_is_zero_unless_given(monkeypatch: pytest.MonkeyPatch) -> None:
    """By orders of the links another seed leads to other layers."""
    monkeypatch.setattr(sizes, "OFFERED_DEPENDENCIES", 0)
    routes = random_routes(Problem.all_to_all(build("genkautz:n=40,d=3")), 1, 2)
    given, zero, other = (
        assign_layers(routes, **seed).layer.tolist()  # type: ignore[arg-type, union-attr]
        for seed in ({}, {"seed": 0}, {"seed": 1})
    )
    assert given == zero
    assert given != other


def test_layers_say_that_they_are_assigned_and_hear_the_clock() -> None:
    """A word before the work; no layer at all once time is up."""
    said: list[str] = []
    routes = random_routes(Problem.all_to_all(build("ring:5")), 1, 1)
    found, notes = layers_in_time(routes, "lash", None, SolveSettings(report=said.append))
    assert said[0] == "assigning layers"
    assert found.layers == 2
    assert notes == ()
    with pytest.raises(TimeoutError):
        assign_layers(routes, settings=SolveSettings(stopped=lambda: True))


def test_too_few_layers_are_an_input_error() -> None:
    """The message says how many are needed."""
    routes = random_routes(Problem.all_to_all(build("torus:4x4")), 0, 3)
    needed = assign_layers(routes).layers or 0
    assert needed > 1
    assert assign_layers(routes, max_layers=needed).layers == needed
    with pytest.raises(InputError, match=f"needs {needed} virtual layers"):
        assign_layers(routes, max_layers=1)


def test_an_unknown_algorithm_is_a_usage_error() -> None:
    """The message lists what there is."""
    routes = random_routes(Problem.all_to_all(build("ring:4")), 0, 1)
    with pytest.raises(UsageError, match="lash-sequential"):
        assign_layers(routes, "first-come")


@pytest.mark.parametrize("algorithm", ALGORITHMS)
def test_a_route_that_waits_for_itself_is_refused(algorithm: str) -> None:
    """Going round a ring more than once fits no layer; it is refused instead of tried forever."""
    problem = Problem.all_to_all(build("ring:3"))
    round_and_on = walk(problem.topology, [0, 1, 2, 0, 1])
    with pytest.raises(InputError, match="circle"):
        assign_layers(routes_over(problem, [round_and_on]), algorithm)


def test_orders_refuse_a_route_that_waits_for_itself() -> None:
    """No order of the links lets it go forward."""
    problem = Problem.all_to_all(build("ring:3"))
    routes = routes_over(problem, [walk(problem.topology, [0, 1, 2, 0, 1])])
    with pytest.raises(InputError, match="circle"):
        pack_by_orders(dependencies_of(routes), 0)


def test_the_checker_sees_a_cycle() -> None:
    """All routes of a ring in one layer: the check that the other tests rely on does fail."""
    problem = Problem.all_to_all(build("ring:5"))
    routes = routes_over(problem, short_paths(problem, np.ones(10)))
    flat = Routes(**{**vars(routes), "layer": np.zeros(routes.count, dtype=np.int64)})
    with pytest.raises(VerificationError, match="deadlock"):
        check_routes(flat)
