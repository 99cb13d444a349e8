"""Post-processing: from a solver's approximate flows to exact ones.

A solver's answer conserves up to its tolerance, may turn in circles, and, where the program uses
inequalities as the paper's does, may carry more near the source than ever arrives. For every
group the core (`core/flow.h`)

1. drops what is negative or negligible;
2. sends what nodes now lack along a shortest-path tree, so that no node lacks anything;
3. cancels cycles, which leaves an acyclic flow;
4. walks the acyclic flow from its sinks back to its source and trims what a node receives to what
   it needs (the paper's pass "from d to s").

An absent answer is the zero flow, for which step 2 alone gives a feasible one: that is how a
solver which stops early still yields a valid result.

A group, the unit of flow variables, is a source and its deliveries: to one destination in the
link-based program (a commodity), to all of them in the master program.
"""

from dataclasses import dataclass

import numpy as np

from alltoall import core
from alltoall.errors import InputError
from alltoall.ir.arrays import Floats, Ints
from alltoall.ir.problem import Problem
from alltoall.ir.topology import Topology
from alltoall.paths.blocks import row_blocks, thread_count
from alltoall.paths.shortest import core_graph


@dataclass(frozen=True, eq=False)
class Groups:
    """`wanted[g, v]` is what node v is to receive of the flow that leaves node `start[g]`."""

    source: Ints
    destination: Ints | None
    start: Ints
    wanted: Floats

    def part(self, which: slice) -> "Groups":
        """Return some of the groups."""
        destination = None if self.destination is None else self.destination[which]
        return Groups(self.source[which], destination, self.start[which], self.wanted[which])


MOST_GROUP_NODES = 200_000_000
"""Groups times nodes beyond which a problem is refused rather than attempted in memory."""


def by_source(problem: Problem, sources: Ints | None = None) -> Groups:
    """Return one group per source: the paper's source-rooted grouped commodities."""
    source = problem.sources if sources is None else sources
    if len(source) * problem.topology.nodes > MOST_GROUP_NODES:
        raise InputError(
            f"{problem.topology.name}: {len(source):,} sources times {problem.topology.nodes:,} "
            f"nodes; expected at most {MOST_GROUP_NODES:,}. Where one source stands for many, "
            "symmetry makes it fewer"
        )
    return Groups(source, None, problem.topology.terminals[source], problem.node_demand(source))


def by_commodity(problem: Problem) -> Groups:
    """Return one group per pair with a positive demand."""
    source, destination = problem.demand.pairs()
    if len(source) * problem.topology.nodes > MOST_GROUP_NODES:
        raise InputError(
            f"{problem.topology.name}: {len(source):,} pairs times {problem.topology.nodes:,} "
            f"nodes; expected at most {MOST_GROUP_NODES:,}; use a method with one group per source"
        )
    terminals = problem.topology.terminals
    rows = np.arange(len(source))
    wanted = np.zeros((len(source), problem.topology.nodes))
    wanted[rows, terminals[destination]] = problem.demand.of(source, destination)
    return Groups(source, destination, terminals[source], wanted)


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
