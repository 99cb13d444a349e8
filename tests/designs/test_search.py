"""Searches: what they count is what networks have, and what they find is what was asked for."""

import networkx
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from alltoall.designs.lift_search import Group, Shape, anneal_shape, groups_of_order, search_lifts
from alltoall.designs.search import Found, Pool, search_regular
from alltoall.designs.wiring import (
    Aim,
    Annealing,
    Wiring,
    least_time,
    regular_wiring,
    wiring_of,
)
from alltoall.errors import UsageError
from alltoall.ir.topology import Topology
from alltoall.lp.settings import never
from alltoall.settings import SolveSettings
from alltoall.topologies.operators import remove_links
from alltoall.topologies.properties import hop_distances
from alltoall.topologies.spec import build

SPECS = ("torus:3x4", "genkautz:n=70,d=3,rewire=true", "jellyfish:n=20,d=3,seed=1", "kautz:d=2,k=3")


def wired(topology: Topology) -> Wiring:
    """Return a topology as a wiring of cables, or of one-way links."""
    return wiring_of(topology, not topology.bidirectional)


def degrees_of(topology: Topology) -> set[int]:
    """Return all degrees, in and out."""
    return {*topology.out_degree.tolist(), *topology.in_degree.tolist()}


def cost_of(topology: Topology, aim: Aim) -> float:
    """Return the cost of a network for an aim."""
    return Annealing(wired(topology), aim, 0).least


@pytest.mark.parametrize("spec", SPECS)
def test_sums_of_distances_are_those_of_a_search_from_every_node(spec: str) -> None:
    """Plain, by level, for a demand, and over all failures; also across a word of 64 bits."""
    topology = build(spec)
    nodes, distances = topology.nodes, hop_distances(topology)
    assert cost_of(topology, Aim()) == distances.sum()
    expected = (distances + 4 * np.maximum(distances - 2, 0)).sum()
    assert cost_of(topology, Aim(weight=np.array([1.0, 1.0, 5.0]))) == expected
    demand = np.random.default_rng(1).random((nodes, nodes))
    found = cost_of(topology, Aim(demand=demand))
    assert found == pytest.approx(float((demand * distances).sum()))
    if nodes <= 20:
        both = topology.bidirectional
        pairs = zip(topology.tail.tolist(), topology.head.tolist(), strict=True)
        failed = [
            hop_distances(remove_links(topology, [pair])).sum()
            for pair in pairs
            if not both or pair[0] < pair[1]
        ]
        assert cost_of(topology, Aim(failures=True)) == pytest.approx(np.mean(failed))


@pytest.mark.parametrize("spec", SPECS)
def test_loads_are_those_of_edge_betweenness(spec: str) -> None:
    """All shortest paths of a pair share its traffic; the norm is above the sum of distances."""
    topology = build(spec)
    graph = networkx.DiGraph(zip(*_links(topology), strict=True))
    shares = networkx.edge_betweenness_centrality(graph, normalized=False)
    load = np.array(list(shares.values()))
    norm = np.sqrt(topology.links * (load**2).sum())
    assert cost_of(topology, Aim(even=True)) == pytest.approx(norm)
    assert norm * (1 + 1e-9) >= load.sum() == pytest.approx(hop_distances(topology).sum())


def test_annealing_for_even_loads_evens_them() -> None:
    """At the price of distances, if need be; the norm of the loads only falls."""
    start = regular_wiring(24, 3, True)
    annealing = Annealing(start, Aim(even=True), 0)
    for _ in annealing.round(2000, 0.35, 0.1):
        pass
    found = annealing.found()
    assert least_time(found, Aim(even=True)) < least_time(start, Aim(even=True))
    assert degrees_of(found.topology("found")) == {3}


def test_a_known_wiring_is_where_a_search_starts() -> None:
    """So that it finds what is at least as near, however little it does."""
    known = wired(build("best:n=127,d=4"))
    start = regular_wiring(127, 4, True)
    pool, alone = (
        search_regular(start, 4, 0, SolveSettings(), 6, 0.01, each) for each in (known, None)
    )
    assert pool.found[0].rank <= least_time(known, Aim(even=True)) < alone.found[0].rank


def test_pairs_without_a_path_cost_more_than_any_distance() -> None:
    """With and without a demand."""
    apart = Wiring(4, np.array([[0, 1], [2, 3]]), False)
    for aim in (Aim(), Aim(demand=np.ones((4, 4)))):
        assert Annealing(apart, aim, 0).least > 1000


@given(
    nodes=st.integers(4, 40), degree=st.integers(2, 5), directed=st.booleans(), seed=st.integers(0)
)
def test_annealing_keeps_degrees_and_makes_no_parallel_links(
    nodes: int, degree: int, directed: bool, seed: int
) -> None:
    """The best is as good as it says, no worse than the start, and connected."""
    if degree >= nodes or (not directed and nodes * degree % 2):
        return
    wiring = regular_wiring(nodes, degree, directed)
    annealing = Annealing(wiring, Aim(), seed)
    before = annealing.least
    for _ in annealing.round(300):
        pass
    found = annealing.found().topology("found")
    assert degrees_of(found) == {degree}
    assert len(set(zip(found.tail.tolist(), found.head.tolist(), strict=True))) == found.links
    assert hop_distances(found).sum() == annealing.least <= before
    assert found.bidirectional or directed


