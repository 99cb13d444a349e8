from collections.abc import Callable

import networkx as nx
import numpy as np
import pytest

from alltoall.errors import TopologyError
from alltoall.ir.topology import Topology
from alltoall.topologies.grids import (
    hypercube,
    hyperx,
    mesh,
    ring,
    torus,
    twisted_hypercube,
)
from alltoall.topologies.hierarchical import complete
from alltoall.topologies.properties import diameter


def _arcs(topology: Topology) -> set[tuple[int, int]]:
    return set(zip(topology.tail.tolist(), topology.head.tolist(), strict=True))


def test_nodes_are_numbered_row_major() -> None:
    """Neighbours of node 0 in a 3 x 4 mesh are the next in its row and the next row."""
    assert {head for tail, head in _arcs(mesh((3, 4))) if tail == 0} == {1, 4}


def test_dimension_of_two_is_one_link_each_way() -> None:
    """Wrapping a dimension of 2 does not double its links."""
    assert ring(2).links == 2
    assert torus((2, 2, 2)) == hypercube(3)
    assert torus((2, 3)).links == 2 * (3 + 2 * 3)


def test_dimension_of_one_adds_nothing() -> None:
    """Dimensions of 1 leave the topology as it is, however many there are."""
    assert torus((1, 5, 1)) == ring(5)
    assert mesh((1,) * 100 + (2,)).links == 2


def test_torus_is_the_product_of_cycles() -> None:
    """The links are those of networkx's product graph."""
    expected = nx.cartesian_product(nx.cycle_graph(3), nx.cycle_graph(5))
    edges = {(5 * a + b, 5 * c + d) for (a, b), (c, d) in expected.edges}
    assert _arcs(torus((3, 5))) == edges | {(v, u) for u, v in edges}


def test_hypercube_links_differ_in_one_bit() -> None:
    """The two ends of a hypercube link differ in exactly one bit."""
    cube = hypercube(5)
    assert all(bits.bit_count() == 1 for bits in np.bitwise_xor(cube.tail, cube.head).tolist())


@pytest.mark.parametrize("dim", [3, 4, 5, 6, 7])
def test_twist_shortens_the_diameter_by_one(dim: int) -> None:
    """The twisted cube has the degree of the cube and a diameter one less."""
    twisted = twisted_hypercube(dim)
    assert set(twisted.out_degree.tolist()) == {dim}
    assert twisted.links == hypercube(dim).links
    assert diameter(twisted) == dim - 1


def test_hyperx_of_one_dimension_is_complete() -> None:
    """A single grid line is the complete graph."""
    assert hyperx((6,)) == complete(6)


def test_links_are_sorted_like_from_edges() -> None:
    """The vectorised builder gives the same indices as `Topology.from_edges`."""
    built = torus((3, 4))
    once = built.tail < built.head
    edges = np.stack([built.tail[once], built.head[once]], axis=1).tolist()
    assert built == Topology.from_edges("again", 12, edges)


@pytest.mark.parametrize("dims", [(0, 3), (-1, 3), ()])
def test_impossible_dimensions(dims: tuple[int, ...]) -> None:
    """Dimensions below 1, or none, are refused."""
    with pytest.raises(TopologyError, match="expected 1 or more"):
        torus(dims)


@pytest.mark.parametrize(
    ("build", "size"), [(ring, 1), (ring, 0), (hypercube, 0), (twisted_hypercube, 2)]
)
def test_too_small(build: Callable[[int], Topology], size: int) -> None:
    """One node is no network, and cubes start at dimension 1 and 3."""
    with pytest.raises(TopologyError):
        build(size)


@pytest.mark.parametrize("dims", [(100_000, 100_000), (1_000_001,), (10**18,) * 1000])
def test_oversize_is_refused_at_once(dims: tuple[int, ...]) -> None:
    """A grid above the limits is refused from its counts, without being built."""
    with pytest.raises(TopologyError, match="nodes; at most 1,000,000"):
        mesh(dims)


@pytest.mark.parametrize("dim", [20, 60, 10**17])
def test_oversize_cubes(dim: int) -> None:
    """Cubes above the limits are refused, even where 2^dim could not be computed."""
    for build in (hypercube, twisted_hypercube):
        with pytest.raises(TopologyError, match="nodes; at most"):
            build(dim)


def test_oversize_links() -> None:
    """HyperX has few nodes but may have too many links."""
    with pytest.raises(TopologyError, match="links; at most 4,000,000"):
        hyperx((1000, 1000))
