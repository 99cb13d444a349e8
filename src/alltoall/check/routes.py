"""The independent check of routes: they are paths, carry the demand, and cannot deadlock.

A million routes are five million links: paths are checked in blocks of routes, weights in blocks of
sources, and of channel dependencies only the distinct ones are kept.
"""

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from alltoall.check.flow import BLOCK, TOLERANCE, recompute_bound
from alltoall.check.sums import distinct_values, raise_if, runs
from alltoall.errors import VerificationError
from alltoall.ir.arrays import Ints, inner_index
from alltoall.ir.routes import Routes
from alltoall.ir.words import counted


@dataclass(frozen=True)
class RoutesReport:
    """The values that a check of routes recomputed."""

    time: float
    bound: float
    gap: float
    routes: int
    max_routes_per_pair: int
    layers: int | None


def check_routes(routes: Routes, tolerance: float = TOLERANCE) -> RoutesReport:
    """Check that routes are simple paths of the topology that carry exactly the demand.

    If layers are assigned, the channel dependency graph of each must be acyclic; if routes change
    layer on the way, that of all layers together.
    """
    subject = f"routes on {routes.problem.topology.name}"
    nodes, longest = routes.problem.topology.nodes, int(np.argmax(routes.hops))
    if routes.hops[longest] >= nodes:  # first, for a block holds whole routes
        found = f"{_name(routes, longest)} has {routes.hops[longest]} links"
        raise_if(subject, [f"{found}; a path in {nodes} nodes has at most {nodes - 1}"])
    violations = [*_check_paths(routes), *_check_weights(routes, tolerance)]
    if routes.layer_of_link is not None:
        violations += _check_layers(routes, routes.layer_of_link)
    bound, trouble = recompute_bound(routes.problem, routes.certificate.lengths)
    violations += trouble
    load = np.zeros(routes.problem.topology.links)
    for block in _blocks(routes):
        weight = routes.weight[block.first : block.last][block.route]
        load += np.bincount(block.link, weight, len(load))
    time = float((load / routes.problem.topology.capacity).max())
    if not routes.bound <= bound * (1 + tolerance):
        violations.append(f"claims the bound {routes.bound:.12g}; its lengths prove {bound:.12g}")
    if not time >= bound * (1 - tolerance) and not violations:
        violations.append(f"the time {time:.12g} is below the proven bound {bound:.12g}")
    raise_if(subject, violations)
    per_pair = int(routes.routes_per_pair().max())
    return RoutesReport(time, bound, time / bound - 1, routes.count, per_pair, routes.layers)


