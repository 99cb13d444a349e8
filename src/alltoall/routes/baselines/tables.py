"""`sssp`, `updown` and `ecmp`: routes by tables of destinations, one link per node and destination.

`ecmp` models switches without traffic engineering: among the links on shortest paths, a hash of the
destination picks one, with a seed per switch. Loads and capacities are ignored.

`updown` is up*/down*, as a subnet manager computes it: nodes are ordered by their distance from a
root, a route climbs first and descends then, so that one virtual layer cannot deadlock. Schroeder
et al., "Autonet: a high-speed, self-configuring local area network", JSAC 1991; OpenSM's UPDN.

`sssp`, single-source shortest paths over weights that remember earlier trees: Hoefler, Schneider
and Lumsdaine, "Optimized routing for large-scale InfiniBand networks", HOTI 2009; Domke, Hoefler
and Nagel, "Deadlock-free oblivious routing for arbitrary topologies", IPDPS 2011; OpenSM:

    weight[l] = W for every link l, W so large that no load outweighs a hop
    for every terminal t, in order:
        Dijkstra's tree of shortest paths to t under weight
        every node forwards to t along the tree
        weight[l] += (load of the tree on l) / capacity[l]

Weights are fixed within a tree, which makes the method fast and its loads uneven. Its time is the
comparison beside every answer.
"""

from typing import Any

import numpy as np
from numpy.typing import NDArray

from alltoall import core
from alltoall.errors import InputError
from alltoall.flows.program import certify
from alltoall.ir.answer import Answer
from alltoall.ir.arrays import Floats, Ints
from alltoall.ir.paths import NOTHING, Paths
from alltoall.ir.problem import Problem
from alltoall.ir.routes import Routes
from alltoall.ir.topology import Topology
from alltoall.paths.blocks import row_blocks
from alltoall.routes.weights import routes_from_weights
from alltoall.settings import RouteSettings, SolveSettings


def route_ecmp(problem: Problem, _: RouteSettings) -> Routes:
    """Return one route of fewest hops per pair, by a hash of node and destination."""
    topology, terminals = problem.topology, problem.topology.terminals
    # Distances to the terminals are those from them over reversed links.
    back = core.Graph(topology.nodes, topology.head, topology.tail)
    hops = core.distances(back, np.ones(topology.links), terminals)
    choices = np.zeros(hops.shape, dtype=np.int64)
    for link in range(topology.links):
        tail, head = int(topology.tail[link]), int(topology.head[link])
        choices[:, tail] += hops[:, head] + 1 == hops[:, tail]
    # A number for each terminal and node, spread evenly: the end of splitmix64.
    mixed = (terminals[:, None] * topology.nodes + np.arange(topology.nodes)).astype(np.uint64)
    for shift, factor in ((30, 0xBF58476D1CE4E5B9), (27, 0x94D049BB133111EB), (31, 1)):
        mixed = (mixed ^ (mixed >> np.uint64(shift))) * np.uint64(factor)
    left = (mixed >> np.uint64(1)).astype(np.int64) % np.maximum(choices, 1)
    table = np.full(hops.shape, NOTHING, dtype=np.int64)
    for link in range(topology.links):
        tail, head = int(topology.tail[link]), int(topology.head[link])
        nearer = hops[:, head] + 1 == hops[:, tail]
        table[nearer & (left[:, tail] == 0), tail] = link
        left[:, tail] -= nearer
    return routes_from_tables(problem, table, "ecmp")


def route_updown(problem: Problem, _: RouteSettings) -> Routes:
    """Return one route per pair that climbs towards a root first, and descends then.

    Among the shortest such routes, a node takes the link that the fewest tables use so far.
    """
    topology = problem.topology
    climbs = _climbs(topology)
    table = np.full((len(topology.terminals), topology.nodes), NOTHING, dtype=np.int64)
    used = np.zeros(topology.links, dtype=np.int64)
    for row, terminal in zip(table, topology.terminals, strict=True):
        reached = np.zeros(topology.nodes, dtype=bool)
        descends = np.zeros(topology.nodes, dtype=bool)
        reached[terminal] = descends[terminal] = True
        while True:
            # What climbs may go on as it likes; what descends must go on descending.
            joins = reached[topology.head] & ~reached[topology.tail]
            links = np.flatnonzero(joins & (climbs | descends[topology.head]))
            if not len(links):
                break
            links = links[np.lexsort((links, used[links], climbs[links]))]
            tails, first = np.unique(topology.tail[links], return_index=True)
            row[tails] = links[first]
            reached[tails] = True
            descends[tails] = ~climbs[links[first]]
        used[row[row != NOTHING]] += 1
    source, destination = problem.demand.pairs()
    lost = np.flatnonzero(table[destination, topology.terminals[source]] == NOTHING)
    if len(lost):
        begin, end = (topology.terminal_name(int(each[lost[0]])) for each in (source, destination))
        raise InputError(
            f"{topology.name}: method updown: no table by which {begin} climbs first and then "
            f"descends to {end}; expected a tree of links in both directions. Other networks "
            "have `sssp` and `ecmp`"
        )
    return routes_from_tables(problem, table, "updown")


