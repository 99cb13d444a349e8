"""Sets of candidate paths for each pair: what the path-based programs choose from.

| name | paths of a pair | how many |
|---|---|---|
| disjoint | a largest set of link-disjoint paths, of fewest links in total | at most the degree |
| shortest | all shortest ones, by hops | can be exponential |
| bounded | all simple ones at most `slack` hops longer than a shortest | can be exponential |
| k-shortest | the k shortest simple ones | k |
"""

from collections.abc import Callable

import numpy as np

from alltoall.errors import InputError
from alltoall.ir.arrays import Ints, starts_of
from alltoall.ir.paths import Paths
from alltoall.ir.problem import Problem
from alltoall.ir.topology import Topology
from alltoall.paths.search import BUFFER_FULL, disjoint_paths, simple_paths
from alltoall.paths.shortest import Adjacency, shortest_distances
from alltoall.settings import RouteSettings

MOST_CANDIDATE_LINKS = 50_000_000
"""Links in all paths together beyond which a path set is refused rather than enumerated."""


def candidate_paths(problem: Problem, settings: RouteSettings) -> Paths:
    """Return the path set that the settings name, for every pair with a positive demand.

    They are ordered by pair. Raise TimeoutError if the time limit comes first.
    """
    return PATH_FINDERS[settings.paths](problem, settings)


def _disjoint(problem: Problem, settings: RouteSettings) -> Paths:
    topology = problem.topology
    out, into = Adjacency(topology).outgoing, Adjacency(topology).incoming

    def find(start: int, goals: Ints, room: tuple[Ints, Ints, Ints]) -> tuple[int, int]:
        ends = (topology.tail, topology.head)
        found: tuple[int, int] = disjoint_paths(
            topology.nodes, out, into, ends, start, goals, *room
        )
        return found

    return _collect(problem, find, settings)


def _simple(problem: Problem, slack: int, most_paths: int, settings: RouteSettings) -> Paths:
    topology = problem.topology
    out = Adjacency(topology).outgoing
    hops = shortest_distances(topology, np.ones(topology.links), np.arange(topology.nodes))

    def find(start: int, goals: Ints, room: tuple[Ints, Ints, Ints]) -> tuple[int, int]:
        to_goal = np.ascontiguousarray(hops[:, goals].T)
        found: tuple[int, int] = simple_paths(
            topology.nodes, out, topology.head, start, goals, to_goal, slack, most_paths, *room
        )
        return found

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


Find = Callable[[int, Ints, tuple[Ints, Ints, Ints]], tuple[int, int]]


def _collect(problem: Problem, find: Find, settings: RouteSettings) -> Paths:
    """Run a search from every source to all its destinations and put the paths together."""
    terminals = problem.topology.terminals
    sources, destinations, lengths, links = [], [], [], []
    total = 0
    for source in problem.sources:
        settings.solve.check_time()
        goals = terminals[problem.demand.rows(np.array([source]))[0] > 0]
        length, link, goal = _with_room(find, int(terminals[source]), goals, problem.topology)
        total += len(link)
        if total > MOST_CANDIDATE_LINKS:
            raise InputError(
                f"{problem.topology.name} has too many such paths (more than "
                f"{MOST_CANDIDATE_LINKS:,} links in all); choose disjoint paths, k-shortest paths "
                "or columns"
            )
        sources.append(np.full(len(length), source))
        destinations.append(problem.topology.position[goal])
        lengths.append(length)
        links.append(link)
    return Paths(
        source=np.concatenate(sources),
        destination=np.concatenate(destinations),
        start=starts_of(np.concatenate(lengths)),
        link=np.concatenate(links),
    )


def _with_room(find: Find, start: int, goals: Ints, graph: Topology) -> tuple[Ints, Ints, Ints]:
    """Search with buffers that grow until they are large enough."""
    paths, entries = 8 * len(goals) + 8, 64 * len(goals) + 2 * graph.nodes
    while True:
        lengths, goal = np.empty(paths, dtype=np.int64), np.empty(paths, dtype=np.int64)
        links = np.empty(entries, dtype=np.int64)
        found, used = find(start, goals, (lengths, links, goal))
        if found != BUFFER_FULL:
            return lengths[:found], links[:used], goal[:found]
        paths, entries = 4 * paths, 4 * entries
        if entries > 4 * MOST_CANDIDATE_LINKS:
            raise InputError(
                f"node {graph.node_name(start)} alone has too many such paths; choose disjoint "
                "paths, k-shortest paths or columns"
            )
