"""Nodes and links of a degraded network are matched to those of the original."""

import pytest

from alltoall.errors import InputError
from alltoall.ir.topology import Topology
from alltoall.routes import renew
from alltoall.routes.renew import NOWHERE, matching_links, matching_nodes, require_same_network
from alltoall.topologies.operators import (
    drop_links,
    drop_nodes,
    remove_links,
    remove_nodes,
    scale_capacities,
)
from alltoall.topologies.spec import build

KAUTZ = build("genkautz:n=16,d=3")
TORUS = build("torus:3x4")


def first_link(topology: Topology) -> tuple[int, int]:
    """Return the ends of a link."""
    return int(topology.tail[0]), int(topology.head[0])


def with_node(topology: Topology) -> Topology:
    """Return the topology with one more node, which has cables to the first two."""
    links = zip(topology.tail, topology.head, topology.capacity, strict=True)
    more, nodes = topology.nodes, topology.nodes + 1
    cables = [(more, 0, 1.0), (0, more, 1.0), (more, 1, 1.0), (1, more, 1.0)]
    return Topology.from_links(
        "more", nodes, [*((int(u), int(v), c) for u, v, c in links), *cables]
    )


@pytest.mark.parametrize("gone", [[0], [7], [19], [3, 11], [0, 1], [18, 19], [2, 9, 16]])
@pytest.mark.parametrize("spec", ["genkautz:n=20,d=4", "jellyfish:n=20,d=4,seed=1"])
def test_the_removed_nodes_are_found(spec: str, gone: list[int]) -> None:
    """By the links of the others alone, wherever in the order they were."""
    old = build(spec)
    found = matching_nodes(old, remove_nodes(old, gone))
    assert found.tolist() == [node for node in range(20) if node not in gone]


@pytest.mark.parametrize("spec", ["torus:6x6", "hypercube:5", "mesh:6x6", "fattree:k=4"])
@pytest.mark.parametrize("seed", range(3))
def test_what_is_left_of_a_network_is_the_same_network(spec: str, seed: int) -> None:
    """Whatever is gone, and however many nodes could be those that are."""
    old = build(spec)
    left = drop_links(drop_nodes(old, 5, seed), 2, seed)
    require_same_network(old, left)
    require_same_network(old, scale_capacities(old, 2.0))
    require_same_network(remove_links(old, [first_link(old)]), old)
    require_same_network(left, old)


@pytest.mark.parametrize("spec", ["torus:3x3", "torus:5x4", "ring:16", "hypercube:4", "mesh:3x3"])
def test_another_network_is_refused(spec: str) -> None:
    """Smaller, larger, of as many nodes, or the same by other numbers."""
    with pytest.raises(InputError, match=f"is for {spec}, .*torus:4x4.* Expected an answer for"):
        require_same_network(build(spec), build("torus:4x4"))


def test_new_nodes_match_nothing() -> None:
    """Nodes keep their numbers, and those beyond the last were not there before."""
    assert matching_nodes(TORUS, TORUS).tolist() == list(range(12))
    assert matching_nodes(TORUS, with_node(TORUS)).tolist() == [*range(12), NOWHERE]


def test_nodes_are_not_looked_for_where_it_takes_too_long(monkeypatch: pytest.MonkeyPatch) -> None:
    """They keep their numbers then."""
    monkeypatch.setattr(renew, "MOST_SHIFTS", 0)
    fewer = remove_nodes(KAUTZ, [0])
    assert matching_nodes(KAUTZ, fewer).tolist() == list(range(15))


def test_parallel_links_match_in_their_order() -> None:
    """Each of two cables between the same ends is itself; one that is left is the first."""
    links = [(0, 1, 1.0), (0, 1, 3.0), (1, 2, 4.0), (2, 0, 4.0), (1, 0, 2.0)]
    old = Topology.from_links("parallel", 3, links)
    fewer = Topology.from_links("parallel", 3, links[1:])
    nodes = matching_nodes(old, old)
    assert matching_links(old, old, nodes).tolist() == [0, 1, 2, 3, 4]
    assert matching_links(old, fewer, nodes).tolist() == [0, 2, 3, 4]
    assert matching_links(fewer, old, nodes).tolist() == [0, NOWHERE, 1, 2, 3]
