"""Native routing: one shortest path per pair, as a collective library finds on default routes.

A fabric without traffic engineering forwards by destination, along fewest hops, and takes the
first of equally good ports. So do the tables here: at every node the lowest-numbered link that
leads nearer to the destination. Nothing looks at loads or capacities.
"""

import numpy as np
from numba import njit

from alltoall.ir.arrays import Ints
from alltoall.ir.problem import Problem
from alltoall.ir.routes import Routes
from alltoall.paths.shortest import Adjacency, shortest_tree
from alltoall.routes.baselines.tables import routes_from_tables
from alltoall.settings import RouteSettings


def route_native(problem: Problem, _: RouteSettings) -> Routes:
    """Return the route of fewest hops and lowest link numbers for every pair."""
    topology = problem.topology
    table = _tables(
        topology.nodes,
        topology.tail,
        topology.head,
        Adjacency(topology).incoming,
        topology.terminals,
    )
    return routes_from_tables(problem, table, "native")


@njit(cache=True)
def _tables(nodes: int, tail: Ints, head: Ints, into: tuple[Ints, Ints], terminals: Ints) -> Ints:
    table = np.empty((len(terminals), nodes), dtype=np.int64)
    hop = np.ones(len(tail))
    distance = np.empty(nodes)
    parent = np.empty(nodes, dtype=np.int64)
    order = np.empty(nodes, dtype=np.int64)
    for row in range(len(terminals)):
        # Entering links searched backwards give the distances to the terminal.
        shortest_tree(nodes, into[0], into[1], tail, hop, terminals[row], distance, parent, order)
        for link in range(len(tail) - 1, -1, -1):
            if distance[head[link]] + 1 == distance[tail[link]]:
                table[row, tail[link]] = link
    return table
