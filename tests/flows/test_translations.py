"""Translations: groups of automorphisms that fix no terminal."""

import numpy as np
import pytest

from alltoall.flows.symmetry.translations import find_translations
from alltoall.ir.demand import Demand
from alltoall.ir.problem import Problem
from alltoall.ir.topology import Topology
from alltoall.topologies.operators import set_capacities, with_host_bandwidth
from alltoall.topologies.spec import build

ORDERS = {
    "torus:4x4x4": 64,
    "torus:3x5": 15,
    "hypercube:4": 16,
    "genkautz:n=20,d=4": 20,
    "genkautz:n=30,d=4": 10,
    "ring:7": 7,
    "ring:8": 8,
    "complete:6": 6,
    "fattree:k=4": 16,
    "mesh:3x4": 2,
    "jellyfish:n=20,d=4,seed=1": 1,
}


@pytest.mark.parametrize("spec", ORDERS)
def test_as_many_translations_are_found_as_there_are(spec: str) -> None:
    """All nodes of a Cayley graph are images of one; a random graph has the identity alone."""
    assert find_translations(Problem.all_to_all(build(spec))).order == ORDERS[spec]


@pytest.mark.parametrize(
    "topology",
    [*map(build, ORDERS), with_host_bandwidth(build("torus:3x3"), 2.0)],
    ids=lambda topology: str(topology.name),
)
def test_translations_are_automorphisms_that_fix_no_terminal(topology: Topology) -> None:
    """Each keeps links and capacities, moves every terminal, and all together are a group."""
    found = find_translations(Problem.all_to_all(topology))
    members, terminals = found.members, topology.terminals
    assert np.array_equal(members[0], np.arange(topology.nodes))
    assert (members[1:, terminals] != terminals).all()
    for nodes, links in zip(members, found.link_members, strict=True):
        assert np.array_equal(np.sort(links), np.arange(topology.links))
        assert np.array_equal(topology.tail[links], nodes[topology.tail])
        assert np.array_equal(topology.head[links], nodes[topology.head])
        assert np.array_equal(topology.capacity[links], topology.capacity)
    known = {tuple(each) for each in members.tolist()}
    assert len(known) == found.order
    assert all(tuple(one[other].tolist()) in known for one in members[:4] for other in members)


def test_capacities_and_demand_are_respected() -> None:
    """One wide link, or one heavy pair, leaves nothing but the identity on a directed ring."""
    ring = Topology.from_links("ring", 5, [(i, (i + 1) % 5, 1.0) for i in range(5)])
    assert find_translations(Problem.all_to_all(ring)).order == 5
    wide = set_capacities(ring, {(0, 1): 2.0})
    assert find_translations(Problem.all_to_all(wide)).order == 1
    matrix = np.ones((5, 5)) - np.eye(5)
    matrix[0, 2] = 3.0
    assert find_translations(Problem(ring, Demand(5, matrix))).order == 1


def test_none_are_looked_for_if_none_are_wanted() -> None:
    """Symmetry can be switched off."""
    assert find_translations(Problem.all_to_all(build("ring:7")), wanted=False).order == 1


def test_the_same_call_finds_the_same_translations() -> None:
    """The random numbers inside are fixed."""
    problem = Problem.all_to_all(build("torus:4x4"))
    first, second = (find_translations(problem) for _ in range(2))
    assert np.array_equal(first.members, second.members)
