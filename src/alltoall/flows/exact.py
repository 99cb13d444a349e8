"""Post-processing: from a solver's approximate flows to flows that conserve exactly.

A solver's answer conserves up to its tolerance, may turn in circles, and, where the program uses
inequalities as the paper's does, may carry more near the source than ever arrives. For every
group the core (`core/exact.h`)

1. drops what is negative or negligible;
2. sends what nodes now lack along a shortest-path tree, so that no node lacks anything;
3. cancels cycles, which leaves an acyclic flow;
4. walks the acyclic flow from its sinks back to its source and trims what a node receives to what
   it needs (the paper's pass "from d to s").

An absent answer is the zero flow, for which step 2 alone gives a feasible one: that is how a
solver which stops early still yields a valid result.
"""

import numpy as np

from alltoall import core
from alltoall.flows.groups import Groups
from alltoall.ir.arrays import Floats
from alltoall.ir.topology import Topology
from alltoall.paths.blocks import row_blocks, thread_count
from alltoall.paths.shortest import core_graph


def exact_flows(
    topology: Topology, groups: Groups, approximate: Floats, lengths: Floats | None = None
) -> Floats:
    """Return flows [groups, links] that deliver exactly `groups.wanted`, close to `approximate`.

    What is missing goes along shortest paths under `lengths`; by default those avoid narrow links.
    """
    flows = np.array(approximate, dtype=np.float64, order="C")
    graph = core_graph(topology)
    if lengths is None:
        lengths = topology.capacity.max() / topology.capacity
    for rows in row_blocks(len(flows), topology.links):
        wanted = groups.start[rows], groups.wanted[rows]
        core.make_exact(graph, lengths, *wanted, flows[rows], thread_count())
    return flows