def check_destinations(routes: Routes) -> None:
    """Check that a node sends all traffic to a terminal, in one layer, over one link."""
    topology, terminals = routes.problem.topology, len(routes.problem.topology.terminals)
    assigned = routes.layer_of_link
    assigned = np.zeros(len(routes.link), dtype=np.int64) if assigned is None else assigned
    names, entries = _distinct(assigned), np.zeros(0, dtype=np.int64)
    for block in _blocks(routes):
        mine = assigned[int(routes.start[block.first]) : int(routes.start[block.last])]
        table = np.searchsorted(names, mine) * terminals
        table += routes.destination[block.first : block.last][block.route]
        keys = _distinct(table * topology.links + block.link)
        entries = _distinct(np.concatenate((entries, keys)))
    link = entries % topology.links
    places = np.sort(entries // topology.links * topology.nodes + topology.tail[link])
    twice = places[1:][places[1:] == places[:-1]]
    if len(twice):
        row, node = divmod(int(twice[0]), topology.nodes)
        name, end = divmod(row, terminals)
        words = (
            f"node {topology.node_name(node)} sends to node {topology.terminal_name(end)} over "
            f"several links in layer {names[name]}"
        )
        raise VerificationError(f"routes on {topology.name}", (words,))


def _distinct(values: Ints) -> Ints:
    return distinct_values(np.sort(values))


@dataclass(frozen=True)
class _RouteBlock:
    """Some consecutive routes: `route`, counted from `first`, is that of each of their links."""

    first: int
    last: int
    link: Ints
    route: Ints

    def turns(self) -> NDArray[np.bool_]:
        """Return whether each link but the very last is followed by another of its route."""
        return np.asarray(self.route[1:] == self.route[:-1])


def _blocks(routes: Routes) -> Iterator[_RouteBlock]:
    hops = routes.hops
    for run in runs(routes.start, BLOCK):
        link = routes.link[int(routes.start[run.start]) : int(routes.start[run.stop])]
        route = np.repeat(np.arange(run.stop - run.start), hops[run])
        yield _RouteBlock(run.start, run.stop, link, route)


def _check_paths(routes: Routes) -> Iterator[str]:
    found: dict[str, list[Ints]] = {}
    for block in _blocks(routes):
        for words, wrong in _faults(routes, block):
            if len(wrong):
                found.setdefault(words, []).append(wrong + block.first)
    for words, parts in found.items():
        count = sum(map(len, parts))
        yield f"{count} routes: the first, {_name(routes, int(parts[0][0]))}, {words}"


def _faults(routes: Routes, block: _RouteBlock) -> Iterator[tuple[str, Ints]]:
    """Yield each fault of a path, and the routes of a block that have it."""
    topology, these = routes.problem.topology, slice(block.first, block.last)
    tail, head = topology.tail[block.link], topology.head[block.link]
    first = routes.start[these] - routes.start[block.first]
    last = routes.start[block.first + 1 : block.last + 1] - routes.start[block.first] - 1
    starts = tail[first] != topology.terminals[routes.source[these]]
    ends = head[last] != topology.terminals[routes.destination[these]]
    broken = block.route[1:][block.turns() & (head[:-1] != tail[1:])]
    yield "does not start at its source", np.flatnonzero(starts)
    yield "does not end at its destination", np.flatnonzero(ends)
    yield "is not connected", _distinct(broken)
    keys = np.concatenate(
        (
            block.route * topology.nodes + head,
            np.arange(block.last - block.first) * topology.nodes + tail[first],
        )
    )
    keys.sort()
    yield "visits a node twice", _distinct(keys[1:][keys[1:] == keys[:-1]] // topology.nodes)


def _check_weights(routes: Routes, tolerance: float) -> Iterator[str]:
    bad = np.flatnonzero(~(np.isfinite(routes.weight) & (routes.weight > 0)))
    if len(bad):
        name = _name(routes, int(bad[0]))
        yield f"{len(bad)} weights are not positive; the first is {routes.weight[bad[0]]:g}, {name}"
        return
    yield from _check_demand(routes, tolerance)
    if routes.denominator is not None:
        units = routes.weight * routes.denominator
        if (np.abs(units - np.rint(units)) > 1e-6).any():
            yield f"a weight is not a multiple of 1/{routes.denominator}"


def _check_demand(routes: Routes, tolerance: float) -> Iterator[str]:
    """Compare the weights to the demand, up to the first differing block of sources."""
    terminals = len(routes.problem.topology.terminals)
    pairs = routes.pair(terminals)
    order = np.argsort(pairs, kind="stable")
    pairs, weight = pairs[order], routes.weight[order]
    size = max(1, BLOCK // terminals)
    for first in range(0, terminals, size):
        sources = np.arange(first, min(first + size, terminals))
        begin, end = np.searchsorted(pairs, (first * terminals, (sources[-1] + 1) * terminals))
        demand = routes.problem.demand.rows(sources).ravel()
        carried = np.bincount(pairs[begin:end] - first * terminals, weight[begin:end], len(demand))
        error, allowed = np.abs(carried - demand), tolerance * np.maximum(demand, carried)
        if routes.denominator is not None:
            # Fractions add up exactly, but for the rounding of the sum.
            allowed = np.minimum(allowed, 0.5 / routes.denominator + 1e-13 * demand)
        if (error > allowed).any():
            worst = int(np.argmax(error - allowed))
            pair = first + worst // terminals, worst % terminals
            yield (
                f"the routes {routes.problem.topology.pair_name(*pair)} carry "
                f"{carried[worst]:.12g} of the demand {demand[worst]:.12g}"
            )
            return


def _check_layers(routes: Routes, layer: Ints) -> Iterator[str]:
    """Look for a cycle in the dependencies of channels, each a link in the layer of a hop."""
    links, names = routes.problem.topology.links, _distinct(layer)
    used = distinct = np.zeros(0, dtype=np.int64)
    for block in _blocks(routes):
        used = _distinct(np.concatenate((used, _distinct(_channels(routes, block, layer, names)))))
    for block in _blocks(routes):
        channel = np.searchsorted(used, _channels(routes, block, layer, names))
        keys = (channel[:-1] * len(used) + channel[1:])[block.turns()]
        distinct = _distinct(np.concatenate((distinct, _distinct(keys))))
    cyclic = used[_find_cyclic(distinct // len(used), distinct % len(used))]
    if not len(cyclic):
        return
    where = _distinct(names[cyclic // links])
    name = routes.problem.topology.link_name(int(cyclic[0] % links))
    if routes.hop_layer is not None:
        yield (
            f"routes that change layer can deadlock: their channel dependencies have a cycle near "
            f"{name} in layer {where[0]}"
        )
    else:
        more = f" (and {counted(len(where) - 1, 'more layer')})" if len(where) > 1 else ""
        yield (
            f"layer {where[0]} can deadlock: its channel dependencies have a cycle near "
            f"{name}{more}"
        )


def _channels(routes: Routes, block: _RouteBlock, layer: Ints, names: Ints) -> Ints:
    """Return a number for the link and the layer of each hop of a block."""
    mine = layer[int(routes.start[block.first]) : int(routes.start[block.last])]
    return np.searchsorted(names, mine) * routes.problem.topology.links + block.link


def _find_cyclic(held: Ints, wanted: Ints) -> Ints:
    """Return the channels that are on a cycle of dependencies, or behind one; `held` is in order.

    Channels without waiting channels are removed repeatedly, with their dependencies; cycles
    remain.
    """
    channels = _distinct(np.concatenate((held, wanted)))
    first = np.append(np.searchsorted(held, channels), len(held))
    wanted = np.searchsorted(channels, wanted)
    waiting = np.bincount(wanted, minlength=len(channels))
    free = np.flatnonzero(waiting == 0)
    while len(free):
        degrees = first[free + 1] - first[free]
        released = wanted[np.repeat(first[free], degrees) + inner_index(degrees)]
        np.subtract.at(waiting, released, 1)
        free = _distinct(released[waiting[released] == 0])
    return channels[waiting > 0]


def _name(routes: Routes, route: int) -> str:
    pair = int(routes.source[route]), int(routes.destination[route])
    return f"route {route} {routes.problem.topology.pair_name(*pair)}"
