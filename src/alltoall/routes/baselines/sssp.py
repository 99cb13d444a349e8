"""SSSP: single-source shortest paths over link weights that remember earlier trees.

Hoefler, Schneider and Lumsdaine, "Optimized routing for large-scale InfiniBand networks", HOTI
2009; Domke, Hoefler and Nagel, "Deadlock-free oblivious routing for arbitrary topologies", IPDPS
2011; OpenSM's `sssp` and `dfsssp`:

    weight[l] = W for every link l, W so large that no load outweighs a hop
    for every terminal t, in order:
        Dijkstra's tree of shortest paths to t under weight
        every node forwards to t along the tree
        weight[l] += (what the tree puts on l) / capacity[l]

Within one tree the weights stand still, which is what makes the method fast and its loads uneven.
"""

import numpy as np
from numba import njit

from alltoall.ir.arrays import Floats, Ints
from alltoall.ir.problem import Problem
from alltoall.ir.routes import Routes
from alltoall.paths.shortest import Adjacency, shortest_tree
from alltoall.routes.baselines.tables import routes_from_tables
from alltoall.settings import RouteSettings


def route_sssp(problem: Problem, _: RouteSettings) -> Routes:
    """Return one route per pair, out of one weighted shortest-path tree per terminal."""
    return routes_from_tables(problem, sssp_tables(problem), "sssp")


def sssp_tables(problem: Problem) -> Ints:
    """Return the link by which each node sends on to each terminal [terminals, nodes].

    It is -1 where a node has no path to a terminal.
    """
    topology = problem.topology
    table: Ints = _tables(
        topology.nodes,
        (topology.tail, topology.head),
        topology.capacity,
        Adjacency(topology).incoming,
        topology.terminals,
        np.ascontiguousarray(problem.node_demand(np.arange(len(topology.terminals))).T),
        np.full(topology.links, _hop_weight(problem)),
    )
    return table


def _hop_weight(problem: Problem) -> float:
    """Return more than all loads along any path can add up to; |V|^2 in Domke's unit case."""
    narrowest = float(problem.topology.capacity.min())
    return problem.topology.nodes * problem.demand.total / narrowest


@njit(cache=True)
def _tables(
    nodes: int,
    ends: tuple[Ints, Ints],
    capacity: Floats,
    into: tuple[Ints, Ints],
    terminals: Ints,
    wanted: Floats,
    weight: Floats,
) -> Ints:
    """Return the tables; `wanted[v, s]` is what node v is to receive from terminal s."""
    tail, head = ends
    table = np.full((len(terminals), nodes), -1, dtype=np.int64)
    distance = np.empty(nodes)
    order = np.empty(nodes, dtype=np.int64)
    for row in range(len(terminals)):
        root, parent = terminals[row], table[row]
        count = shortest_tree(nodes, into[0], into[1], tail, weight, root, distance, parent, order)
        passing = np.zeros(nodes)
        passing[terminals] = wanted[root]
        for index in range(count - 1, 0, -1):
            node = order[index]
            link = parent[node]
            weight[link] += passing[node] / capacity[link]
            passing[head[link]] += passing[node]
    return table
