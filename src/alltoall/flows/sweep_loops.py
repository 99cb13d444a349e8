"""The compiled loops of sweeps (`flows.sweeps`): sources move flow from dear paths to cheap ones.

A node that a source reaches over several links gets its flow over paths of different cost. The
dearest one in use and the cheapest one there is part somewhere upstream, and flow moves from the
one branch to the other until both cost the same, by Newton's rule: prices rise with the load, so it
is known by how much a unit that moves lessens the difference. Prices follow every move at once, and
no move changes what arrives: flows stay as exact as they were.
"""

from typing import NamedTuple

import numpy as np
from numba import njit, prange

from alltoall.flows.exact import cancel_cycles
from alltoall.flows.first_order_loops import level_of
from alltoall.ir.arrays import Floats, Ints
from alltoall.ir.paths import NOTHING
from alltoall.paths.many_trees import shortest_trees

EQUAL_COSTS = 1e-7
"""Paths whose costs differ by less than this share count as equal."""

NO_PRICE = 1e-9
"""What a link costs at least, next to a mean one: no cheapest path turns in circles."""


class Roads(NamedTuple):
    """Links by node, out of it and into it, their ends and classes.

    `toll` is what a unit of flow on a link adds to the time of its class.
    """

    out_start: Ints
    out_link: Ints
    in_start: Ints
    in_link: Ints
    tail: Ints
    head: Ints
    kind: Ints
    toll: Floats


class Pressure(NamedTuple):
    """By class of links: its share of all prices, and how fast its price rises with its time.

    A price is the share plus `slope` times what the time is above a level, or nothing if that is
    negative; the level is the one at which all prices sum to 1.
    """

    share: Floats
    slope: Floats


class Market(NamedTuple):
    """The times of classes and what links cost, as they are now, and the level of prices."""

    busy: Floats
    cost: Floats
    level: float


class Notes(NamedTuple):
    """Of one source: by node the cost of its dearest path in use, and the last link of that.

    Nodes that are `marked` are on a cheapest path; `passes` counts by class how often a move does.
    """

    dearest: Floats
    over: Ints
    marked: Ints
    passes: Ints


@njit(cache=True, parallel=True)
def wave(
    roads: Roads,
    pressure: Pressure,
    groups: tuple[Ints, Floats, Floats],
    flows: Floats,
    busy: Floats,
    cuts: Ints,
    crowd: float,
) -> Floats:
    """Let the parts of the groups between cuts answer to prices at once, each for itself.

    Each part acts as if what it moves were moved `crowd` times, because others do the same. Return
    by part how times change, and in the end the sum of demands times distances.
    """
    root, weight, wanted = groups
    parts, classes = len(cuts) - 1, len(busy)
    told = np.zeros((parts, classes + 1))
    for part in prange(parts):
        low, high = cuts[part], cuts[part + 1]
        if low < high:
            mine = busy.copy()
            told[part, classes] = _answer(
                roads,
                pressure,
                (root[low:high], crowd * weight[low:high], wanted[low:high]),
                flows[low:high],
                mine,
            )
            told[part, :classes] = mine - busy
    return told / crowd


@njit(cache=True)
def _answer(
    roads: Roads,
    pressure: Pressure,
    groups: tuple[Ints, Floats, Floats],
    flows: Floats,
    busy: Floats,
) -> float:
    """Let some groups answer to prices one after the other; return their demands times distances.

    Cheapest paths are those before any of them moves.
    """
    root, weight, wanted = groups
    nodes, out = len(roads.out_start) - 1, (roads.out_start, roads.out_link)
    market = _open(roads, pressure, busy)
    distance = np.empty((nodes, len(root)))
    parent = np.full(distance.shape, NOTHING, dtype=np.int32)
    shortest_trees(out, roads.head, market.cost, root, distance, parent)
    notes = Notes(
        np.empty(nodes),
        np.empty(nodes, dtype=np.int64),
        np.full(nodes, NOTHING, dtype=np.int64),
        np.zeros(len(busy) + 1, dtype=np.int64),
    )
    total = 0.0
    for group in range(len(root)):
        flow, into = flows[group], parent[:, group].astype(np.int64)
        order = cancel_cycles(flow, nodes, root[group], out[0], out[1], roads.head)
        _find_dearest(roads, market.cost, flow, root[group], order, notes)
        for node in range(nodes):
            if wanted[group, node] > 0.0:
                total += weight[group] * wanted[group, node] * distance[node, group]
        for node in order:
            if node == root[group] or notes.over[node] == into[node]:
                continue
            if notes.dearest[node] - distance[node, group] > EQUAL_COSTS * notes.dearest[node]:
                _even_out(
                    roads, pressure, market, weight[group], flow, (root[group], node), into, notes
                )
    return total


