"""SimGrid platform XML, version 4.1: one link per directed link, one route per adjacent pair.

The zone's Floyd routing finds the other routes by hops. SimGrid has one route per pair, so
parallel links are all declared, and the widest of them is on the route.
"""

from xml.sax.saxutils import quoteattr

import numpy as np

from a2aflow.errors import UsageError
from a2aflow.ir.arrays import Ints
from a2aflow.ir.topology import Topology
from a2aflow.ir.words import one_line

# 25 Gbit/s for each unit of capacity.
LINK_BANDWIDTH = 3.125e9
LINK_LATENCY = 1e-6

_HEAD = (
    "<?xml version='1.0'?>",
    '<!DOCTYPE platform SYSTEM "https://simgrid.org/simgrid.dtd">',
    '<platform version="4.1">',
)


def write(
    topology: Topology, link_bandwidth: float = LINK_BANDWIDTH, latency: float = LINK_LATENCY
) -> str:
    """Return the platform; a link carries `link_bandwidth` bytes per second and unit of capacity.

    Terminals are hosts and other nodes routers, by their names, or as `node-<id>` if they have
    none; the links are called `link-<index>`.
    """
    if not (np.isfinite(link_bandwidth) and link_bandwidth > 0):
        raise UsageError(f"link bandwidth {link_bandwidth:g}; expected bytes per second above 0")
    if not (np.isfinite(latency) and latency >= 0):
        raise UsageError(f"latency {latency:g}; expected a non-negative number of seconds")
    lines = [
        *_HEAD,
        f'  <zone id={quoteattr(one_line(topology.name))} routing="Floyd">',
        *_node_lines(topology),
        *_link_lines(topology, link_bandwidth, latency),
        *_route_lines(topology),
        "  </zone>",
        "</platform>",
    ]
    return "\n".join(lines) + "\n"


def _node_lines(topology: Topology) -> list[str]:
    terminals = set(topology.terminals.tolist())
    return [
        f'    <host id={_id(topology, node)} speed="1Gf"/>'
        if node in terminals
        else f"    <router id={_id(topology, node)}/>"
        for node in range(topology.nodes)
    ]


def _id(topology: Topology, node: int) -> str:
    """Return the quoted name of a node, which is not that of a link."""
    return quoteattr(f"node-{node}" if topology.names is None else topology.names[node])


def _link_lines(topology: Topology, link_bandwidth: float, latency: float) -> list[str]:
    # SHARED, because the default policy would make each link a pair of opposite ones.
    return [
        f'    <link id="link-{link}" bandwidth="{capacity * link_bandwidth!r}Bps" '
        f'latency="{float(latency)!r}s" sharing_policy="SHARED"/>'
        for link, capacity in enumerate(topology.capacity.tolist())
    ]


def _route_lines(topology: Topology) -> list[str]:
    return [
        f"    <route src={_id(topology, topology.tail[link])} "
        f"dst={_id(topology, topology.head[link])} "
        f'symmetrical="NO"><link_ctn id="link-{link}"/></route>'
        for link in _widest_links(topology)
    ]


def _widest_links(topology: Topology) -> Ints:
    """Return the widest link of every adjacent pair, the first of them if several are."""
    order = np.lexsort((-topology.capacity, topology.head, topology.tail))
    ends = np.column_stack([topology.tail[order], topology.head[order]])
    first = np.ones(len(order), dtype=np.bool_)
    first[1:] = (ends[1:] != ends[:-1]).any(axis=1)
    return order[first].astype(np.int64)
