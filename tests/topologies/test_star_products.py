import networkx as nx
import numpy as np
import pytest

from alltoall.errors import TopologyError
from alltoall.ir.topology import Topology
from alltoall.topologies.grids import boardfly, tpuv5p
from alltoall.topologies.hierarchical import megafly
from alltoall.topologies.properties import diameter
from alltoall.topologies.star_products import _inductive_quad, bundlefly, polarfly, polarstar


def _simple(topology: Topology) -> bool:
    return len(np.unique(topology.tail * topology.nodes + topology.head)) == topology.links


@pytest.mark.parametrize("q", [2, 3, 4, 5, 7, 8, 9, 11])
def test_polarfly(q: int) -> None:
    """Two hops reach every point, and the q + 1 points orthogonal to themselves have q cables."""
    topology = polarfly(q)
    assert topology.nodes == q * q + q + 1
    assert np.bincount(topology.out_degree)[q:].tolist() == [q + 1, q * q]
    assert diameter(topology) == 2
    assert _simple(topology)


@pytest.mark.parametrize("d", [0, 3, 4, 7, 8, 11, 12])
def test_inductive_quad_graphs(d: int) -> None:
    """All degrees are d, and of partners exactly one has each other node, or its partner's one."""
    inner = _inductive_quad(d, "quads")
    size = 2 * d + 2
    near = np.zeros((size, size), dtype=np.int64)
    near[inner.left, inner.right] = 1
    near += near.T
    assert np.all(near.sum(axis=1) == d)
    swapped = near[inner.permuted]
    covered = swapped + swapped.T + np.eye(size, dtype=np.int64)[inner.permuted] + np.eye(size)
    assert np.all(covered == 1)


@pytest.mark.parametrize(("q", "d"), [(2, 3), (3, 4), (5, 3), (4, 7)])
def test_polarstar_of_quads(q: int, d: int) -> None:
    """All degrees are q + 1 + d, no cable is double, and three hops reach everyone."""
    topology = polarstar(q, d)
    assert topology.nodes == (q * q + q + 1) * (2 * d + 2)
    assert np.all(topology.out_degree == q + 1 + d)
    assert _simple(topology)
    assert diameter(topology) == 3


@pytest.mark.parametrize(("q", "d"), [(2, 2), (3, 4), (4, 6)])
def test_polarstar_of_paley_graphs(q: int, d: int) -> None:
    """The supernodes at points orthogonal to themselves have a port free."""
    topology = polarstar(q, d, "paley")
    size = 2 * d + 1
    assert topology.nodes == (q * q + q + 1) * size
    assert np.bincount(topology.out_degree)[q + d :].tolist() == [(q + 1) * size, q * q * size]
    assert diameter(topology) == 3


@pytest.mark.parametrize(("q", "p"), [(3, 5), (4, 13), (5, 9), (7, 5)])
def test_bundlefly(q: int, p: int) -> None:
    """The degree is the sum of Slim Fly's and Paley's, and three hops reach everyone."""
    topology = bundlefly(q, p)
    delta = {1: 1, 3: -1, 0: 0}[q % 4]
    assert topology.nodes == 2 * q * q * p
    assert np.all(topology.out_degree == (3 * q - delta) // 2 + (p - 1) // 2)
    assert _simple(topology)
    assert diameter(topology) == 3


def test_polarstar_of_two_points_is_heawood() -> None:
    """Pairs without cables at the points of the Fano plane are its incidence graph."""
    topology = polarstar(2, 0)
    arcs = zip(topology.tail.tolist(), topology.head.tolist(), strict=True)
    assert nx.is_isomorphic(nx.Graph(arcs), nx.heawood_graph())


@pytest.mark.parametrize("g", [2, 4, 36, 41])
def test_boardfly_keeps_its_ports(g: int) -> None:
    """A chip has a ring and four ports, every two groups are joined, and seven hops are enough."""
    topology = boardfly(g)
    assert topology.nodes == 32 * g
    assert topology.out_degree.max() <= 2 + 4
    between = np.unique(np.stack([topology.tail // 32, topology.head // 32], axis=1), axis=0)
    assert len(between) == g * g
    assert diameter(topology) <= 7


def test_boardfly_boards_use_eleven_ports() -> None:
    """Within a group every two of the eight boards are joined, by 44 cables in all."""
    topology = boardfly(1)
    board = np.stack([topology.tail // 4, topology.head // 4])
    count = np.zeros((8, 8), dtype=np.int64)
    np.add.at(count, tuple(board), 1)
    assert np.all(count[~np.eye(8, dtype=np.bool_)] >= 1)
    assert np.all(np.diag(count) == 8)
    assert np.all(count.sum(axis=1) - 8 == 11)


@pytest.mark.parametrize("g", [None, 3])
def test_megafly_groups(g: int | None) -> None:
    """Leaves see all spines of their group only, and every two groups are joined."""
    topology = megafly(3, 2, 2, g)
    groups = 5 if g is None else g
    leaves = 3 * groups
    assert topology.terminals.tolist() == list(range(leaves))
    assert np.all(topology.out_degree[:leaves] == 2)
    assert np.all(topology.out_degree[leaves:] == 3 + 2)
    assert diameter(topology) == 3


@pytest.mark.parametrize(
    ("build", "given", "said"),
    [
        (polarfly, (6,), "expected a prime power"),
        (polarfly, (10**9,), "nodes"),
        (polarstar, (3, 5), "0 or 3 modulo 4"),
        (polarstar, (3, 3, "cube"), "expected iq or paley"),
        (polarstar, (3, 3, "paley"), "a Paley graph of 7 nodes"),
        (polarstar, (3, 10**15), "nodes"),
        (bundlefly, (6, 5), "expected a prime power"),
        (bundlefly, (3, 7), "a Paley graph of 7 nodes"),
        (bundlefly, (3, 10**15), "nodes"),
        (boardfly, (42,), "expected 1 to 41"),
        (megafly, (2, 2, 2, 4), "g - 1 divides"),
        (tpuv5p, ((4, 4, 6),), "multiples of 4"),
        (tpuv5p, ((4, 4, 12), True), "k x k x 2k"),
    ],
)
def test_what_cannot_be_built_is_refused(
    build: object, given: tuple[object, ...], said: str
) -> None:
    """The message says what was found and what was expected, before anything is allocated."""
    assert callable(build)
    with pytest.raises(TopologyError, match=said):
        build(*given)
