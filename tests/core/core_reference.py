"""Plain Python references of what the compiled core computes, and random arrays for it."""

from types import SimpleNamespace
from typing import cast

import numpy as np
from hypothesis import strategies as st

from alltoall import core
from alltoall.ir.arrays import Floats, Ints
from alltoall.ir.topology import Topology

Network = tuple[int, Ints, Ints]
"""Nodes, tails and heads."""


@st.composite
def networks(draw: st.DrawFn, most_nodes: int = 7, most_links: int = 20) -> Network:
    """Draw a graph: one node, no links, parallel links and loops included."""
    nodes = draw(st.integers(1, most_nodes))
    ends = st.integers(0, nodes - 1)
    links = draw(st.lists(st.tuples(ends, ends), max_size=most_links))
    pairs = np.array(links, dtype=np.int64).reshape(-1, 2)
    return nodes, pairs[:, 0].copy(), pairs[:, 1].copy()


def distances(network: Network, lengths: Floats, start: int) -> Floats:
    """Return the distance to every node, by relaxing all links until nothing changes."""
    nodes, tail, head = network
    distance = np.full(nodes, np.inf)
    distance[start] = 0.0
    for _ in range(nodes):
        for link in range(len(tail)):
            distance[head[link]] = min(distance[head[link]], distance[tail[link]] + lengths[link])
    return distance


def graph_of(network: Network) -> core.Graph:
    """Return the graph of the core."""
    return core.Graph(*network)


def order_of(network: Network, order: Ints) -> core.LinkOrder:
    """Return an order of all links of a network, each with a price of its own."""
    nodes, tail, _ = network
    blocks = np.array([0, len(order)])
    every, links = np.arange(nodes)[None], np.arange(len(tail))
    return core.LinkOrder(graph_of(network), order, blocks, nodes, links, len(tail), every)


def topology_of(network: Network) -> Topology:
    """Return the graph as a topology, which may have loops and parallel links here."""
    nodes, tail, head = network
    ends = {"tail": tail, "head": head, "links": len(tail)}
    return cast("Topology", SimpleNamespace(nodes=nodes, terminals=np.arange(nodes), **ends))