def test_cables_stay_on_their_panel_and_side() -> None:
    """First ends stay first ends, and panels have the ports that they had."""
    ends = np.stack([np.arange(24), (np.arange(24) + 1) % 24], axis=1)
    chords = np.stack([np.arange(0, 24, 2), (np.arange(0, 24, 2) + 11) % 24], axis=1)
    wiring = Wiring(24, chords, False, fixed=ends, panel=np.arange(12) % 3, sided=True)
    annealing = Annealing(wiring, Aim(), 1)
    before = annealing.least
    for _ in annealing.round(2000):
        pass
    found = annealing.found()
    assert annealing.least < before
    for panel in range(3):
        for side in (0, 1):
            kept, had = (each[wiring.panel == panel, side] for each in (found.ends, chords))
            assert sorted(kept) == sorted(had)
    assert {tuple(each) for each in ends.tolist()} <= {
        (u, v) for u, v in zip(*_links(found.topology("found")), strict=True)
    }


def _links(topology: Topology) -> tuple[list[int], list[int]]:
    return topology.tail.tolist(), topology.head.tolist()


def test_what_cables_cost_stays_within_the_budget() -> None:
    """Long cables are dear: with a tight budget the search does without most of them."""
    where = np.arange(30)
    around = np.minimum((where[:, None] - where) % 30, (where - where[:, None]) % 30)
    start = regular_wiring(30, 4, False)
    free = Annealing(Wiring(30, start.ends, False), Aim(), 0)
    tight = Annealing(Wiring(30, start.ends, False, price=around * 1.0, budget=200.0), Aim(), 0)
    for each in (free, tight):
        for _ in each.round(4000):
            pass
    assert tight.found().paid() <= 200.0
    assert free.least < tight.least


@pytest.mark.parametrize("group", [Group(12), Group(2, 6), Group(5, 4, 2), Group(7, 2, 6)])
def test_groups_are_groups(group: Group) -> None:
    """Associative, with inverses; involutions are their own inverses."""
    every = np.arange(group.order)
    table = group.product(every[:, None], every[None])
    assert all(sorted(row) == every.tolist() for row in table.tolist())
    assert np.array_equal(table[table], table[every[:, None, None], table[None]])
    assert [a for a in every if a and table[a, a] == 0] == group.involutions.tolist()


def test_groups_of_an_order_are_told_apart() -> None:
    """Z_8, Z_4 x Z_2, the dihedral group and the others that are written so."""
    found = {(each.m, each.k, each.r) for each in groups_of_order(8)}
    assert {(8, 1, 1), (4, 2, 1), (4, 2, 3)} <= found
    assert all(each.order == 8 for each in groups_of_order(8))
    assert [(each.m, each.k) for each in groups_of_order(7)] == [(7, 1)]


@pytest.mark.parametrize("directed", [True, False])
@pytest.mark.parametrize(("nodes", "degree"), [(24, 3), (30, 4), (16, 5)])
def test_lifts_are_what_they_cost(nodes: int, degree: int, directed: bool) -> None:
    """Regular, simple, connected, and of the distances that one source for each base node gives."""
    found = list(search_lifts(nodes, degree, directed, 0, 0.05, never))
    assert len(found) > 5
    for lift in found:
        topology = lift.wiring().topology(lift.name)
        assert degrees_of(topology) == {degree}
        assert len(set(zip(*_links(topology), strict=True))) == topology.links
        assert hop_distances(topology).sum() == pytest.approx(lift.cost * nodes)
        assert topology.bidirectional or directed


def test_a_shape_without_connected_lifts_has_none() -> None:
    """Two steps by the same involution lead back."""
    assert anneal_shape(Shape(Group(2, 2), 1, 1), 1, False, 50, 0) is None


def test_a_pool_keeps_the_best() -> None:
    """In order, and no two that are alike."""
    pool, wiring = Pool(2), regular_wiring(8, 3, True)
    for time in (5.0, 3.0, 3.0, 4.0):
        pool.offer(Found("x", wiring, time, time))
    assert [each.time for each in pool] == [3.0, 4.0]


def test_equal_seeds_find_equal_networks() -> None:
    """Down to the last link; and a signal to stop ends the search with what there is."""
    settings = SolveSettings()
    wiring = regular_wiring(20, 3, True)
    one, two = (list(search_regular(wiring, 3, 7, settings, 3, 0.05)) for _ in range(2))
    assert [each.name for each in one] == [each.name for each in two]
    for a, b in zip(one, two, strict=True):
        assert np.array_equal(a.wiring.ends, b.wiring.ends)
    stopped = search_regular(wiring, 3, 7, SolveSettings(stopped=lambda: True), 3)
    assert len(stopped.found) == 1


def test_what_is_no_regular_network_is_refused() -> None:
    """Too many ports, too few, or an odd number of cable ends."""
    with pytest.raises(UsageError, match="a degree from 1 to 3"):
        regular_wiring(4, 4, True)
    with pytest.raises(UsageError, match="15 ports, and a cable takes two"):
        regular_wiring(5, 3, False)
    with pytest.raises(UsageError, match="a degree of 2 or more"):
        regular_wiring(6, 1, False)
