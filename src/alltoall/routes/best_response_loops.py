"""The compiled loops of best responses (`routes.best_response`): prices, trees, and moves."""

from typing import NamedTuple

import numpy as np
from numba import njit, prange

from alltoall.ir.arrays import Floats, Ints
from alltoall.ir.paths import NOTHING
from alltoall.paths.any_path import Table
from alltoall.paths.shortest import shortest_tree

SHARED = -2
"""The mark of a link that is on the old path of a chunk and on its new one."""

LARGEST_PRICE_EXPONENT = 300.0
"""Beyond this a price is out of the question anyway, and sums of it must not overflow."""


class Market(NamedTuple):
    """The load of each link, and its price by the scale and steepness of a pass.

    `swelling` is exp(scale * load - steepness): what the link adds to the potential.
    """

    scale: Floats
    steepness: float
    load: Floats
    swelling: Floats


@njit(cache=True)
def take_paths(tail: Ints, tree: Table, begin: int, rows: Ints, end: Ints, table: Table) -> None:
    """Write the paths of a tree to some rows; those too long for it are left empty."""
    walk = np.empty(table.shape[1], dtype=np.int32)
    for chunk in rows:
        hops = _walk(tail, tree, begin, end[chunk], walk)
        table[chunk, :hops] = walk[len(walk) - hops :]


@njit(cache=True)
def add_loads(table: Table, size: Floats, load: Floats) -> None:
    """Add chunks of some sizes to the loads of their paths."""
    for row in range(len(table)):
        _add_load(table[row], load, size[row])


@njit(cache=True)
def respond_in_turn(
    out: tuple[Ints, Ints],
    ends: tuple[Ints, Ints],
    sources: tuple[Ints, Ints, Floats],
    cut: tuple[Ints, Floats],
    market: Market,
    trees: Table,
    fresh: bool,
    table: Table,
) -> int:
    """Let chunks respond, source by source, to trees that are there; return how many moved.

    If they are to be `fresh`, each tree is first found under what links cost by then.
    """
    (tail, head), (begin, first, size) = ends, sources
    marked = np.full(len(tail), NOTHING, dtype=np.int64)
    moved = 0
    for row in range(len(begin)):
        if fresh:
            find_tree(out, head, market, begin[row], size[row], trees[row])
        chunks = (first[row], first[row + 1])
        moved += _respond(tail, begin[row], chunks, cut, market, trees[row], table, marked)
    return moved


@njit(cache=True, parallel=True)
def find_trees(
    out: tuple[Ints, Ints], head: Ints, market: Market, begin: Ints, size: Floats, trees: Table
) -> None:
    """Find a tree for each beginning, all under the same prices."""
    for row in prange(len(begin)):
        find_tree(out, head, market, begin[row], size[row], trees[row])


@njit(cache=True)
def find_tree(
    out: tuple[Ints, Ints], head: Ints, market: Market, begin: int, size: float, tree: Table
) -> None:
    """Find the link into each node on a cheapest path for a chunk of some size."""
    nodes = len(tree)
    price = np.empty(len(head))
    step, more = 0.0, 0.0
    for link in range(len(head)):
        if market.scale[link] * size != step:
            step = market.scale[link] * size
            more = np.expm1(min(step, LARGEST_PRICE_EXPONENT))
        price[link] = market.swelling[link] * more
    distance = np.empty(nodes)
    parent, order = np.empty(nodes, dtype=np.int64), np.empty(nodes, dtype=np.int64)
    shortest_tree(nodes, out[0], out[1], head, price, begin, distance, parent, order)
    for node in range(nodes):
        tree[node] = parent[node]


@njit(cache=True)
def most_hops(tail: Ints, first: Ints, end: Ints, begin: Ints, trees: Table) -> int:
    """Return the most hops of a chunk on its path in the tree of its source."""
    longest = 0
    for row in range(len(begin)):
        for chunk in range(first[row], first[row + 1]):
            node, hops = end[chunk], 0
            while node != begin[row]:
                node = tail[trees[row, node]]
                hops += 1
            longest = max(longest, hops)
    return longest


