"""EwSP: equal weights over all shortest paths of a pair.

With n(s, v) shortest paths from s to v, a share n(s, u) / n(s, v) of what passes v comes over each
link u -> v that leads away from s (Brandes' counting for betweenness). This gives all loads in
one pass over the links per source, `equal_loads`, however many paths there are.

Routes list paths. A pair with at most `sizes.LISTED_PATHS` shortest paths gets all of them, with
equal weights. Above that, the number of paths may be exponential: the pair's equal-weight flow on
the links is split into few weighted paths instead, which put exactly the same load on every link.
"""

import numpy as np

from alltoall import core
from alltoall.errors import InputError
from alltoall.flows import sizes
from alltoall.flows.program import certify
from alltoall.ir.arrays import Floats
from alltoall.ir.paths import Paths
from alltoall.ir.problem import Problem
from alltoall.ir.routes import Routes
from alltoall.paths.blocks import row_blocks
from alltoall.paths.shortest import core_graph, shortest_distances
from alltoall.routes.weights import routes_from_weights
from alltoall.settings import RouteSettings

MOST_LISTED_LINKS = 40_000_000
"""Links of all listed paths together beyond which they are counted, but not listed."""

Weighted = tuple[Paths, Floats]
"""Paths and their weights."""


def route_ewsp(problem: Problem, settings: RouteSettings) -> Routes:
    """Return all shortest paths with equal weights, or fewer paths with the same link loads.

    Raise TimeoutError if the time limit comes first.
    """
    _require_few(problem)
    topology, graph = problem.topology, core_graph(problem.topology)
    every = np.arange(topology.nodes, dtype=np.int64)
    hops = shortest_distances(topology, np.ones(topology.links), every)
    found: list[Weighted] = []
    for source in problem.sources.tolist():
        settings.solve.check_time()
        start, wanted = int(topology.terminals[source]), problem.node_demand(np.array([source]))[0]
        count = core.count_shortest(graph, np.array([start]))[0]
        is_listed = count <= sizes.LISTED_PATHS
        few, many = (np.flatnonzero((wanted > 0) & each) for each in (is_listed, ~is_listed))
        end, bounds, link = core.simple_paths(
            graph, start, few, hops[:, few].T, 0, sizes.LISTED_PATHS, MOST_LISTED_LINKS
        )
        listed = Paths(np.full(len(end), source), topology.position[end], bounds, link)
        found.append((listed, wanted[end] / count[end]))
        found += [_split(problem, source, int(node), wanted) for node in many]
    paths, weight = Paths.join([each for each, _ in found]), np.concatenate([w for _, w in found])
    order = np.lexsort((paths.destination, paths.source))
    certificate = certify(problem, [])
    return routes_from_weights(problem, paths.select(order), weight[order], certificate, "ewsp")


def _split(problem: Problem, source: int, node: int, wanted: Floats) -> Weighted:
    """Return paths of the equal-weight flow of one pair."""
    topology = problem.topology
    begin, graph = topology.terminals[[source]], core_graph(topology)
    alone, flow = np.zeros((1, topology.nodes)), np.zeros((1, topology.links))
    alone[0, node] = wanted[node]
    core.add_equal_flows(graph, begin, alone, flow)
    used = np.flatnonzero(flow[0])
    pair = np.array([0, 1]), np.array([node]), wanted[[node]]
    _, _, width, start, link = core.split_flows(
        graph, begin, (np.array([0, len(used)]), used, flow[0, used]), pair
    )
    ends = np.full((2, len(width)), ((source,), (topology.position[node],)))
    return Paths(ends[0], ends[1], start, link), width


def _require_few(problem: Problem) -> None:
    """Raise, from the numbers of paths alone, if too many would have to be listed."""
    topology = problem.topology
    graph, starts = core_graph(topology), topology.terminals[problem.sources]
    wanted, entries = problem.node_demand(problem.sources) > 0, 0.0
    for rows in row_blocks(len(starts), topology.links):
        hops = core.distances(graph, np.ones(topology.links), starts[rows])
        listed = np.minimum(core.count_shortest(graph, starts[rows]), sizes.LISTED_PATHS)
        entries += float(listed[wanted[rows]] @ hops[wanted[rows]])
    if entries > MOST_LISTED_LINKS:
        time = float((equal_loads(problem) / topology.capacity).max())
        raise InputError(
            f"{topology.name}: the shortest paths of all pairs have about {entries:,.0f} links, "
            f"at most {sizes.LISTED_PATHS} paths of a pair counted; expected at most "
            f"{MOST_LISTED_LINKS:,} to list. With equal weights they would take the time "
            f"{time:.9g}; the methods sssp and ecmp list one path per pair"
        )


def equal_loads(problem: Problem) -> Floats:
    """Return what equal weights over all shortest paths put on each link, by counting alone."""
    topology, load = problem.topology, np.zeros(problem.topology.links)
    graph, starts = core_graph(topology), topology.terminals[problem.sources]
    wanted = problem.node_demand(problem.sources)
    for rows in row_blocks(len(starts), topology.links):
        flows = np.zeros((len(starts[rows]), topology.links))
        core.add_equal_flows(graph, starts[rows], wanted[rows], flows)
        load += flows.sum(axis=0)
    return load
