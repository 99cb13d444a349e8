from collections.abc import Callable

import numpy as np
import pytest

from alltoall.errors import TopologyError
from alltoall.ir.topology import Topology
from alltoall.topologies import expanders
from alltoall.topologies.expanders import jellyfish, xpander
from alltoall.topologies.hierarchical import complete
from alltoall.topologies.properties import diameter

BOTH = pytest.mark.parametrize("family", [jellyfish, xpander])
Build = Callable[..., Topology]


@BOTH
def test_same_seed_same_topology(family: Build) -> None:
    """A seed decides the topology, and another seed gives another one."""
    assert family(60, 4, seed=3) == family(60, 4, seed=3)
    assert family(60, 4, seed=3) != family(60, 4, seed=4)


@BOTH
@pytest.mark.parametrize("d", [2, 3, 5])
def test_regular_simple_connected(family: Build, d: int) -> None:
    """Every node has degree d, no link is double, and every node reaches every other."""
    topology = family(60, d, seed=1)
    assert topology.bidirectional
    assert np.all(topology.out_degree == d)
    assert len(np.unique(topology.tail * 60 + topology.head)) == 60 * d
    assert diameter(topology) < 60


@pytest.mark.parametrize(("n", "d"), [(2, 1), (12, 6), (12, 7), (50, 40), (200, 190)])
def test_dense_jellyfish(n: int, d: int) -> None:
    """Any degree up to n - 1 is quickly drawn, dense graphs as complements."""
    topology = jellyfish(n, d)
    assert np.all(topology.out_degree == d)
    assert len(np.unique(topology.tail * n + topology.head)) == n * d


def test_largest_degree_is_complete() -> None:
    """Degree n - 1 leaves only the complete graph."""
    assert jellyfish(8, 7) == complete(8)
    assert xpander(8, 7) == complete(8)


def test_xpander_is_a_lift() -> None:
    """Every node has exactly one neighbour in each group but its own."""
    topology = xpander(40, 4, seed=2)
    groups = np.zeros((40, 5), dtype=np.int64)
    np.add.at(groups, (topology.tail, topology.head // 8), 1)
    own = np.arange(40) // 8
    assert np.all(groups[np.arange(40), own] == 0)
    assert np.all(np.delete(groups.ravel(), np.arange(40) * 5 + own) == 1)


def test_giving_up(monkeypatch: pytest.MonkeyPatch) -> None:
    """Where no draw is connected the error says what to change."""
    monkeypatch.setattr(expanders, "reachable", lambda *_: np.zeros(1, dtype=bool))
    monkeypatch.setattr(expanders, "_DRAWS", 3)
    for family in (jellyfish, xpander):
        with pytest.raises(TopologyError, match="none of 3 random graphs was connected"):
            family(12, 3)


@pytest.mark.parametrize(
    ("build", "problem"),
    [
        (lambda: jellyfish(5, 3), "n \\* d is 15"),
        (lambda: jellyfish(5, 5), "the degree is 5"),
        (lambda: jellyfish(5, 0), "the degree is 0"),
        (lambda: jellyfish(6, 1), "degree 1"),
        (lambda: jellyfish(6, 2, seed=-1), "the seed is -1"),
        (lambda: jellyfish(10**7, 2), "at most 1,000,000"),
        (lambda: xpander(10, 3), "multiple of 4"),
        (lambda: xpander(4, 1), "degree 1"),
        (lambda: xpander(10**6, 10**6 - 1), "links; at most"),
    ],
)
def test_impossible(build: Callable[[], Topology], problem: str) -> None:
    """Parameters without a connected regular graph are refused with the reason."""
    with pytest.raises(TopologyError, match=problem):
        build()
