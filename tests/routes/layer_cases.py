"""Routes that layers are tried on."""

from collections.abc import Sequence
from itertools import pairwise

import numpy as np

from alltoall import Problem, Topology
from alltoall.ir.answer import Certificate
from alltoall.ir.routes import Routes
from alltoall.paths.shortest import tree_paths


def routes_over(problem: Problem, paths: Sequence[Sequence[int]]) -> Routes:
    """Return routes of equal weight for each pair over lists of links."""
    topology = problem.topology
    position = np.zeros(topology.nodes, dtype=np.int64)
    position[topology.terminals] = np.arange(len(topology.terminals))
    source = position[topology.tail[[path[0] for path in paths]]]
    destination = position[topology.head[[path[-1] for path in paths]]]
    _, pair, count = np.unique(
        source * topology.nodes + destination, return_inverse=True, return_counts=True
    )
    demand = problem.demand.rows(np.arange(len(topology.terminals)))[source, destination]
    return Routes(
        problem=problem,
        source=source,
        destination=destination,
        start=np.cumsum([0, *map(len, paths)]),
        link=np.concatenate([np.array(path) for path in paths]),
        weight=demand / count[pair],
        certificate=Certificate(np.ones(topology.links), 0.0),
        method="test",
    )


def short_paths(problem: Problem, lengths: np.ndarray) -> list[list[int]]:
    """Return the shortest path of each pair with demand."""
    topology = problem.topology
    ends = (topology.terminals[each] for each in problem.demand.pairs())
    start, link = tree_paths(topology, lengths, *ends)
    return [link[low:high].tolist() for low, high in pairwise(start)]


def random_routes(problem: Problem, seed: int, per_pair: int) -> Routes:
    """Return simple paths that are shortest under random lengths, several for each pair."""
    rng = np.random.default_rng(seed)
    tables = [short_paths(problem, rng.random(problem.topology.links)) for _ in range(per_pair)]
    return routes_over(problem, [path for table in tables for path in table])


def walk(topology: Topology, nodes: Sequence[int]) -> list[int]:
    """Return the links of a walk over nodes."""
    ends = zip(topology.tail.tolist(), topology.head.tolist(), strict=True)
    index = {hop: link for link, hop in enumerate(ends)}
    return [index[hop] for hop in pairwise(nodes)]