@njit(cache=True)
def _open(roads: Roads, pressure: Pressure, busy: Floats) -> Market:
    """Return the market at given times."""
    share, slope = pressure
    market = Market(
        busy, np.empty(len(roads.tail)), level_of(share + slope * busy, slope, np.ones(len(share)))
    )
    for link in range(len(market.cost)):
        market.cost[link] = _cost(roads, pressure, market, link)
    return market


@njit(cache=True, inline="always")
def _cost(roads: Roads, pressure: Pressure, market: Market, link: int) -> float:
    """Return what a unit of flow on a link costs; where nothing is shared, next to nothing."""
    kind, classes = roads.kind[link], len(market.busy)
    price = NO_PRICE / classes
    if kind < classes:
        rise = pressure.slope[kind] * (market.busy[kind] - market.level)
        price = max(price, pressure.share[kind] + rise)
    return float(price * roads.toll[link])


@njit(cache=True)
def _find_dearest(
    roads: Roads, cost: Floats, flow: Floats, root: int, order: Ints, notes: Notes
) -> None:
    """Note the cost of the dearest path in use to each node, and the link by which it comes."""
    notes.dearest[root] = 0.0
    for place in range(len(order) - 1, -1, -1):
        node = order[place]
        if node == root:
            continue
        most = -1.0
        for index in range(roads.in_start[node], roads.in_start[node + 1]):
            link = roads.in_link[index]
            if flow[link] > 0.0 and notes.dearest[roads.tail[link]] + cost[link] > most:
                most = notes.dearest[roads.tail[link]] + cost[link]
                notes.over[node] = link
        notes.dearest[node] = most


@njit(cache=True, inline="always")
def _even_out(
    roads: Roads,
    pressure: Pressure,
    market: Market,
    weight: float,
    flow: Floats,
    ends: tuple[int, int],
    into: Ints,
    notes: Notes,
) -> None:
    """Move flow to a node from its dearest path to its cheapest, until both cost the same."""
    root, node = ends
    at = node
    while at != root:
        notes.marked[at] = node
        at = roads.tail[into[at]]
    notes.marked[root] = node
    at = roads.tail[notes.over[node]]
    while notes.marked[at] != node:
        at = roads.tail[notes.over[at]]
    branch = (at, node)
    dear, rise, most = _survey(roads, pressure, market, flow, branch, notes.over, notes.passes)
    cheap, more, _ = _survey(roads, pressure, market, flow, branch, into, notes.passes)
    amount = 0.0
    if dear > cheap:
        amount = min(most, (dear - cheap) / max(weight * (rise + more), np.finfo(np.float64).tiny))
    _shift(roads, pressure, market, weight, flow, branch, notes.over, -amount, notes.passes)
    _shift(roads, pressure, market, weight, flow, branch, into, amount, notes.passes)
    at = node
    while at != root:
        notes.marked[at] = NOTHING
        at = roads.tail[into[at]]
    notes.marked[root] = NOTHING


@njit(cache=True, inline="always")
def _survey(
    roads: Roads,
    pressure: Pressure,
    market: Market,
    flow: Floats,
    branch: tuple[int, int],
    into: Ints,
    passes: Ints,
) -> tuple[float, float, float]:
    """Return what a branch costs, how fast that changes with its flow, and its least flow.

    A class that is passed k times rises k times as fast, on k links: k * k in all.
    """
    cost, rise, least = 0.0, 0.0, np.inf
    at = branch[1]
    while at != branch[0]:
        link = into[at]
        kind = roads.kind[link]
        passes[kind] += 1
        cost += market.cost[link]
        least = min(least, flow[link])
        if kind < len(market.busy):
            rise += (2 * passes[kind] - 1) * pressure.slope[kind] * roads.toll[link] ** 2
        at = roads.tail[link]
    return cost, rise, least


@njit(cache=True, inline="always")
def _shift(
    roads: Roads,
    pressure: Pressure,
    market: Market,
    weight: float,
    flow: Floats,
    branch: tuple[int, int],
    into: Ints,
    amount: float,
    passes: Ints,
) -> None:
    """Add an amount to the flow of a branch, with times and costs; forget what passed."""
    at = branch[1]
    while at != branch[0]:
        link = into[at]
        kind = roads.kind[link]
        passes[kind] = 0
        flow[link] += amount
        if kind < len(market.busy):
            market.busy[kind] += weight * amount * roads.toll[link]
            market.cost[link] = _cost(roads, pressure, market, link)
        at = roads.tail[link]
