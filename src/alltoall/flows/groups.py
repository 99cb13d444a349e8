"""Groups: the unit in which every link-based program counts its flow variables.

A group is a source and what it is to deliver: to one destination in the link-based program (a
commodity), to all of them in the master program. The two programs differ in nothing else.
"""

from dataclasses import dataclass

import numpy as np

from alltoall.errors import InputError
from alltoall.ir.arrays import Floats, Ints
from alltoall.ir.problem import Problem


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
