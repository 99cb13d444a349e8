"""From exact flows per source on the layered graph to weighted routes.

The flow of a source is a sum of widest paths (`paths.widest`). A path becomes a route by leaving
out the free links and the loops that it makes in the topology, and paths that become the same route
are one.
"""

import numpy as np
from numba import njit

from a2aflow.flows.decompose import block_paths
from a2aflow.flows.groups import Groups
from a2aflow.ir.arrays import Floats, Ints, inner_index
from a2aflow.ir.flow import Certificate
from a2aflow.ir.problem import Problem
from a2aflow.ir.routes import Routes
from a2aflow.ir.topology import Topology
from a2aflow.paths.widest import dense_block


def peel_routes(
    problem: Problem,
    graph: Topology,
    groups: Groups,
    volumes: Floats,
    copies: tuple[Ints, Ints],
    ends: Ints,
    certificate: Certificate,
    method: str,
) -> Routes:
    """Return the routes of exact flows [groups, links of the graph] with their layers.

    `copies` holds the link of the topology that each link of the graph is (or its number of links,
    for one that is none) and its layer; `ends[t]` is the node at which flow for terminal t ends.
    """
    topology = problem.topology
    origin, layer_of_copy = copies
    block = dense_block(graph, groups.start, volumes, groups.wanted)
    paths, width = block_paths(block, groups.source, ends)
    copy, hops, link = _project(paths.start, paths.link, origin, (topology.tail, topology.head))
    layer = layer_of_copy[copy]
    kept, weight = _merged(np.stack((paths.source, paths.destination, layer)), hops, link, width)
    entries = np.repeat((np.cumsum(hops) - hops)[kept], hops[kept]) + inner_index(hops[kept])
    return Routes(
        problem=problem,
        source=paths.source[kept],
        destination=paths.destination[kept],
        start=np.concatenate(([0], np.cumsum(hops[kept]))),
        link=link[entries],
        weight=weight,
        certificate=certificate,
        method=method,
        layer=layer[kept],
    )


def _merged(labels: Ints, hops: Ints, link: Ints, weight: Floats) -> tuple[Ints, Floats]:
    """Return one of each set of routes with equal labels and links, and their weights together."""
    keys = np.full((len(hops), len(labels) + int(hops.max())), -1, dtype=np.int64)
    keys[:, : len(labels)] = labels.T
    keys[np.repeat(np.arange(len(hops)), hops), len(labels) + inner_index(hops)] = link
    _, kept, same = np.unique(keys, axis=0, return_index=True, return_inverse=True)
    return kept, np.bincount(same.ravel(), weight).astype(np.float64)


@njit(cache=True)
def _project(
    start: Ints, way: Ints, origin: Ints, link_ends: tuple[Ints, Ints]
) -> tuple[Ints, Ints, Ints]:
    """Return, for each path of the graph, one copy of a link on it, and its route in the topology.

    Routes are given by their numbers of links and all their links.
    """
    copy, hops = way[start[:-1]].copy(), np.empty(len(start) - 1, dtype=np.int64)
    links, used = np.empty(len(way), dtype=np.int64), 0
    for path in range(len(start) - 1):
        part = way[start[path] : start[path + 1]]
        for arc in part:
            if origin[arc] < len(link_ends[0]):
                copy[path] = arc
        hops[path] = _simple(part, origin, link_ends, links[used:])
        used += hops[path]
    return copy, hops, links[:used]


@njit(cache=True)
def _simple(way: Ints, origin: Ints, link_ends: tuple[Ints, Ints], route: Ints) -> int:
    """Write the links of a way without its loops; return how many.

    Leaving a loop out keeps a way that goes forward in an order of the links forward.
    """
    tail, head = link_ends
    count = 0
    for arc in way:
        link = origin[arc]
        if link == len(tail):
            continue
        back = 0
        while back < count and tail[route[back]] != head[link]:
            back += 1
        if back == count and head[link] != tail[link]:
            route[count] = link
            count += 1
        else:
            count = back
    return count
