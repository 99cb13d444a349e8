"""Post-processing: from a solver's approximate flows to flows that conserve exactly.

A solver's answer conserves up to its tolerance, may turn in circles, and, where the program uses
inequalities as the paper's does, may carry more near the source than ever arrives. For every
group this module

1. drops what is negative or negligible;
2. sends what nodes now lack along a shortest-path tree, so that no node lacks anything;
3. cancels cycles, which leaves an acyclic flow;
4. walks the acyclic flow from its sinks back to its source and trims what a node receives to what
   it needs (the paper's pass "from d to s").

An absent answer is the zero flow, for which step 2 alone gives a feasible one: that is how a
solver which stops early still yields a valid result.
"""

import numpy as np
from numba import njit, prange

from alltoall.flows.groups import Groups
from alltoall.ir.arrays import Floats, Ints
from alltoall.ir.topology import Topology
from alltoall.paths.kernels import run_in_turn
from alltoall.paths.shortest import Adjacency, shortest_tree

NEGLIGIBLE_FLOW = 1e-10
"""Flow below this share of the group's largest demand is noise of the solver, not a decision."""

BALANCE_ROUNDING = 1e-13
"""An imbalance below this share of what passes a node is rounding of the sum, and stays."""

REPAIR_ROUNDS = 4
"""The first round does the work; a demand that a large cycle's rounding drowned needs another."""


def exact_flows(
    topology: Topology, groups: Groups, approximate: Floats, lengths: Floats | None = None
) -> Floats:
    """Return flows [groups, links] that deliver exactly `groups.wanted`, close to `approximate`.

    What is missing goes along shortest paths under `lengths`; by default those avoid narrow links.
    """
    adjacency = Adjacency(topology)
    flows: Floats = np.array(approximate, dtype=np.float64)
    run_in_turn(
        _exact,
        (topology.tail, topology.head),
        adjacency.outgoing,
        adjacency.incoming,
        narrowness(topology) if lengths is None else lengths,
        groups.start,
        groups.wanted,
        flows,
    )
    return flows


def narrowness(topology: Topology) -> Floats:
    """Return lengths under which repairs avoid narrow links."""
    widest = float(topology.capacity.max())
    return np.asarray(widest / topology.capacity)


@njit(cache=True, parallel=True)
def _exact(
    ends: tuple[Ints, Ints],
    out: tuple[Ints, Ints],
    into: tuple[Ints, Ints],
    lengths: Floats,
    start: Ints,
    wanted: Floats,
    flows: Floats,
) -> None:
    for group in prange(len(start)):
        distance = np.empty(wanted.shape[1])
        make_exact(ends, out, into, lengths, start[group], wanted[group], flows[group], distance)


@njit(cache=True)
def make_exact(
    ends: tuple[Ints, Ints],
    out: tuple[Ints, Ints],
    into: tuple[Ints, Ints],
    lengths: Floats,
    root: int,
    wanted: Floats,
    flow: Floats,
    distance: Floats,
) -> None:
    """Make the flow of one group exact, in place; fill in the distances from its source."""
    tail, head = ends
    nodes = len(wanted)
    parent = np.empty(nodes, dtype=np.int64)
    order = np.empty(nodes, dtype=np.int64)
    settled = shortest_tree(nodes, out[0], out[1], head, lengths, root, distance, parent, order)
    _drop_noise(flow, NEGLIGIBLE_FLOW * wanted.max(), tail, distance)
    for done in range(REPAIR_ROUNDS):
        unbalanced = _fill_deficits(flow, wanted, tail, head, parent, order[:settled])
        if done and not unbalanced:
            break
        finished = cancel_cycles(flow, nodes, root, out[0], out[1], head)
        _trim_surplus(flow, wanted, finished, root, out, into)


@njit(cache=True)
def _drop_noise(flow: Floats, threshold: float, tail: Ints, distance: Floats) -> None:
    for link in range(len(flow)):
        if not flow[link] > threshold or distance[tail[link]] == np.inf:
            flow[link] = 0.0


