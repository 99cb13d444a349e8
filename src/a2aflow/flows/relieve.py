"""Relief: a flow that was good is moved, path by path, off links that have become too full.

After a failure the last prices still prove nearly as much as before, and nearly all of the flow can
stay; but what the failed link carried now fills the links around it, and what others send over
these had better go elsewhere. So links have exponential prices,

    exp(steepness * (time of the link / target - 1)) / capacity,

and source by source whatever leads over a link that is too full moves to the cheapest path, if that
is cheaper than its own: the whole path from the source to where the flow ends, since a node that
lost a link has to be avoided from afar. The steepness rises from pass to pass, and what moves at
once is so little that no price changes much.

A pass costs one tree per source and a look at the paths over full links. Some passes are worth a
few steps of the first-order method each, but need no more to certify them: the flow stays exact.
"""

from typing import NamedTuple

import numpy as np
from numba import njit

from a2aflow.flows.exact import cancel_cycles
from a2aflow.flows.program import FlowProgram
from a2aflow.ir.arrays import Floats, Ints
from a2aflow.ir.paths import NOTHING
from a2aflow.paths.many_trees import LANES, shortest_trees
from a2aflow.paths.shortest import Adjacency
from a2aflow.settings import SolveSettings

STEEPNESS = (20.0, 30.0, 45.0, 67.0, 100.0, 150.0, 225.0, 340.0)
"""One for each pass: links whose times are a share of 1 / steepness apart differ by e in price."""

TARGET_SHARE, FULL_SHARE = 0.75, 0.75
"""Shares of the gap, above the bound: the time that prices are about, and when a link is full."""

EAGERNESS = 2.0
"""How much of a path's flow may move, next to the share by which its link is too full."""

GRAIN = 0.2
"""What moves at once changes no exponent of a price by more than this."""

MOST_MOVES = 8
"""Moves off one link, of one source, in one pass."""

LEAST_GAIN = 1e-3
"""A path has to be cheaper by this share: a tie is no reason to move."""

LARGEST_EXPONENT = 60.0
"""Beyond this a price is out of the question anyway."""

DUST = 1e-12
"""Flow below this, in units of a mean demand, is rounding."""

BLOCKS_OF_SOURCES = 16
"""Blocks, at least, into which few sources are cut: prices are fresh at the beginning of each."""


class Roads(NamedTuple):
    """Links by node, out of it and into it, their ends and classes.

    `toll` is what a unit of flow on a link adds to the time of its class, `capacity` is per link.
    """

    out: tuple[Ints, Ints]
    into: tuple[Ints, Ints]
    tail: Ints
    head: Ints
    kind: Ints
    toll: Floats
    capacity: Floats


class Pressure(NamedTuple):
    """The time that prices are about, the one above which a link is full, and the steepness."""

    target: float
    full: float
    steepness: float


def relieve(
    program: FlowProgram,
    volumes: Floats,
    bound: float,
    settings: SolveSettings,
    passes: tuple[float, ...] = STEEPNESS,
) -> tuple[float, ...]:
    """Move exact volumes [groups, links], in place, until their time is within the gap of a bound.

    It ends early, and returns the passes that are left, if these would not be enough at the pace
    of the last one: then another bound is worth a try. The program has one budget, as that of
    all-to-all flows has.
    """
    roads = _roads(program)
    busy = program.busy(program.weight @ volumes)
    target, full = (bound * (1 + share * settings.gap) for share in (TARGET_SHARE, FULL_SHARE))
    for index, steepness in enumerate(passes):
        above = busy.max() / bound - 1
        if above <= settings.gap or settings.out_of_time():
            break
        _pass(program, roads, volumes, busy, Pressure(target, full, steepness))
        left = busy.max() / bound - 1
        settings.report(f"moving paths off full links: certified gap {left:.2e}")
        others = passes[index + 1 :]
        if index > 0 and left * (left / above) ** len(others) > settings.gap:
            return others
    return ()


def _roads(program: FlowProgram) -> Roads:
    graph, adjacency = program.graph, Adjacency(program.graph)
    toll = 1 / (program.class_size * program.class_capacity)
    return Roads(
        adjacency.outgoing,
        adjacency.incoming,
        graph.tail,
        graph.head,
        program.link_class,
        program.link_lengths(toll),
        graph.capacity,
    )


