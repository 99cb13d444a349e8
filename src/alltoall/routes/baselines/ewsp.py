"""EwSP: equal weights over all shortest paths of a pair.

With n(s, v) shortest paths from s to v, a share n(s, u) / n(s, v) of what passes v comes over each
link u -> v that leads away from s (Brandes' counting for betweenness). This gives all loads in
one pass over the links per source, `equal_loads`, however many paths there are.

Routes list paths. A pair with at most `sizes.LISTED_PATHS` shortest paths gets all of them, with
equal weights. Above that, the number of paths may be exponential: the pair's equal-weight flow on
the links is split into few weighted paths instead, which put exactly the same load on every link.
"""

import numpy as np
from numba import njit

from alltoall.errors import InputError
from alltoall.flows import sizes
from alltoall.flows.program import certify
from alltoall.ir.arrays import Floats, Ints
from alltoall.ir.problem import Problem
from alltoall.ir.routes import Routes
from alltoall.paths.pool import Pool, new_pool, pooled_paths, store
from alltoall.paths.shortest import Adjacency, shortest_tree
from alltoall.paths.widest import split_flows
from alltoall.routes.weights import routes_from_weights
from alltoall.settings import RouteSettings

MOST_LISTED_LINKS = 40_000_000
"""Links of all listed paths together beyond which they are counted, but not listed."""


def route_ewsp(problem: Problem, settings: RouteSettings) -> Routes:
    """Return all shortest paths with equal weights, or fewer paths with the same link loads.

    Raise TimeoutError if the time limit comes first.
    """
    settings = settings.begin()
    _require_few(problem)
    topology, near = problem.topology, Adjacency(problem.topology)
    wanted = problem.node_demand(problem.sources)
    pool: Pool = new_pool()
    for row, source in enumerate(problem.sources):
        settings.solve.check_time()
        pool = _paths(
            topology.nodes,
            (topology.tail, topology.head),
            near.outgoing,
            near.incoming,
            (int(source), int(topology.terminals[source])),
            wanted[row],
            sizes.LISTED_PATHS,
            pool,
        )
    return routes_from_weights(problem, *pooled_paths(problem, pool), certify(problem, []), "ewsp")


def _require_few(problem: Problem) -> None:
    """Raise, from the numbers of paths alone, if too many would have to be listed."""
    topology, near = problem.topology, Adjacency(problem.topology)
    starts = topology.terminals[problem.sources]
    wanted = problem.node_demand(problem.sources)
    entries = _listed(
        topology.nodes, topology.head, near.outgoing, starts, wanted > 0, float(sizes.LISTED_PATHS)
    )
    if entries > MOST_LISTED_LINKS:
        time = float((equal_loads(problem) / topology.capacity).max())
        raise InputError(
            f"{topology.name}: the shortest paths of all pairs have about {entries:,.0f} links, "
            f"at most {sizes.LISTED_PATHS} paths of a pair counted; expected at most "
            f"{MOST_LISTED_LINKS:,} to list. With equal weights they would take the time "
            f"{time:.9g}; the methods sssp and native list one path per pair"
        )


@njit(cache=True)
def _listed(
    nodes: int, head: Ints, out: tuple[Ints, Ints], starts: Ints, wanted: Ints, listed: float
) -> float:
    """Count the links of the paths of all pairs, at most so many paths of each."""
    hop, total = np.ones(len(head)), 0.0
    distance, paths = np.empty(nodes), np.empty(nodes)
    parent, order = np.empty(nodes, dtype=np.int64), np.empty(nodes, dtype=np.int64)
    for row in range(len(starts)):
        settled = shortest_tree(
            nodes, out[0], out[1], head, hop, starts[row], distance, parent, order
        )
        _count(order[:settled], distance, out, head, paths)
        for node in order[1:settled]:
            if wanted[row, node]:
                total += min(paths[node], listed) * distance[node]
    return total


def equal_loads(problem: Problem) -> Floats:
    """Return what equal weights over all shortest paths put on each link, by counting alone."""
    topology, near = problem.topology, Adjacency(problem.topology)
    load: Floats = _loads(
        topology.nodes,
        (topology.tail, topology.head),
        near.outgoing,
        near.incoming,
        topology.terminals[problem.sources],
        problem.node_demand(problem.sources),
    )
    return load


@njit(cache=True)
def _count(
    order: Ints, distance: Floats, out: tuple[Ints, Ints], head: Ints, paths: Floats
) -> None:
    """Fill in the number of shortest paths to each node; `order` starts with the source.

    Counts are floats, because they outgrow integers; only their ratios are used when large.
    """
    paths[:] = 0.0
    paths[order[0]] = 1.0
    for node in order:
        for index in range(out[0][node], out[0][node + 1]):
            end = head[out[1][index]]
            if distance[end] == distance[node] + 1:
                paths[end] += paths[node]


