"""Operators on topologies."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from alltoall.errors import TopologyError
from alltoall.ir.problem import Problem
from alltoall.ir.topology import Topology
from alltoall.topologies import operators
from alltoall.topologies.operators import partner_links


def ring(nodes: int, capacity: float = 1.0) -> Topology:
    """Return a bidirectional ring."""
    edges = [(v, (v + 1) % nodes, capacity) for v in range(nodes)]
    return Topology.from_edges(f"ring:{nodes}", nodes, edges)


def grid(rows: int, columns: int) -> Topology:
    """Return a bidirectional grid."""
    across = [
        (r * columns + c, r * columns + c + 1) for r in range(rows) for c in range(columns - 1)
    ]
    down = [(v, v + columns) for v in range((rows - 1) * columns)]
    return Topology.from_edges(f"grid:{rows}x{columns}", rows * columns, across + down)


def one_way_ring(nodes: int) -> Topology:
    """Return a ring of links in one direction."""
    return Topology.from_links("one-way", nodes, [(v, (v + 1) % nodes) for v in range(nodes)])


def pairs(topology: Topology) -> list[tuple[int, int]]:
    """Return the ends of every link."""
    return list(zip(topology.tail.tolist(), topology.head.tolist(), strict=True))


def test_drop_links_removes_whole_cables() -> None:
    """A dropped cable goes in both directions, and the note names it with the seed."""
    dropped = operators.drop_links(grid(3, 3), 3, seed=5)
    assert dropped.links == 24 - 6
    assert dropped.bidirectional
    assert "3 cables" in dropped.notes[-1]
    assert "seed 5" in dropped.notes[-1]


@given(st.integers(0, 4), st.integers(0, 10_000))
def test_drop_links_is_seeded_and_keeps_terminals_connected(count: int, seed: int) -> None:
    """The same seed drops the same links, and the result is connected."""
    first = operators.drop_links(grid(3, 3), count, seed)
    assert first == operators.drop_links(grid(3, 3), count, seed)
    Problem.all_to_all(first)


def test_drop_links_depends_on_the_seed() -> None:
    """Different seeds drop different links."""
    kept = {tuple(pairs(operators.drop_links(grid(4, 4), 2, seed))) for seed in range(8)}
    assert len(kept) > 1


def test_drop_links_takes_one_partner_per_parallel_link() -> None:
    """With two cables between each pair, dropping one leaves the other in both directions."""
    double = Topology.from_edges("double", 3, [(0, 1), (0, 1), (1, 2, 2), (1, 2, 3)])
    dropped = operators.drop_links(double, 2, seed=1)
    assert dropped.links == 4
    assert dropped.bidirectional


def test_drop_links_of_a_directed_topology_counts_links() -> None:
    """Where links have no partner, each link counts for itself."""
    links = [(u, v) for u in range(4) for v in range(4) if u != v and (u, v) != (0, 3)]
    dropped = operators.drop_links(Topology.from_links("directed", 4, links), 1, seed=0)
    assert dropped.links == len(links) - 1
    assert "1 link " in dropped.notes[-1]


def test_drop_links_gives_up_when_every_draw_disconnects() -> None:
    """On a one-way ring every link is needed."""
    with pytest.raises(TopologyError, match="none of 1000 random draws"):
        operators.drop_links(one_way_ring(5), 1, seed=0)


def test_drop_links_refuses_more_than_exist() -> None:
    """A ring of four has four cables."""
    with pytest.raises(TopologyError, match="cannot drop 5 of 4 cables"):
        operators.drop_links(ring(4), 5, seed=0)
    with pytest.raises(TopologyError, match="cannot drop -1"):
        operators.drop_links(ring(4), -1, seed=0)


def test_drop_nodes_removes_terminals_only_and_renumbers() -> None:
    """Switches stay, ids are dense and in order, and the result is connected."""
    star = Topology.from_edges("star", 6, [(5, v) for v in range(5)], terminals=range(5))
    dropped = operators.drop_nodes(star, 2, seed=3)
    assert dropped.nodes == 4
    assert dropped.terminals.tolist() == [0, 1, 2]
    assert dropped.in_degree.tolist() == [1, 1, 1, 3]
    assert "seed 3" in dropped.notes[-1]


@given(st.integers(0, 3), st.integers(0, 10_000))
def test_drop_nodes_is_seeded_and_keeps_terminals_connected(count: int, seed: int) -> None:
    """The same seed drops the same nodes, and the result is connected."""
    first = operators.drop_nodes(grid(3, 3), count, seed)
    assert first.nodes == 9 - count
    assert first == operators.drop_nodes(grid(3, 3), count, seed)
    Problem.all_to_all(first)


def test_drop_nodes_leaves_two_terminals() -> None:
    """An all-to-all needs two."""
    assert operators.drop_nodes(ring(4), 2, seed=0).nodes == 2
    with pytest.raises(TopologyError, match="cannot drop 3 of 2 terminals"):
        operators.drop_nodes(ring(4), 3, seed=0)


def test_remove_links_takes_all_parallel_ones_both_ways() -> None:
    """In a bidirectional topology naming one direction removes both."""
    double = Topology.from_edges("double", 3, [(0, 1), (0, 1), (1, 2), (0, 2)])
    removed = operators.remove_links(double, [(1, 0)])
    assert pairs(removed) == [(0, 2), (1, 2), (2, 0), (2, 1)]
    assert removed.notes[-1] == "removed 2 cables 0-1, 0-1"


def test_remove_links_of_a_directed_topology_goes_one_way() -> None:
    """Where links have no partner, only the named direction goes."""
    directed = Topology.from_links("d", 3, [(0, 1), (1, 0), (1, 2), (2, 0), (0, 1)])
    removed = operators.remove_links(directed, [(0, 1)])
    assert pairs(removed) == [(1, 0), (1, 2), (2, 0)]
    assert removed.notes[-1] == "removed 2 links 0->1, 0->1"


def test_remove_links_lists_the_neighbours_of_an_unknown_pair() -> None:
    """The message says which links there are."""
    with pytest.raises(TopologyError, match="no link 0 -> 2; the links from 0 lead to 1, 3"):
        operators.remove_links(ring(4), [(0, 2)])
    with pytest.raises(TopologyError, match=r"no node 9; expected one of 0\.\.3"):
        operators.remove_links(ring(4), [(9, 2)])


def test_remove_nodes_renumbers_in_order() -> None:
    """Node 1 of a ring goes, and its neighbours keep their other links."""
    removed = operators.remove_nodes(ring(5, capacity=2.0), [1])
    assert pairs(removed) == [(0, 3), (1, 2), (2, 1), (2, 3), (3, 0), (3, 2)]
    assert removed.capacity.tolist() == [2.0] * 6
    assert removed.terminals.tolist() == [0, 1, 2, 3]
    with pytest.raises(TopologyError, match="no node 5"):
        operators.remove_nodes(ring(5), [5])


def test_removing_nothing_changes_nothing() -> None:
    """Empty requests return the same topology, without a note."""
    topology = ring(4)
    assert operators.remove_links(topology, []) is topology
    assert operators.remove_nodes(topology, []) is topology
    assert operators.drop_links(topology, 0, seed=1) is topology
    assert operators.drop_nodes(topology, 0, seed=1) is topology


def test_capacities_are_scaled_and_set() -> None:
    """Scaling touches all links, setting only the named direction."""
    scaled = operators.scale_capacities(ring(3), 2.5)
    assert scaled.capacity.tolist() == [2.5] * 6
    changed = operators.set_capacities(scaled, {(0, 1): 4.0, (2, 1): 1.0})
    expected = {(0, 1): 4.0, (2, 1): 1.0}
    for pair, capacity in zip(pairs(changed), changed.capacity.tolist(), strict=True):
        assert capacity == expected.get(pair, 2.5)
    assert changed.notes == (
        "scaled all capacities by 2.5",
        "set the capacity of 0 -> 1 to 4, 2 -> 1 to 1",
    )


@pytest.mark.parametrize("value", [0.0, -1.0, float("nan"), float("inf")])
def test_capacities_must_be_positive_and_finite(value: float) -> None:
    """Every operator that takes a capacity refuses nonsense."""
    with pytest.raises(TopologyError, match="positive finite"):
        operators.scale_capacities(ring(3), value)
    with pytest.raises(TopologyError, match="positive finite"):
        operators.set_capacities(ring(3), {(0, 1): value})
    with pytest.raises(TopologyError, match="positive finite"):
        operators.with_host_bandwidth(ring(3), value)


def test_host_bandwidth_splits_terminals_and_keeps_link_indices() -> None:
    """Physical links run from out-half to in-half, and the host sits between its halves."""
    path = Topology.from_edges("path", 3, [(0, 1, 5.0), (1, 2, 7.0)], terminals=[0, 2])
    split = operators.with_host_bandwidth(path, 2.0)
    in_0, in_2, out_0, out_2 = 3, 4, 5, 6
    assert split.nodes == 7
    assert split.terminals.tolist() == [0, 2]
    assert pairs(split) == [
        *((out_0, 1), (1, in_0), (1, in_2), (out_2, 1)),
        *((in_0, 0), (in_2, 2)),
        *((0, out_0), (2, out_2)),
    ]
    assert split.capacity.tolist() == [5.0, 5.0, 7.0, 7.0, 2.0, 2.0, 2.0, 2.0]
    Problem.all_to_all(split)


def test_host_bandwidth_forces_forwarded_traffic_through_the_host() -> None:
    """Without node 1's host, its neighbours on a path cannot reach each other."""
    split = operators.with_host_bandwidth(Topology.from_edges("p", 3, [(0, 1), (1, 2)]), 1.0)
    with pytest.raises(TopologyError, match="disconnected"):
        Problem.all_to_all(operators.remove_nodes(split, [1]))


def test_partner_links_is_an_involution_between_opposite_links() -> None:
    """Every link's partner is its reverse with the same capacity, one to one."""
    double = Topology.from_edges("d", 3, [(0, 1), (0, 1), (1, 2, 3), (1, 2, 2), (2, 0)])
    partner = partner_links(double)
    assert np.array_equal(partner[partner], np.arange(double.links))
    assert np.array_equal(double.tail[partner], double.head)
    assert np.array_equal(double.capacity[partner], double.capacity)
    with pytest.raises(TopologyError, match="bidirectional"):
        partner_links(one_way_ring(3))
