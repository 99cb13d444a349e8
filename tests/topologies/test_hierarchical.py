from collections.abc import Callable

import numpy as np
import pytest

from alltoall.errors import TopologyError
from alltoall.ir.topology import Topology
from alltoall.topologies.hierarchical import bipartite, complete, dragonfly, fattree
from alltoall.topologies.properties import diameter


@pytest.mark.parametrize(("a", "h"), [(2, 1), (4, 2), (6, 3), (3, 2)])
def test_dragonfly_of_full_size(a: int, h: int) -> None:
    """With a h + 1 groups every two are joined by one link, and the diameter is 3."""
    topology = dragonfly(a, h)
    groups = a * h + 1
    assert topology.nodes == a * groups
    assert np.all(topology.out_degree == a - 1 + h)
    assert topology.bidirectional
    between = np.zeros((groups, groups), dtype=np.int64)
    np.add.at(between, (topology.tail // a, topology.head // a), 1)
    assert np.all(between == np.where(np.eye(groups, dtype=bool), a * (a - 1), 1))
    assert diameter(topology) == 3


@pytest.mark.parametrize("g", [2, 3, 5])
def test_dragonfly_of_fewer_groups(g: int) -> None:
    """With fewer groups all global ports are used, equally often for every two groups."""
    topology = dragonfly(4, 2, g)
    between = np.zeros((g, g), dtype=np.int64)
    np.add.at(between, (topology.tail // 4, topology.head // 4), 1)
    assert np.all(between == np.where(np.eye(g, dtype=bool), 12, 8 // (g - 1)))
    assert topology.bidirectional
    assert np.all(topology.out_degree == 5)


@pytest.mark.parametrize("k", [2, 4, 8])
def test_fattree_layers(k: int) -> None:
    """There are k^3/4 hosts, the terminals, and 5 k^2/4 switches that use all k ports."""
    topology = fattree(k)
    hosts = k**3 // 4
    assert topology.terminals.tolist() == list(range(hosts))
    assert topology.nodes == hosts + 5 * k * k // 4
    assert np.all(topology.out_degree[:hosts] == 1)
    assert np.all(topology.out_degree[hosts:] == k)
    assert diameter(topology) == 6
    assert len(np.unique(topology.tail * topology.nodes + topology.head)) == topology.links


@pytest.mark.parametrize(
    ("build", "problem"),
    [
        (lambda: complete(0), "expected 2 or more"),
        (lambda: complete(1), "at least 2"),
        (lambda: complete(10**6), "links; at most"),
        (lambda: bipartite((4,)), "expected two sizes"),
        (lambda: bipartite((4, 0)), "expected two sizes"),
        (lambda: bipartite((4, 4, 4)), "expected two sizes"),
        (lambda: bipartite((10**5, 10**5)), "links; at most"),
        (lambda: dragonfly(0, 1), "a and h of 1 or more"),
        (lambda: dragonfly(4, 2, 4), "g - 1"),
        (lambda: dragonfly(4, 2, 1), "g - 1"),
        (lambda: dragonfly(10**9, 10**9), "nodes; at most"),
        (lambda: fattree(3), "even"),
        (lambda: fattree(0), "even"),
        (lambda: fattree(10**6), "nodes; at most"),
    ],
)
def test_impossible(build: Callable[[], Topology], problem: str) -> None:
    """Parameters without such a topology are refused with the reason."""
    with pytest.raises(TopologyError, match=problem):
        build()
