import sys
from collections.abc import Sequence
from itertools import permutations
from math import factorial

import networkx as nx
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.sparse import coo_array
from scipy.sparse.csgraph import shortest_path

from alltoall.errors import TopologyError
from alltoall.flows.symmetry.automorphisms import count_automorphisms
from alltoall.ir.arrays import Floats, Ints
from alltoall.ir.topology import Topology
from alltoall.topologies import properties
from alltoall.topologies.properties import (
    diameter,
    girth,
    hop_distances,
    mean_distance,
)
from alltoall.topologies.spec import build


def _directed(nodes: int, links: Sequence[Sequence[float]]) -> Topology:
    return Topology.from_links("test", nodes, links)


@st.composite
def random_topologies(draw: st.DrawFn) -> Topology:
    """Draw a small multigraph with capacities of 1 and 2."""
    nodes = draw(st.integers(2, 5))
    node = st.integers(0, nodes - 1)
    link = st.tuples(node, node, st.sampled_from([1.0, 2.0])).filter(lambda arc: arc[0] != arc[1])
    links = draw(st.lists(link, max_size=10))
    if draw(st.booleans()):
        return Topology.from_edges("random", nodes, links, parallel=True)
    return Topology.from_links("random", nodes, links)


@pytest.mark.parametrize("spec", ["torus:3x4", "genkautz:n=30,d=2", "dgx2", "mesh:3x4"])
def test_distances_agree_with_scipy(spec: str) -> None:
    """Hop distances are those of an independent shortest path search."""
    topology = build(spec)
    matrix = coo_array(
        (np.ones(topology.links), (topology.tail, topology.head)),
        shape=(topology.nodes, topology.nodes),
    ).tocsr()
    assert np.array_equal(hop_distances(topology), shortest_path(matrix, unweighted=True))


def test_distances_from_some_sources() -> None:
    """Rows follow the sources asked for; what cannot be reached is at infinity."""
    line = _directed(3, [(0, 1), (1, 2)])
    assert hop_distances(line, np.array([1, 0])).tolist() == [[np.inf, 0, 1], [0, 1, 2]]


def test_diameter_is_between_terminals(monkeypatch: pytest.MonkeyPatch) -> None:
    """Nodes that only forward do not count, and the blocks of sources do not matter."""
    star = Topology.from_edges("star", 5, [(0, 1), (1, 2), (2, 3), (3, 4)], terminals=[1, 3])
    assert diameter(star) == 2
    monkeypatch.setattr(properties, "_BLOCK", 1)
    assert diameter(build("torus:5x5")) == 4


def test_mean_distance_is_summed_in_blocks(monkeypatch: pytest.MonkeyPatch) -> None:
    """It is that of all ordered pairs of terminals, of which few are held at a time."""
    line = Topology.from_edges("line", 4, [(0, 1), (1, 2), (2, 3)], terminals=[0, 1, 3])
    assert mean_distance(line) == pytest.approx((1 + 3 + 2) / 3)
    held: list[int] = []

    def watched(topology: Topology, sources: Ints | None = None) -> Floats:
        found = hop_distances(topology, sources)
        held.append(found.size)
        return found

    monkeypatch.setattr(properties, "hop_distances", watched)
    monkeypatch.setattr(properties, "_BLOCK", 50)
    assert mean_distance(build("torus:5x5")) == pytest.approx(2.5)
    assert max(held) == 50
    with pytest.raises(TopologyError, match="no mean distance"):
        mean_distance(_directed(3, [(0, 1), (1, 2)]))


def test_automorphisms_of_more_than_4300_digits() -> None:
    """The limit of Python on numbers from text is lifted for the count alone."""
    before = sys.get_int_max_str_digits()
    assert count_automorphisms(build("bipartite:1x1700")) == factorial(1700)
    assert sys.get_int_max_str_digits() == before


def test_no_diameter_without_a_path() -> None:
    """Terminals without a path between them are named."""
    with pytest.raises(TopologyError, match="from terminal 1 to terminal 0"):
        diameter(_directed(2, [(0, 1)]))


@pytest.mark.parametrize(
    ("graph", "expected"),
    [
        (nx.petersen_graph(), 5),
        (nx.heawood_graph(), 6),
        (nx.tutte_graph(), 4),
        (nx.balanced_tree(2, 3), None),
        (nx.cycle_graph(9), 9),
    ],
)
def test_girth_of_graphs(graph: "nx.Graph[int]", expected: int | None) -> None:
    """Girths of known graphs; a tree has none."""
    topology = Topology.from_edges("graph", graph.number_of_nodes(), list(graph.edges))
    assert girth(topology) == expected


def test_girth_of_digraphs() -> None:
    """Directed cycles follow the links, also where an undirected one would be shorter."""
    assert girth(_directed(4, [(0, 1), (1, 2), (2, 3), (3, 0), (0, 2)])) == 3
    assert girth(_directed(3, [(0, 1), (1, 2), (0, 2)])) is None
    assert girth(_directed(3, [(0, 1), (1, 2), (2, 0), (1, 0)])) == 2
    assert girth(_directed(3, [])) is None


def test_parallel_edges_are_a_cycle_of_two() -> None:
    """Two edges between the same nodes close a cycle."""
    assert girth(Topology.from_edges("double", 3, [(0, 1), (0, 1), (1, 2)])) == 2


@given(random_topologies())
def test_automorphisms_by_brute_force(topology: Topology) -> None:
    """The count is the number of permutations that map links and capacities to themselves."""

    def images(order: Sequence[int]) -> list[tuple[int, int, float]]:
        place = np.array(order)
        ends = (place[topology.tail].tolist(), place[topology.head].tolist())
        return sorted(zip(*ends, topology.capacity.tolist(), strict=True))

    original = images(range(topology.nodes))
    expected = sum(images(order) == original for order in permutations(range(topology.nodes)))
    assert count_automorphisms(topology) == expected


def test_automorphisms_respect_what_matters() -> None:
    """Direction, capacity, parallel links and terminals each break symmetry."""
    around = [(v, (v + 1) % 5) for v in range(5)]
    assert count_automorphisms(Topology.from_edges("ring", 5, around)) == 10
    assert count_automorphisms(_directed(5, around)) == 5
    assert count_automorphisms(_directed(5, [*around, (0, 1)])) == 1
    assert count_automorphisms(_directed(5, [(u, v, 1 + (u == 0)) for u, v in around])) == 1
    assert count_automorphisms(Topology.from_edges("ring", 5, around, terminals=[0, 1])) == 2


def test_automorphisms_are_exact_beyond_doubles() -> None:
    """Counts above 2^53 are exact integers."""
    assert count_automorphisms(build("complete:40")) == factorial(40)


def test_thousands_of_nodes() -> None:
    """All properties can be had for a network of thousands of nodes."""
    topology = build("genkautz:n=2500,d=4")
    assert diameter(topology) == 6
    assert girth(topology) == 2
    assert count_automorphisms(topology) == 10
