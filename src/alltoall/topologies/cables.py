"""Cables: links that go both ways."""

import numpy as np

from alltoall.errors import TopologyError
from alltoall.ir.arrays import Ints
from alltoall.ir.topology import Topology
from alltoall.ir.words import counted


def partner_links(topology: Topology) -> Ints:
    """Return for every link the one that goes back over the same cable.

    Parallel links of one capacity are paired in the order of their indices.
    """
    if not topology.bidirectional:
        raise TopologyError(
            f"{topology.name}: some link has no partner of the same capacity in the other "
            "direction; expected a bidirectional topology, add the missing links"
        )
    partner = np.empty(topology.links, dtype=np.int64)
    forth = np.lexsort((topology.capacity, topology.head, topology.tail))
    partner[forth] = np.lexsort((topology.capacity, topology.tail, topology.head))
    return partner


def cable_links(topology: Topology) -> Ints:
    """Return one link per cable: the one from the lower node if bidirectional, else every link."""
    if topology.bidirectional:
        return np.flatnonzero(topology.tail < topology.head).astype(np.int64)
    return np.arange(topology.links, dtype=np.int64)


def both_ways(topology: Topology) -> Topology:
    """Take every link for a cable: add the link back of those that have none.

    Links are then ordered by tail and head, as those of undirected edges are. Links that are there
    in both directions must match, since it is not known which of them to believe.
    """
    if topology.bidirectional:
        return topology
    keys = topology.tail * topology.nodes + topology.head
    alone = np.flatnonzero(~np.isin(topology.head * topology.nodes + topology.tail, keys))
    tail = np.concatenate([topology.tail, topology.head[alone]])
    head = np.concatenate([topology.head, topology.tail[alone]])
    order = np.lexsort((head, tail))
    result = topology.changed(
        f"taken as undirected: {counted(len(alone), 'link')} added",
        tail=tail[order],
        head=head[order],
        capacity=np.concatenate([topology.capacity, topology.capacity[alone]])[order],
    )
    if not result.bidirectional:
        raise TopologyError(
            f"{topology.name}: some links lead both ways with different capacities; expected one "
            "direction of each cable, or both alike, to take it as undirected"
        )
    return result
