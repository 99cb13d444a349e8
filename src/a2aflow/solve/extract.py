"""MCF-extP: the decomposed flow, and the widest paths that it is made of.

For each pair, on the links that carry its flow: find the path whose narrowest link is widest,
subtract that width from all its links, and repeat until nothing is left. Since the flow of a pair
is acyclic and conserves exactly, the paths are simple and their widths add up to the demand.
"""

import numpy as np
from numba import njit

from a2aflow.ir.arrays import Floats, Ints
from a2aflow.ir.flow import Flow
from a2aflow.ir.problem import Problem
from a2aflow.ir.routes import Routes
from a2aflow.solve.candidates import Candidates
from a2aflow.solve.decomposed import solve_decomposed
from a2aflow.solve.route_settings import RouteSettings
from a2aflow.solve.routing import routes_from_weights

EXHAUSTED = 1e-10
"""A share of the pair's flow below which what is left is rounding."""


def route_extp(problem: Problem, settings: RouteSettings) -> Routes:
    """Solve the decomposed MCF and extract widest paths."""
    flow = solve_decomposed(problem, settings.solve)
    paths, weight = widest_paths(flow)
    return routes_from_weights(problem, paths, weight, flow.certificate, "extp")


def widest_paths(flow: Flow) -> tuple[Candidates, Floats]:
    """Return the widest paths of a flow, by group, and their widths as volumes.

    A flow per source, as `grouped` gives, is extracted to all its destinations at once.
    """
    topology = flow.problem.topology
    wanted = flow.problem.demand.rows(np.arange(len(topology.terminals)))
    destination = flow.destination
    if destination is None:
        pairs = [np.flatnonzero(wanted[source]) for source in flow.source]
        group = np.repeat(np.arange(flow.groups), [len(each) for each in pairs])
        destination = np.concatenate(pairs)
    else:
        group = np.arange(flow.groups)
    source = flow.source[group]
    row, width, start, link = _extract(
        topology.nodes,
        topology.tail,
        topology.head,
        (flow.start, flow.link, flow.amount * flow.time),
        group,
        topology.terminals[source],
        topology.terminals[destination],
        wanted[source, destination],
    )
    return Candidates(source[row], destination[row], start, link), width


@njit(cache=True)
def _extract(
    nodes: int,
    tail: Ints,
    head: Ints,
    flow: tuple[Ints, Ints, Floats],
    group: Ints,
    begin: Ints,
    finish: Ints,
    demand: Floats,
) -> tuple[Ints, Floats, Ints, Ints]:
    room = 2 * len(group) + len(flow[1])
    row, width = np.empty(room, dtype=np.int64), np.empty(room)
    start = np.zeros(room + 1, dtype=np.int64)
    link = np.empty(16 * room + nodes, dtype=np.int64)
    left = flow[2].copy()
    widest, parent = np.zeros(nodes), np.empty(nodes, dtype=np.int64)
    paths, used = 0, 0
    for pair in range(len(group)):
        first, last = flow[0][group[pair]], flow[0][group[pair] + 1]
        arcs, amounts = flow[1][first:last], left[first:last]
        missing = demand[pair]
        while missing > EXHAUSTED * demand[pair] and paths < room:
            _widest_tree(tail, head, arcs, amounts, begin[pair], widest, parent)
            node = finish[pair]
            if widest[node] <= 0.0:
                break
            if used + nodes > len(link):
                grown = np.empty(2 * len(link) + nodes, dtype=np.int64)
                grown[:used] = link[:used]
                link = grown
            take, hops = min(widest[node], missing), 0
            while node != begin[pair]:
                amounts[parent[node]] -= take
                link[used + hops] = arcs[parent[node]]
                hops += 1
                node = tail[arcs[parent[node]]]
            link[used : used + hops] = link[used : used + hops][::-1].copy()
            used += hops
            row[paths], width[paths], start[paths + 1] = pair, take, used
            paths += 1
            missing -= take
    return row[:paths], width[:paths], start[: paths + 1], link[:used]


@njit(cache=True)
def _widest_tree(
    tail: Ints,
    head: Ints,
    arcs: Ints,
    amounts: Floats,
    begin: int,
    widest: Floats,
    parent: Ints,
) -> None:
    """Find, over a few links, the widest path from `begin` to every node; relaxed until stable."""
    for arc in arcs:
        widest[head[arc]] = 0.0
        widest[tail[arc]] = 0.0
    widest[begin] = np.inf
    changed = True
    while changed:
        changed = False
        for index in range(len(arcs)):
            reach = min(widest[tail[arcs[index]]], amounts[index])
            if reach > widest[head[arcs[index]]]:
                widest[head[arcs[index]]] = reach
                parent[head[arcs[index]]] = index
                changed = True
