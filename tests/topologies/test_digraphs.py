from collections.abc import Callable

import networkx as nx
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from alltoall.errors import TopologyError
from alltoall.ir.topology import Topology
from alltoall.topologies.digraphs import _rewire, circulant, debruijn, gendebruijn, genkautz, kautz
from alltoall.topologies.properties import diameter


def _graph(topology: Topology) -> "nx.MultiDiGraph[int]":
    arcs = zip(topology.tail.tolist(), topology.head.tolist(), strict=True)
    return nx.MultiDiGraph(arcs)


@pytest.mark.parametrize(("d", "k"), [(1, 3), (2, 1), (2, 2), (2, 3), (3, 2), (2, 4)])
def test_kautz_is_a_generalized_kautz_digraph(d: int, k: int) -> None:
    """K(d, k), built from words, is isomorphic to the Imase-Itoh digraph of its size."""
    words, numbers = kautz(d, k), genkautz(d**k + d ** (k - 1), d)
    assert numbers.notes == ()
    assert nx.is_isomorphic(_graph(words), _graph(numbers))
    if d > 1:
        assert diameter(words) == k


def test_kautz_is_regular() -> None:
    """Every Kautz node has in-degree and out-degree d, and no link is double."""
    topology = kautz(3, 4)
    assert set(topology.in_degree.tolist()) == set(topology.out_degree.tolist()) == {3}
    assert len(set(zip(topology.tail.tolist(), topology.head.tolist(), strict=True))) == 324


def test_debruijn_matches_networkx_words() -> None:
    """B(2, 3) has a link from every word to those that continue it, loops aside."""
    topology = debruijn(2, 3)
    arcs = set(zip(topology.tail.tolist(), topology.head.tolist(), strict=True))
    words = [format(node, "03b") for node in range(8)]
    assert arcs == {
        (u, v) for u in range(8) for v in range(8) if words[u][1:] == words[v][:2] and u != v
    }


def test_debruijn_notes_its_loops() -> None:
    """The note says how many loops were dropped, where, what degrees are left, and the cure."""
    assert debruijn(3, 2).notes == (
        "dropped 3 self-loops at 3 nodes (0, 4, 8); out-degrees are now 2 to 3",
        "gendebruijn:n=9,d=3,rewire=true uses their ports: 27 links in place of 24",
    )


def test_genkautz_notes_its_loops() -> None:
    """The note names the first few looped nodes only."""
    assert "8 self-loops at 8 nodes (1, 2, 3, 4, 5, 6, 7, 8)" in genkautz(10, 8).notes[0]
    assert genkautz(64, 4).notes == (
        "dropped 4 self-loops at 4 nodes (12, 25, 38, 51); out-degrees are now 3 to 4",
        "rewire=true uses their ports: 256 links in place of 252",
    )


@given(n=st.integers(2, 60), d=st.integers(1, 12))
def test_genkautz_links(n: int, d: int) -> None:
    """The links are the defining ones, parallels kept, without the loops."""
    topology = genkautz(n, d)
    expected = [(v, -(d * v + a) % n) for v in range(n) for a in range(1, d + 1)]
    found = zip(topology.tail.tolist(), topology.head.tolist(), strict=True)
    assert sorted(found) == sorted(arc for arc in expected if arc[0] != arc[1])


@given(n=st.integers(2, 60), d=st.integers(1, 12))
def test_rewired_genkautz_wastes_no_port(n: int, d: int) -> None:
    """After rewiring every in-degree and out-degree is d, whatever the loops were."""
    topology = genkautz(n, d, rewire=True)
    assert np.all(topology.in_degree == d)
    assert np.all(topology.out_degree == d)
    assert (topology.notes == ()) == (genkautz(n, d).links == n * d)


