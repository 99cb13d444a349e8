"""Filling: what approximate flows fail to deliver, sent where there is room.

The most loaded link sets the time, so it matters where the little goes that is missing. It is sent
in parts, each along shortest paths under lengths that grow exponentially with the load, and every
part adds to the load that the next one sees. `flows.exact` then removes what is in excess.
"""

import numpy as np
from numba import njit, prange

from a2aflow.flows.program import FlowProgram
from a2aflow.flows.threads import BLOCKS
from a2aflow.ir.arrays import Floats, Ints, Reals
from a2aflow.paths.shortest import Adjacency, shortest_tree

FILLING_PARTS = 8
"""Parts in which the missing flow is sent."""

CROWDING_STEEPNESS = 1000.0
"""A link that is a thousandth fuller than another is e times as long."""


def fill_missing(program: FlowProgram, flow: Reals, parts: int = FILLING_PARTS) -> None:
    """Add to flows [groups, links] what they lack, in place; what is negative is dropped first."""
    graph, groups = program.graph, program.groups
    missing = np.empty(groups.wanted.shape)
    load = _missing(
        graph.tail, graph.head, groups.start, groups.wanted, program.weight, flow, missing
    )
    total: Floats = load.sum(axis=0)
    for _ in range(parts):
        added = _send(
            Adjacency(graph).outgoing,
            (graph.tail, graph.head),
            crowding(program, total),
            groups.start,
            program.weight,
            missing,
            1.0 / parts,
            flow,
        )
        total = total + added.sum(axis=0)


def crowding(program: FlowProgram, load: Floats) -> Floats:
    """Return a length per link that tells how full its class is, next to the fullest one."""
    busy = program.busy(load)
    fullest = program.durations(load)[program.budget]
    share = np.divide(busy, fullest, out=np.zeros_like(busy), where=fullest > 0)
    return program.link_lengths(np.exp(CROWDING_STEEPNESS * (share - 1)) / program.class_capacity)


@njit(cache=True, parallel=True)
def _missing(
    tail: Ints, head: Ints, root: Ints, wanted: Floats, weight: Floats, flow: Reals, missing: Floats
) -> Floats:
    """Drop negative flows; fill in what each node lacks, and return the weighted load by block."""
    groups, links = flow.shape
    load = np.zeros((BLOCKS, links))
    for block in prange(BLOCKS):
        for group in range(groups * block // BLOCKS, groups * (block + 1) // BLOCKS):
            lacking = missing[group]
            lacking[:] = wanted[group]
            for link in range(links):
                if not flow[group, link] > 0.0:
                    flow[group, link] = 0.0
                lacking[head[link]] -= flow[group, link]
                lacking[tail[link]] += flow[group, link]
                load[block, link] += weight[group] * flow[group, link]
            lacking[root[group]] = 0.0
            for node in range(len(lacking)):
                lacking[node] = max(lacking[node], 0.0)
    return load


@njit(cache=True, parallel=True)
def _send(
    out: tuple[Ints, Ints],
    ends: tuple[Ints, Ints],
    lengths: Floats,
    root: Ints,
    weight: Floats,
    missing: Floats,
    part: float,
    flow: Reals,
) -> Floats:
    """Send a part of what is missing down each group's shortest-path tree; return its load."""
    groups, nodes = missing.shape
    added = np.zeros((BLOCKS, flow.shape[1]))
    for block in prange(BLOCKS):
        distance, below = np.empty(nodes), np.empty(nodes)
        parent, order = np.empty(nodes, dtype=np.int64), np.empty(nodes, dtype=np.int64)
        for group in range(groups * block // BLOCKS, groups * (block + 1) // BLOCKS):
            if missing[group].max() <= 0.0:
                continue
            settled = shortest_tree(
                nodes, out[0], out[1], ends[1], lengths, root[group], distance, parent, order
            )
            below[:] = missing[group] * part
            for index in range(settled - 1, 0, -1):
                node = order[index]
                if below[node] > 0.0:
                    link = parent[node]
                    flow[group, link] += below[node]
                    added[block, link] += weight[group] * below[node]
                    below[ends[0][link]] += below[node]
    return added
