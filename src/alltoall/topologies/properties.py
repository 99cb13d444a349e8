"""Structural properties: hop distances, diameter and girth."""

from collections.abc import Iterator

import numpy as np

from alltoall import core
from alltoall.errors import TopologyError
from alltoall.ir.arrays import Floats, Ints
from alltoall.ir.topology import Topology

_BLOCK = 1 << 22
"""Distances per block, a limit on memory."""


def hop_distances(topology: Topology, sources: Ints | None = None) -> Floats:
    """Return hop distances from each source (default: all), a row each; infinite if unreachable."""
    starts = np.arange(topology.nodes) if sources is None else np.asarray(sources, dtype=np.int64)
    graph = core.Graph(topology.nodes, topology.tail, topology.head)
    return core.distances(graph, np.ones(topology.links), starts)


def diameter(topology: Topology) -> int:
    """Return the greatest hop distance from a terminal to a terminal."""
    return int(max(float(block.max()) for block in _distance_blocks(topology, "diameter")))


def mean_distance(topology: Topology) -> float:
    """Return the mean hop distance over all ordered pairs of distinct terminals."""
    count = len(topology.terminals)
    total = sum(float(block.sum()) for block in _distance_blocks(topology, "mean distance"))
    return total / (count * (count - 1))


def _distance_blocks(topology: Topology, quantity: str) -> Iterator[Floats]:
    """Yield the distances between terminals, some rows at a time; raise if one is infinite."""
    terminals, name = topology.terminals, topology.terminal_name
    rows = max(1, _BLOCK // topology.nodes)
    for begin in range(0, len(terminals), rows):
        sources = terminals[begin : begin + rows]
        distances = hop_distances(topology, sources)[:, terminals]
        if np.isinf(distances.max()):
            row, column = np.argwhere(np.isinf(distances))[0].tolist()
            raise TopologyError(
                f"{topology.name}: no path leads from terminal {name(begin + row)} to terminal "
                f"{name(column)}, so there is no {quantity}; add links"
            )
        yield distances


def girth(topology: Topology) -> int | None:
    """Return the length of a shortest cycle, or None where there is no cycle.

    In a bidirectional topology a link and its partner count as one undirected edge, and two
    parallel edges are a cycle of 2; in any other topology cycles follow the links.
    """
    pairs = np.unique(np.stack([topology.tail, topology.head], axis=1), axis=0)
    if topology.bidirectional and len(pairs) < topology.links:
        return 2
    tail, head = pairs.T.copy()
    find = _undirected_girth if topology.bidirectional else _directed_girth
    nodes = np.arange(topology.nodes)
    rows = max(1, _BLOCK // max(len(tail), topology.nodes))
    parts = (nodes[begin : begin + rows] for begin in range(0, topology.nodes, rows))
    shortest = min(find(hop_distances(topology, roots), roots, tail, head) for roots in parts)
    return int(shortest) if np.isfinite(shortest) else None


def _directed_girth(distances: Floats, roots: Ints, tail: Ints, head: Ints) -> float:
    """Return the length of a shortest cycle through a root: a path, and a link that leads back."""
    back = np.isin(head, roots)
    return float((distances[head[back] - roots[0], tail[back]] + 1).min(initial=np.inf))


def _undirected_girth(distances: Floats, _: Ints, tail: Ints, head: Ints) -> float:
    """Return the length of a shortest closed walk through one of the roots.

    Such a walk joins two shortest paths, which meet at a node or at the ends of an edge.
    """
    near, far = distances[:, tail], distances[:, head]
    odd = np.where(near == far, 2 * near + 1, np.inf).min(initial=np.inf)
    row, link = np.nonzero(near + 1 == far)
    nodes = distances.shape[1]
    ways = np.bincount(row * nodes + head[link], minlength=distances.size)
    return float(min(odd, 2 * distances.ravel()[ways > 1].min(initial=np.inf)))
