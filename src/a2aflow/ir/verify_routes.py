"""The independent check of routes: they are paths, carry the demand, and cannot deadlock."""

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from a2aflow.errors import VerificationError
from a2aflow.ir.arrays import Floats, Ints
from a2aflow.ir.routes import Routes
from a2aflow.ir.verify import TOLERANCE, recompute_bound


@dataclass(frozen=True)
class RoutesReport:
    """What a check of routes recomputed from them."""

    time: float
    bound: float
    gap: float
    routes: int
    max_routes_per_pair: int
    layers: int | None


def check_routes(routes: Routes, tolerance: float = TOLERANCE) -> RoutesReport:
    """Check that routes are simple paths of the topology that carry exactly the demand.

    If layers are assigned, the channel dependency graph of each must be acyclic.
    """
    violations = [*_check_paths(routes), *_check_weights(routes, tolerance)]
    if routes.layer is not None:
        violations += _check_layers(routes, routes.layer)
    bound, trouble = recompute_bound(routes.problem, routes.certificate.lengths)
    violations += trouble
    time = float((_load(routes) / routes.problem.topology.capacity).max())
    if not routes.bound <= bound * (1 + tolerance):
        violations.append(f"claims the bound {routes.bound:.12g}; its lengths prove {bound:.12g}")
    if not time >= bound * (1 - tolerance) and not violations:
        violations.append(f"the time {time:.12g} is below the proven bound {bound:.12g}")
    if violations:
        raise VerificationError(f"routes on {routes.problem.topology.name}", violations)
    per_pair = int(np.unique(_pairs(routes), return_counts=True)[1].max())
    return RoutesReport(time, bound, time / bound - 1, routes.count, per_pair, routes.layers)


def _pairs(routes: Routes) -> Ints:
    return routes.source * len(routes.problem.topology.terminals) + routes.destination


def _load(routes: Routes) -> Floats:
    """Sum the weights over each link."""
    hops = np.diff(routes.start)
    weight = np.repeat(routes.weight, hops)
    return np.bincount(routes.link, weight, routes.problem.topology.links).astype(np.float64)


def _check_paths(routes: Routes) -> Iterator[str]:
    topology = routes.problem.topology
    tail, head = topology.tail[routes.link], topology.head[routes.link]
    first, last = routes.start[:-1], routes.start[1:] - 1
    route = np.repeat(np.arange(routes.count), np.diff(routes.start))
    within = np.flatnonzero(route[1:] == route[:-1])
    for wrong, words in (
        (tail[first] != topology.terminals[routes.source], "does not start at its source"),
        (head[last] != topology.terminals[routes.destination], "does not end at its destination"),
        (_hit(route[within[head[within] != tail[within + 1]]], routes.count), "is not connected"),
        (_revisits(route, head, tail[first], topology.nodes), "visits a node twice"),
    ):
        found = np.flatnonzero(wrong)
        if len(found):
            yield f"{len(found)} routes: the first, {_name(routes, int(found[0]))}, {words}"


def _hit(which: Ints, count: int) -> Ints:
    """Return a flag per route, set for those listed."""
    flags = np.zeros(count, dtype=np.int64)
    flags[which] = 1
    return flags


def _revisits(route: Ints, head: Ints, begin: Ints, nodes: int) -> Ints:
    """Return a flag per route that visits a node more than once, its first node included."""
    keys = np.concatenate((route * nodes + head, np.arange(len(begin)) * nodes + begin))
    keys.sort()
    return _hit(keys[1:][keys[1:] == keys[:-1]] // nodes, len(begin))


def _check_weights(routes: Routes, tolerance: float) -> Iterator[str]:
    bad = np.flatnonzero(~(np.isfinite(routes.weight) & (routes.weight > 0)))
    if len(bad):
        name = _name(routes, int(bad[0]))
        yield f"{len(bad)} weights are not positive; the first is {routes.weight[bad[0]]:g}, {name}"
        return
    terminals = len(routes.problem.topology.terminals)
    demand = routes.problem.demand.rows(np.arange(terminals)).ravel()
    carried = np.bincount(_pairs(routes), routes.weight, terminals**2)
    error = np.abs(carried - demand)
    if (error > tolerance * np.maximum(demand, carried)).any():
        worst = int(np.argmax(error))
        ends = routes.problem.topology.terminals[[worst // terminals, worst % terminals]]
        yield (
            f"the routes from node {ends[0]} to node {ends[1]} carry {carried[worst]:.12g} of the "
            f"demand {demand[worst]:.12g}"
        )
    if routes.denominator is not None:
        units = routes.weight * routes.denominator
        if (np.abs(units - np.rint(units)) > 1e-6).any():
            yield f"a weight is not a multiple of 1/{routes.denominator}"


def _check_layers(routes: Routes, layer: Ints) -> Iterator[str]:
    """Look for a cycle in the channel dependency graph of each layer."""
    links = routes.problem.topology.links
    route = np.repeat(np.arange(routes.count), np.diff(routes.start))
    within = np.flatnonzero(route[1:] == route[:-1])
    edges = np.stack((layer[route[within]], routes.link[within], routes.link[within + 1]))
    edges = np.unique(edges, axis=1)
    for each in np.unique(edges[0]):
        held, wanted = edges[1:, edges[0] == each]
        left = _without_sources(links, held, wanted)
        if left.any():
            link = int(held[left][0])
            name = routes.problem.topology.link_name(link)
            yield f"layer {each} can deadlock: its channel dependencies have a cycle near {name}"


def _without_sources(links: int, held: Ints, wanted: Ints) -> NDArray[np.bool_]:
    """Peel off dependencies on channels that nobody waits for; what is left contains a cycle."""
    left = np.ones(len(held), dtype=np.bool_)
    while True:
        waited_for = np.zeros(links, dtype=np.bool_)
        waited_for[wanted[left]] = True
        keep = left & waited_for[held]
        if np.array_equal(keep, left):
            return left
        left = keep


def _name(routes: Routes, route: int) -> str:
    ends = routes.problem.topology.terminals[[routes.source[route], routes.destination[route]]]
    return f"route {route} from node {ends[0]} to node {ends[1]}"
