"""Routing tables: one link per node and destination, and the routes that follow them."""

import numpy as np
from numba import njit

from alltoall.flows.program import certify
from alltoall.ir.arrays import Ints
from alltoall.ir.paths import Paths
from alltoall.ir.problem import Problem
from alltoall.ir.routes import Routes
from alltoall.routes.weights import routes_from_weights


def routes_from_tables(problem: Problem, table: Ints, method: str) -> Routes:
    """Return one route per pair: at node v on the way to terminal t, take link `table[t, v]`."""
    source, destination = problem.demand.pairs()
    terminals = problem.topology.terminals
    start, link = _follow(
        table, problem.topology.head, terminals[source], terminals[destination], destination
    )
    paths = Paths(source, destination, start, link)
    weight = problem.demand.of(source, destination)
    return routes_from_weights(problem, paths, weight, certify(problem, []), method)


@njit(cache=True)
def _follow(table: Ints, head: Ints, begin: Ints, end: Ints, row: Ints) -> tuple[Ints, Ints]:
    """Return start and link of the paths from `begin` to `end` by the table's rows `row`."""
    start = np.zeros(len(begin) + 1, dtype=np.int64)
    for pair in range(len(begin)):
        node, hops = begin[pair], 0
        while node != end[pair]:
            node = head[table[row[pair], node]]
            hops += 1
        start[pair + 1] = start[pair] + hops
    link = np.empty(start[-1], dtype=np.int64)
    for pair in range(len(begin)):
        node = begin[pair]
        for place in range(start[pair], start[pair + 1]):
            link[place] = table[row[pair], node]
            node = head[link[place]]
    return start, link
