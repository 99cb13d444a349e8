"""Chunks on paths, in the compiled core, against plain references."""

from collections.abc import Callable
from itertools import pairwise
from typing import Any

import numpy as np
import pytest
from core_reference import Network, distances, graph_of, networks, order_of
from hypothesis import assume, given
from hypothesis import strategies as st

from alltoall import core
from alltoall.ir.arrays import Floats, Ints
from alltoall.placing.chunks import Table
from alltoall.placing.network import Network as Places

SEEDS = st.integers(0, 2**32 - 1)


def ends_of(network: Network, seed: int) -> tuple[Ints, Ints, Ints, Ints]:
    """Draw chunks between joined nodes: their starts, the bounds of each, all starts and ends."""
    rng = np.random.default_rng(seed)
    ones = np.ones(len(network[1]))
    pairs = [
        (start, end)
        for start in range(network[0])
        for end in np.flatnonzero(np.isfinite(distances(network, ones, start)))
        if end != start
    ]
    assume(pairs)
    drawn = sorted(pairs[each] for each in rng.integers(0, len(pairs), 6))
    begin, end = np.array(drawn, dtype=np.int64).T.copy()
    start, first = np.unique(begin, return_index=True)
    return start, np.append(first, len(end)).astype(np.int64), begin, end


def walk(network: Network, row: Table, begin: int) -> int:
    """Return the node that a path leads to, after checking that its links join."""
    _, tail, head = network
    path = row[row >= 0].tolist()
    assert (row[len(path) :] == -1).all()
    assert path == [] or tail[path[0]] == begin
    for link, following in pairwise(path):
        assert head[link] == tail[following]
    return int(head[path[-1]]) if path else begin


def potential(scale: Floats, load: Floats, steepness: float) -> float:
    """Return the sum that best responses lower."""
    return float(np.exp(scale * load - steepness).sum())


def loads(network: Network, table: Table, size: Floats) -> Floats:
    """Return the load of every link."""
    load = np.zeros(len(network[1]))
    for row, each in zip(table, size, strict=True):
        for link in row[row >= 0]:
            load[link] += each
    return load


@given(networks(), SEEDS)
def test_most_hops_is_the_longest_shortest_path(network: Network, seed: int) -> None:
    """Over all chunks; -1 if one has no path."""
    start, first, begin, end = ends_of(network, seed)
    ones = np.ones(len(network[1]))
    hops = [distances(network, ones, b)[e] for b, e in zip(begin, end, strict=True)]
    assert core.most_hops(graph_of(network), start, first, end) == max(hops)


def test_most_hops_without_a_path() -> None:
    """Two nodes and one link: nothing leads back."""
    graph = core.Graph(2, np.array([0]), np.array([1]))
    assert core.most_hops(graph, np.array([1]), np.array([0, 1]), np.array([0])) == -1


@given(networks(), SEEDS, st.sampled_from([1, 16]), st.sampled_from([1, 3]))
def test_responses_lower_the_potential(
    network: Network, seed: int, together: int, threads: int
) -> None:
    """Every path joins its ends, loads are those of the paths, and no round raises the potential.

    When nothing moves any more, no chunk has a cheaper path.
    """
    start, first, begin, end = ends_of(network, seed)
    rng = np.random.default_rng(seed)
    size, links = rng.uniform(0.5, 2.0, len(end)), len(network[1])
    scale = rng.uniform(0.1, 2.0, links)
    mean = np.add.reduceat(size, first[:-1]) / np.diff(first)
    table, load = np.full((len(end), network[0]), -1, np.int32), np.zeros(links)
    graph = graph_of(network)
    core.respond(graph, start, first, end, size, mean, None, 0.0, table, load)
    before = potential(scale, load, 1.0)
    for _ in range(30):
        moved = core.respond(
            graph, start, first, end, size, mean, scale, 1.0, table, load, together, threads
        )
        assert load == pytest.approx(loads(network, table, size))
        after = potential(scale, load, 1.0)
        assert after <= before * (1 + 1e-9)
        before = after
        if not moved:
            break
    for row, a, b in zip(table, begin, end, strict=True):
        assert walk(network, row, int(a)) == b


@given(networks(), SEEDS)
def test_paths_follow_the_order(network: Network, seed: int) -> None:
    """A path in an order of links takes links of increasing rank, and is as short as any such."""
    rng = np.random.default_rng(seed)
    _, tail, head = network
    assume(len(tail))
    order = rng.permutation(len(tail))
    start = int(tail[order[0]])
    reached = {start: 0}
    for link in order:  # fewest hops to each node along the order
        if tail[link] in reached:
            reached[int(head[link])] = min(
                reached.get(int(head[link]), 99), reached[int(tail[link])] + 1
            )
    ends = np.array([node for node in reached if node != start], dtype=np.int64)
    assume(len(ends))
    one = np.ones(len(ends))
    table, load = np.full((len(ends), len(tail)), -1, np.int32), np.zeros(len(tail))
    bounds, where = np.array([0, len(ends)]), order_of(network, order)
    core.respond(where, np.array([start]), bounds, ends, one, one[:1], None, 0.0, table, load)
    rank = np.argsort(order)
    for row, end in zip(table, ends, strict=True):
        path = row[row >= 0]
        assert walk(network, row, start) == end
        assert (np.diff(rank[path]) > 0).all()
        assert len(path) == reached[int(end)]


