"""What is left of a topology, or of a problem on it, when links and nodes are gone."""

from itertools import compress

import numpy as np

from alltoall.ir.arrays import Ints
from alltoall.ir.demand import Demand
from alltoall.ir.problem import Problem
from alltoall.ir.topology import Topology


def without_links(topology: Topology, links: Ints, note: str) -> Topology:
    """Return the topology without some links, which leaves the others in order."""
    kept = np.ones(topology.links, dtype=np.bool_)
    kept[links] = False
    return topology.changed(
        note,
        tail=topology.tail[kept],
        head=topology.head[kept],
        capacity=topology.capacity[kept],
    )


def without_nodes(topology: Topology, nodes: Ints, note: str) -> Topology:
    """Return the topology without some nodes and their links; others are renumbered in order."""
    stays = np.ones(topology.nodes, dtype=np.bool_)
    stays[nodes] = False
    renumbered = np.cumsum(stays) - 1
    kept = stays[topology.tail] & stays[topology.head]
    return topology.changed(
        note,
        nodes=int(stays.sum()),
        tail=renumbered[topology.tail[kept]],
        head=renumbered[topology.head[kept]],
        capacity=topology.capacity[kept],
        terminals=renumbered[topology.terminals[stays[topology.terminals]]],
        names=None if topology.names is None else tuple(compress(topology.names, stays)),
    )


def numbers_left(topology: Topology, links: Ints, nodes: Ints) -> tuple[Ints, Ints]:
    """Return which nodes and which links are left, each at its number among those that are."""
    stays = ~np.isin(np.arange(topology.nodes), nodes)
    kept = stays[topology.tail] & stays[topology.head]
    kept[links] = False
    return np.flatnonzero(stays), np.flatnonzero(kept)


def demand_without(problem: Problem, nodes: Ints) -> Demand:
    """Return the demand of the terminals that are left without some nodes."""
    stays = np.flatnonzero(~np.isin(problem.topology.terminals, nodes))
    if problem.demand.uniform:
        return Demand(len(stays))
    return Demand(len(stays), problem.demand.of(*np.meshgrid(stays, stays, indexing="ij")))