@njit(cache=True)
def _spread(
    order: Ints,
    distance: Floats,
    into: tuple[Ints, Ints],
    tail: Ints,
    paths: Floats,
    passing: Floats,
    flow: Floats,
) -> None:
    """Add to `flow` what equal weights bring to the nodes; `passing` is what each wants."""
    for place in range(len(order) - 1, 0, -1):
        node = order[place]
        if passing[node] == 0.0:
            continue
        for index in range(into[0][node], into[0][node + 1]):
            link = into[1][index]
            if distance[tail[link]] + 1 == distance[node]:
                share = passing[node] * (paths[tail[link]] / paths[node])
                flow[link] += share
                passing[tail[link]] += share


@njit(cache=True)
def _loads(
    nodes: int,
    ends: tuple[Ints, Ints],
    out: tuple[Ints, Ints],
    into: tuple[Ints, Ints],
    starts: Ints,
    wanted: Floats,
) -> Floats:
    tail, head = ends
    load, hop = np.zeros(len(tail)), np.ones(len(tail))
    distance, paths = np.empty(nodes), np.empty(nodes)
    parent, order = np.empty(nodes, dtype=np.int64), np.empty(nodes, dtype=np.int64)
    for row in range(len(starts)):
        start = starts[row]
        settled = shortest_tree(nodes, out[0], out[1], head, hop, start, distance, parent, order)
        _count(order[:settled], distance, out, head, paths)
        _spread(order[:settled], distance, into, tail, paths, wanted[row].copy(), load)
    return load


@njit(cache=True)
def _paths(
    nodes: int,
    ends: tuple[Ints, Ints],
    out: tuple[Ints, Ints],
    into: tuple[Ints, Ints],
    source: tuple[int, int],
    wanted: Floats,
    listed: int,
    pool: Pool,
) -> Pool:
    """Store the paths of one source, given by its position and its node."""
    tail, head = ends
    hop = np.ones(len(tail))
    distance, paths = np.empty(nodes), np.empty(nodes)
    parent, order = np.empty(nodes, dtype=np.int64), np.empty(nodes, dtype=np.int64)
    owner, start = source[0] * nodes, source[1]
    settled = shortest_tree(nodes, out[0], out[1], head, hop, start, distance, parent, order)
    _count(order[:settled], distance, out, head, paths)
    for node in np.flatnonzero(wanted):
        if paths[node] <= listed:
            weight = wanted[node] / paths[node]
            pool = _list(pool, owner + node, weight, node, distance, tail, into)
            continue
        alone, flow = np.zeros(nodes), np.zeros(len(tail))
        alone[node] = wanted[node]
        _spread(order[:settled], distance, into, tail, paths, alone, flow)
        pool = _split(pool, owner, flow, start, node, wanted[node], nodes, ends)
    return pool


@njit(cache=True)
def _split(
    pool: Pool,
    owner: int,
    flow: Floats,
    start: int,
    node: int,
    demand: float,
    nodes: int,
    ends: tuple[Ints, Ints],
) -> Pool:
    """Store the paths that make up the flow of one pair."""
    used = np.flatnonzero(flow)
    _, _, width, first, link = split_flows(
        nodes,
        ends,
        np.array([start]),
        (np.array([0, len(used)]), used, flow[used]),
        (np.array([0, 1]), np.array([node]), np.array([demand])),
    )
    for path in range(len(width)):
        backwards = link[first[path] : first[path + 1]][::-1].copy()
        pool = store(pool, owner + node, width[path], backwards)
    return pool


@njit(cache=True)
def _list(
    pool: Pool,
    owner: int,
    weight: float,
    node: int,
    distance: Floats,
    tail: Ints,
    into: tuple[Ints, Ints],
) -> Pool:
    """Store every shortest path to `node`, by depth-first search back from it."""
    hops = int(distance[node])
    cursor = np.empty(hops + 1, dtype=np.int64)
    places = np.empty(hops + 1, dtype=np.int64)
    path = np.empty(hops, dtype=np.int64)
    depth, places[0], cursor[0] = 0, node, into[0][node]
    while depth >= 0:
        here = places[depth]
        if depth == hops:
            pool = store(pool, owner, weight, path)
            depth -= 1
        elif cursor[depth] == into[0][here + 1]:
            depth -= 1
        else:
            link = into[1][cursor[depth]]
            cursor[depth] += 1
            if distance[tail[link]] + 1 == distance[here]:
                path[depth] = link
                depth += 1
                places[depth], cursor[depth] = tail[link], into[0][tail[link]]
    return pool
