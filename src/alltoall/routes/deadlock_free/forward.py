"""Whole chunks on ways forward in an order of channels: best responses to prices that grow steeper.

The potential, and how it grows steeper, are those of `routes.best_response`. Here a tree of
cheapest ways is found by reading the order once: a way to the head of a channel is one to its tail
that came earlier, and the channel. No heap is needed, so a tree costs one look at each channel.
"""

from dataclasses import dataclass

import numpy as np
from numba import njit

from alltoall.ir.arrays import Floats, Ints
from alltoall.ir.paths import NOTHING
from alltoall.paths.any_path import Table
from alltoall.routes.best_response import FIRST_STEEPNESS, LAST_STEEPNESS
from alltoall.routes.best_response_loops import LARGEST_PRICE_EXPONENT
from alltoall.routes.deadlock_free.lanes import Lanes
from alltoall.settings import Late

FORWARD_RISING_PASSES = 40
"""Passes over all sources while the steepness rises."""

LAST_PASSES_SHARE = 0.25
"""Passes at the last steepness at most, for each while it rises."""

MISSING_PASSES = 4
"""Passes over chunks that had no way, before all others respond too."""

RESPONDING_PASSES = 8
"""Passes over all chunks, most of which are well placed, while the steepness rises."""

MORE_HOPS = 6
"""Room for ways of so many hops more than the longest of fewest hops."""


@dataclass(frozen=True, eq=False)
class Placed:
    """A row of channels per chunk, and then `NOTHING`; the loads, and lengths that show the worst.

    `lengths` is what the potential charged for each link, in the mean of the later passes, scaled
    so that capacity times length adds up to 1.
    """

    table: Table
    load: Floats
    lengths: Floats
    time: float


def place_forward(
    lanes: Lanes,
    order: Ints,
    chunks: tuple[Ints, Ints, Floats],
    goal: float,
    late: Late,
    passes: int = FORWARD_RISING_PASSES,
) -> Placed | None:
    """Return a way forward for each chunk, None if there is none for some.

    Chunks are sources, destinations and sizes, sorted by source; `goal` is a time that is good
    enough, and in so many passes prices grow steeper. When it is `late`, what was found so far is
    returned.
    """
    capacity = lanes.problem.topology.capacity
    fabric = _fabric(lanes, order)
    longest = _most_hops(fabric, chunks)
    if longest == 0:
        return None
    table = np.full((len(chunks[0]), longest + MORE_HOPS), NOTHING, dtype=np.int32)
    load, lengths = np.zeros(len(capacity)), np.zeros(len(capacity))
    _respond(fabric, chunks, (np.zeros(len(capacity)), 0.0), table, load)
    last = _last_steepness(lanes, chunks, goal)
    rising = np.geomspace(FIRST_STEEPNESS, last, passes)
    for index, steepness in enumerate([*rising, *[last] * int(LAST_PASSES_SHARE * passes)]):
        time = float((load / capacity).max())
        if time <= goal * (1 + 1e-9) or late():
            break
        moved = _respond(fabric, chunks, (steepness / (time * capacity), steepness), table, load)
        if 2 * index >= passes:
            price = np.exp(steepness * (load / (load / capacity).max() / capacity - 1)) / capacity
            lengths += price / float(price @ capacity)
        if not moved and index >= passes:
            break
    total = float(lengths @ capacity)
    return Placed(table, load, lengths / (total or 1.0), float((load / capacity).max()))


def respond_forward(
    lanes: Lanes,
    order: Ints,
    chunks: tuple[Ints, Ints, Floats],
    table: Table,
    goal: float,
    late: Late,
) -> Table | None:
    """Return ways forward near to those of a table, whose empty rows are chunks without one.

    First only these are placed, then all chunks respond until the time is no more than `goal`.
    Return None if some have no way, or none that fits in a row. When it is `late`, what was found
    so far is returned.
    """
    capacity, fabric = lanes.problem.topology.capacity, _fabric(lanes, order)
    used = table != NOTHING
    size = np.repeat(chunks[2], used.sum(axis=1))
    load = np.bincount(lanes.link[table[used]], size, len(capacity)).astype(np.float64)
    last = _last_steepness(lanes, chunks, goal)
    missing = np.flatnonzero(table[:, 0] == NOTHING)
    some, rows = tuple(each[missing] for each in chunks), table[missing]
    _respond(fabric, some, (np.zeros(len(capacity)), 0.0), rows, load)
    if (rows[:, 0] == NOTHING).any():
        return None
    for _ in range(MISSING_PASSES):
        if (load / capacity).max() <= goal * (1 + 1e-9) or late():
            break
        _respond(fabric, some, (last / (goal * capacity), last), rows, load)
    table[missing] = rows
    best, least = table.copy(), float((load / capacity).max())
    for steepness in np.geomspace(10 * FIRST_STEEPNESS, last, RESPONDING_PASSES):
        if least <= goal * (1 + 1e-9) or late():
            break
        scale = steepness / (float((load / capacity).max()) * capacity)
        _respond(fabric, chunks, (scale, steepness), table, load)
        if (load / capacity).max() < least:
            best, least = table.copy(), float((load / capacity).max())
    return best


def _fabric(lanes: Lanes, order: Ints) -> tuple[Ints, Ints, Ints, Ints, Ints]:
    """Return what the compiled loops ask for: the order, ends, links and terminals."""
    return np.ascontiguousarray(order), *lanes.ends, lanes.link, lanes.terminals


