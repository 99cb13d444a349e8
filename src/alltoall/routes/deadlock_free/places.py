"""Better orders of channels: take one out, and put it back where the ways of all pairs gain most.

How good an order is follows from link lengths: the sum over all pairs of demand times the shortest
way forward, which no routes in this order can beat. For a channel from u to v that is
taken out, the ways over it are made of a way to u in what comes before its place and a way from v
in what comes after. The latest place before a channel out of v is as good as any earlier one that
has the same channels after it, so there are no more places to weigh than v has channels out. One
reading of the order forwards and one backwards gives the distances at all of them.

A move costs two readings of the order for all terminals, and all pairs times the places. Numbers
are of single precision, so that more fit in a vector.
"""

import numpy as np
from numba import njit
from numpy.typing import NDArray

from alltoall.ir.arrays import Ints

Singles = NDArray[np.float32]


@njit(cache=True)
def improve(
    order: Ints,
    ends: tuple[Ints, Ints],
    terminals: Ints,
    lengths: Singles,
    wanted: Singles,
    moves: int,
    rng: np.random.Generator,
) -> None:
    """Give so many channels, drawn at random, their best place in the order, in place.

    `wanted` is by destination and source. Of places that are as good, any is taken.
    """
    count = terminals.shape[1]
    nodes = max(ends[0].max(), ends[1].max()) + 1
    ahead = np.empty((nodes, count), np.float32)
    back = np.empty((nodes, count), np.float32)
    now = np.empty((count, count), np.float32)
    for _ in range(moves):
        taken = int(rng.integers(0, len(order)))
        channel = order[taken]
        tail, head = ends[0][channel], ends[1][channel]
        places = _places(order, taken, ends[0], head)
        to_tail = np.empty((len(places), count), np.float32)
        from_head = np.empty((len(places), count), np.float32)
        _begin(ahead, terminals, lengths)
        _begin(back, terminals, lengths)
        _read_forward(order, taken, ends, lengths, places, tail, ahead, to_tail)
        _read_backward(order, taken, ends, lengths, places, head, back, from_head)
        _nearest(ahead, terminals, now)
        best, place = np.float32(-1.0), taken
        for each in range(len(places)):
            gain = _gain(now, wanted, to_tail[each], from_head[each], lengths[channel])
            if gain > best or (gain == best and rng.random() < 0.5):
                best, place = gain, places[each]
        _move(order, taken, place)


@njit(cache=True)
def total_distance(
    order: Ints,
    ends: tuple[Ints, Ints],
    terminals: Ints,
    lengths: Singles,
    wanted: Singles,
) -> float:
    """Return the sum of demand times shortest way forward."""
    count = terminals.shape[1]
    ahead = np.empty((max(ends[0].max(), ends[1].max()) + 1, count), np.float32)
    now = np.empty((count, count), np.float32)
    none = np.zeros(0, np.int64)
    _begin(ahead, terminals, lengths)
    _read_forward(order, -1, ends, lengths, none, 0, ahead, now)
    _nearest(ahead, terminals, now)
    total = 0.0
    for row in range(count):
        total += float((now[row] * wanted[row]).sum())
    return total


@njit(cache=True)
def _places(order: Ints, taken: int, tails: Ints, head: int) -> Ints:
    """Return the places before each other channel out of a node, and the end."""
    places = np.empty(len(order) + 1, np.int64)
    count = 0
    for place in range(len(order)):
        if place != taken and tails[order[place]] == head:
            places[count] = place
            count += 1
    places[count] = len(order)
    return places[: count + 1].copy()


@njit(cache=True)
def _begin(distance: Singles, terminals: Ints, lengths: Singles) -> None:
    """Set all distances to more than any way is long, and those at the terminals to 0."""
    distance[:] = np.float32(2.0) * lengths.sum()
    for copy in range(len(terminals)):
        for each in range(terminals.shape[1]):
            distance[terminals[copy, each], each] = np.float32(0.0)


@njit(cache=True)
def _read_forward(
    order: Ints,
    taken: int,
    ends: tuple[Ints, Ints],
    lengths: Singles,
    places: Ints,
    node: int,
    distance: Singles,
    seen: Singles,
) -> None:
    """Find the distances of all nodes from the terminals; note those of one node at all places."""
    tails, heads = ends
    noted = 0
    for place in range(len(order)):
        if noted < len(places) and place == places[noted]:
            seen[noted] = distance[node]
            noted += 1
        if place != taken:
            channel = order[place]
            _relax(distance[tails[channel]], distance[heads[channel]], lengths[channel])
    if noted < len(places):
        seen[noted] = distance[node]


@njit(cache=True)
def _read_backward(
    order: Ints,
    taken: int,
    ends: tuple[Ints, Ints],
    lengths: Singles,
    places: Ints,
    node: int,
    distance: Singles,
    seen: Singles,
) -> None:
    """Find the distances of all nodes to the terminals; note those of one node at all places."""
    tails, heads = ends
    noted = len(places) - 1
    seen[noted] = distance[node]
    noted -= 1
    for place in range(len(order) - 1, -1, -1):
        if place != taken:
            channel = order[place]
            _relax(distance[heads[channel]], distance[tails[channel]], lengths[channel])
        if noted >= 0 and place == places[noted]:
            seen[noted] = distance[node]
            noted -= 1


@njit(cache=True)
def _relax(near: Singles, far: Singles, length: np.float32) -> None:
    for each in range(len(near)):
        far[each] = min(far[each], near[each] + length)


@njit(cache=True)
def _nearest(distance: Singles, terminals: Ints, now: Singles) -> None:
    """Fill in the distance between all terminals, in the best of the copies."""
    for row in range(terminals.shape[1]):
        now[row] = distance[terminals[0, row]]
        for copy in range(1, len(terminals)):
            now[row] = np.minimum(now[row], distance[terminals[copy, row]])


@njit(cache=True, fastmath=True)
def _gain(
    now: Singles, wanted: Singles, to_tail: Singles, from_head: Singles, length: np.float32
) -> np.float32:
    """Return what all pairs gain by ways over a channel."""
    total = np.float32(0.0)
    for row in range(len(now)):
        rest = from_head[row] + length
        for column in range(len(to_tail)):
            gain = now[row, column] - (to_tail[column] + rest)
            total += wanted[row, column] * max(np.float32(0.0), gain)
    return total


@njit(cache=True)
def _move(order: Ints, taken: int, place: int) -> None:
    """Move what is at one position to before what is at another."""
    channel = order[taken]
    if place > taken:
        for each in range(taken, place - 1):
            order[each] = order[each + 1]
        order[place - 1] = channel
    else:
        for each in range(taken, place, -1):
            order[each] = order[each - 1]
        order[place] = channel
