"""Direct sends: every shard goes straight to its destination, and no other terminal relays it.

Their time is known where each pair has links of its own, and where all terminals hang off one
switch. If it meets the bound, there is nothing that a schedule could add.
"""

import numpy as np

from alltoall.ir.answer import Answer
from alltoall.ir.problem import Problem
from alltoall.ir.topology import Topology
from alltoall.ir.words import PROVEN

OPTIMAL_NOTE = (
    "direct sends are already optimal here: each shard straight to its destination takes the "
    "proven minimum"
)


def direct_notes(answer: Answer) -> list[str]:
    """Return the note that direct sends are optimal, where they are."""
    time = direct_time(answer.problem)
    return [OPTIMAL_NOTE] if time is not None and time <= answer.bound * (1 + PROVEN) else []


def direct_time(problem: Problem) -> float | None:
    """Return the time of direct sends, None where a pair has more than one way to send directly."""
    topology = problem.topology
    if len(topology.terminals) == topology.nodes:
        return _time_over_own_links(problem)
    return _time_through_switch(problem) if _is_star(topology) else None


def _time_over_own_links(problem: Problem) -> float | None:
    """Return the time of sending over the links of each pair, None if a pair has none."""
    topology, demand = problem.topology, problem.demand
    if demand.uniform and topology.links < demand.total:
        return None
    source, destination = demand.pairs()
    capacity = np.zeros((topology.nodes, topology.nodes))
    np.add.at(capacity, (topology.tail, topology.head), topology.capacity)
    own = capacity[source, destination]
    return float((demand.of(source, destination) / own).max()) if own.all() else None


def _is_star(topology: Topology) -> bool:
    """Whether each terminal has links to and from the one switch, and there are no others."""
    hub = topology.position < 0
    between = hub[topology.tail] != hub[topology.head]
    return bool(
        hub.sum() == 1 and between.all() and (topology.out_degree * topology.in_degree > 0).all()
    )


def _time_through_switch(problem: Problem) -> float:
    """Return the time until the busiest link of a star has carried its load."""
    topology, table = problem.topology, problem.demand.table()
    loads = []
    for ends, load in ((topology.tail, table.sum(axis=1)), (topology.head, table.sum(axis=0))):
        capacity = np.bincount(ends, topology.capacity, topology.nodes)[topology.terminals]
        loads.append(float((load / capacity).max()))
    return max(loads)
