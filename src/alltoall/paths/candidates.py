"""Sets of candidate paths for each pair, from which path-based programs choose.

| name | paths of a pair | how many |
|---|---|---|
| disjoint | a largest set of link-disjoint paths, of fewest links in total | at most the degree |
| shortest | all shortest ones, by hops | can be exponential |
| bounded | all simple ones at most `slack` hops longer than a shortest | can be exponential |
| k-shortest | the k shortest simple ones | k |
"""

from collections.abc import Callable

import numpy as np

from alltoall import core
from alltoall.errors import InputError
from alltoall.ir.arrays import Ints, starts_of
from alltoall.ir.paths import Paths
from alltoall.ir.problem import Problem
from alltoall.paths.shortest import core_graph, shortest_distances
from alltoall.settings import RouteSettings

MOST_CANDIDATE_LINKS = 50_000_000
"""Links in all paths together beyond which a path set is refused rather than enumerated."""


def candidate_paths(problem: Problem, settings: RouteSettings) -> Paths:
    """Return the path set of the settings for every pair with a positive demand.

    They are ordered by pair. Raise TimeoutError if the time limit comes first.
    """
    return PATH_FINDERS[settings.paths](problem, settings)


def _disjoint(problem: Problem, settings: RouteSettings) -> Paths:
    graph = core_graph(problem.topology)
    return _collect(problem, lambda start, ends: core.disjoint_paths(graph, start, ends), settings)


def _simple(problem: Problem, slack: int, most_paths: int, settings: RouteSettings) -> Paths:
    topology = problem.topology
    graph = core_graph(topology)
    hops = shortest_distances(topology, np.ones(topology.links), np.arange(topology.nodes))

    def find(start: int, ends: Ints) -> tuple[Ints, Ints, Ints]:
        to_end = hops[:, ends].T
        limits = slack, most_paths, MOST_CANDIDATE_LINKS
        return core.simple_paths(graph, start, ends, to_end, *limits)

    return _collect(problem, find, settings)


PATH_FINDERS: dict[str, Callable[[Problem, RouteSettings], Paths]] = {
    "disjoint": _disjoint,
    "shortest": lambda problem, settings: _simple(problem, 0, MOST_CANDIDATE_LINKS, settings),
    "bounded": lambda problem, settings: _simple(
        problem, settings.slack, MOST_CANDIDATE_LINKS, settings
    ),
    "k-shortest": lambda problem, settings: _simple(
        problem, problem.topology.nodes, settings.k, settings
    ),
}
"""The sets of candidate paths, by their names."""


Find = Callable[[int, Ints], tuple[Ints, Ints, Ints]]
"""From a node and the ends of its paths to the end, the bounds and the links of every path."""


def _collect(problem: Problem, find: Find, settings: RouteSettings) -> Paths:
    """Run a search from every source to all its destinations and put the paths together."""
    terminals = problem.topology.terminals
    sources, destinations, lengths, links = [], [], [], []
    total = 0
    for source in problem.sources:
        settings.solve.check_time()
        ends = terminals[problem.demand.rows(np.array([source]))[0] > 0]
        end, start, link = find(int(terminals[source]), ends)
        total += len(link)
        if total > MOST_CANDIDATE_LINKS:
            raise InputError(
                f"{problem.topology.name} has too many such paths (more than "
                f"{MOST_CANDIDATE_LINKS:,} links in all); choose disjoint paths, k-shortest paths "
                "or columns"
            )
        sources.append(np.full(len(end), source))
        destinations.append(problem.topology.position[end])
        lengths.append(np.diff(start))
        links.append(link)
    return Paths(
        source=np.concatenate(sources),
        destination=np.concatenate(destinations),
        start=starts_of(np.concatenate(lengths)),
        link=np.concatenate(links),
    )
