"""Distances, path searches and splitting, in the compiled core, against plain references."""

from itertools import pairwise
from typing import Any

import networkx as nx
import numpy as np
import pytest
from core_reference import Network, distances, graph_of, networks
from hypothesis import assume, given
from hypothesis import strategies as st

from alltoall import core
from alltoall.ir.arrays import Floats, Ints

SEEDS = st.integers(0, 2**32 - 1)


def lengths_of(network: Network, seed: int) -> Floats:
    """Draw a length per link, some of them 0, in an array that is strided and read-only."""
    rng = np.random.default_rng(seed)
    lengths = np.repeat(rng.integers(0, 5, len(network[1])) / 4, 2)[::2]
    lengths.flags.writeable = False
    return lengths


def all_distances(network: Network, lengths: Floats) -> Floats:
    """Return the distance between all pairs of nodes."""
    return np.array([distances(network, lengths, start) for start in range(network[0])])


def paths_of(start: Ints, link: Ints) -> list[list[int]]:
    """Return the links of each path."""
    return [link[low:high].tolist() for low, high in pairwise(start)]


def require_path(network: Network, path: list[int], begin: int, end: int) -> None:
    """Check that links join and lead from one node to another."""
    _, tail, head = network
    node = begin
    for link in path:
        assert tail[link] == node
        node = head[link]
    assert node == end


@given(networks(), SEEDS, st.sampled_from([1, 3]))
def test_distances_are_the_shortest(network: Network, seed: int, threads: int) -> None:
    """From all nodes, given twice so that starts repeat."""
    lengths, starts = lengths_of(network, seed), np.tile(np.arange(network[0]), 2)
    expected = np.tile(all_distances(network, lengths), (2, 1))
    assert np.array_equal(core.distances(graph_of(network), lengths, starts, threads), expected)


def test_distances_over_many_hops() -> None:
    """A long path in the order that rounds over links settle last, so that Dijkstra takes over."""
    nodes = 300
    tail, head = np.arange(1, nodes), np.arange(nodes - 1)
    found = core.distances(core.Graph(nodes, tail, head), np.ones(nodes - 1), np.array([nodes - 1]))
    assert found[0].tolist() == list(range(nodes - 1, -1, -1))


@given(networks(), SEEDS, st.sampled_from([1, 3]))
def test_flows_down_trees(network: Network, seed: int, threads: int) -> None:
    """Every node gets its amount, at the least cost; flows that were there stay."""
    nodes, tail, head = network
    lengths, rng = lengths_of(network, seed), np.random.default_rng(seed)
    distance = all_distances(network, lengths)
    amount = np.where(np.isfinite(distance), rng.integers(0, 4, distance.shape), 0).astype(float)
    np.fill_diagonal(amount, 0.0)
    before = rng.random((nodes, len(tail)))
    flows = before.copy()
    core.add_tree_flows(graph_of(network), lengths, np.arange(nodes), amount, flows, threads)
    added = flows - before
    for start in range(nodes):
        net = np.bincount(head, added[start], nodes) - np.bincount(tail, added[start], nodes)
        net[start] = 0.0
        assert net == pytest.approx(amount[start])
    cost = np.where(amount > 0, amount * np.where(amount > 0, distance, 0), 0).sum(axis=1)
    assert added @ lengths == pytest.approx(cost)


@given(networks(5, 12), st.integers(0, 4))
def test_disjoint_paths(network: Network, start: int) -> None:
    """As many as a largest flow, with the fewest links in total, and none shared."""
    nodes, tail, head = network
    assume(start < nodes)
    goals = np.arange(nodes)
    goal, bounds, links = core.disjoint_paths(graph_of(network), start, goals)
    flow: nx.DiGraph[Any] = nx.DiGraph()
    flow.add_nodes_from(range(nodes))
    for link, (u, v) in enumerate(zip(tail.tolist(), head.tolist(), strict=True)):
        flow.add_edge(u, ("link", link), capacity=1, weight=1)
        flow.add_edge(("link", link), v, capacity=1, weight=0)
    for end in goals[goals != start].tolist():
        paths = [p for p, e in zip(paths_of(bounds, links), goal, strict=True) if e == end]
        used = [link for path in paths for link in path]
        assert len(used) == len(set(used))
        for path in paths:
            require_path(network, path, start, end)
        best = nx.max_flow_min_cost(flow, start, end)
        assert len(paths) == nx.maximum_flow_value(flow, start, end)
        assert len(used) == nx.cost_of_flow(flow, best)


def simple_reference(network: Network, start: int, end: int, most: int) -> list[list[int]]:
    """Return all simple paths of at most so many links."""
    _, tail, head = network
    found: list[list[int]] = []

    def extend(path: list[int], seen: set[int], node: int) -> None:
        if node == end:
            found.append(path)
        elif len(path) < most:
            for link in np.flatnonzero(tail == node).tolist():
                if int(head[link]) not in seen:
                    extend([*path, link], {*seen, int(head[link])}, int(head[link]))

    extend([], {start}, start)
    return found


@given(networks(5, 10), st.integers(0, 2), st.integers(1, 9))
def test_simple_paths(network: Network, slack: int, most: int) -> None:
    """All of them up to a length, shortest first, as many as asked for."""
    nodes = network[0]
    hops = all_distances(network, np.ones(len(network[1])))
    goals = np.arange(1, nodes)
    given_hops = hops[:, goals].T
    graph = graph_of(network)
    goal, bounds, links = core.simple_paths(graph, 0, goals, given_hops, slack, most, 10**6)
    for end in goals.tolist():
        found = [p for p, e in zip(paths_of(bounds, links), goal, strict=True) if e == end]
        limit = hops[0, end] + slack
        every = simple_reference(network, 0, end, int(limit)) if np.isfinite(limit) else []
        assert len(found) == min(most, len(every))
        assert sorted(map(len, every))[:most] == [len(path) for path in found]
        assert all(path in every for path in found)


