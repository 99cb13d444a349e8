"""Spread whole chunks over all paths: best responses to exponential prices that grow steeper.

The potential is the sum over links of exp(steepness * (load / (capacity * time) - 1)), where `time`
is the largest load over capacity so far. Source by source, a tree of shortest paths under what one
more chunk would add to the potential is found, and each chunk of the source moves to its path in
the tree if that lowers the potential. The steepness rises from pass to pass: first all loads count,
in the end one chunk more or less on a link decides, so that only the fullest links do.

A pass costs one tree per source and a look at every path. Trees are found in parallel, for blocks
of sources under the same prices, and answered to in order: the number of threads changes nothing.
"""

from dataclasses import dataclass

import numpy as np

from alltoall.flows import sizes
from alltoall.ir.arrays import Floats, Ints, inner_index
from alltoall.ir.paths import NOTHING
from alltoall.ir.topology import Topology
from alltoall.paths.any_path import Chunks, Table
from alltoall.paths.kernels import run_in_turn
from alltoall.paths.shortest import Adjacency
from alltoall.routes.best_response_loops import (
    LARGEST_PRICE_EXPONENT,
    Market,
    add_loads,
    find_tree,
    find_trees,
    most_hops,
    place_on_trees,
    respond_in_turn,
    take_paths,
)
from alltoall.settings import SolveSettings

FIRST_STEEPNESS = 3.0
"""The first steepness: a full link is about twenty times as dear as an empty one."""

LAST_STEEPNESS = 1e4
"""The last steepness at most; where fewer chunks fit on a link, it is their number."""

RISING_PASSES, FEW_RISING_PASSES = 100, 40
"""Passes over all sources while the steepness rises: for few sources, and for very many."""

LAST_PASSES = 10
"""Passes at the last steepness at most."""

RENEWING_STEEPNESS = 20.0
"""The first steepness where most chunks are well placed already: where all loads count, they would
leave their places and come back."""

TOGETHER_SHARE = 0.7
"""The share of quick passes in which chunks of a pair may move together."""

SOURCES_PER_BLOCK = 16
"""Sources whose trees are found in parallel, under the same prices, if there are very many."""


@dataclass(frozen=True, eq=False)
class _State:
    """Chunks by source, and where they are: `first` has the bounds of the chunks of `begin`."""

    graph: Topology
    chunks: Chunks
    begin: Ints
    first: Ints
    table: Table
    load: Floats

    @property
    def time(self) -> float:
        """The largest load over capacity."""
        return float((self.load / self.graph.capacity).max())


def _market(load: Floats, scale: Floats, steepness: float) -> Market:
    swelling = np.exp(np.minimum(scale * load - steepness, LARGEST_PRICE_EXPONENT))
    return Market(scale, steepness, load, swelling)


def _even_market(graph: Topology) -> Market:
    """Return one in which fewest hops are cheapest."""
    return _market(np.zeros(graph.links), np.ones(graph.links), 0.0)


def best_response_paths(
    graph: Topology, chunks: Chunks, goal: float, settings: SolveSettings
) -> Table:
    """Return a path per chunk [chunks, hops] with loads near the least that there can be.

    Chunks come sorted by their start, and `goal` is a time that is good enough. When time runs out
    the paths found so far are returned.
    """
    state = _on_fewest_hops(graph, chunks)
    fit = goal * float(np.quantile(graph.capacity, 0.5)) / float(chunks.size.mean())
    last = min(LAST_STEEPNESS, max(10 * FIRST_STEEPNESS, fit))
    passes = RISING_PASSES if len(state.begin) <= sizes.FRESH_PRICE_SOURCES else FEW_RISING_PASSES
    rising = np.geomspace(FIRST_STEEPNESS, last, passes)
    for index, steepness in enumerate([*rising, *[last] * LAST_PASSES]):
        time = state.time
        if time <= goal * (1 + 1e-9) or settings.out_of_time():
            break
        moved = _pass(state, steepness / (max(goal, time) * graph.capacity), steepness)
        above = state.time / goal - 1
        settings.report(f"spreading chunks: pass {index + 1}, {above:.2%} above the goal")
        if not moved and index >= passes:
            break
    return state.table


def respond_from(
    graph: Topology,
    chunks: Chunks,
    table: Table,
    goal: float,
    passes: int,
    settings: SolveSettings,
) -> tuple[Table, Table, list[Floats]]:
    """Return paths near to those of a table, whose empty rows are chunks without one.

    The first have only these chunks placed, the second are the best after all chunks have
    responded to prices, for some passes while the steepness rises and a few more. The lengths are
    what the potential charged for each link, pass by pass. Chunks come sorted by their start;
    `goal` is a bound, and a time within the gap of it is good enough.
    """
    state = _placed_as(graph, chunks, table)
    fit = goal * float(np.quantile(graph.capacity, 0.5)) / float(chunks.size.mean())
    last = min(LAST_STEEPNESS, max(10 * FIRST_STEEPNESS, fit))
    _place_missing(state, last / (max(goal, state.time) * graph.capacity), last)
    placed, best, least = table.copy(), table.copy(), state.time
    lengths: list[Floats] = []
    enough = goal * (1 + max(settings.gap, 1e-9))
    rising = np.geomspace(min(RENEWING_STEEPNESS, last), last, passes)
    for index, steepness in enumerate([*rising, *[last] * LAST_PASSES]):
        if least <= enough or settings.out_of_time():
            break
        moved = _pass(state, steepness / (max(goal, state.time) * graph.capacity), steepness)
        settings.report(
            f"moving routes: pass {index + 1}, {state.time / goal - 1:.2%} above the bound"
        )
        price = np.exp(steepness * (state.load / (state.time * graph.capacity) - 1))
        lengths.append(price / graph.capacity / price.sum())
        if state.time < least:
            best, least = table.copy(), state.time
        if not moved and index >= passes:
            break
    return placed, best, lengths


