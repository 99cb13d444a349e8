"""EwSP: equal weights over all shortest paths of a pair.

With n(s, v) shortest paths from s to v, a share n(s, u) / n(s, v) of the flow through v arrives
over each link u -> v that leads away from s (Brandes' counting for betweenness). This gives all
loads in one pass over the links per source, `equal_loads`, however many paths there are.

Routes list paths. A pair with at most `sizes.LISTED_PATHS` shortest paths gets all of them, with
equal weights. Above that, the number of paths may be exponential: the pair's equal-weight flow on
the links is split into few weighted paths instead, which put exactly the same load on every link.
"""

import numpy as np

from alltoall import core
from alltoall.errors import InputError
from alltoall.flows import sizes
from alltoall.flows.program import certify
from alltoall.ir.arrays import Floats, Ints
from alltoall.ir.paths import Paths
from alltoall.ir.problem import Problem
from alltoall.ir.routes import Routes
from alltoall.ir.topology import Topology
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
    topology = problem.topology
    every = np.arange(topology.nodes, dtype=np.int64)
    hops = shortest_distances(topology, np.ones(topology.links), every)
    found: list[Weighted] = []
    for source in problem.sources:
        settings.solve.check_time()
        found += _paths_of_source(problem, int(source), hops)
    paths, weight = Paths.join([each for each, _ in found]), np.concatenate([w for _, w in found])
    order = np.lexsort((paths.destination, paths.source))
    certificate = certify(problem, [])
    return routes_from_weights(problem, paths.select(order), weight[order], certificate, "ewsp")


class ShortestLinks:
    """The links on shortest paths from some starts, level by level, and the numbers of paths.

    Counts are floats, because they outgrow integers; only their ratios matter when large.
    """

    def __init__(self, topology: Topology, starts: Ints) -> None:
        self.tail, self.head = topology.tail, topology.head
        self.hops = core.distances(core_graph(topology), np.ones(topology.links), starts)
        before = self.hops[:, self.tail]
        row, link = np.nonzero(np.isfinite(before) & (self.hops[:, self.head] == before + 1))
        order = np.argsort(before[row, link], kind="stable")
        ends = np.flatnonzero(np.diff(before[row, link][order])) + 1
        self.levels = [(row[each], link[each]) for each in np.split(order, ends)]
        self.count = np.zeros_like(self.hops)
        self.count[np.arange(len(starts)), starts] = 1.0
        for row, link in self.levels:
            np.add.at(self.count, (row, self.head[link]), self.count[row, self.tail[link]])

    def flows(self, amount: Floats) -> Floats:
        """Return flows [starts, links] of amounts [starts, nodes] over all shortest paths."""
        passing, flows = amount.copy(), np.zeros((len(amount), len(self.tail)))
        for row, link in reversed(self.levels):
            tail, head = (row, self.tail[link]), (row, self.head[link])
            flows[row, link] = passing[head] * (self.count[tail] / self.count[head])
            np.add.at(passing, tail, flows[row, link])
        return flows


def _paths_of_source(problem: Problem, source: int, hops: Floats) -> list[Weighted]:
    """Return all paths of pairs that have few, and paths of the equal-weight flow of others."""
    topology = problem.topology
    start, wanted = int(topology.terminals[source]), problem.node_demand(np.array([source]))[0]
    shortest = ShortestLinks(topology, np.array([start]))
    (count,) = shortest.count
    is_listed = count <= sizes.LISTED_PATHS
    few, many = np.flatnonzero((wanted > 0) & is_listed), np.flatnonzero((wanted > 0) & ~is_listed)
    end, bounds, link = core.simple_paths(
        core_graph(topology), start, few, hops[:, few].T, 0, sizes.LISTED_PATHS, MOST_LISTED_LINKS
    )
    sources = np.full(len(end), source)
    listed = Paths(sources, topology.position[end], bounds, link), wanted[end] / count[end]
    return [listed, *(_split(problem, source, shortest, int(node), wanted) for node in many)]


def _split(
    problem: Problem, source: int, shortest: ShortestLinks, node: int, wanted: Floats
) -> Weighted:
    """Return paths of the equal-weight flow of one pair."""
    topology = problem.topology
    alone = np.zeros((1, topology.nodes))
    alone[0, node] = wanted[node]
    (flow,) = shortest.flows(alone)
    used = np.flatnonzero(flow)
    pair = np.array([0, 1]), np.array([node]), wanted[[node]]
    _, _, width, start, link = core.split_flows(
        core_graph(topology),
        topology.terminals[[source]],
        (np.array([0, len(used)]), used, flow[used]),
        pair,
    )
    ends = np.full((2, len(width)), ((source,), (topology.position[node],)))
    return Paths(ends[0], ends[1], start, link), width


def _require_few(problem: Problem) -> None:
    """Raise, from the numbers of paths alone, if too many would have to be listed."""
    topology = problem.topology
    starts = topology.terminals[problem.sources]
    wanted, entries = problem.node_demand(problem.sources) > 0, 0.0
    for rows in row_blocks(len(starts), topology.links):
        shortest = ShortestLinks(topology, starts[rows])
        listed = np.minimum(shortest.count, sizes.LISTED_PATHS)
        entries += float(listed[wanted[rows]] @ shortest.hops[wanted[rows]])
    if entries > MOST_LISTED_LINKS:
        time = float((equal_loads(problem) / topology.capacity).max())
        raise InputError(
            f"{topology.name}: the shortest paths of all pairs have about {entries:,.0f} links, "
            f"at most {sizes.LISTED_PATHS} paths of a pair counted; expected at most "
            f"{MOST_LISTED_LINKS:,} to list. With equal weights they would take the time "
            f"{time:.9g}; the methods sssp and ecmp list one path per pair"
        )


def equal_loads(problem: Problem) -> Floats:
    """Return the link loads of equal weights over all shortest paths, by counting."""
    topology, load = problem.topology, np.zeros(problem.topology.links)
    starts, wanted = topology.terminals[problem.sources], problem.node_demand(problem.sources)
    for rows in row_blocks(len(starts), topology.links):
        load += ShortestLinks(topology, starts[rows]).flows(wanted[rows]).sum(axis=0)
    return load
