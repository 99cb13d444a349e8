"""Orders of channels: ways forward in them, better orders, and routes that may change layer."""

from dataclasses import replace

import networkx as nx
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from alltoall import core
from alltoall.check.routes import check_routes
from alltoall.errors import AlltoallError, InputError, UsageError
from alltoall.flows.program import certify
from alltoall.ir.arrays import Floats, Ints
from alltoall.ir.demand import Demand
from alltoall.ir.grid import grid_of
from alltoall.ir.paths import NOTHING
from alltoall.ir.problem import Problem
from alltoall.ir.topology import Topology
from alltoall.placing.chunks import Chunks
from alltoall.placing.place import place
from alltoall.routes.deadlock_free import best
from alltoall.routes.deadlock_free.best import solve_deadlock_free
from alltoall.routes.deadlock_free.lanes import (
    Lanes,
    Singles,
    by_dimension,
    first_orders,
    forward_network,
    hop_layers,
)
from alltoall.routes.dimension_order import route_by_dimension
from alltoall.routes.public import route
from alltoall.settings import RouteSettings, SolveSettings
from alltoall.topologies.operators import with_host_bandwidth
from alltoall.topologies.spec import build

SPECS = ("ring:5", "genkautz:n=7,d=2", "mesh:2x3", "jellyfish:n=8,d=3,seed=1")
CHANGING = RouteSettings(layer_change=True)
ONE_WAY = Problem.all_to_all(
    Topology.from_links("one-way ring", 6, [(node, (node + 1) % 6) for node in range(6)])
)


def forward_graph(lanes: Lanes, order: Ints) -> "nx.DiGraph[int]":
    """Return the channels, and from each to those that a way may go on to."""
    tails, heads = lanes.ends
    graph: nx.DiGraph[int] = nx.DiGraph()
    graph.add_nodes_from(order.tolist())
    for rank, held in enumerate(order.tolist()):
        later = order[rank + 1 :]
        graph.add_edges_from((held, int(each)) for each in later[tails[later] == heads[held]])
    return graph


def hops_by_graph(lanes: Lanes, order: Ints) -> Floats:
    """Return the hops between all terminals by another library, infinite where there is no way."""
    nodes = lanes.problem.topology.nodes
    tails, heads = (each % nodes for each in lanes.ends)
    hops = np.full((nodes, nodes), np.inf)
    for first, ways in nx.all_pairs_shortest_path_length(forward_graph(lanes, order)):
        for last, length in ways.items():
            ends = tails[first], heads[last]
            hops[ends] = min(hops[ends], length + 1)
    np.fill_diagonal(hops, 0.0)
    return hops


def drawn(spec: str, layers: int, change: bool, seed: int) -> tuple[Lanes, Ints]:
    """Return lanes and a random order of their channels."""
    lanes = Lanes(Problem.all_to_all(build(spec)), layers, change)
    return lanes, np.random.default_rng(seed).permutation(len(lanes.link))


def game(lanes: Lanes) -> tuple[core.Graph, Ints, Singles, Singles]:
    """Return the channels as the core takes them, where every link has length 1."""
    wanted = np.ascontiguousarray(lanes.problem.demand.table().T, dtype=np.float32)
    graph = core.Graph(lanes.copies * lanes.problem.topology.nodes, *lanes.ends)
    return graph, lanes.terminals, np.ones(len(lanes.link), np.float32), wanted


CASES = given(
    spec=st.sampled_from(SPECS),
    layers=st.integers(1, 3),
    change=st.booleans(),
    seed=st.integers(0, 1000),
)


@CASES
def test_chunks_go_forward_over_fewest_hops(
    spec: str, layers: int, change: bool, seed: int
) -> None:
    """A way is found if there is one; it is simple, in order, and in one layer if it has to be."""
    lanes, order = drawn(spec, layers, change, seed)
    source, destination = lanes.problem.demand.pairs()
    chunks = Chunks(source, destination, np.ones(len(source)))
    placed = place(forward_network(lanes, order), chunks, np.inf)
    wanted = hops_by_graph(lanes, order)
    if not np.isfinite(wanted).all():
        assert placed is None
        return
    assert placed is not None
    rank, topology = np.argsort(order), lanes.problem.topology
    for s, t, row in zip(source, destination, placed.table, strict=True):
        way = row[row != NOTHING]
        assert len(way) == wanted[s, t]
        assert (np.diff(rank[way]) > 0).all()
        assert change or len(set(lanes.layer[way])) == 1
        nodes = [s, *topology.head[lanes.link[way]]]
        assert nodes[-1] == t
        assert len(set(nodes)) == len(nodes)
        assert topology.tail[lanes.link[way]].tolist() == nodes[:-1]
    load = np.bincount(lanes.link[placed.table[placed.table != NOTHING]], minlength=topology.links)
    assert placed.time == (load / topology.capacity).max()


