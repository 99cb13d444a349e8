"""SimGrid platform XML, version 4.1: one link per directed link, one route per adjacent pair.

The zone's Floyd routing finds the other routes by hops. SimGrid has one route per pair, so
parallel links are all declared, and the widest of them is on the route. `lower --to simgrid` writes
the same platform with chosen routes in place of these.
"""

from collections.abc import Iterable
from xml.sax.saxutils import quoteattr

import numpy as np

from alltoall.errors import UsageError
from alltoall.ir.arrays import rows, run_starts
from alltoall.ir.fabric import Rate, link_rate
from alltoall.ir.topology import Topology
from alltoall.ir.words import one_line

LINK_BANDWIDTH = 3.125e9
"""Bytes per second of each unit of capacity: 25 Gbit/s."""
LINK_LATENCY = 1e-6

VERSION = "4.1"
HEAD = ("<?xml version='1.0'?>", '<!DOCTYPE platform SYSTEM "https://simgrid.org/simgrid.dtd">')
SPEED, SHARED = "1Gf", "SHARED"
"""The required but unused compute speed, and the policy that keeps a link one-way."""


def write(
    topology: Topology, link_bandwidth: Rate | None = None, latency: float = LINK_LATENCY
) -> str:
    """Return the platform; a link carries `link_bandwidth` per unit of capacity.

    The default is the topology's own rate, or 25 Gbit/s. Terminals are hosts and other
    nodes routers, by name, or as `node-<id>` without names; links are called `link-<index>`.
    """
    # The widest link of every adjacent pair, the first of them if several are.
    order = np.lexsort((-topology.capacity, topology.head, topology.tail))
    widest = order[run_starts(topology.tail[order], topology.head[order])]
    ends = rows(widest, topology.tail[widest], topology.head[widest])
    routes = (route_line(topology, tail, head, [link]) for link, tail, head in ends)
    return platform(topology, "Floyd", routes, link_bandwidth, latency)


def platform(
    topology: Topology,
    routing: str,
    routes: Iterable[str],
    link_bandwidth: Rate | None,
    latency: float,
) -> str:
    """Return a platform of one zone: nodes in their order, links in theirs, then routes."""
    stated = link_rate(topology, link_bandwidth)
    rate = LINK_BANDWIDTH if stated is None else stated
    if not (np.isfinite(rate) and rate > 0):
        raise UsageError(f"link bandwidth {rate:g}; expected bytes per second above 0")
    if not (np.isfinite(latency) and latency >= 0):
        raise UsageError(f"latency {latency:g}; expected a non-negative number of seconds")
    lines = [
        *HEAD,
        f'<platform version="{VERSION}">',
        f'  <zone id={quoteattr(one_line(topology.name))} routing="{routing}">',
        *[
            f'    <host id={_id(topology, node)} speed="{SPEED}"/>'
            if topology.position[node] >= 0
            else f"    <router id={_id(topology, node)}/>"
            for node in range(topology.nodes)
        ],
        *[
            f'    <link id="link-{link}" bandwidth="{capacity * rate!r}Bps" '
            f'latency="{float(latency)!r}s" sharing_policy="{SHARED}"/>'
            for link, capacity in enumerate(topology.capacity.tolist())
        ],
        *routes,
        "  </zone>",
        "</platform>",
    ]
    return "\n".join(lines) + "\n"


def _id(topology: Topology, node: int) -> str:
    # Links are called otherwise: names of nodes and links must not collide.
    return quoteattr(f"node-{node}" if topology.names is None else topology.names[node])


def route_line(topology: Topology, source: int, destination: int, links: Iterable[int]) -> str:
    """Return the one-way route of a pair of nodes, over links in their order."""
    path = "".join(f'<link_ctn id="link-{link}"/>' for link in links)
    ends = f"src={_id(topology, source)} dst={_id(topology, destination)}"
    return f'    <route {ends} symmetrical="NO">{path}</route>'