def test_simple_paths_stop_beyond_a_limit() -> None:
    """One path more than fits is the last one."""
    tail, head = np.zeros(9, dtype=np.int64), np.ones(9, dtype=np.int64)
    hops = np.array([[1.0, 0.0]])
    graph = core.Graph(2, tail, head)
    assert len(core.simple_paths(graph, 0, np.array([1]), hops, 0, 100, 3)[2]) == 4


@given(networks(), SEEDS)
def test_tree_paths(network: Network, seed: int) -> None:
    """Shortest ones; pairs without one have none."""
    nodes, lengths = network[0], lengths_of(network, seed)
    begin, end = (each.ravel() for each in np.indices((nodes, nodes)))
    distance = all_distances(network, lengths)
    bounds, links = core.tree_paths(graph_of(network), lengths, begin, end)
    for path, u, v in zip(paths_of(bounds, links), begin, end, strict=True):
        if np.isfinite(distance[u, v]):
            require_path(network, path, int(u), int(v))
            assert lengths[path].sum() == pytest.approx(distance[u, v])
        else:
            assert path == []


@given(networks(), SEEDS)
def test_traced_paths_follow_volumes(network: Network, seed: int) -> None:
    """Each is a path that carried a quarter of the chunk at least, and takes its size."""
    nodes, tail, _ = network
    rng = np.random.default_rng(seed)
    volumes = rng.random((2, len(tail)))
    begin, end = rng.integers(0, nodes, (2, 8))
    size, row = rng.random(8), rng.integers(0, 2, 8)
    left, paths = volumes.copy(), np.full((8, 4), -1)
    core.trace_paths(graph_of(network), begin, end, size, row, left, paths)
    taken = np.zeros_like(volumes)
    for chunk in range(8):
        path = paths[chunk][paths[chunk] >= 0].tolist()
        if path:
            require_path(network, path, begin[chunk], end[chunk])
        for link in path:
            assert volumes[row[chunk], link] - taken[row[chunk], link] >= 0.25 * size[chunk] - 1e-9
        np.add.at(taken[row[chunk]], path, size[chunk])
    assert left == pytest.approx(volumes - taken)


@given(networks(), SEEDS)
def test_split_flows_deliver_within_the_flows(network: Network, seed: int) -> None:
    """Paths add up to the demands, use no more than there is, and merge to it by pair."""
    nodes, tail, _ = network
    rng, ones = np.random.default_rng(seed), np.ones(len(tail))
    hops = all_distances(network, ones)
    demand = np.where(np.isfinite(hops), rng.integers(0, 3, hops.shape), 0).astype(float)
    np.fill_diagonal(demand, 0.0)
    flows = np.zeros((nodes, len(tail)))
    graph, starts = graph_of(network), np.arange(nodes)
    core.add_tree_flows(graph, ones, starts, demand / 2, flows)
    core.add_tree_flows(graph, lengths_of(network, seed), starts, demand / 2, flows)
    (group, link), (source, end) = np.nonzero(flows), np.nonzero(demand)
    rows = np.arange(nodes + 1)
    failed, pair, width, bounds, links = core.split_flows(
        graph,
        starts,
        (np.searchsorted(group, rows), link, flows[group, link]),
        (np.searchsorted(source, rows), end, demand[source, end]),
    )
    assert failed == -1
    assert np.bincount(pair, width, len(end)) == pytest.approx(demand[source, end])
    used = np.zeros_like(flows)
    for each, wide, path in zip(pair, width, paths_of(bounds, links), strict=True):
        require_path(network, path, source[each], end[each])
        np.add.at(used[source[each]], path, wide)
    assert (used <= flows + 1e-9).all()


def test_a_flow_that_does_not_arrive_fails() -> None:
    """The first pair that no link with flow leads to is named."""
    graph = core.Graph(3, np.array([0]), np.array([1]))
    flow = np.array([0, 1]), np.array([0]), np.array([1.0])
    wanted = np.array([0, 2]), np.array([1, 2]), np.array([1.0, 1.0])
    assert core.split_flows(graph, np.array([0]), flow, wanted)[0] == 1


GRAPH = core.Graph(2, np.array([0, 1]), np.array([1, 0]))


@pytest.mark.parametrize(
    ("call", "name"),
    [
        (lambda: core.distances(GRAPH, np.ones(1), np.array([0])), "lengths"),
        (lambda: core.distances(GRAPH, np.array([1.0, -1.0]), np.array([0])), "lengths"),
        (lambda: core.distances(GRAPH, np.array([1.0, np.nan]), np.array([0])), "lengths"),
        (lambda: core.distances(GRAPH, np.ones(2), np.array([2])), "starts"),
        (lambda: core.disjoint_paths(GRAPH, 2, np.array([0])), "start"),
        (lambda: core.disjoint_paths(GRAPH, 0, np.array([-1])), "goals"),
        (lambda: core.tree_paths(GRAPH, np.ones(2), np.array([0]), np.array([2])), "end"),
    ],
)
def test_wrong_arrays_are_refused(call: object, name: str) -> None:
    """With the name of the argument."""
    with pytest.raises(ValueError, match=f"^{name}: expected"):
        call()  # type: ignore[operator]