def _last_steepness(lanes: Lanes, chunks: tuple[Ints, Ints, Floats], goal: float) -> float:
    """Return the steepness at which one chunk more or less on a link decides."""
    fit = goal * float(np.quantile(lanes.problem.topology.capacity, 0.5)) / float(chunks[2].mean())
    return min(LAST_STEEPNESS, max(10 * FIRST_STEEPNESS, fit))


@njit(cache=True)
def _most_hops(
    fabric: tuple[Ints, Ints, Ints, Ints, Ints], chunks: tuple[Ints, Ints, Floats]
) -> int:
    """Return the most hops of any way of fewest hops, 0 if some chunk has no way."""
    order, tails, heads, link, terminals = fabric
    source, destination, _ = chunks
    nodes = max(tails.max(), heads.max()) + 1
    cost, last = np.empty(nodes), np.empty(nodes, np.int64)
    before = np.empty(len(order), np.int64)
    price = np.ones(link.max() + 1)
    longest, of = 0.0, -1
    for chunk in range(len(source)):
        if source[chunk] != of:
            of = source[chunk]
            _read(order, tails, heads, link, price, terminals[:, of], cost, last, before)
        hops = cost[_end(terminals[:, destination[chunk]], cost)]
        if hops == np.inf:
            return 0
        longest = max(longest, hops)
    return int(longest)


@njit(cache=True)
def _read(
    order: Ints,
    tails: Ints,
    heads: Ints,
    link: Ints,
    price: Floats,
    begin: Ints,
    cost: Floats,
    last: Ints,
    before: Ints,
) -> None:
    """Find cheapest ways: the place of the last channel to each node, and of the one before it."""
    cost[:] = np.inf
    cost[begin] = 0.0
    last[:] = NOTHING
    for place in range(len(order)):
        channel = order[place]
        reached = cost[tails[channel]] + price[link[channel]]
        if reached < cost[heads[channel]]:
            cost[heads[channel]] = reached
            before[place] = last[tails[channel]]
            last[heads[channel]] = place


@njit(cache=True)
def _end(copies: Ints, cost: Floats) -> int:
    """Return the copy of a terminal with the cheapest way."""
    best = copies[0]
    for each in copies[1:]:
        if cost[each] < cost[best]:
            best = each
    return int(best)


@njit(cache=True)
def _respond(
    fabric: tuple[Ints, Ints, Ints, Ints, Ints],
    chunks: tuple[Ints, Ints, Floats],
    prices: tuple[Floats, float],
    table: Table,
    load: Floats,
) -> int:
    """Let each chunk take the cheapest way if that lowers the potential; return how many moved.

    A chunk without a way takes the first one, which has fewest hops at a steepness of 0.
    """
    order, tails, heads, link, terminals = fabric
    source, destination, size = chunks
    nodes = max(tails.max(), heads.max()) + 1
    cost, last = np.empty(nodes), np.empty(nodes, np.int64)
    before = np.empty(len(order), np.int64)
    price = np.empty(len(load))
    way = np.empty(table.shape[1], np.int32)
    moved, of = 0, -1
    for chunk in range(len(source)):
        if source[chunk] != of:
            of = source[chunk]
            for each in range(len(load)):
                price[each] = _rise(prices, each, load[each], size[chunk])
            _read(order, tails, heads, link, price, terminals[:, of], cost, last, before)
        place = last[_end(terminals[:, destination[chunk]], cost)]
        hops = _walk(order, before, place, way)
        if hops == 0:
            continue
        mine = table[chunk]
        _shift(mine, link, load, -size[chunk])
        here = _cost(mine, link, load, size[chunk], prices)
        if mine[0] == NOTHING or _cost(way, link, load, size[chunk], prices) < here * (1 - 1e-9):
            mine[:] = way
            moved += 1
        _shift(mine, link, load, size[chunk])
    return moved


@njit(cache=True)
def _walk(order: Ints, before: Ints, place: int, way: Table) -> int:
    """Write the channels of a way that ends at a place; return its hops, 0 if it is too long."""
    hops, each = 0, place
    while each != NOTHING:
        hops += 1
        each = before[each]
    if hops > len(way):
        return 0
    way[hops:] = NOTHING
    for hop in range(hops - 1, -1, -1):
        way[hop] = order[place]
        place = before[place]
    return hops


@njit(cache=True)
def _rise(prices: tuple[Floats, float], link: int, load: float, size: float) -> float:
    """Return what a chunk more on a link adds to the potential, 1 at a steepness of 0."""
    scale, steepness = prices
    if steepness == 0.0:
        return 1.0
    height = min(scale[link] * load - steepness, LARGEST_PRICE_EXPONENT)
    return float(np.exp(height) * np.expm1(min(scale[link] * size, LARGEST_PRICE_EXPONENT)))


@njit(cache=True)
def _shift(way: Table, link: Ints, load: Floats, size: float) -> None:
    for channel in way:
        if channel == NOTHING:
            break
        load[link[channel]] += size


@njit(cache=True)
def _cost(way: Table, link: Ints, load: Floats, size: float, prices: tuple[Floats, float]) -> float:
    total = 0.0
    for channel in way:
        if channel == NOTHING:
            break
        total += _rise(prices, link[channel], load[link[channel]], size)
    return total
