import networkx as nx
import numpy as np
import pytest

from alltoall.errors import TopologyError
from alltoall.flows.symmetry.automorphisms import count_automorphisms
from alltoall.ir.topology import Topology
from alltoall.topologies.grids import torus, tpuv4
from alltoall.topologies.hardware import dgx1, dgx2, ndv2
from alltoall.topologies.properties import diameter
from alltoall.topologies.spec import build

# NVLinks between each two GPUs, as published in matrix form.
DGX1 = """
01122000
10210200
12020010
21200001
20000112
02001021
00101202
00012120
"""
NDV2 = """
02112000
20120100
11020020
12200001
20000211
01002012
00201102
00011220
"""


def _matrix(topology: Topology) -> list[list[int]]:
    matrix = np.zeros((topology.nodes, topology.nodes), dtype=np.int64)
    matrix[topology.tail, topology.head] = topology.capacity
    rows: list[list[int]] = matrix.tolist()
    return rows


@pytest.mark.parametrize(("topology", "text"), [(dgx1(), DGX1), (ndv2(), NDV2)])
def test_hybrid_cube_mesh(topology: Topology, text: str) -> None:
    """The link counts are the published ones, six NVLinks to a GPU."""
    expected = [[int(count) for count in row] for row in text.split()]
    assert _matrix(topology) == expected
    assert [sum(row) for row in expected] == [6] * 8


def test_ndv2_is_a_renumbered_dgx1() -> None:
    """The two meshes are isomorphic, link counts included, but numbered differently."""
    first, second = [nx.from_numpy_array(np.array(_matrix(mesh))) for mesh in (dgx1(), ndv2())]
    assert nx.is_isomorphic(
        first, second, edge_match=lambda one, two: one["weight"] == two["weight"]
    )
    assert dgx1() != ndv2()


def test_dgx2_planes() -> None:
    """Switches have 8 GPU links and a trunk of 8 to their peer; GPUs one link to each of 6."""
    topology = dgx2()
    capacity = np.array(_matrix(topology))
    assert topology.terminals.tolist() == list(range(16))
    assert np.all(capacity[:16].sum(axis=1) == 6)
    assert np.all(capacity[16:].sum(axis=1) == 16)
    assert np.all(capacity[16:22, 22:] == 8 * np.eye(6))
    assert np.all(capacity[:8, 16:22] == 1)
    assert np.all(capacity[8:16, 22:] == 1)
    assert capacity[:16, :16].sum() == 0


def test_straight_slice_is_a_torus() -> None:
    """Without the twist a slice is the torus of its dimensions."""
    assert tpuv4((2, 4, 8)) == torus((2, 4, 8))


@pytest.mark.parametrize("k", [2, 3, 4, 5])
@pytest.mark.parametrize("doubled", [1, 2])
def test_twisted_slices(k: int, doubled: int) -> None:
    """Both twisted slices have degree 6, diameter 3k/2, and no two links in parallel."""
    dims = (k,) * (3 - doubled) + (2 * k,) * doubled
    topology = tpuv4(dims, twisted=True)
    assert topology.bidirectional
    assert np.all(topology.out_degree == 6)
    assert len(np.unique(topology.tail * topology.nodes + topology.head)) == topology.links
    assert diameter(topology) == 3 * k // 2


@pytest.mark.parametrize("dims", [(3, 3, 6), (3, 6, 6), (5, 5, 10)])
def test_twisted_slices_have_the_symmetry_of_the_cube(dims: tuple[int, int, int]) -> None:
    """All 48 symmetries of the cube survive the twist, which the oblong torus lacks."""
    twisted, straight = tpuv4(dims, twisted=True), tpuv4(dims)
    assert count_automorphisms(twisted) == 48 * twisted.nodes
    assert count_automorphisms(straight) < count_automorphisms(twisted)


def test_order_of_dimensions_does_not_matter() -> None:
    """The twisted slice is the same up to numbering, whichever dimension is the long one."""
    assert count_automorphisms(tpuv4((6, 3, 3), twisted=True)) == 54 * 48
    assert diameter(tpuv4((4, 8, 4), twisted=True)) == 6


@pytest.mark.parametrize("dims", [(4, 4, 4), (4, 4, 12), (1, 1, 2), (2, 4, 8)])
def test_shapes_without_a_twist(dims: tuple[int, int, int]) -> None:
    """Only k x k x 2k and k x 2k x 2k slices can be twisted."""
    with pytest.raises(TopologyError, match="k x k x 2k"):
        tpuv4(dims, twisted=True)


@pytest.mark.parametrize("dims", [(4,), (4, 4), (4, 4, 4, 4)])
def test_slices_have_three_dimensions(dims: tuple[int, ...]) -> None:
    """A slice is three-dimensional."""
    with pytest.raises(TopologyError, match="expected 3"):
        tpuv4(dims)


@pytest.mark.parametrize("spec", ["xgmi:n=1", "xgmi:n=0", "ubmesh:1", "ubmesh:1x1", "ubmesh:0x4"])
def test_too_few_are_refused_by_the_family_that_was_named(spec: str) -> None:
    """Not by the family that it is built from."""
    with pytest.raises(TopologyError, match=spec.partition(",")[0]):
        build(spec)


def test_oversize_slice() -> None:
    """Slices above the limits are refused at once, straight or twisted."""
    for twisted in (False, True):
        with pytest.raises(TopologyError, match="at most"):
            tpuv4((10**6, 10**6, 2 * 10**6), twisted=twisted)
