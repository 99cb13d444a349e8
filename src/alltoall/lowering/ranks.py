"""Ranks in another order than that of the nodes.

The ranks of a program are the terminals in ascending order. Where a machine numbers its processes
in another way, the terminals are renumbered among each other, so that this is so again; links keep
their indices.
"""

from dataclasses import replace

import numpy as np

from alltoall.ir.arrays import Ints
from alltoall.ir.demand import Demand
from alltoall.ir.problem import Problem
from alltoall.ir.schedule import Schedule
from alltoall.ir.topology import Topology


def topology_by_rank(topology: Topology, rank: Ints) -> Topology:
    """Return the topology whose terminal of each rank is the one that had it in `rank`."""
    node = np.arange(topology.nodes)
    node[topology.terminals] = topology.terminals[rank]
    names = topology.names
    if names is not None:
        names = tuple(names[before] for before in np.argsort(node).tolist())
    return replace(topology, tail=node[topology.tail], head=node[topology.head], names=names)


def schedule_by_rank(schedule: Schedule, rank: Ints) -> Schedule:
    """Return the same schedule on the renumbered topology."""
    topology = topology_by_rank(schedule.problem.topology, rank)
    before = np.argsort(rank)
    pairs = np.ix_(before, before)
    matrix, chunks = schedule.problem.demand.matrix, schedule.chunks
    if chunks.counts is not None:
        chunks = replace(chunks, counts=chunks.counts[pairs])
    return replace(
        schedule,
        problem=Problem(topology, Demand(len(rank), None if matrix is None else matrix[pairs])),
        chunks=chunks,
        source=rank[schedule.source],
        destination=rank[schedule.destination],
    )
