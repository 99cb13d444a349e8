"""Where nodes are drawn: by what a topology is, apart from one another, and the same every time."""

from dataclasses import replace

import numpy as np
import pytest

from alltoall.ir.layout import Layout, layout
from alltoall.ir.topology import Topology
from alltoall.topologies.operators import drop_links, with_host_bandwidth
from alltoall.topologies.spec import build

KINDS = {
    "torus:3x3x3": "grid",
    "mesh:3x4": "grid",
    "hyperx:4x4": "grid",
    "tpuv5p:4x4x8,twisted=true": "grid",
    "dgx1": "grid",
    "ring:6": "circle",
    "circulant:n=16,jumps=1x3": "circle",
    "genkautz:n=64,d=4": "circle",
    "complete:8": "circle",
    "dragonfly:a=4,h=2": "groups",
    "polarstar:q=3,d=3": "groups",
    "megafly:leaves=2,spines=2,h=2": "groups",
    "dgxh100:hosts=4,outside=rail": "groups",
    "fattree:k=4": "levels",
    "bipartite:4x4": "levels",
    "switch:n=8": "levels",
}
"""How families are laid out."""


def _closest(found: Layout) -> float:
    own = found.place[found.host == np.arange(len(found.host))]
    apart = np.linalg.norm(own[:, None] - own, axis=2) + 9 * np.eye(len(own))
    return float(apart.min())


@pytest.mark.parametrize(("spec", "kind"), KINDS.items())
def test_the_layout_fits_the_family(spec: str, kind: str) -> None:
    """The kind is the family's, places are in the unit square and apart, twice the same."""
    found, again = layout(build(spec)), layout(build(spec))
    assert found.kind == kind
    assert np.array_equal(found.place, again.place)
    assert found.place.min() == 0
    assert max(found.size) == pytest.approx(1)
    assert _closest(found) > 0.2 / build(spec).nodes


def test_groups_are_those_of_a_dragonfly() -> None:
    """Nine groups of four routers, each within its circle, which do not touch."""
    found = layout(build("dragonfly:a=4,h=2"))
    assert [each.nodes.tolist() for each in found.groups] == [
        list(range(first, first + 4)) for first in range(0, 36, 4)
    ]
    for each in found.groups:
        away = np.linalg.norm(found.place[each.nodes] - each.centre, axis=1)
        assert np.all(away < each.radius)
    centres = np.array([each.centre for each in found.groups])
    apart = np.linalg.norm(centres[:, None] - centres, axis=2) + 9 * np.eye(9)
    assert apart.min() > 2 * found.groups[0].radius


@pytest.mark.parametrize(
    "spec",
    [
        *("twisted-hypercube:4", "twisted-hypercube:5", "jellyfish:n=60,d=3,seed=1"),
        *("circulant:n=24,jumps=1x2", "slimfly:q=5", "xpander:n=60,d=4,seed=1"),
    ],
)
def test_no_groups_where_there_are_none(spec: str) -> None:
    """Any sparse graph has nodes that are more linked among themselves; nobody meant them."""
    topology = build(spec)
    assert layout(topology).groups == ()
    assert layout(replace(topology, name="cables.txt")).groups == ()


@pytest.mark.parametrize("spec", ["hyperx:4x4", "dgx1", "hypercube:3", "hypercube:4", "torus:4x4"])
def test_no_line_goes_through_a_node(spec: str) -> None:
    """Lines are straight: nodes of a clique stand around a circle, and blocks are set aside."""
    topology = build(spec)
    found = layout(topology)
    links = zip(topology.tail.tolist(), topology.head.tolist(), found.wraps.tolist(), strict=True)
    for tail, head, wraps in links:
        others = np.delete(found.place, [tail, head], axis=0) - found.place[tail]
        along = found.place[head] - found.place[tail]
        share = np.clip(others @ along / (along @ along), 0, 1)
        apart = np.linalg.norm(others - share[:, None] * along, axis=1)
        assert wraps >= 0 or apart.min() > 0.3 * _closest(found)


def test_groups_are_called_by_the_names_of_hosts() -> None:
    """What stands before the colon of a name is the label of a group."""
    found = layout(build("dgxh100:hosts=2,outside=rail"))
    assert [each.label for each in found.groups][:2] == ["host0", "host1"]


def test_nics_stand_beside_their_gpus_and_a_switch_in_the_middle() -> None:
    """Else their links cross all others, and where they cross looks like a node."""
    topology = build("dgxh100:hosts=2,outside=rail")
    found, at = layout(topology), {name: v for v, name in enumerate(topology.names or ())}
    host = found.groups[0]
    assert found.place[at["host0:switch"]] == pytest.approx(host.centre)
    apart = [np.linalg.norm(found.place[at["host0:gpu3"]] - found.place[v]) for v in host.nodes]
    near = {int(host.nodes[each]) for each in np.argsort(apart)[1:3]}
    assert at["host0:nic3"] in near


@pytest.mark.parametrize(
    ("spec", "around"), [("torus:4x4", 16), ("torus:3x3x3", 54), ("hyperx:4x4", 0), ("mesh:3x3", 0)]
)
def test_links_that_go_around(spec: str, around: int) -> None:
    """They are those between the ends of a cycle, both ways, and none of a mesh or a clique."""
    assert (layout(build(spec)).wraps >= 0).sum() == around


def test_twisted_links_go_around_in_the_short_dimension() -> None:
    """A link that moves in a long dimension while it wraps is one of the short dimension's."""
    found = layout(build("tpuv4:4x4x8,twisted=true"))
    assert np.bincount(found.wraps + 1).tolist() == [768 - 160, 64, 64, 32]


def test_halves_of_a_host_are_at_its_place() -> None:
    """A host-to-NIC bottleneck does not change the picture, and no link leads to a half."""
    plain = build("torus:3x3x3")
    split = with_host_bandwidth(plain, 4)
    found = layout(split)
    assert found.kind == "grid"
    assert found.host[27:].tolist() == [*range(27), *range(27)]
    assert np.allclose(found.place[:27], layout(plain).place)
    assert np.array_equal(found.host[split.tail[:162]], plain.tail)


def test_a_torus_with_links_missing_stays_a_grid() -> None:
    """Its name says what it was, and its numbering is the same."""
    plain = build("torus:3x3x3")
    found = layout(drop_links(plain, 3, seed=1))
    assert np.allclose(found.place, layout(plain).place)


def test_islands() -> None:
    """What has no links has a layout all the same."""
    assert layout(Topology.from_links("two", 5, [])).place.shape == (5, 2)
