"""Random problems for property tests."""

import numpy as np
from hypothesis import strategies as st

from a2aflow.ir.demand import Demand
from a2aflow.ir.problem import Problem
from a2aflow.ir.topology import Topology

capacities = st.sampled_from([0.25, 0.5, 1.0, 1.0, 1.0, 2.0, 3.0, 10.0])


@st.composite
def topologies(draw: st.DrawFn, max_nodes: int = 7, switches: bool = True) -> Topology:
    """Draw a strongly connected digraph: a cycle through all nodes, and random links on top."""
    nodes = draw(st.integers(2, max_nodes))
    order = draw(st.permutations(range(nodes)))
    cycle = [(order[i], order[(i + 1) % nodes]) for i in range(nodes)]
    pairs = st.tuples(st.integers(0, nodes - 1), st.integers(0, nodes - 1))
    extra = draw(st.lists(pairs.filter(lambda pair: pair[0] != pair[1]), max_size=3 * nodes))
    links = [(u, v, draw(capacities)) for u, v in cycle + extra]
    terminals = None
    if switches and nodes > 2:
        terminals = sorted(draw(st.sets(st.integers(0, nodes - 1), min_size=2)))
    return Topology.from_links("random", nodes, links, terminals)


@st.composite
def problems(draw: st.DrawFn, max_nodes: int = 7) -> Problem:
    """Draw a topology and a demand on it: uniform, or sparse and uneven."""
    topology = draw(topologies(max_nodes))
    terminals = len(topology.terminals)
    if draw(st.booleans()):
        return Problem.all_to_all(topology)
    amounts = st.sampled_from([0.0, 0.0, 0.125, 1.0, 1.0, 5.0])
    cells = st.lists(amounts, min_size=terminals**2, max_size=terminals**2)
    matrix = np.array(draw(cells)).reshape(terminals, terminals)
    np.fill_diagonal(matrix, 0.0)
    if not matrix.any():
        matrix[0, 1] = 1.0
    return Problem(topology, Demand(terminals, matrix))
