"""Sums of distances, fast: sets of nodes are words of 64 bits, and all sources advance at once.

`reach[v]` is the set of nodes that v reaches in so many hops, as bits. One more hop is
`reach[v] |= reach[w]` over the successors w of v, so a level costs links x nodes / 64 operations
whatever is reached: microseconds below 128 nodes, some ten of them at 512. What is still missing
after k hops is at a distance above k, so the sum of distances is the sum of what is missing over
all k; a weight per level makes far pairs cost more than their hops.
"""

from typing import Any

import numpy as np
from numba import njit, types
from numba.extending import intrinsic
from numpy.typing import NDArray

from alltoall.ir.arrays import Floats, Ints

Words = NDArray[np.uint64]

WORD = 64
"""Bits of a word."""

UNREACHED = 1000.0
"""What a pair that no path joins costs: more than any distance that a search would accept."""


@intrinsic
def ones_in(_: Any, word: Any) -> Any:
    """Count the bits of a word that are set: one instruction of the processor."""

    def generated(_context: Any, builder: Any, _signature: Any, given: Any) -> Any:
        return builder.ctpop(given[0])

    return types.int64(types.uint64), generated if word == types.uint64 else None


def words_for(nodes: int) -> int:
    """Return how many words a set of nodes takes."""
    return -(-nodes // WORD)


def room_for(nodes: int) -> Words:
    """Return the memory that `distance_cost` works in."""
    return np.empty((2, nodes, words_for(nodes)), dtype=np.uint64)


@njit(cache=True)
def _only_itself(reach: Words) -> None:
    """Let every node reach itself and no other."""
    reach[:] = 0
    for node in range(len(reach)):
        reach[node, node >> 6] = np.uint64(1) << np.uint64(node & 63)


@njit(cache=True)
def distance_cost(out: Ints, nodes: int, weight: Floats, room: Words, limit: float) -> float:
    """Return the weighted sum of all distances, or some number above `limit` if that is.

    Row v of `out` has the successors of v, and v itself where there are fewer. A pair at distance k
    costs the sum of the first k weights.
    """
    words = room.shape[2]
    now, then = room[0], room[1]
    _only_itself(now)
    every, level, cost = nodes * nodes, 0, 0.0
    missing: int = every - nodes
    while missing > 0:
        cost += float(weight[level]) * missing
        if cost > limit:
            return cost
        count = 0
        for node in range(nodes):
            for word in range(words):
                found = now[node, word]
                for port in range(out.shape[1]):
                    found |= now[out[node, port], word]
                then[node, word] = found
                count += ones_in(found)
        if every - count == missing:
            return cost + UNREACHED * nodes * missing
        missing = every - count
        now, then = then, now
        level = min(level + 1, len(weight) - 1)
    return cost


@njit(cache=True)
def demand_cost(out: Ints, nodes: int, demand: Floats, room: Words, limit: float) -> float:
    """Return the sum of demand times distance over all pairs, or a number above `limit`.

    Like `distance_cost`, but each pair counts when it is reached, with what it sends.
    """
    words = room.shape[2]
    now, then = room[0], room[1]
    _only_itself(now)
    cost, depth, left = 0.0, 0, nodes * nodes - nodes
    while left > 0:
        depth += 1
        before = left
        for node in range(nodes):
            for word in range(words):
                found = now[node, word]
                for port in range(out.shape[1]):
                    found |= now[out[node, port], word]
                then[node, word] = found
                fresh = found & ~now[node, word]
                while fresh:
                    bit = ones_in((fresh & (~fresh + np.uint64(1))) - np.uint64(1))
                    cost += depth * demand[node, word * 64 + bit]
                    left -= 1
                    fresh &= fresh - np.uint64(1)
        if cost > limit:
            return cost
        if left == before:
            return cost + UNREACHED * nodes * left
        now, then = then, now
    return cost


@njit(cache=True)
def failure_cost(out: Ints, nodes: int, both: bool, weight: Floats, room: Words) -> float:
    """Return the mean of `distance_cost` over all failures of one link, or cable if `both` ways."""
    total, failures = 0.0, 0
    for node in range(nodes):
        for port in range(out.shape[1]):
            other = out[node, port]
            if other == node or (both and other < node):
                continue
            out[node, port] = node
            back = 0
            if both:
                while out[other, back] != node:
                    back += 1
                out[other, back] = other
            total += distance_cost(out, nodes, weight, room, np.inf)
            failures += 1
            out[node, port] = other
            if both:
                out[other, back] = node
    return total / failures