@CASES
def test_the_distance_of_an_order_is_that_of_its_graph(
    spec: str, layers: int, change: bool, seed: int
) -> None:
    """Where there is no way, more than any way is long is charged."""
    lanes, order = drawn(spec, layers, change, seed)
    hops = hops_by_graph(lanes, order)
    hops[~np.isfinite(hops)] = 2 * len(order)
    assert core.improve_order(order, *game(lanes), 0, 0) == pytest.approx(hops.sum())


@CASES
def test_a_channel_finds_the_best_of_all_places(
    spec: str, layers: int, change: bool, seed: int
) -> None:
    """One move is as good as the best of all positions, tried one by one."""
    lanes, order = drawn(spec, layers, change, seed)
    moved = order.copy()
    core.improve_order(moved, *game(lanes), 1, seed)
    assert sorted(moved) == sorted(order)
    reached = core.improve_order(moved, *game(lanes), 0, 0)
    least = []
    for taken, channel in enumerate(order):
        others = np.delete(order, taken)
        if np.array_equal(moved[moved != channel], others):  # this one may have moved
            tried = (np.insert(others, place, channel) for place in range(len(order)))
            least.append(min(core.improve_order(each, *game(lanes), 0, 0) for each in tried))
    assert any(reached == pytest.approx(each) for each in least)


def test_first_orders_connect_all_pairs_of_networks_of_cables() -> None:
    """Up and down again over a root, in one layer already."""
    for spec in ("ring:5", "mesh:2x3", "jellyfish:n=8,d=3,seed=1"):
        for change in (False, True):
            lanes = Lanes(Problem.all_to_all(build(spec)), 2, change)
            orders = list(first_orders(lanes, SolveSettings()))
            up_down = orders[int(grid_of(lanes.problem.topology) is not None)]
            assert np.isfinite(hops_by_graph(lanes, up_down)).all()


GRIDS = ("torus:5x6", "torus:3x8", "torus:2x3x7", "mesh:4x5", "hypercube:4", "hyperx:4x5")


@pytest.mark.parametrize("spec", GRIDS)
def test_two_layers_with_datelines_hold_dimension_order(spec: str) -> None:
    """On any grid, whatever its sides: all routes go forward, from layer to layer at datelines."""
    problem = Problem.all_to_all(build(spec))
    grid = grid_of(problem.topology)
    assert grid is not None
    routes = route_by_dimension(problem, grid, certify(problem, []), "test")
    lanes = Lanes(problem, 2, change=True)
    layers = hop_layers(lanes, by_dimension(lanes, grid), routes.start, routes.link)
    report = check_routes(replace(routes, hop_layer=layers))
    assert report.layers in (1, 2)
    assert report.time == routes.time


def test_a_ring_does_not_go_round_in_one_layer() -> None:
    """Where some hop has no later channel, there are no layers at all."""
    problem = Problem.all_to_all(build("ring:7"))
    grid = grid_of(problem.topology)
    assert grid is not None
    routes = route_by_dimension(problem, grid, certify(problem, []), "test")
    lanes = Lanes(problem, 1, change=True)
    assert hop_layers(lanes, by_dimension(lanes, grid), routes.start, routes.link) is None


@pytest.mark.parametrize("change", [False, True])
@pytest.mark.parametrize("spec", [*SPECS, "torus:3x5", "complete:4"])
def test_the_search_begins_with_orders_of_all_channels(spec: str, change: bool) -> None:
    """Each is a permutation, in whatever way it was made; without time there are fewer."""
    lanes = Lanes(Problem.all_to_all(build(spec)), 3, change)
    found = list(first_orders(lanes, SolveSettings()))
    assert len(found) >= len(list(first_orders(lanes, SolveSettings(time_limit=1e-9)))) >= 1
    for order in found:
        assert sorted(order.tolist()) == list(range(len(lanes.link)))