def _climbs(topology: Topology) -> NDArray[np.bool_]:
    """Return which links lead up: nearer to the root, or as near and to a lower number.

    The root is the node whose farthest node is nearest. A link without a partner in the other
    direction counts as many hops as there are nodes: where cables lead to the root, they climb.
    """
    tail, head, nodes = topology.tail, topology.head, topology.nodes
    paired = np.isin(tail * nodes + head, head * nodes + tail)
    both = core.Graph(nodes, np.concatenate([tail, head]), np.concatenate([head, tail]))
    hops = np.tile(np.where(paired, 1.0, nodes), 2)
    farthest = np.empty(nodes)
    for rows in row_blocks(nodes, nodes):
        found = core.distances(both, hops, np.arange(nodes)[rows])
        farthest[rows] = np.where(np.isfinite(found), found, 0.0).max(axis=1)
    rank = np.full(nodes, np.inf)
    while len(left := np.flatnonzero(np.isinf(rank))):
        root = left[farthest[left].argmin()]
        rank = np.minimum(rank, core.distances(both, hops, np.array([root]))[0])
    return np.asarray((rank[head] < rank[tail]) | ((rank[head] == rank[tail]) & (head < tail)))


def route_sssp(problem: Problem, _: RouteSettings) -> Routes:
    """Return one route per pair, out of one weighted shortest-path tree per terminal."""
    return routes_from_tables(problem, sssp_tables(problem)[0], METHOD)


def sssp_tables(problem: Problem) -> tuple[Ints, Floats]:
    """Return the next link of each node to each terminal [terminals, nodes], and all links' loads.

    The link is -1 where a node has no path to a terminal.
    """
    topology, terminals = problem.topology, problem.topology.terminals
    wanted = np.zeros((len(terminals), topology.nodes))
    wanted[:, terminals] = problem.demand.table().T
    # A hop weighs more than all loads along any path; |V|^2 in Domke's unit case.
    hop = topology.nodes * problem.demand.total / float(topology.capacity.min())
    back = core.Graph(topology.nodes, topology.head, topology.tail)
    weight, every = np.full(topology.links, hop), np.arange(topology.nodes)
    table, total = np.full(wanted.shape, NOTHING, dtype=np.int64), np.zeros(topology.links)
    for terminal, amount, row in zip(terminals, wanted, table, strict=True):
        start, link = core.tree_paths(back, weight, np.full(len(every), terminal), every)
        hops = np.diff(start)
        row[hops > 0] = link[start[1:][hops > 0] - 1]
        load = np.bincount(link, np.repeat(amount, hops), topology.links)
        total += load
        weight += load / topology.capacity
    return table, total


def routes_from_tables(problem: Problem, table: Ints, method: str) -> Routes:
    """Return one route per pair: at node v on the way to terminal t, take link `table[t, v]`."""
    source, destination = problem.demand.pairs()
    topology = problem.topology
    node, end = topology.terminals[source], topology.terminals[destination]
    columns: list[Ints] = []
    while len(moving := np.flatnonzero(node != end)):
        columns.append(np.full(len(source), NOTHING, dtype=np.int64))
        columns[-1][moving] = table[destination[moving], node[moving]]
        node[moving] = topology.head[columns[-1][moving]]
    paths = Paths.from_table(source, destination, np.stack(columns, axis=1))
    weight = problem.demand.of(source, destination)
    return routes_from_weights(problem, paths, weight, certify(problem, []), method)


METHOD = "sssp"
"""The baseline shown with every answer."""

MOST_PAIRS = 1_000_000
"""Pairs up to which the comparison takes a second at most."""


def shortest_path_time(problem: Problem) -> float | None:
    """Return the time of shortest-path routing, None if that would take long."""
    if len(problem.sources) * len(problem.topology.terminals) > MOST_PAIRS:
        return None
    return float((sssp_tables(problem)[1] / problem.topology.capacity).max())


def shortest_path_reach(answer: Answer, settings: SolveSettings) -> dict[str, Any]:
    """Return the time of shortest-path routing, for the summary of an answer by another method."""
    late = answer.method == METHOD or settings.out_of_time()
    time = None if late else shortest_path_time(answer.problem)
    return {} if time is None else {"shortest_path_time": time}