def _pass(
    program: FlowProgram, roads: Roads, volumes: Floats, busy: Floats, pressure: Pressure
) -> None:
    """Let all sources answer to prices once, block by block."""
    groups = len(program.weight)
    block = min(LANES, max(1, groups // BLOCKS_OF_SOURCES))
    for low in range(0, groups, block):
        mine = slice(low, low + block)
        _answer(
            roads, program.groups.start[mine], program.weight[mine], volumes[mine], busy, pressure
        )


@njit(cache=True)
def _answer(
    roads: Roads, root: Ints, weight: Floats, flows: Floats, busy: Floats, pressure: Pressure
) -> None:
    """Move flow of some sources off full links, to the trees of prices as they are before."""
    nodes, links = len(roads.out[0]) - 1, len(roads.tail)
    price = np.empty(links)
    for link in range(links):
        price[link] = _price(roads, busy, pressure, link)
    distance = np.empty((nodes, len(root)))
    parent = np.full(distance.shape, NOTHING, dtype=np.int32)
    shortest_trees(roads.out, roads.head, price, root, distance, parent)
    for group in range(len(root)):
        into, flow = parent[:, group].astype(np.int64), flows[group]
        if _move(roads, root[group], into, weight[group], flow, busy, price, pressure):
            before = flow.copy()
            cancel_cycles(flow, nodes, root[group], roads.out[0], roads.out[1], roads.head)
            for link in range(links):
                less = (before[link] - flow[link]) * weight[group]
                busy[roads.kind[link]] -= less * roads.toll[link]


@njit(cache=True, inline="always")
def _price(roads: Roads, busy: Floats, pressure: Pressure, link: int) -> float:
    height = pressure.steepness * (busy[roads.kind[link]] / pressure.target - 1)
    return float(np.exp(min(height, LARGEST_EXPONENT)) / roads.capacity[link])


@njit(cache=True)
def _move(
    roads: Roads,
    root: int,
    into: Ints,
    weight: float,
    flow: Floats,
    busy: Floats,
    price: Floats,
    pressure: Pressure,
) -> bool:
    """Move flow of one source off all links that are full; return whether any moved."""
    nodes, moved = len(into), False
    path = np.empty(2 * nodes, dtype=np.int64)
    way = np.empty(nodes, dtype=np.int64)
    for link in range(len(flow)):
        time = busy[roads.kind[link]]
        if not (flow[link] > 0.0 and time > pressure.full):
            continue
        left = flow[link] * min(1.0, EAGERNESS * (1 - pressure.full / time))
        for _ in range(MOST_MOVES):
            if left <= DUST or flow[link] <= 0.0:
                break
            hops, end = _path_over(roads, root, link, flow, price, path)
            steps = _way_to(roads.tail, into, root, end, way)
            dear, cheap, amount, heaviest = 0.0, 0.0, left, 0.0
            for hop in range(hops):
                dear += price[path[hop]]
                amount = min(amount, flow[path[hop]])
            for hop in range(steps):
                cheap += price[way[hop]]
                heaviest = max(heaviest, weight * roads.toll[way[hop]])
            if hops == 0 or cheap >= (1 - LEAST_GAIN) * dear:
                break
            amount = min(amount, GRAIN * pressure.target / (pressure.steepness * heaviest))
            _shift(roads, path, hops, -amount, weight, flow, busy, price, pressure)
            _shift(roads, way, steps, amount, weight, flow, busy, price, pressure)
            left, moved = left - amount, True
    return moved


@njit(cache=True, inline="always")
def _path_over(
    roads: Roads, root: int, link: int, flow: Floats, price: Floats, path: Ints
) -> tuple[int, int]:
    """Find a dear path of the flow over a link, from the root to where it ends: hops, and end.

    There is none, of 0 hops, where the flow turns in circles or rounding broke it off.
    """
    path[0] = link
    hops, begin = _walk(roads.into, roads.tail, flow, price, path, 1, roads.tail[link])
    if begin != root:
        return 0, root
    hops, end = _walk(roads.out, roads.head, flow, price, path, hops, roads.head[link])
    return (hops, end) if end >= 0 else (0, root)


@njit(cache=True, inline="always")
def _walk(
    at: tuple[Ints, Ints],
    other: Ints,
    flow: Floats,
    price: Floats,
    path: Ints,
    hops: int,
    node: int,
) -> tuple[int, int]:
    """Go on from a node over the dearest link with flow, while there is one: hops, and last node.

    A walk that is longer than `path` ends at no node, which is negative.
    """
    while hops < len(path):
        best = -1
        for index in range(at[0][node], at[0][node + 1]):
            link = at[1][index]
            if flow[link] > 0.0 and (best < 0 or price[link] > price[best]):
                best = link
        if best < 0:
            return hops, node
        path[hops] = best
        hops += 1
        node = other[best]
    return hops, -1


@njit(cache=True, inline="always")
def _way_to(tail: Ints, into: Ints, root: int, node: int, way: Ints) -> int:
    """Write the path of a tree to a node; return its hops."""
    hops = 0
    while node != root:
        way[hops] = into[node]
        node = tail[into[node]]
        hops += 1
    return hops


@njit(cache=True, inline="always")
def _shift(
    roads: Roads,
    path: Ints,
    hops: int,
    amount: float,
    weight: float,
    flow: Floats,
    busy: Floats,
    price: Floats,
    pressure: Pressure,
) -> None:
    """Add an amount to the flow of all links of a path, with their times and prices."""
    for hop in range(hops):
        link = path[hop]
        flow[link] += amount
        if flow[link] < DUST:
            flow[link] = 0.0
        busy[roads.kind[link]] += amount * weight * roads.toll[link]
        price[link] = _price(roads, busy, pressure, link)
