"""Whole chunks on timed paths, rerouted until no class of links is over its budget in any step.

This is negotiated congestion, as in `paths.negotiate`, with two differences that count at scale.
Links of a class share one budget: under translations the path of one chunk stands for all its
images, so what it puts on any link of an orbit, all of them carry. And the graph is unrolled in
time: a cheapest path is found step by step, in one pass over the links of each, without a heap.
"""

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from numba import njit

from a2aflow.ir.arrays import Floats, Ints
from a2aflow.ir.paths import NOTHING
from a2aflow.paths.negotiate import STALE, Chunks, write_path
from a2aflow.schedules.expansion import Expansion

MOST_RELAXED = 200_000_000
"""Links that are looked at in one call of the compiled code, so that Ctrl-C is heard."""

WAITING = 1e-3
"""What a step of waiting costs, where a hop over a link that is not contended costs 1."""

FINEST = 1e-12
"""The share of a chunk below which the budget of a link is as good as nothing."""


@dataclass(frozen=True, eq=False)
class Sharing:
    """The class of each link, what a chunk of size 1 puts on each class, and the budgets.

    Links of a class beyond the last are free.
    """

    link_class: Ints
    share: Floats
    budget: Floats


def negotiate_steps(
    expansion: Expansion,
    chunks: Chunks,
    paths: Ints,
    sharing: Sharing,
    rounds: int,
    seed: int,
    late: Callable[[], bool],
) -> tuple[Ints, bool]:
    """Return paths within the budgets and True, or the last try and False."""
    graph, per_step = expansion.graph, expansion.problem.topology.links
    order = np.random.default_rng(seed).permutation(len(chunks.start)).astype(np.int64)
    table = paths.copy()
    classes = len(sharing.budget)
    load, history = np.zeros(classes), np.zeros(classes)
    _add_all(load, table, chunks.size, sharing.link_class, sharing.share)
    network = (graph.tail, graph.head, sharing.link_class, expansion.steps, per_step)
    pressure, least, stale = 0.5, np.inf, 0
    most = max(1, MOST_RELAXED // graph.links)
    for _ in range(rounds):
        done = 0
        while done < len(order):
            if late():
                return table, False
            done = _reroute(
                network,
                graph.nodes,
                (chunks.start, chunks.end, chunks.size, order),
                (sharing.budget, sharing.share, history, pressure),
                done,
                most,
                table,
                load,
            )
        over = np.maximum(load - sharing.budget, 0.0)
        over[over <= 1e-9 * np.maximum(1.0, sharing.budget)] = 0.0
        excess = float(over.sum())
        if excess == 0.0 and bool((table[:, 0] != NOTHING).all()):
            return table, True
        history += 0.3 * np.minimum(3.0, over / (np.median(chunks.size) * sharing.share))
        stale = 0 if excess < least else stale + 1
        least = min(least, excess)
        if stale == STALE or late():
            break
        pressure = min(pressure * 1.3, 1e3)
    return table, False


@njit(cache=True)
def _add_all(load: Floats, paths: Ints, size: Floats, kind: Ints, share: Floats) -> None:
    for chunk in range(len(size)):
        _add(load, paths[chunk], size[chunk], kind, share)


@njit(cache=True)
def _add(load: Floats, path: Ints, size: float, kind: Ints, share: Floats) -> None:
    for link in path:
        if link == NOTHING:
            break
        if kind[link] < len(load):
            load[kind[link]] += size * share[kind[link]]


@njit(cache=True)
def _reroute(
    network: tuple[Ints, Ints, Ints, int, int],
    nodes: int,
    chunks: tuple[Ints, Ints, Floats, Ints],
    prices: tuple[Floats, Floats, Floats, float],
    begin: int,
    most: int,
    paths: Ints,
    load: Floats,
) -> int:
    """Let the chunks from `order[begin]` on look for another way; return where it stopped.

    It stops after `most` of them or at the end.
    """
    start, end, size, order = chunks
    kind, share = network[2], prices[1]
    cost = np.empty(len(load) + 1)
    distance, parent = np.empty(nodes), np.empty(nodes, dtype=np.int64)
    priced, rerouted = 0.0, 0
    for place in range(begin, len(order)):
        chunk = order[place]
        path, mine = paths[chunk], size[chunk]
        if not _needs_rerouting(path, load, prices[0], kind):
            continue
        if rerouted == most:
            return place
        rerouted += 1
        _add(load, path, -mine, kind, share)
        if mine != priced:
            for each in range(len(load)):
                cost[each] = _cost(each, mine, load, prices)
            cost[len(load)] = WAITING
            priced = mine
        else:
            _reprice(path, mine, load, prices, kind, cost)
        _cheapest(network, cost, start[chunk], distance, parent)
        write_path(path, parent, network[0], start[chunk], end[chunk])
        _add(load, path, mine, kind, share)
        _reprice(path, mine, load, prices, kind, cost)
    return len(order)


@njit(cache=True)
def _needs_rerouting(path: Ints, load: Floats, budget: Floats, kind: Ints) -> bool:
    if path[0] == NOTHING:
        return True
    for link in path:
        if link == NOTHING:
            break
        each = kind[link]
        if each < len(load) and load[each] > budget[each] + 1e-9 * max(1.0, budget[each]):
            return True
    return False


@njit(cache=True)
def _cost(
    kind: int, size: float, load: Floats, prices: tuple[Floats, Floats, Floats, float]
) -> float:
    """Return what a link of a class costs a chunk.

    What is over the budget counts in chunks, and in budgets where not even one chunk fits: a link
    that is a million times too narrow delays its step a million times.
    """
    budget, share, history, pressure = prices
    mine = size * share[kind]
    over = max(0.0, load[kind] + mine - budget[kind]) / max(min(mine, budget[kind]), FINEST * mine)
    return float((1.0 + history[kind]) * (1.0 + pressure * over))


@njit(cache=True)
def _reprice(
    path: Ints,
    size: float,
    load: Floats,
    prices: tuple[Floats, Floats, Floats, float],
    kind: Ints,
    cost: Floats,
) -> None:
    """Bring the costs of the classes that a path uses up to date."""
    for link in path:
        if link == NOTHING:
            break
        if kind[link] < len(load):
            cost[kind[link]] = _cost(kind[link], size, load, prices)


@njit(cache=True)
def _cheapest(
    network: tuple[Ints, Ints, Ints, int, int],
    cost: Floats,
    start: int,
    distance: Floats,
    parent: Ints,
) -> None:
    """Fill the cheapest way from `start` to every node, step by step.

    Links between terminals lead to the next moment, so one pass does; links to and from switches
    stay within the step, which is passed over again until nothing improves.
    """
    tail, head, kind, steps, per_step = network
    distance[:] = np.inf
    distance[start] = 0.0
    waiting = (len(tail) - steps * per_step) // steps
    first_switch = (steps + 1) * waiting
    for step in range(steps):
        improved = True
        while improved:
            improved = False
            for link in range(step * per_step, (step + 1) * per_step):
                at, to = tail[link], head[link]
                reach = distance[at] + cost[kind[link]]
                if reach < distance[to]:
                    distance[to] = reach
                    parent[to] = link
                    improved |= to >= first_switch
        for link in range(
            steps * per_step + step * waiting, steps * per_step + (step + 1) * waiting
        ):
            at, to = tail[link], head[link]
            if distance[at] + WAITING < distance[to]:
                distance[to] = distance[at] + WAITING
                parent[to] = link


def without_detours(expansion: Expansion, paths: Ints) -> Ints:
    """Return the same paths without what leads back to where the chunk has been, or stays there.

    A chunk that returns to a terminal could have waited there, and one that returns to a switch
    within a step could have gone on at once. So no load grows, no chunk leaves its destination, and
    what is left are the hops: waiting leads nowhere, and goes too.
    """
    terminals = len(expansion.starts)
    node = np.arange(expansion.graph.nodes)
    # All copies of a terminal are one place; a switch stores nothing, so each of its copies is one.
    stored = node < (expansion.steps + 1) * terminals
    place = np.where(stored, node % terminals, node)
    found = np.full_like(paths, NOTHING)
    _skip_detours(paths, place[expansion.graph.tail], place[expansion.graph.head], found)
    return found


@njit(cache=True)
def _skip_detours(paths: Ints, tail: Ints, head: Ints, found: Ints) -> None:
    nowhere = -1
    depth = np.full(max(tail.max(), head.max()) + 1, nowhere)
    for chunk in range(len(paths)):
        length = 0
        for hop, link in enumerate(paths[chunk]):
            if link == NOTHING:
                break
            if hop == 0:
                depth[tail[link]] = 0
            if depth[head[link]] == nowhere:
                found[chunk, length] = link
                length += 1
                depth[head[link]] = length
                continue
            while length > depth[head[link]]:
                length -= 1
                depth[head[found[chunk, length]]] = nowhere
                found[chunk, length] = NOTHING
        if paths[chunk, 0] != NOTHING:
            depth[tail[paths[chunk, 0]]] = nowhere
        for link in found[chunk, :length]:
            depth[head[link]] = nowhere
