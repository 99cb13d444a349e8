"""From exact flows per source on the layered graph to weighted routes.

The flow of a source is a sum of widest paths (`paths.widest`). A path becomes a route by leaving
out the free links and the loops that it makes in the topology, and paths that become the same route
are one.
"""

import numpy as np
from numba import njit

from alltoall.flows.decompose import paths_on_graph
from alltoall.flows.groups import Groups
from alltoall.ir.arrays import Floats, Ints, starts_of
from alltoall.ir.certificate import Certificate
from alltoall.ir.paths import Paths
from alltoall.ir.problem import Problem
from alltoall.ir.routes import Routes
from alltoall.ir.topology import Topology


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
    paths, width = paths_on_graph(graph, groups, volumes, ends)
    copy, hops, link = _project(paths.start, paths.link, origin, (topology.tail, topology.head))
    projected = Paths(paths.source, paths.destination, starts_of(hops), link)
    layer = layer_of_copy[copy]
    first, same = projected.equal(layer)
    chosen = projected.select(first)
    return Routes(
        problem=problem,
        source=chosen.source,
        destination=chosen.destination,
        start=chosen.start,
        link=chosen.link,
        weight=np.bincount(same, width).astype(np.float64),
        certificate=certificate,
        method=method,
        layer=layer[first],
    )


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
