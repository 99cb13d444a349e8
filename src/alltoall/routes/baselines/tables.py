"""`sssp` and `native`: routes by tables of destinations, one link per node and destination.

`native` is what a fabric without traffic engineering does: at every node the lowest-numbered link
that leads nearer to the destination. Nothing looks at loads or capacities.

`sssp`, single-source shortest paths over weights that remember earlier trees: Hoefler, Schneider
and Lumsdaine, "Optimized routing for large-scale InfiniBand networks", HOTI 2009; Domke, Hoefler
and Nagel, "Deadlock-free oblivious routing for arbitrary topologies", IPDPS 2011; OpenSM:

    weight[l] = W for every link l, W so large that no load outweighs a hop
    for every terminal t, in order:
        Dijkstra's tree of shortest paths to t under weight
        every node forwards to t along the tree
        weight[l] += (what the tree puts on l) / capacity[l]

Within one tree the weights stand still, which is what makes the method fast and its loads uneven.
"""

import numpy as np

from alltoall import core
from alltoall.flows.program import certify
from alltoall.ir.arrays import Ints
from alltoall.ir.paths import NOTHING, Paths
from alltoall.ir.problem import Problem
from alltoall.ir.routes import Routes
from alltoall.paths.blocks import row_blocks
from alltoall.paths.shortest import core_graph
from alltoall.routes.weights import routes_from_weights
from alltoall.settings import RouteSettings


def route_native(problem: Problem, _: RouteSettings) -> Routes:
    """Return the route of fewest hops and lowest link numbers for every pair."""
    topology = problem.topology
    # Distances to the terminals are those from them over reversed links.
    back = core.Graph(topology.nodes, topology.head, topology.tail)
    hops = core.distances(back, np.ones(topology.links), topology.terminals)
    table = np.full(hops.shape, NOTHING, dtype=np.int64)
    for link in range(topology.links - 1, -1, -1):
        tail, head = int(topology.tail[link]), int(topology.head[link])
        table[hops[:, head] + 1 == hops[:, tail], tail] = link
    return routes_from_tables(problem, table, "native")


def route_sssp(problem: Problem, _: RouteSettings) -> Routes:
    """Return one route per pair, out of one weighted shortest-path tree per terminal."""
    return routes_from_tables(problem, sssp_tables(problem), "sssp")


def sssp_tables(problem: Problem) -> Ints:
    """Return the link by which each node sends on to each terminal [terminals, nodes].

    It is -1 where a node has no path to a terminal.
    """
    topology, terminals = problem.topology, problem.topology.terminals
    wanted = np.zeros((len(terminals), topology.nodes))
    wanted[:, terminals] = problem.demand.table().T
    # A hop weighs more than all loads along any path; |V|^2 in Domke's unit case.
    hop = topology.nodes * problem.demand.total / float(topology.capacity.min())
    graph, weight = core_graph(topology), np.full(topology.links, hop)
    return np.concatenate(
        [
            core.grow_trees(graph, topology.capacity, terminals[rows], wanted[rows], weight)
            for rows in row_blocks(len(terminals), topology.links)
        ]
    )


def routes_from_tables(problem: Problem, table: Ints, method: str) -> Routes:
    """Return one route per pair: at node v on the way to terminal t, take link `table[t, v]`."""
    source, destination = problem.demand.pairs()
    paths = Paths.from_table(source, destination, _follow(problem, table, source, destination))
    weight = problem.demand.of(source, destination)
    return routes_from_weights(problem, paths, weight, certify(problem, []), method)


def _follow(problem: Problem, table: Ints, source: Ints, destination: Ints) -> Ints:
    """Return the links of the path of each pair, a row each, then NOTHING."""
    topology = problem.topology
    node, end = topology.terminals[source], topology.terminals[destination]
    columns: list[Ints] = []
    while len(moving := np.flatnonzero(node != end)):
        columns.append(np.full(len(source), NOTHING, dtype=np.int64))
        columns[-1][moving] = table[destination[moving], node[moving]]
        node[moving] = topology.head[columns[-1][moving]]
    return np.stack(columns, axis=1)
