"""Filling: what approximate flows fail to deliver, sent where there is room.

The most loaded link sets the time, so it matters where the little goes that is missing. It is sent
in parts, each along shortest paths under lengths that grow exponentially with the load, and every
part adds to the load that the next one sees. `flows.exact` then removes what is in excess.
"""

import numpy as np

from alltoall import core
from alltoall.flows.program import FlowProgram
from alltoall.ir.arrays import Floats
from alltoall.paths.blocks import row_blocks, thread_count
from alltoall.paths.shortest import core_graph
from alltoall.settings import ALONE, Team

FILLING_PARTS = 8
"""Parts in which the missing flow is sent."""

CROWDING_STEEPNESS = 1000.0
"""A link that is a thousandth fuller than another is e times as long."""


def fill_missing(
    program: FlowProgram, flow: Floats, parts: int = FILLING_PARTS, team: Team = ALONE
) -> None:
    """Add to flows [groups, links] what they lack, in place; what is negative is dropped first."""
    graph, groups = core_graph(program.graph), program.groups
    np.copyto(flow, 0.0, where=~(flow > 0))
    part = _missing(program, flow) / parts
    for _ in range(parts):
        lengths = crowding(program, team.total(program.weight @ flow))
        for rows in row_blocks(len(flow), program.graph.links):
            given = lengths, groups.start[rows], part[rows], flow[rows]
            core.add_tree_flows(graph, *given, thread_count())


def crowding(program: FlowProgram, load: Floats) -> Floats:
    """Return a length per link that tells how full its class is, next to the fullest one."""
    busy = program.busy(load)
    fullest = program.durations(load)[program.budget]
    share = np.divide(busy, fullest, out=np.zeros_like(busy), where=fullest > 0)
    return program.link_lengths(np.exp(CROWDING_STEEPNESS * (share - 1)) / program.class_capacity)


def _missing(program: FlowProgram, flow: Floats) -> Floats:
    """Return what each node but the source lacks, [groups, nodes]."""
    graph, missing = program.graph, program.groups.wanted.copy()
    for group, row in enumerate(flow):
        missing[group] += np.bincount(graph.tail, row, graph.nodes)
        missing[group] -= np.bincount(graph.head, row, graph.nodes)
    missing[np.arange(len(missing)), program.groups.start] = 0.0
    return np.maximum(missing, 0.0)
