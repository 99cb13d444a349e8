"""Failures are named as people name links and nodes, and leave the rest of a network."""

import pytest

import alltoall
from alltoall.errors import InputError, UsageError
from alltoall.ir.topology import Topology
from alltoall.topologies.failures import Failure, failures_of

NAMES = ["gpu-a", "gpu-b", "c", "d"]
EDGES = [(0, 1), (1, 2), (2, 3), (3, 0), (0, 2), (1, 3)]
NAMED = Topology.from_edges("four", 4, EDGES, names=NAMES)


def names(topology: Topology, links: int = 1, nodes: int = 0) -> list[str]:
    """Return the names of all failures of so many links and nodes."""
    count, found = failures_of(topology, links, nodes)
    listed = [each.name for each in found]
    assert len(listed) == count
    return listed


def named(topology: Topology, *only: str) -> list[Failure]:
    """Return the failures that texts name."""
    return list(failures_of(topology, only=only)[1])


def test_every_cable_or_node_fails_once() -> None:
    """A cable fails both ways; one-way links fail one by one."""
    assert names(alltoall.topology("ring:3"), 1, 0) == ["link 0-1", "link 0-2", "link 1-2"]
    assert names(alltoall.topology("ring:3"), 1, 1)[3:] == ["node 0", "node 1", "node 2"]
    assert names(NAMED, 1)[0] == "link gpu-a-gpu-b"
    one_way = Topology.from_links("circle", 3, [(0, 1), (1, 2), (2, 0)])
    assert names(one_way, 1) == ["link 0-1", "link 1-2", "link 2-0"]


def test_several_fail_together() -> None:
    """All sets of so many, without repetition."""
    assert names(alltoall.topology("ring:3"), 2)[0] == "link 0-1 + link 0-2"
    assert len(names(NAMED, 2, 3)) == 15 + 4
    for links, nodes in ((0, 0), (-1, 1)):
        with pytest.raises(UsageError, match="expected at least 1"):
            failures_of(NAMED, links, nodes)


def test_one_of_parallel_cables_fails_alone() -> None:
    """Of those with one capacity one stands for all; by its ends all of them fail."""
    edges = [(0, 1, 1.0), (0, 1, 1.0), (0, 1, 4.0), (1, 2, 1.0), (0, 2, 1.0)]
    topology = Topology.from_edges("parallel", 3, edges)
    found = list(failures_of(topology)[1])
    assert [each.name for each in found] == [
        *("link 0-1 (one of 3, capacity 1)", "link 0-1 (one of 3, capacity 4)"),
        *("link 0-2", "link 1-2"),
    ]
    problem = alltoall.Problem.all_to_all(topology)
    for each, kept in zip(found, (7, 4, 7, 7), strict=True):
        left = each.left_of(problem).topology
        assert left.bidirectional
        assert left.capacity.sum() / 2 == pytest.approx(kept)
    assert named(topology, "0-1")[0].left_of(problem).topology.links == 4


def test_names_mean_links_and_nodes() -> None:
    """By names or numbers; names may have hyphens, and a plus joins what fails together."""
    found = named(NAMED, "gpu-a->gpu-b", "gpu-b-c", "c", "1-2 + d")
    assert [each.name for each in found] == [
        *("link gpu-a-gpu-b", "link gpu-b-c", "node c", "link gpu-b-c + node d"),
    ]
    assert found[3].nodes == (3,)
    assert found[3].links == found[1].links
    for text, said in (("x", "'x'"), ("99", "99"), ("c-c", "there is no link"), ("c+", "''")):
        with pytest.raises((InputError, UsageError), match=said):
            named(NAMED, text)


def test_nodes_keep_their_names_where_others_fail() -> None:
    """Also those that were only numbers, as the rest is renumbered."""
    problem = alltoall.Problem.all_to_all(alltoall.topology("ring:4"))
    left = Failure("node 1", nodes=(1,)).left_of(problem).topology
    assert left.names == ("0", "2", "3")
    assert left.notes[-2:] == ("without node 1", "renumbered")
    left = named(NAMED, "c")[0].left_of(alltoall.Problem.all_to_all(NAMED)).topology
    assert left.names == ("gpu-a", "gpu-b", "d")