def _place_missing(state: _State, scale: Floats, steepness: float) -> None:
    """Give chunks without a path the cheapest one, source by source."""
    graph, chunks = state.graph, state.chunks
    out = Adjacency(graph).outgoing
    tree = np.empty(graph.nodes, dtype=np.int32)
    missing = state.table[:, 0] == NOTHING
    for row in np.flatnonzero(np.add.reduceat(missing, state.first[:-1])):
        rows = state.first[row] + np.flatnonzero(missing[state.first[row] : state.first[row + 1]])
        market = _market(state.load, scale, steepness)
        find_tree(out, graph.head, market, state.begin[row], chunks.size[rows].mean(), tree)
        take_paths(graph.tail, tree, state.begin[row], rows, chunks.end, state.table)
        left = rows[state.table[rows, 0] == NOTHING]
        if len(left):  # The cheapest path is too long for a row.
            find_tree(out, graph.head, _even_market(graph), state.begin[row], 1.0, tree)
            take_paths(graph.tail, tree, state.begin[row], left, chunks.end, state.table)
        add_loads(state.table[rows], chunks.size[rows], state.load)


def quick_paths(
    graph: Topology, chunks: Chunks, steepness: float, passes: int, together: int = 1
) -> tuple[Table, Floats]:
    """Return a path per chunk after a few passes, and lengths of links that nearly prove it good.

    Chunks come sorted by their start; `steepness` is the last. The lengths are what the
    potential charged for each link, in the mean of the later passes. In the first ones, in which
    one chunk hardly counts, up to `together` chunks of a pair move as one, which saves their time.
    """
    coarse, part = _together(chunks, together)
    state = _on_fewest_hops(graph, coarse)
    lengths = np.zeros(graph.links)
    for index, steep in enumerate(np.geomspace(FIRST_STEEPNESS, steepness, passes)):
        if together > 1 and index == round(TOGETHER_SHARE * passes):
            state = _placed_as(graph, chunks, state.table[part])
        _pass(state, steep / (state.time * graph.capacity), steep)
        if 2 * index >= passes:
            price = np.exp(steep * (state.load / (state.time * graph.capacity) - 1))
            lengths += price / graph.capacity / price.sum()
    return state.table, lengths


def _together(chunks: Chunks, most: int) -> tuple[Chunks, Ints]:
    """Take up to so many chunks of a pair together; also return which of these each belongs to."""
    if most == 1:
        return chunks, np.arange(len(chunks.start))
    other = (np.diff(chunks.start) != 0) | (np.diff(chunks.end) != 0)
    first = np.concatenate(([0], 1 + np.flatnonzero(other)))
    counts = np.diff(np.append(first, len(chunks.start)))
    fewer = -(-counts // most)
    inner = inner_index(counts) * np.repeat(fewer, counts) // np.repeat(counts, counts)
    part = np.repeat(np.cumsum(fewer) - fewer, counts) + inner
    size = np.bincount(part, chunks.size).astype(np.float64)
    start, end = (np.repeat(each[first], fewer) for each in (chunks.start, chunks.end))
    return Chunks(start, end, size), part


def _placed_as(graph: Topology, chunks: Chunks, table: Table) -> _State:
    """Return the state in which chunks are where a table has them."""
    begin, first = np.unique(chunks.start, return_index=True)
    bounds = np.append(first, len(chunks.start)).astype(np.int64)
    load = np.zeros(graph.links)
    add_loads(table, chunks.size, load)
    return _State(graph, chunks, begin, bounds, table, load)


def _on_fewest_hops(graph: Topology, chunks: Chunks) -> _State:
    """Return a state in which every chunk takes a path of fewest hops."""
    begin, first = np.unique(chunks.start, return_index=True)
    bounds = np.append(first, len(chunks.start)).astype(np.int64)
    trees = np.empty((len(begin), graph.nodes), dtype=np.int32)
    out = Adjacency(graph).outgoing
    market = _even_market(graph)
    run_in_turn(find_trees, out, graph.head, market, begin, np.ones(len(begin)), trees)
    ends = (graph.tail, bounds, chunks.end, begin)
    hops = most_hops(*ends, trees)
    # Room for detours of twice the longest of these paths; longer ones are not worth their load.
    room = min(graph.nodes - 1, 2 * hops + 4)
    table = np.full((len(chunks.start), room), NOTHING, dtype=np.int32)
    load = np.zeros(graph.links)
    place_on_trees(*ends, trees, chunks.size, table, load)
    return _State(graph, chunks, begin, bounds, table, load)


def _pass(state: _State, scale: Floats, steepness: float) -> int:
    """Let all chunks respond to the prices once; return how many moved."""
    graph, begin, first = state.graph, state.begin, state.first
    out = Adjacency(graph).outgoing
    cut = (state.chunks.end, state.chunks.size)
    size = np.add.reduceat(state.chunks.size, first[:-1]) / np.diff(first)
    market = _market(state.load, scale, steepness)
    few = len(begin) <= sizes.FRESH_PRICE_SOURCES
    block = max(1, len(begin)) if few else SOURCES_PER_BLOCK
    trees = np.empty((block, graph.nodes), dtype=np.int32)
    ends = (graph.tail, graph.head)
    moved = 0
    for low in range(0, len(begin), block):
        high = low + block
        if not few:
            sources = (begin[low:high], size[low:high])
            run_in_turn(find_trees, out, graph.head, market, *sources, trees)
        some = (begin[low:high], first[low : high + 1], size[low:high])
        moved += respond_in_turn(out, ends, some, cut, market, trees, few, state.table)
    return moved
