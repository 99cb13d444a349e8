"""Structural properties: hop distances, diameter and girth."""

from collections.abc import Iterator

import numpy as np
from numba import njit

from alltoall.errors import TopologyError
from alltoall.ir.arrays import Floats, Ints
from alltoall.ir.topology import Topology

_BLOCK = 1 << 22  # entries of a block of distances that is held at a time


def hop_distances(topology: Topology, sources: Ints | None = None) -> Floats:
    """Return the least number of links from each source (default: every node) to each node.

    Row i belongs to `sources[i]`; a node that cannot be reached is at distance infinity.
    """
    # A copy, because numba compiles once more for read-only arrays.
    starts = np.array(np.arange(topology.nodes) if sources is None else sources, dtype=np.int64)
    first, successors = _adjacency(topology.nodes, topology.tail, topology.head)
    distances = np.full((len(starts), topology.nodes), np.inf)
    _search_all(first, successors, starts, distances)
    return distances


def diameter(topology: Topology) -> int:
    """Return the greatest hop distance from a terminal to a terminal."""
    return int(max(float(block.max()) for block in _distance_blocks(topology, "diameter")))


def mean_distance(topology: Topology) -> float:
    """Return the mean hop distance over all ordered pairs of distinct terminals."""
    count = len(topology.terminals)
    total = sum(float(block.sum()) for block in _distance_blocks(topology, "mean distance"))
    return total / (count * (count - 1))


def _distance_blocks(topology: Topology, what: str) -> Iterator[Floats]:
    """Yield the distances between terminals, some rows at a time; raise if one is infinite."""
    terminals = topology.terminals
    rows = max(1, _BLOCK // topology.nodes)
    for begin in range(0, len(terminals), rows):
        sources = terminals[begin : begin + rows]
        distances = hop_distances(topology, sources)[:, terminals]
        if np.isinf(distances.max()):
            row, column = np.argwhere(np.isinf(distances))[0].tolist()
            raise TopologyError(
                f"{topology.name}: no path leads from terminal "
                f"{topology.terminal_name(begin + row)} to terminal "
                f"{topology.terminal_name(column)}, so there is no {what}; add links"
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
    first, successors = _adjacency(topology.nodes, pairs[:, 0], pairs[:, 1])
    search = _undirected_girth if topology.bidirectional else _directed_girth
    length = int(search(first, successors))
    return length if length <= topology.nodes else None


def _adjacency(nodes: int, tail: Ints, head: Ints) -> tuple[Ints, Ints]:
    """Return where the successors of each node begin, and the successors."""
    order = np.argsort(tail, kind="stable")
    first = np.searchsorted(tail[order], np.arange(nodes + 1))
    return first.astype(np.int64), head[order]


@njit(cache=True)
def _search_all(first: Ints, successors: Ints, sources: Ints, distances: Floats) -> None:
    """Fill row i of `distances`, infinity at first, by breadth-first search from `sources[i]`."""
    queue = np.empty(distances.shape[1], dtype=np.int64)
    for row, source in enumerate(sources):
        reached = distances[row]
        reached[source] = 0
        queue[0] = source
        length = 1
        at = 0
        while at < length:
            node = queue[at]
            at += 1
            for other in successors[first[node] : first[node + 1]]:
                if np.isinf(reached[other]):
                    reached[other] = reached[node] + 1
                    queue[length] = other
                    length += 1


@njit(cache=True)
def _directed_girth(first: Ints, successors: Ints) -> int:
    """Return the length of a shortest directed cycle, or more than the number of nodes."""
    nodes = len(first) - 1
    best = nodes + 1
    queue = np.empty(nodes, dtype=np.int64)
    for root in range(nodes):
        depth = np.full(nodes, -1)
        depth[root] = 0
        queue[0] = root
        length = 1
        at = 0
        while at < length and depth[queue[at]] + 1 < best:
            node = queue[at]
            at += 1
            for other in successors[first[node] : first[node + 1]]:
                if other == root:
                    best = depth[node] + 1
                elif depth[other] < 0:
                    depth[other] = depth[node] + 1
                    queue[length] = other
                    length += 1
    return best


@njit(cache=True)
def _undirected_girth(first: Ints, successors: Ints) -> int:
    """Return the length of a shortest cycle of a simple graph, or more than its nodes."""
    nodes = len(first) - 1
    best = nodes + 1
    queue = np.empty(nodes, dtype=np.int64)
    parent = np.empty(nodes, dtype=np.int64)
    for root in range(nodes):
        depth = np.full(nodes, -1)
        depth[root] = 0
        parent[root] = root
        queue[0] = root
        length = 1
        at = 0
        while at < length and 2 * depth[queue[at]] + 1 < best:
            node = queue[at]
            at += 1
            for other in successors[first[node] : first[node + 1]]:
                if depth[other] < 0:
                    depth[other] = depth[node] + 1
                    parent[other] = node
                    queue[length] = other
                    length += 1
                elif other != parent[node]:
                    best = min(best, depth[node] + depth[other] + 1)
    return best