def test_a_torus_is_at_its_bound_without_a_search(monkeypatch: pytest.MonkeyPatch) -> None:
    """Two layers with a change, where dimension order without one needs three."""
    monkeypatch.setattr(best, "PROGRAM_WORK", 0)
    monkeypatch.delattr(best, "OrderSearch")
    found = check_routes(solve_deadlock_free(Problem.all_to_all(build("torus:8x8")), 2, CHANGING))
    assert found.time == found.bound == 64
    assert found.layers == 2


@pytest.mark.parametrize("change", [False, True])
@pytest.mark.parametrize("layers", [1, 2, 3])
@pytest.mark.parametrize("spec", ["jellyfish:n=16,d=3,seed=2", "torus:3x4", "genkautz:n=12,d=3"])
def test_routes_at_scale_are_sound(
    spec: str, layers: int, change: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Checked, within their layers, and one layer each unless they may change."""
    monkeypatch.setattr(best, "PROGRAM_WORK", 0)
    problem = Problem.all_to_all(build(spec))
    found = solve_deadlock_free(problem, layers, RouteSettings(layer_change=change))
    report = check_routes(found)
    assert (report.layers or 0) <= layers
    assert change or found.hop_layer is None
    assert found == solve_deadlock_free(problem, layers, RouteSettings(layer_change=change))
    if layers == 3:
        assert report.gap < 0.1


def test_a_change_of_layer_is_what_a_one_way_ring_needs(monkeypatch: pytest.MonkeyPatch) -> None:
    """All routes in two layers, and at the bound; without a change there is no order for them."""
    monkeypatch.setattr(best, "PROGRAM_WORK", 0)
    found = check_routes(solve_deadlock_free(ONE_WAY, 2, CHANGING))
    assert found.time == pytest.approx(found.bound)
    assert found.layers == 2
    with pytest.raises(InputError, match="allow more layers"):
        solve_deadlock_free(ONE_WAY, 2, RouteSettings())


def test_uneven_demands_and_capacities_are_served() -> None:
    """Loads count by demand and capacity, hosts and their links included."""
    rng = np.random.default_rng(0)
    topology = build("torus:3x3")
    uneven = replace(topology, capacity=rng.uniform(0.5, 2.0, topology.links))
    problem = Problem(uneven, Demand(9, rng.uniform(0.1, 1.0, (9, 9)) * (1 - np.eye(9))))
    assert check_routes(solve_deadlock_free(problem, 2, CHANGING)).gap < 0.2
    hosts = Problem.all_to_all(with_host_bandwidth(build("ring:6"), 1.5))
    assert check_routes(solve_deadlock_free(hosts, 2, CHANGING)).layers is not None


def test_a_network_that_no_order_connects_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    """One layer of a ring of one-way links has no way over the end of the order."""
    monkeypatch.setattr(best, "PROGRAM_WORK", 0)
    with pytest.raises(InputError, match="allow more layers"):
        solve_deadlock_free(ONE_WAY, 1, CHANGING)
    late = RouteSettings(solve=SolveSettings(time_limit=1e-9))
    with pytest.raises(AlltoallError, match="allow more time"):
        solve_deadlock_free(ONE_WAY, 1, late)


@pytest.mark.parametrize("change", [False, True])
@pytest.mark.parametrize("spec", ["mesh:4x4", "torus:6x6", "jellyfish:n=16,d=3,seed=2"])
def test_a_time_limit_leaves_the_best_of_the_first_orders(spec: str, change: bool) -> None:
    """They are there at once, and sound; on a grid no worse than dimension order in two layers."""
    late = RouteSettings(layer_change=change, solve=SolveSettings(time_limit=1e-9))
    problem = Problem.all_to_all(build(spec))
    found = check_routes(solve_deadlock_free(problem, 2, late))
    assert found.layers is not None
    if change and spec.startswith("torus"):
        assert found.time == 27


def test_only_deadlock_free_routes_may_change_layer() -> None:
    """The option is refused where it would be ignored."""
    assert route(ONE_WAY, "deadlock-free:layers=2,change").hop_layer is not None
    with pytest.raises(UsageError, match="method single: no setting 'change'"):
        route("ring:8", "single:change")