@given(networks(), SEEDS)
def test_rerouting_empties_links_over_their_budget(network: Network, seed: int) -> None:
    """Chunks within their budgets stay; loads are those of the paths."""
    _, _, begin, end = ends_of(network, seed)
    links = len(network[1])
    size, ones = np.ones(len(end)), np.ones(links)
    table, load = np.full((len(end), network[0]), -1, np.int32), np.zeros(links)
    order = np.arange(len(end))
    for _ in range(2):
        stopped = core.reroute(
            graph_of(network), begin, end, size, order, 0, 99, ones, ones, np.zeros(links),
            0.5, 1e-3, table, load,
        )  # fmt: skip
        assert stopped == len(end)
        assert load == pytest.approx(loads(network, table, size))
    for row, a, b in zip(table, begin, end, strict=True):
        assert walk(network, row, int(a)) == b
    kept = table.copy()
    core.reroute(
        graph_of(network), begin, end, size, order, 0, 99, 99 * ones, ones, np.zeros(links),
        0.5, 1e-3, table, load,
    )  # fmt: skip
    assert np.array_equal(table, kept)


@given(networks(), SEEDS)
def test_loads_are_those_of_paths(network: Network, seed: int) -> None:
    """Links of a class share a load, and what is free has none."""
    rng = np.random.default_rng(seed)
    nodes, links = network[0], len(network[1])
    assume(links)
    table = rng.integers(0, links, (5, nodes)).astype(np.int32)
    table[np.arange(nodes) >= rng.integers(0, nodes + 1, 5)[:, None]] = -1
    size, link_class = rng.random(5), rng.integers(0, 3, links)
    whole = Places(graph_of(network), np.ones(links), nodes)
    shared = Places(graph_of(network), np.ones(2), nodes, priced=link_class)
    expected = loads(network, table, size)
    assert whole.loads(table, size) == pytest.approx(expected)
    assert shared.loads(table, size) == pytest.approx(np.bincount(link_class, expected, 3)[:2])


@given(SEEDS, st.integers(1, 3), st.sampled_from([0.0, 0.5]))
def test_choices_within_budgets_are_the_cheapest(seed: int, phases: int, fill: float) -> None:
    """A chunk over a budget, or without a place, takes the path and phase that cost least."""
    rng = np.random.default_rng(seed)
    hops = rng.integers(1, 4, 5)
    path_start = np.concatenate(([0], np.cumsum(hops)))
    link = rng.integers(0, 6, path_start[-1])
    before, budget, share, history = rng.uniform(0.1, 3, (4, 6 * phases))
    load, path, phase, size = before.copy(), np.array([0]), np.array([-1]), 0.7
    core.choose_within(
        path_start, link, np.array([0]), np.array([5]), 6, phases, np.array([size]), np.array([0]),
        0, 99, budget, share, history, fill, 2.0, load, path, phase,
    )  # fmt: skip

    def price(hop: int) -> float:
        mine = size * share[hop]
        over = max(0.0, before[hop] + mine - budget[hop]) / min(mine, budget[hop])
        full = (before[hop] + mine) / max(budget[hop], mine)
        return float((1 + history[hop]) * (1 + fill * full + 2.0 * over))

    cost = {
        (each, k): sum(price(k * 6 + hop) for hop in link[path_start[each] : path_start[each + 1]])
        for each in range(5)
        for k in range(phases)
    }
    assert cost[int(path[0]), int(phase[0])] == pytest.approx(min(cost.values()))
    taken = int(phase[0]) * 6 + link[path_start[path[0]] : path_start[path[0] + 1]]
    added = np.zeros_like(load)
    np.add.at(added, taken, size * share[taken])
    assert load == pytest.approx(before + added)


BAD: dict[str, Callable[[], object]] = {
    "a head outside": lambda: core.Graph(2, np.array([0]), np.array([2])),
    "no nodes": lambda: core.Graph(0, np.zeros(0, np.int64), np.zeros(0, np.int64)),
    "uneven ends": lambda: core.Graph(2, np.array([0, 1]), np.array([1])),
    "bounds that fall": lambda: core.most_hops(
        core.Graph(2, np.array([0]), np.array([1])), np.array([0]), np.array([1, 0]), np.array([1])
    ),
    "a table with a stray link": lambda: core.respond(
        core.Graph(2, np.array([0]), np.array([1])), np.array([0]), np.array([0, 1]),
        np.array([1]), np.ones(1), np.ones(1), None, 0.0, np.full((1, 1), 7, np.int32), np.zeros(1),
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", BAD)
def test_bad_arrays_are_errors(name: str) -> None:
    """Never a crash."""
    with pytest.raises(ValueError, match="expected"):
        BAD[name]()


def test_arrays_to_fill_are_never_copied() -> None:
    """A read-only, strided or wrongly typed array to fill is refused."""
    graph = core.Graph(2, np.array([0, 0]), np.array([1, 1]))
    one, table = np.ones(1), np.zeros((1, 1), np.int32)
    chunks = np.array([0]), np.array([0, 1]), np.array([1]), one, one
    frozen = np.zeros(2)
    frozen.flags.writeable = False
    arrays: list[Any] = [np.zeros(4)[::2], np.zeros(2, np.float32), frozen]
    for load in arrays:
        with pytest.raises(TypeError):
            core.respond(graph, *chunks, None, 0.0, table, load)


def test_strided_and_read_only_inputs_are_taken() -> None:
    """What is only read may be any array of the right type."""
    tail, head = np.array([0, 9, 1, 9])[::2], np.array([1, 0])
    head.flags.writeable = False
    graph = core.Graph(2, tail, head)
    assert core.most_hops(graph, np.array([0]), np.array([0, 1]), np.array([1])) == 1