@njit(cache=True)
def place_on_trees(
    tail: Ints,
    first: Ints,
    end: Ints,
    begin: Ints,
    trees: Table,
    size: Floats,
    table: Table,
    load: Floats,
) -> None:
    """Put every chunk on its path in the tree of its source, with its load."""
    walk = np.empty(table.shape[1], dtype=np.int32)
    for row in range(len(begin)):
        for chunk in range(first[row], first[row + 1]):
            hops = _walk(tail, trees[row], begin[row], end[chunk], walk)
            table[chunk, :hops] = walk[len(walk) - hops :]
            _add_load(table[chunk], load, size[chunk])


@njit(cache=True)
def _walk(tail: Ints, tree: Table, begin: int, end: int, walk: Table) -> int:
    """Write a path of the tree to the end of `walk`; return its hops, or 0 if it is too long."""
    node, hops = end, 0
    while node != begin:
        if hops == len(walk):
            return 0
        hops += 1
        walk[len(walk) - hops] = tree[node]
        node = tail[tree[node]]
    return hops


@njit(cache=True)
def _respond(
    tail: Ints,
    begin: int,
    chunks: tuple[int, int],
    cut: tuple[Ints, Floats],
    market: Market,
    tree: Table,
    table: Table,
    marked: Ints,
) -> int:
    """Move chunks of a source to their paths in its tree if that lowers the potential.

    Links that the old path and the new one share count on neither side.
    """
    end, size = cut
    walk = np.empty(table.shape[1], dtype=np.int32)
    hops, to, moved = 0, NOTHING, 0
    for chunk in range(chunks[0], chunks[1]):
        if end[chunk] != to:  # Chunks of a pair stand together.
            to = end[chunk]
            hops = _walk(tail, tree, begin, to, walk)
        path, other = table[chunk], walk[len(walk) - hops :]
        if hops == 0 or _same(path, other):
            continue
        for link in path:
            if link == NOTHING:
                break
            marked[link] = chunk
        for link in other:
            marked[link] = SHARED if marked[link] == chunk else NOTHING
        saved = -_rise(path, market, -size[chunk], chunk, marked)
        # A tie, or a last digit, is no reason to move.
        if _rise(other, market, size[chunk], NOTHING, marked) < (1 - 1e-9) * saved:
            _shift(path, market, -size[chunk], chunk, marked)
            _shift(other, market, size[chunk], NOTHING, marked)
            path[:hops] = other
            path[hops:] = NOTHING
            moved += 1
    return moved


@njit(cache=True, inline="always")
def _rise(path: Table, market: Market, size: float, mark: int, marked: Ints) -> float:
    """Return how much the potential rises if the load of a path's links with a mark does."""
    total, step, share = 0.0, 0.0, 0.0
    for link in path:
        if link == NOTHING:
            break
        if marked[link] == mark:
            if market.scale[link] * size != step:  # Mostly, all links are of one capacity.
                step = market.scale[link] * size
                share = np.expm1(min(step, LARGEST_PRICE_EXPONENT))
            total += market.swelling[link] * share
    return total


@njit(cache=True, inline="always")
def _shift(path: Table, market: Market, size: float, mark: int, marked: Ints) -> None:
    """Add to the load of a path's links with a mark."""
    for link in path:
        if link == NOTHING:
            break
        if marked[link] == mark:
            market.load[link] += size
            height = market.scale[link] * market.load[link] - market.steepness
            market.swelling[link] = np.exp(min(height, LARGEST_PRICE_EXPONENT))


@njit(cache=True)
def _same(path: Table, other: Table) -> bool:
    for hop in range(len(other)):
        if path[hop] != other[hop]:
            return False
    return len(other) == len(path) or path[len(other)] == NOTHING


@njit(cache=True)
def _add_load(path: Table, load: Floats, size: float) -> None:
    for link in path:
        if link == NOTHING:
            break
        load[link] += size
