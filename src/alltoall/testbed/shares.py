"""The bytes of a shard on each route: consecutive pieces that cover all shards.

`weights`, `paced` and `phases` give every route one piece in proportion to its weight; `chunks`
cuts each shard into equal chunks, and gives them to the routes in turn, each as many as its weight
says. Rounding is by largest remainders, so that the pieces of a shard always add up to it.
"""

from dataclasses import dataclass

import numpy as np

from alltoall.errors import UsageError
from alltoall.ir.arrays import Floats, Ints, inner_index
from alltoall.ir.chunks import PerShard
from alltoall.ir.routes import Routes
from alltoall.lowering.tables.routed_file import pair_sizes

WEIGHTS = ("weights", "chunks", "paced", "phases")
"""Ways to divide a shard among routes: by weight, by whole chunks, paced by weight, or in
phases."""

CHUNKS = 16
"""Chunks of a shard if the routes' weights have no common denominator."""

MOST_CHUNKS = 64
"""Chunks of a shard at most: weights in finer steps are rounded."""

BUFFER = 32 * 1024
"""Send buffer of a flow of mean size, per hop of it and of its acknowledgements.

It is small, so that queues are short. The rate of a flow is its buffer over its round trip: with
buffers in proportion to hops and bytes, all flows end together."""

LEAST_BUFFER = 16 * 1024
"""Least send buffer of a flow: two jumbo frames, or the second would wait for the first."""


@dataclass(frozen=True)
class Pieces:
    """Piece p is `length[p]` bytes of the shard of route `route[p]`, from `offset[p]` on.

    Pieces of a route are in the order in which it sends them.
    """

    route: Ints
    offset: Ints
    length: Ints

    def bytes_of(self, routes: int) -> Ints:
        """Return the bytes of each route."""
        found = np.zeros(routes, dtype=np.int64)
        np.add.at(found, self.route, self.length)
        return found

    def by_route(self, routes: int) -> list[list[tuple[int, int]]]:
        """Return the offsets and lengths of the pieces of each route."""
        found: list[list[tuple[int, int]]] = [[] for _ in range(routes)]
        rows = zip(self.route.tolist(), self.offset.tolist(), self.length.tolist(), strict=True)
        for route, offset, length in rows:
            found[route].append((offset, length))
        return found


def buffers_of(routes: Routes, back: Ints, cut: Pieces) -> list[int]:
    """Return the send buffer of each flow; `back` are the routes of acknowledgements."""
    carried = cut.bytes_of(routes.count)
    hops = routes.hops
    mean = carried[carried > 0].mean()
    share = BUFFER * (hops + hops[back]) / 2 * carried / mean
    sizes: list[int] = np.maximum(LEAST_BUFFER, share).astype(np.int64).tolist()
    return sizes


def pieces_of(routes: Routes, shard: PerShard, weights: str) -> Pieces:
    """Cut the shards of all pairs, for routes in file order."""
    if weights not in WEIGHTS:
        raise UsageError(f"weights {weights!r}; expected one of {', '.join(WEIGHTS)}")
    sizes = pair_sizes(routes.source, routes.destination)
    total = shard.of(routes.source, routes.destination)
    cut = (
        _in_chunks(routes, sizes, total) if weights == "chunks" else _at_once(routes, sizes, total)
    )
    some = cut.length > 0
    return Pieces(cut.route[some], cut.offset[some], cut.length[some])


def _at_once(routes: Routes, sizes: Ints, total: Ints) -> Pieces:
    length = divided(routes.weight, sizes, total)
    before = np.cumsum(length) - length
    first = np.repeat(np.cumsum(sizes) - sizes, sizes)
    return Pieces(np.arange(routes.count), before - before[first], length)


def _in_chunks(routes: Routes, sizes: Ints, total: Ints) -> Pieces:
    count = min(routes.denominator or CHUNKS, MOST_CHUNKS)
    chunks = np.where(routes.weight > 0, count, 0)
    number = divided(routes.weight, sizes, np.maximum.reduceat(chunks, _first(sizes))[_pair(sizes)])
    route = np.repeat(np.arange(routes.count), number)
    # The kth of n chunks of a route is due at (k + 1/2) / n of its shard: routes take turns.
    due = (inner_index(number) + 0.5) / number[route]
    pair = _pair(sizes)[route]
    route = route[np.lexsort((due, pair))]
    place = inner_index(np.bincount(_pair(sizes)[route], minlength=len(sizes)))
    offset = total[route] * place // count
    return Pieces(route, offset, total[route] * (place + 1) // count - offset)


def divided(weight: Floats, sizes: Ints, total: Ints) -> Ints:
    """Return whole numbers in proportion to the weights of a pair, with its total as their sum."""
    pair, first = _pair(sizes), _first(sizes)
    sums = np.add.reduceat(weight, first)[pair]
    exact = np.divide(total * weight, sums, out=np.zeros(len(weight)), where=sums > 0)
    # What rounding leaves of a share that is whole but for the last digits is not lost.
    whole = np.floor(exact + 1e-6).astype(np.int64)
    left = np.where(sums > 0, total, 0)[first] - np.add.reduceat(whole, first)
    order = np.lexsort((whole - exact, pair))
    rank = np.empty(len(order), dtype=np.int64)
    rank[order] = inner_index(sizes)
    return np.asarray(whole + (rank < left[pair]))


def _first(sizes: Ints) -> Ints:
    return np.cumsum(sizes) - sizes


def _pair(sizes: Ints) -> Ints:
    return np.repeat(np.arange(len(sizes)), sizes)
