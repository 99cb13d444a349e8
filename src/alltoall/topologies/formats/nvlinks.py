"""What the formats of NVLink machines can say: GPUs, whole links, and at most one switch."""

from collections import Counter

import numpy as np

from alltoall.errors import TopologyError
from alltoall.ir.topology import Topology

Pair = tuple[int, int]
SWITCH = "NVSwitch"
"""What the one switch is called."""

ELSEWHERE = "write json, which holds every topology"


def require(topology: Topology, holds: bool, found: str) -> None:
    """Raise unless a condition holds; `found` says what there is and what was expected."""
    if not holds:
        raise TopologyError(f"{topology.name}: {found}; {ELSEWHERE}")


def whole_links(topology: Topology) -> Counter[Pair]:
    """Return the links between every two nodes, parallel ones summed.

    GPUs are the nodes 0..n-1. Node n may be a switch; its links have the same capacity both ways.
    """
    gpus = len(topology.terminals)
    _check_nodes(topology, gpus)
    capacities = topology.capacity.tolist()
    broken = next((each for each in capacities if not each.is_integer()), None)
    require(topology, broken is None, f"a capacity of {broken}; expected whole numbers of NVLinks")
    links: Counter[Pair] = Counter()
    ends = zip(topology.tail.tolist(), topology.head.tolist(), strict=True)
    for (u, v), capacity in zip(ends, capacities, strict=True):
        links[u, v] += int(capacity)
    require(topology, bool(links), "no links; expected at least one NVLink")
    for (u, v), count in links.items():
        if gpus in (u, v):
            require_both_ways(topology, links, u, v, count)
    return links


def require_both_ways(topology: Topology, links: Counter[Pair], u: int, v: int, count: int) -> None:
    """Raise unless as many links lead from v to u."""
    ends = f"{topology.node_name(u)} -> {topology.node_name(v)}"
    found = f"{count} links {ends} and {links[v, u]} back; expected as many either way"
    require(topology, links[v, u] == count, found)


def _check_nodes(topology: Topology, gpus: int) -> None:
    others = topology.nodes - gpus
    require(topology, others <= 1, f"{others} nodes are not terminals; expected at most one switch")
    in_front = np.array_equal(topology.terminals, np.arange(gpus))
    require(topology, in_front, "a node that is no terminal precedes one; expected the switch last")
    if others:
        linked = topology.out_degree[gpus] + topology.in_degree[gpus]
        hub = topology.node_name(gpus)
        require(topology, bool(linked), f"node {hub} has no links; expected a switch of GPUs")