@njit(cache=True)
def _fill_deficits(
    flow: Floats, wanted: Floats, tail: Ints, head: Ints, parent: Ints, order: Ints
) -> bool:
    """Send what each node lacks down the tree, gathered from the leaves towards the root.

    Return whether any node was out of balance, by more than rounding.
    """
    lacking = wanted.copy()
    gross = wanted.copy()
    for link in range(len(flow)):
        lacking[head[link]] -= flow[link]
        lacking[tail[link]] += flow[link]
        gross[head[link]] += flow[link]
        gross[tail[link]] += flow[link]
    unbalanced = False
    for index in range(len(order) - 1, 0, -1):
        node = order[index]
        unbalanced |= abs(lacking[node]) > BALANCE_ROUNDING * gross[node]
        if lacking[node] > BALANCE_ROUNDING * gross[node]:
            flow[parent[node]] += lacking[node]
            lacking[tail[parent[node]]] += lacking[node]
    return unbalanced


@njit(cache=True)
def cancel_cycles(
    flow: Floats, nodes: int, start: int, first: Ints, link: Ints, head: Ints
) -> Ints:
    """Remove all cycles of positive flow; return the nodes reached, sinks first.

    Depth-first search from the start: a link that leads back onto the current path closes a cycle,
    whose smallest flow is subtracted all around; the search resumes where the path broke.
    """
    finished = np.empty(nodes, dtype=np.int64)
    count = 0
    state = np.zeros(nodes, dtype=np.int64)  # 0 new, 1 on the path, 2 finished
    place = np.zeros(nodes, dtype=np.int64)  # depth of a node on the path
    cursor = first[:-1].copy()
    path_node = np.empty(nodes + 1, dtype=np.int64)
    path_link = np.empty(nodes + 1, dtype=np.int64)
    path_node[0], depth, state[start] = start, 0, 1
    while depth >= 0:
        node = path_node[depth]
        if cursor[node] == first[node + 1]:
            state[node] = 2
            finished[count] = node
            count += 1
            depth -= 1
            if depth >= 0:
                cursor[path_node[depth]] += 1
            continue
        arc = link[cursor[node]]
        target = head[arc]
        if flow[arc] <= 0.0 or state[target] == 2:
            cursor[node] += 1
        elif state[target] == 0:
            path_link[depth] = arc
            depth += 1
            path_node[depth], state[target], place[target] = target, 1, depth
        else:
            path_link[depth] = arc
            depth = _cancel(flow, path_node, path_link, state, place[target], depth)
    # What no path from the start reaches is a circulation of its own, or nothing.
    for node in range(nodes):
        if state[node] != 2:
            for index in range(first[node], first[node + 1]):
                flow[link[index]] = 0.0
    return finished[:count]


@njit(cache=True)
def _cancel(
    flow: Floats, path_node: Ints, path_link: Ints, state: Ints, bottom: int, top: int
) -> int:
    """Cancel the cycle path_link[bottom..top]; return the depth at which the path is broken."""
    smallest = flow[path_link[bottom]]
    for depth in range(bottom + 1, top + 1):
        smallest = min(smallest, flow[path_link[depth]])
    broken = -1
    for depth in range(bottom, top + 1):
        flow[path_link[depth]] -= smallest
        if broken < 0 and flow[path_link[depth]] <= 0.0:
            broken = depth
    for depth in range(broken + 1, top + 1):
        state[path_node[depth]] = 0
    return broken


@njit(cache=True)
def _trim_surplus(
    flow: Floats,
    wanted: Floats,
    finished: Ints,
    start: int,
    out: tuple[Ints, Ints],
    into: tuple[Ints, Ints],
) -> None:
    """Make each node receive what it needs, sinks first, giving up its smallest inflows first."""
    largest_first = np.empty(np.diff(into[0]).max(), dtype=np.int64)
    for node in finished:
        if node == start:
            continue
        need = wanted[node]
        for index in range(out[0][node], out[0][node + 1]):
            need += flow[out[1][index]]
        arcs = into[1][into[0][node] : into[0][node + 1]]
        used = _by_flow(flow, arcs, largest_first)
        for arc in largest_first[:used]:
            flow[arc] = min(flow[arc], need)
            need -= flow[arc]
        # What rounding left uncovered is a last digit of the largest inflow.
        flow[largest_first[0] if used else arcs[0]] += need


@njit(cache=True)
def _by_flow(flow: Floats, arcs: Ints, largest_first: Ints) -> int:
    """Sort those links that carry anything, few as they are, by insertion; return their number."""
    used = 0
    for arc in arcs:
        if flow[arc] > 0.0:
            place = used
            while place > 0 and flow[largest_first[place - 1]] < flow[arc]:
                largest_first[place] = largest_first[place - 1]
                place -= 1
            largest_first[place] = arc
            used += 1
    return used
