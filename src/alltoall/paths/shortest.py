"""Shortest paths for the producers, by the compiled core.

`check.flow` checks their results with a different algorithm of its own.
"""

import numpy as np

from alltoall import core
from alltoall.ir.arrays import Floats, Ints, starts_of
from alltoall.ir.topology import Topology
from alltoall.paths.blocks import row_blocks, thread_count


def core_graph(topology: Topology) -> core.Graph:
    """Return the links of a topology as the compiled core takes them."""
    return core.Graph(topology.nodes, topology.tail, topology.head)


def shortest_distances(topology: Topology, lengths: Floats, starts: Ints) -> Floats:
    """Return the distance from each start to each node, shape [starts, nodes]."""
    graph, distance = core_graph(topology), np.empty((len(starts), topology.nodes))
    for rows in row_blocks(len(starts), topology.links):
        distance[rows] = core.distances(graph, lengths, starts[rows], thread_count())
    return distance


def distance_sums(topology: Topology, lengths: Floats, starts: Ints, wanted: Floats) -> Floats:
    """Return, for each start, the sum over the nodes of demand times distance."""
    graph, sums = core_graph(topology), np.empty(len(starts))
    for rows in row_blocks(len(starts), topology.links):
        distance = core.distances(graph, lengths, starts[rows], thread_count())
        np.copyto(distance, 0.0, where=~(wanted[rows] > 0))
        sums[rows] = np.einsum("ij,ij->i", wanted[rows], distance)
    return sums


def tree_paths(topology: Topology, lengths: Floats, begin: Ints, end: Ints) -> tuple[Ints, Ints]:
    """Return a shortest path per pair of nodes, as starts and links; pairs are sorted by begin."""
    graph, first = core_graph(topology), np.append(distinct(begin), len(begin))
    hops, links = [np.zeros(0, dtype=np.int64)], [np.zeros(0, dtype=np.int64)]
    for trees in row_blocks(len(first) - 1, topology.links, least=1):
        pairs = slice(first[trees.start], first[trees.stop])
        start, link = core.tree_paths(graph, lengths, begin[pairs], end[pairs])
        hops.append(np.diff(start))
        links.append(link)
    return starts_of(np.concatenate(hops)), np.concatenate(links)


def distinct(ordered: Ints) -> Ints:
    """Return where each distinct value of an ordered array stands first."""
    return np.flatnonzero(np.diff(ordered, prepend=-1)).astype(np.int64)
