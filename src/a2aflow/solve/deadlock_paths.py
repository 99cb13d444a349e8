"""From exact flows per source, in one layer or several, to weighted routes.

The flow of a source is peeled: from a destination back to the source along the largest inflow, as
much as the narrowest link of that way carries or the destination still lacks. Every peel empties a
link or serves a destination, so the routes of a source are at most its links and destinations.
"""

from dataclasses import replace

import numpy as np
from numba import njit

from a2aflow.ir.arrays import Floats, Ints, inner_index
from a2aflow.ir.flow import Certificate, Flow
from a2aflow.ir.problem import Problem
from a2aflow.ir.routes import Routes
from a2aflow.ir.topology import Topology
from a2aflow.solve.groups import Groups, by_commodity, by_source
from a2aflow.solve.paths import Adjacency

ROUNDING = 1e-9
"""What is left of a demand below this share is rounding, and goes to the routes found."""


def routes_of_flow(flow: Flow) -> Routes:
    """Return the routes of a flow without cycles; the load of no link grows."""
    topology = flow.problem.topology
    groups = by_commodity(flow.problem) if flow.per_commodity else by_source(flow.problem)
    volumes = np.zeros((flow.groups, topology.links))
    group = np.repeat(np.arange(flow.groups), np.diff(flow.start))
    volumes[group, flow.link] = flow.amount * flow.time
    every = np.arange(topology.links)
    peeled = peel_routes(
        flow.problem,
        topology,
        groups,
        volumes,
        (every, np.zeros_like(every)),
        topology.terminals,
        flow.certificate,
        flow.method,
    )
    return replace(peeled, layer=None)


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
    origin, layer = copies
    group, destination, weight, copy, hops, link = _peel(
        groups.start,
        np.ascontiguousarray(groups.wanted[:, ends]),
        ends,
        graph.tail,
        Adjacency(graph).incoming,
        origin,
        (topology.tail, topology.head),
        np.array(volumes),
    )
    source = groups.source[group]
    kept, weight = _merged(np.stack((source, destination, layer[copy])), hops, link, weight)
    entries = np.repeat((np.cumsum(hops) - hops)[kept], hops[kept]) + inner_index(hops[kept])
    return Routes(
        problem=problem,
        source=source[kept],
        destination=destination[kept],
        start=np.concatenate(([0], np.cumsum(hops[kept]))),
        link=link[entries],
        weight=_to_demand(problem, source[kept], destination[kept], weight),
        certificate=certificate,
        method=method,
        layer=layer[copy][kept],
    )


def _merged(labels: Ints, hops: Ints, link: Ints, weight: Floats) -> tuple[Ints, Floats]:
    """Return one of each set of routes with equal labels and links, and their weights together."""
    keys = np.full((len(hops), len(labels) + int(hops.max())), -1, dtype=np.int64)
    keys[:, : len(labels)] = labels.T
    keys[np.repeat(np.arange(len(hops)), hops), len(labels) + inner_index(hops)] = link
    _, kept, same = np.unique(keys, axis=0, return_index=True, return_inverse=True)
    return kept, np.bincount(same.ravel(), weight).astype(np.float64)


def _to_demand(problem: Problem, source: Ints, destination: Ints, weight: Floats) -> Floats:
    """Scale the weights of each pair to add up to its demand."""
    terminals = len(problem.topology.terminals)
    pair = source * terminals + destination
    carried = np.bincount(pair, weight)
    demand = problem.demand.rows(np.arange(terminals))[source, destination]
    return np.asarray(weight / carried[pair] * demand)


@njit(cache=True)
def _peel(
    start: Ints,
    wanted: Floats,
    ends: Ints,
    tail: Ints,
    incoming: tuple[Ints, Ints],
    origin: Ints,
    link_ends: tuple[Ints, Ints],
    volumes: Floats,
) -> tuple[Ints, Ints, Floats, Ints, Ints, Ints]:
    """Return group, destination, weight, one copy, number of links, and links of each route."""
    groups, destinations, copies = [np.int64(0)], [np.int64(0)], [np.int64(0)]
    weights, hops, links = [0.0], [np.int64(0)], [np.int64(0)]
    way = np.empty(len(tail), dtype=np.int64)
    route = np.empty(len(tail), dtype=np.int64)
    for group in range(len(start)):
        for destination in range(len(ends)):
            left = wanted[group, destination]
            while left > ROUNDING * wanted[group, destination]:
                length = _walk_back(
                    ends[destination], start[group], tail, incoming, volumes[group], way
                )
                amount = min(left, volumes[group, way[:length]].min())
                if amount <= 0.0:
                    break
                volumes[group, way[:length]] -= amount
                left -= amount
                count = _simple(way[:length], origin, link_ends, route)
                groups.append(np.int64(group))
                destinations.append(np.int64(destination))
                weights.append(amount)
                copies.append(_real_copy(way[:length], origin, len(link_ends[0])))
                hops.append(np.int64(count))
                for index in range(count):
                    links.append(route[index])
    return (
        np.array(groups)[1:],
        np.array(destinations)[1:],
        np.array(weights)[1:],
        np.array(copies)[1:],
        np.array(hops)[1:],
        np.array(links)[1:],
    )


@njit(cache=True)
def _walk_back(
    end: int, start: int, tail: Ints, incoming: tuple[Ints, Ints], volume: Floats, way: Ints
) -> int:
    """Write the way from start to end, last link first, along the largest inflows."""
    first, into = incoming
    node, length = end, 0
    while node != start:
        arcs = into[first[node] : first[node + 1]]
        way[length] = arcs[np.argmax(volume[arcs])]
        node = tail[way[length]]
        length += 1
        if volume[way[length - 1]] <= 0.0:
            break
    return length


@njit(cache=True)
def _real_copy(way: Ints, origin: Ints, links: int) -> int:
    """Return a link of the graph on the way that is a copy of a link."""
    for arc in way:
        if origin[arc] < links:
            return int(arc)
    return 0


@njit(cache=True)
def _simple(way: Ints, origin: Ints, link_ends: tuple[Ints, Ints], route: Ints) -> int:
    """Write the links of a way, given last link first, without its loops; return how many.

    Leaving a loop out keeps a way that goes forward in an order of the links forward.
    """
    tail, head = link_ends
    count = 0
    for index in range(len(way) - 1, -1, -1):
        link = origin[way[index]]
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
