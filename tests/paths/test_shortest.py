"""Distances from many starts at once, and the blocks in which they are found."""

import networkx as nx
import numpy as np
import pytest

from alltoall.paths import blocks
from alltoall.paths.shortest import distance_sums, shortest_distances
from alltoall.topologies.spec import build


@pytest.mark.parametrize("spec", ["genkautz:n=80,d=3", "ring:150", "mesh:4x5"])
@pytest.mark.parametrize("zeros", [False, True])
@pytest.mark.parametrize("cells", [1, 1 << 20])
def test_distances_are_those_of_dijkstra(
    spec: str, zeros: bool, cells: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Over few hops and over many, with links of no length too, in one block or several."""
    monkeypatch.setattr(blocks, "BLOCK_CELLS", cells)
    topology = build(spec)
    random = np.random.default_rng(3)
    lengths = random.exponential(size=topology.links)
    lengths[:: 3 if zeros else topology.links] = 0.0
    graph: nx.DiGraph[int] = nx.DiGraph()
    for tail, head, length in zip(topology.tail, topology.head, lengths, strict=True):
        graph.add_edge(int(tail), int(head), weight=length)
    starts = np.arange(topology.nodes)
    expected = np.empty((topology.nodes, topology.nodes))
    for start in range(topology.nodes):
        for node, far in nx.single_source_dijkstra_path_length(graph, start).items():
            expected[start, node] = far
    assert np.allclose(shortest_distances(topology, lengths, starts), expected, rtol=1e-12, atol=0)
    wanted = random.random(expected.shape)
    assert distance_sums(topology, lengths, starts, wanted) == pytest.approx(
        (wanted * expected).sum(axis=1)
    )


@pytest.mark.parametrize(("rows", "links"), [(0, 5), (1, 5), (200, 1 << 20), (1000, 9000), (7, 0)])
def test_blocks_cover_all_rows_once(rows: int, links: int) -> None:
    """In order, without gaps, and none so large that Ctrl-C would have to wait."""
    parts = list(blocks.row_blocks(rows, links))
    assert [row for part in parts for row in range(rows)[part]] == list(range(rows))
    for part in parts:
        size = part.stop - part.start
        assert size <= blocks.LEAST_ROWS or size * links <= blocks.BLOCK_CELLS
