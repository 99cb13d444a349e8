"""Return routes: acknowledgements need one for every pair that sends one way only."""

from collections import deque
from dataclasses import replace

import numpy as np

from alltoall.errors import InputError
from alltoall.ir.arrays import Ints, starts_of
from alltoall.ir.routes import Routes
from alltoall.ir.topology import Topology


def with_ways_back(routes: Routes) -> Routes:
    """Add a shortest route of weight 0 for each pair that only receives, and drop layers."""
    terminals = len(routes.problem.topology.terminals)
    forth = np.unique(routes.pair(terminals))
    back = np.unique(routes.destination * terminals + routes.source)
    missing = np.setdiff1d(back, forth)
    routes = replace(routes, layer=None, hop_layer=None)
    if not len(missing):
        return routes
    source, destination = missing // terminals, missing % terminals
    topology = routes.problem.topology
    paths = [
        _shortest(topology, int(topology.terminals[a]), int(topology.terminals[b]))
        for a, b in zip(source, destination, strict=True)
    ]
    hops = starts_of(np.array([len(path) for path in paths], dtype=np.int64))
    return replace(
        routes,
        source=np.concatenate((routes.source, source)),
        destination=np.concatenate((routes.destination, destination)),
        start=np.concatenate((routes.start, routes.start[-1] + hops[1:])),
        link=np.concatenate((routes.link, *paths)),
        weight=np.concatenate((routes.weight, np.zeros(len(missing)))),
        # The weights of ways back are no shares of anything.
        denominator=None,
    )


def _shortest(topology: Topology, begin: int, end: int) -> Ints:
    """Return the links of a path with fewest hops."""
    leaving: list[list[int]] = [[] for _ in range(topology.nodes)]
    for link, tail in enumerate(topology.tail.tolist()):
        leaving[tail].append(link)
    by: dict[int, int] = {begin: -1}
    waiting = deque([begin])
    while end not in by:
        if not waiting:
            ends = f"from node {topology.node_name(begin)} to node {topology.node_name(end)}"
            raise InputError(
                f"{topology.name}: no path {ends} for what acknowledges the way there; expected "
                "links that lead back"
            )
        node = waiting.popleft()
        for link in leaving[node]:
            head = int(topology.head[link])
            if head not in by:
                by[head] = link
                waiting.append(head)
    path: list[int] = []
    while end != begin:
        path.append(by[end])
        end = int(topology.tail[path[-1]])
    return np.array(path[::-1], dtype=np.int64)
