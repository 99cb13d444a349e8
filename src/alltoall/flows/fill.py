"""Filling: what approximate flows fail to deliver, sent where there is room.

The most loaded link sets the time, so it matters where the little goes that is missing. It is sent
in parts, each along shortest paths under lengths that grow exponentially with the load, and every
part adds to the load that the next one sees. `flows.exact` then removes what is in excess.
"""

import numpy as np
from numba import njit, prange

from alltoall.flows.program import FlowProgram
from alltoall.flows.threads import BLOCKS
from alltoall.ir.arrays import Floats, Ints, Reals
from alltoall.ir.paths import NOTHING
from alltoall.paths.kernels import run_in_turn
from alltoall.paths.many_trees import LANES, leaves_first, shortest_trees
from alltoall.paths.shortest import Adjacency
from alltoall.settings import ALONE, Team

FILLING_PARTS = 8
"""Parts in which the missing flow is sent."""

CROWDING_STEEPNESS = 1000.0
"""A link that is a thousandth fuller than another is e times as long."""


def fill_missing(
    program: FlowProgram, flow: Reals, parts: int = FILLING_PARTS, team: Team = ALONE
) -> None:
    """Add to flows [groups, links] what they lack, in place; what is negative is dropped first."""
    graph, groups = program.graph, program.groups
    missing = np.empty(groups.wanted.shape)
    wanted = (groups.start, groups.wanted, program.weight)
    load = run_in_turn(_missing, graph.tail, graph.head, *wanted, flow, missing)
    total: Floats = team.total(load.sum(axis=0))
    for _ in range(parts):
        added = run_in_turn(
            _send,
            Adjacency(graph).outgoing,
            (graph.tail, graph.head),
            crowding(program, total),
            groups.start,
            program.weight,
            missing,
            1.0 / parts,
            flow,
        )
        total = total + team.total(added.sum(axis=0))


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
        low, high = groups * block // BLOCKS, groups * (block + 1) // BLOCKS
        for first in range(low, high, LANES):
            mine = slice(first, min(first + LANES, high))
            distance = np.empty((nodes, mine.stop - first))
            parent = np.full(distance.shape, NOTHING, dtype=np.int32)
            shortest_trees(out, ends[1], lengths, root[mine], distance, parent)
            for lane in range(mine.stop - first):
                group = first + lane
                below, into = missing[group] * part, parent[:, lane].astype(np.int64)
                into[root[group]] = NOTHING
                _send_down(
                    root[group], into, ends[0], below, weight[group], flow[group], added[block]
                )
    return added


@njit(cache=True)
def _send_down(
    root: int, into: Ints, tail: Ints, below: Floats, weight: float, flow: Reals, added: Floats
) -> None:
    """Add to the flow of one group what the nodes below each link of its tree are sent."""
    order, children = np.empty(len(into), dtype=np.int64), np.empty(len(into), dtype=np.int64)
    count = leaves_first(root, into, tail, order, children)
    for node in order[:count]:
        if below[node] > 0.0:
            link = into[node]
            flow[link] += below[node]
            added[link] += weight * below[node]
            below[tail[link]] += below[node]
