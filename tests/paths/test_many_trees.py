"""Trees from many starts at once are those that Dijkstra's algorithm finds one by one."""

import numpy as np
import pytest

from alltoall.paths.many_trees import distance_sums, leaves_first, shortest_trees
from alltoall.paths.shortest import Adjacency, shortest_distances
from alltoall.topologies.spec import build


@pytest.mark.parametrize("spec", ["genkautz:n=80,d=3", "ring:150", "mesh:4x5"])
@pytest.mark.parametrize("zeros", [False, True])
def test_distances_and_trees_are_those_of_dijkstra(spec: str, zeros: bool) -> None:
    """Over few hops and over many, with links of no length too."""
    topology = build(spec)
    random = np.random.default_rng(3)
    lengths = random.exponential(size=topology.links)
    lengths[:: 3 if zeros else topology.links] = 0.0
    starts = np.arange(topology.nodes)
    expected = shortest_distances(topology, lengths, starts)
    distance = np.empty((topology.nodes, topology.nodes))
    parent = np.full(distance.shape, -1, dtype=np.int32)
    shortest_trees(Adjacency(topology).outgoing, topology.head, lengths, starts, distance, parent)
    assert np.allclose(distance.T, expected, rtol=1e-12, atol=0)
    order, children = np.empty((2, topology.nodes), dtype=np.int64)
    for start in starts:
        into = parent[:, start].astype(np.int64)
        into[start] = -1
        count = leaves_first(start, into, topology.tail, order, children)
        assert sorted(order[:count]) == [node for node in starts if node != start]
        place = {int(node): index for index, node in enumerate(order[:count])}
        for node in order[:count]:
            above = int(topology.tail[into[node]])
            assert above == start or place[above] > place[int(node)]
    wanted = random.random(distance.shape)
    assert distance_sums(topology, lengths, starts, wanted) == pytest.approx(
        (wanted * expected).sum(axis=1)
    )


def test_what_cannot_be_reached_is_infinitely_far() -> None:
    """A start that no link leaves reaches itself alone."""
    topology = build("ring:5")
    keep = topology.tail != 2
    out = Adjacency(topology).outgoing
    lengths = np.where(keep, 1.0, np.inf)
    distance = np.empty((5, 1))
    parent = np.full((5, 1), -1, dtype=np.int32)
    shortest_trees(out, topology.head, lengths, np.array([2]), distance, parent)
    assert distance[:, 0].tolist() == [np.inf, np.inf, 0.0, np.inf, np.inf]
