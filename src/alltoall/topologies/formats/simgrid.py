"""SimGrid platform XML, version 4.1: one link per directed link, one route per adjacent pair.

The zone's Floyd routing finds the other routes by hops. SimGrid has one route per pair, so
parallel links are all declared, and the widest of them is on the route. Routes that somebody chose
are for `lower --to simgrid`, which writes the same platform with them in place of these.
"""

from collections.abc import Iterable
from xml.sax.saxutils import quoteattr

import numpy as np

from alltoall.errors import UsageError
from alltoall.ir.arrays import Ints
from alltoall.ir.fabric import Rate, link_rate
from alltoall.ir.topology import Topology
from alltoall.ir.words import one_line

# 25 Gbit/s for each unit of capacity.
LINK_BANDWIDTH = 3.125e9
LINK_LATENCY = 1e-6

VERSION = "4.1"
HEAD = ("<?xml version='1.0'?>", '<!DOCTYPE platform SYSTEM "https://simgrid.org/simgrid.dtd">')
SPEED, SHARED = "1Gf", "SHARED"
"""What hosts compute, which nothing here needs; SHARED, because the default policy would make each
link a pair of opposite ones."""


def write(
    topology: Topology, link_bandwidth: Rate | None = None, latency: float = LINK_LATENCY
) -> str:
    """Return the platform; a link carries `link_bandwidth` per unit of capacity.

    If left out, that is the rate that the topology states, or 25 Gbit/s.

    Terminals are hosts and other nodes routers, by their names, or as `node-<id>` if they have
    none; the links are called `link-<index>`.
    """
    routes = (
        route_line(topology, int(topology.tail[link]), int(topology.head[link]), [int(link)])
        for link in _widest_links(topology)
    )
    return platform(topology, "Floyd", routes, link_bandwidth, latency)


def platform(
    topology: Topology,
    routing: str,
    routes: Iterable[str],
    link_bandwidth: Rate | None,
    latency: float,
) -> str:
    """Return a platform of one zone: nodes in their order, links in theirs, then routes."""
    found = link_rate(topology, link_bandwidth)
    rate = LINK_BANDWIDTH if found is None else found
    if not (np.isfinite(rate) and rate > 0):
        raise UsageError(f"link bandwidth {rate:g}; expected bytes per second above 0")
    if not (np.isfinite(latency) and latency >= 0):
        raise UsageError(f"latency {latency:g}; expected a non-negative number of seconds")
    lines = [
        *HEAD,
        f'<platform version="{VERSION}">',
        f'  <zone id={quoteattr(one_line(topology.name))} routing="{routing}">',
        *_node_lines(topology),
        *_link_lines(topology, rate, latency),
        *routes,
        "  </zone>",
        "</platform>",
    ]
    return "\n".join(lines) + "\n"


def _node_lines(topology: Topology) -> list[str]:
    return [
        f'    <host id={_id(topology, node)} speed="{SPEED}"/>'
        if topology.position[node] >= 0
        else f"    <router id={_id(topology, node)}/>"
        for node in range(topology.nodes)
    ]


def node_id(topology: Topology, node: int) -> str:
    """Return what a node is called in a platform, where no link has such a name."""
    return f"node-{node}" if topology.names is None else topology.names[node]


def _id(topology: Topology, node: int) -> str:
    return quoteattr(node_id(topology, node))


def _link_lines(topology: Topology, link_bandwidth: float, latency: float) -> list[str]:
    return [
        f'    <link id="link-{link}" bandwidth="{capacity * link_bandwidth!r}Bps" '
        f'latency="{float(latency)!r}s" sharing_policy="{SHARED}"/>'
        for link, capacity in enumerate(topology.capacity.tolist())
    ]


def route_line(topology: Topology, source: int, destination: int, links: Iterable[int]) -> str:
    """Return the one-way route of a pair of nodes, over links in their order."""
    path = "".join(f'<link_ctn id="link-{link}"/>' for link in links)
    ends = f"src={_id(topology, source)} dst={_id(topology, destination)}"
    return f'    <route {ends} symmetrical="NO">{path}</route>'


def _widest_links(topology: Topology) -> Ints:
    """Return the widest link of every adjacent pair, the first of them if several are."""
    order = np.lexsort((-topology.capacity, topology.head, topology.tail))
    ends = np.column_stack([topology.tail[order], topology.head[order]])
    first = np.ones(len(order), dtype=np.bool_)
    first[1:] = (ends[1:] != ends[:-1]).any(axis=1)
    return order[first].astype(np.int64)
