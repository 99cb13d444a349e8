"""Post-processing: from a solver's approximate flows to exact ones.

A solver's answer conserves up to its tolerance, may have cycles, and, with inequalities as in the
paper's program, may carry more near the source than ever arrives. For every group the core
(`core/flow.h`)

1. drops negative and negligible flow;
2. sends missing flow along a shortest-path tree, so that every node receives its demand;
3. cancels cycles, which leaves an acyclic flow;
4. walks the acyclic flow from its sinks back to its source and trims the inflow of each node to its
   need (the paper's pass "from d to s").

From the zero flow, step 2 alone gives a feasible one: so a solver that stops early still yields a
valid result.

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
    """`wanted[g, v]` is the demand of node v for flow from node `start[g]`."""

    source: Ints
    destination: Ints | None
    start: Ints
    wanted: Floats

    def part(self, which: slice) -> "Groups":
        """Return a slice of the groups."""
        destination = None if self.destination is None else self.destination[which]
        return Groups(self.source[which], destination, self.start[which], self.wanted[which])


MOST_GROUP_NODES = 200_000_000
"""Groups times nodes above which a problem is refused."""


def by_source(problem: Problem, sources: Ints | None = None) -> Groups:
    """Return one group per source: the paper's source-rooted grouped commodities."""
    source = problem.sources if sources is None else sources
    _require_few(problem, len(source), "sources", "symmetry lets one source stand for many")
    return Groups(source, None, problem.topology.terminals[source], problem.node_demand(source))


def by_commodity(problem: Problem) -> Groups:
    """Return one group per pair with a positive demand."""
    source, destination = problem.demand.pairs()
    _require_few(problem, len(source), "pairs", "use a method with one group per source")
    terminals = problem.topology.terminals
    wanted = np.zeros((len(source), problem.topology.nodes))
    amount = problem.demand.of(source, destination)
    wanted[np.arange(len(source)), terminals[destination]] = amount
    return Groups(source, destination, terminals[source], wanted)


def _require_few(problem: Problem, groups: int, kind: str, advice: str) -> None:
    """Raise if the groups need too much memory."""
    topology = problem.topology
    if groups * topology.nodes > MOST_GROUP_NODES:
        raise InputError(
            f"{topology.name}: {groups:,} {kind} times {topology.nodes:,} nodes; expected at most "
            f"{MOST_GROUP_NODES:,}; {advice}"
        )


def exact_flows(
    topology: Topology, groups: Groups, approximate: Floats, lengths: Floats | None = None
) -> Floats:
    """Return flows [groups, links] that deliver exactly `groups.wanted`, close to `approximate`.

    Missing flow takes shortest paths under `lengths`; by default those avoid narrow links.
    """
    flows = np.array(approximate, dtype=np.float64, order="C")
    graph = core_graph(topology)
    if lengths is None:
        lengths = topology.capacity.max() / topology.capacity
    for rows in row_blocks(len(flows), topology.links):
        wanted = groups.start[rows], groups.wanted[rows]
        core.make_exact(graph, lengths, *wanted, flows[rows], thread_count())
    return flows
