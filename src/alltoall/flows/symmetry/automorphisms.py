"""Automorphisms: the permutations of the nodes that preserve links, capacities and terminals.

BLISS (through igraph) finds them on a simple directed graph whose vertices have colours. Terminals
have one colour, other nodes another. The links from u to v, however many, are one arc if they have
the most frequent multiset of capacities, and go through a vertex with a colour for their multiset
otherwise; so do pairs of terminals whose demand is not the most frequent one. Where most pairs of
nodes are linked, the arcs are the pairs that are not: a complete graph has none left. Graphs of
thousands of nodes take well below a second.

A group may have hundreds of generators, each of which would be applied to all links. A few random
subproducts (Babai, Luks and Seress, "Fast management of permutation groups", SIAM J. Comput. 1997)
generate the same group, or rarely a subgroup.
"""

import sys
from functools import cache
from importlib.machinery import PathFinder
from importlib.util import find_spec, module_from_spec
from typing import Any

import numpy as np
from numpy.typing import NDArray

from alltoall.flows import sizes
from alltoall.ir.arrays import Ints, inner_index
from alltoall.ir.demand import Demand
from alltoall.ir.problem import Problem
from alltoall.ir.topology import Topology

IGRAPH = "igraph._igraph"
"""igraph's compiled core, alone: its Python package loads all that it could draw with."""

MOST_GENERATORS = 20
"""The most generators; more are replaced by as many random products."""


_Marked = tuple[Ints, Ints]
"""Pairs of nodes that are joined through a vertex of their own, and its colour."""


def count_automorphisms(topology: Topology, demand: Demand | None = None) -> int:
    """Count the automorphisms; the count of the complete graph on 1000 nodes has 2568 digits."""
    demands = None if demand is None else _demand_kinds(topology, demand)
    numbers = np.zeros(topology.nodes, dtype=np.int64)
    graph, colours = _colour_graph(topology, numbers, [] if demands is None else [demands])
    limit = sys.get_int_max_str_digits()
    sys.set_int_max_str_digits(0)  # igraph's count becomes an int by way of a text.
    try:
        return int(graph.count_automorphisms(color=colours))
    finally:
        sys.set_int_max_str_digits(limit)


def find_generators(problem: Problem, kept: Ints | None = None) -> Ints:
    """Return generators of all automorphisms that preserve the demand, as [generators, nodes].

    With `kept`, a number per node, they also preserve these numbers.
    """
    topology = problem.topology
    demands = _demand_kinds(topology, problem.demand)
    many = demands is not None and len(demands[0]) > sizes.SYMMETRIC_DEMANDS
    if many or topology.links > sizes.SYMMETRIC_LINKS:
        return np.zeros((0, topology.nodes), dtype=np.int64)
    numbers = np.zeros(topology.nodes, dtype=np.int64) if kept is None else kept
    graph, colours = _colour_graph(topology, numbers, [] if demands is None else [demands])
    found = graph.automorphism_group(color=colours)
    maps = np.array(found, dtype=np.int64).reshape(len(found), len(colours))
    return _fewer_generators(maps[:, : topology.nodes])


def _fewer_generators(generators: Ints) -> Ints:
    """Return at most `MOST_GENERATORS` generators: random subproducts if there are more."""
    if len(generators) <= MOST_GENERATORS:
        return generators
    taken = np.random.default_rng(0).random((MOST_GENERATORS, len(generators))) < 0.5
    products = np.tile(np.arange(generators.shape[1]), (MOST_GENERATORS, 1))
    for row, which in enumerate(taken):
        for each in generators[which]:
            products[row] = products[row][each]
    return products


def _colour_graph(
    topology: Topology, numbers: Ints, marked: list[_Marked]
) -> tuple[Any, list[int]]:
    """Return a simple coloured digraph with the automorphisms of the topology."""
    pairs, kinds = _link_kinds(topology)
    usual = kinds == np.bincount(kinds, minlength=1).argmax()
    passes_on = np.ones(topology.nodes, dtype=np.int64)
    passes_on[topology.terminals] = 0
    colours = [np.unique(2 * numbers + passes_on, return_inverse=True)[1]]
    arcs = [_plain_arcs(topology.nodes, pairs, usual)]
    vertices, shade = topology.nodes, topology.nodes
    for ends, kind in ((pairs[~usual], kinds[~usual]), *marked):
        middle = vertices + np.arange(len(ends), dtype=np.int64)
        arcs.append(np.stack([ends[:, 0], middle], axis=1))
        arcs.append(np.stack([middle, ends[:, 1]], axis=1))
        colours.append(shade + kind)
        vertices += len(ends)
        shade += int(kind.max(initial=0)) + 1
    every = np.concatenate(arcs).tolist()
    return _igraph().GraphBase(vertices, every, directed=True), np.concatenate(colours).tolist()


def _plain_arcs(nodes: int, pairs: Ints, usual: NDArray[np.bool_]) -> Ints:
    """Return the pairs with the usual links, or the pairs without any link if they are fewer."""
    if 2 * int(usual.sum()) <= nodes * (nodes - 1):
        return np.asarray(pairs[usual])
    apart = ~np.eye(nodes, dtype=np.bool_)
    apart[pairs[:, 0], pairs[:, 1]] = False
    return np.argwhere(apart)


def _demand_kinds(topology: Topology, demand: Demand) -> _Marked | None:
    """Return the pairs of terminals without the most frequent demand; None if it is uniform."""
    if demand.matrix is None:
        return None
    amounts, kinds = np.unique(demand.matrix, return_inverse=True)
    kinds = kinds.reshape(demand.matrix.shape)
    usual = np.bincount(kinds.ravel(), minlength=len(amounts)).argmax()
    off_diagonal = ~np.eye(demand.terminals, dtype=np.bool_)
    source, destination = np.nonzero((kinds != usual) & off_diagonal)
    ends = np.stack([topology.terminals[source], topology.terminals[destination]], axis=1)
    return ends, kinds[source, destination].astype(np.int64)


def _link_kinds(topology: Topology) -> tuple[Ints, Ints]:
    """Return the linked pairs of nodes, and a number for the capacities between each pair."""
    order = np.lexsort((topology.capacity, topology.head, topology.tail))
    ends = (topology.tail * topology.nodes + topology.head)[order]
    keys, which, counts = np.unique(ends, return_inverse=True, return_counts=True)
    pairs = np.stack(np.divmod(keys, topology.nodes), axis=1)
    capacities = np.zeros((len(pairs), counts.max(initial=1)))
    capacities[which.ravel(), inner_index(counts)] = topology.capacity[order]
    kinds = np.unique(capacities, axis=0, return_inverse=True)[1]
    return pairs, kinds.ravel().astype(np.int64)


@cache
def _igraph() -> Any:
    """Return igraph's compiled core; a later `import igraph` takes the same one."""
    package = None if IGRAPH in sys.modules else find_spec("igraph")
    if package is not None:
        spec = PathFinder.find_spec(IGRAPH, package.submodule_search_locations)
        if spec is not None and spec.loader is not None:
            sys.modules[IGRAPH] = core = module_from_spec(spec)
            spec.loader.exec_module(core)
    return sys.modules[IGRAPH]