@given(n=st.integers(2, 60), d=st.integers(1, 12))
def test_gendebruijn(n: int, d: int) -> None:
    """The links are the defining ones without the loops, and rewiring wastes no port."""
    topology, rewired = gendebruijn(n, d), gendebruijn(n, d, rewire=True)
    expected = [(v, (d * v + a) % n) for v in range(n) for a in range(d)]
    found = zip(topology.tail.tolist(), topology.head.tolist(), strict=True)
    assert sorted(found) == sorted(arc for arc in expected if arc[0] != arc[1])
    assert np.all(rewired.in_degree == d)
    assert np.all(rewired.out_degree == d)


@pytest.mark.parametrize(("d", "k"), [(2, 3), (3, 2), (4, 2)])
def test_gendebruijn_of_a_power_is_debruijn(d: int, k: int) -> None:
    """On d^k nodes the two families are the same."""
    assert gendebruijn(d**k, d) == debruijn(d, k)


def test_rewiring_splices_a_single_loop() -> None:
    """A loop that has no other to join is spliced into a link elsewhere."""
    plain, rewired = genkautz(3, 1), genkautz(3, 1, rewire=True)
    assert plain.notes == (
        "dropped 1 self-loop at 1 node (1); out-degrees are now 0 to 1",
        "rewire=true uses their ports: 3 links in place of 2",
    )
    assert "splicing node 1 into other links" in rewired.notes[0]
    assert diameter(rewired) == 2


@pytest.mark.parametrize("loops", [[0], [0, 0, 0], [0, 0, 0, 1], [0, 0, 1, 2], [0, 1, 1, 0]])
def test_rewiring_of_any_loops(loops: list[int]) -> None:
    """Each loop becomes one more link out of its node and one into it, and none is a loop."""
    tail, head = np.nonzero(~np.eye(4, dtype=np.bool_))
    new_tail, new_head, _ = _rewire(tail, head, np.array(loops))
    expected = 3 + np.bincount(loops, minlength=4)
    assert np.array_equal(np.bincount(new_tail), expected)
    assert np.array_equal(np.bincount(new_head), expected)
    assert not np.any(new_tail == new_head)


def test_fewer_nodes_than_degree() -> None:
    """With n below d the links between two nodes are parallel."""
    topology = genkautz(3, 7)
    assert topology.links == 14
    assert len(np.unique(topology.tail * 3 + topology.head)) == 6
    assert genkautz(3, 7, rewire=True).links == 21


def test_circulant_links() -> None:
    """Forward links only if directed; a jump of n/2 is one link each way."""
    one_way = circulant(6, (1, 3), directed=True)
    assert one_way.links == 12
    assert circulant(6, (1, 3)).links == 18
    assert circulant(2, (1,)).links == 2


@pytest.mark.parametrize("jumps", [(), (0,), (1, 1), (4,), (-1,)])
def test_impossible_jumps(jumps: tuple[int, ...]) -> None:
    """Jumps are distinct and, both ways, at most half way round."""
    with pytest.raises(TopologyError, match="expected distinct numbers from 1 to 3"):
        circulant(7, jumps)


@pytest.mark.parametrize(
    "build",
    [
        lambda: circulant(1, (1,)),
        lambda: debruijn(1, 3),
        lambda: debruijn(2, 0),
        lambda: kautz(0, 3),
        lambda: kautz(2, 0),
        lambda: genkautz(1, 2),
        lambda: genkautz(5, 0),
    ],
)
def test_impossible_parameters(build: Callable[[], Topology]) -> None:
    """Parameters for which there is no such digraph are refused."""
    with pytest.raises(TopologyError, match="expected"):
        build()


@pytest.mark.parametrize(
    "build",
    [
        lambda: circulant(10**9, (1,)),
        lambda: debruijn(2, 10**17),
        lambda: kautz(10, 30),
        lambda: genkautz(10**6, 10**6),
    ],
)
def test_oversize_is_refused_at_once(build: Callable[[], Topology]) -> None:
    """Digraphs above the limits are refused before anything is allocated."""
    with pytest.raises(TopologyError, match="at most"):
        build()
