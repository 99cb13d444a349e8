"""Layers, orders of channels, tables and baselines, in the compiled core, against references."""

from collections.abc import Callable
from itertools import pairwise
from typing import Any

import networkx as nx
import numpy as np
import pytest
from core_reference import Network, distances, graph_of, networks, topology_of
from hypothesis import given
from hypothesis import strategies as st

from alltoall import core
from alltoall.ir.arrays import Floats, Ints
from alltoall.routes.baselines.ewsp import ShortestLinks
from alltoall.routes.deadlock_free.best import tables_in_order

SEEDS = st.integers(0, 2**32 - 1)

EMPTY = np.zeros(0, dtype=np.int64)


def strided(values: Any) -> Any:
    """Return equal values in an array that is strided and read-only."""
    spread = np.repeat(np.asarray(values), 2, axis=0)[::2]
    spread.flags.writeable = False
    return spread


def reachable(network: Network) -> Floats:
    """Return the hops between all nodes."""
    return np.array([distances(network, np.ones(len(network[1])), v) for v in range(network[0])])


@st.composite
def routes_of_links(draw: st.DrawFn) -> tuple[int, list[list[int]]]:
    """Draw links and routes over them; a route may have one link, or come to a link again."""
    links = draw(st.integers(1, 6))
    route = st.lists(st.integers(0, links - 1), min_size=1, max_size=5)
    return links, draw(st.lists(route, max_size=8))


def turns_of(links: int, routes: list[list[int]]) -> tuple[core.RouteTurns, list[set[Any]]]:
    """Return the turns of routes, as the core takes them and as pairs of links."""
    made = [list(pairwise(route)) for route in routes]
    known = sorted({turn for turns in made for turn in turns})
    ends = np.array(known, dtype=np.int64).reshape(-1, 2)
    start = np.cumsum([0, *map(len, made)])
    turn = np.array([known.index(each) for turns in made for each in turns], dtype=np.int64)
    graph = core.Graph(links, strided(ends[:, 0]), strided(ends[:, 1]))
    return core.RouteTurns(graph, strided(start), strided(turn)), [set(turns) for turns in made]


def is_acyclic(turns: set[Any]) -> bool:
    """Return whether turns close no cycle."""
    return nx.is_directed_acyclic_graph(nx.DiGraph(list(turns)))


@given(routes_of_links())
def test_a_layer_takes_routes_that_close_no_cycle(case: tuple[int, list[list[int]]]) -> None:
    """One after the other; the order of the links has all turns forward."""
    turns, made = turns_of(*case)
    layer = core.LayerFilling(turns)
    taken = layer.offer(strided(np.arange(len(made))))
    inside: set[Any] = set()
    for mine, is_taken in zip(made, taken.tolist(), strict=True):
        assert is_taken == is_acyclic(inside | mine)
        inside |= mine if is_taken else set()
    assert sorted(layer.rank) == list(range(case[0]))
    assert all(layer.rank[held] < layer.rank[wanted] for held, wanted in inside)


@given(routes_of_links(), st.integers(1, 3))
def test_cycles_are_broken_layer_by_layer(case: tuple[int, list[list[int]]], most: int) -> None:
    """Layers are acyclic and hold all routes that could stay; more calls change nothing."""
    turns, made = turns_of(*case)
    search = core.CycleBreaking(turns)
    for level in range(len(made)):
        search.begin_layer(level)
        while not search.run(most):
            pass
        mine = [made[route] for route in np.flatnonzero(search.layer == level)]
        assert is_acyclic(set().union(*mine))
        alone = [each for route, each in enumerate(made) if search.layer[route] > level]
        assert not alone or not is_acyclic(set().union(*mine, *alone))


def gained(rank: Floats, made: list[list[Any]], weight: Floats, powers: Floats) -> float:
    """Return the weight of all routes in an order of the links."""
    backward = [sum(rank[held] >= rank[wanted] for held, wanted in turns) for turns in made]
    return float(sum(weight * powers[backward]))


@given(routes_of_links(), SEEDS)
def test_links_are_sifted_to_better_places(case: tuple[int, list[list[int]]], seed: int) -> None:
    """The weight of all routes never falls, and no other place of one link is better."""
    links, rng = case[0], np.random.default_rng(seed)
    simple = [each for each in case[1] if len(set(each)) == len(each) > 1]
    turns, _ = turns_of(links, simple)
    made = [list(pairwise(route)) for route in simple]
    weight, rank = rng.random(len(simple)), rng.permutation(links).astype(np.float64)
    powers = 0.3 ** np.arange(max(map(len, made), default=0) + 2.0)
    sifting = core.LinkSifting(turns, np.arange(len(simple)), weight, rank)
    link = int(rng.integers(links))
    sifting.place(np.array([link]), strided(powers))
    tried = [np.where(np.arange(links) == link, place, rank) for place in np.arange(-0.5, links)]
    best = max(gained(each, made, weight, powers) for each in [rank, *tried])
    assert gained(sifting.rank, made, weight, powers) == pytest.approx(best)
    before = sifting.rank
    sifting.renumber()
    assert np.array_equal(sifting.rank, np.argsort(np.argsort(before, kind="stable")))


@given(networks(), SEEDS)
def test_distances_forward_in_an_order(network: Network, seed: int) -> None:
    """Against a reading of the order; a pair without a path costs twice the sum of lengths."""
    nodes, tail, head = network
    rng = np.random.default_rng(seed)
    order, lengths = rng.permutation(len(tail)), rng.integers(1, 4, len(tail)).astype(np.float32)
    wanted = rng.integers(0, 3, (nodes, nodes)).astype(np.float32)
    terminals, far = np.arange(nodes)[None], 2 * float(lengths.sum())

    def total(order: Ints) -> float:
        cost = np.where(np.eye(nodes, dtype=np.bool_), 0.0, far)
        for link in order:
            over = cost[:, tail[link]] + lengths[link]
            cost[:, head[link]] = np.minimum(cost[:, head[link]], over)
        return float((cost * wanted.T).sum())

    given = graph_of(network), terminals, strided(lengths), strided(wanted)
    assert core.improve_order(order.copy(), *given, 0, 0) == pytest.approx(total(order))
    better = order.copy()
    core.improve_order(better, *given, 20, seed)
    assert sorted(better) == sorted(order)
    assert total(better) <= total(order) * (1 + 1e-6)


@given(networks(), SEEDS)
def test_tables_in_an_order(network: Network, seed: int) -> None:
    """Paths go forward, and a node has one exactly if a reading backward of the order finds it."""
    nodes, tail, head = network
    order = np.random.default_rng(seed).permutation(len(tail))
    rank = np.argsort(order)
    table = tables_in_order(topology_of(network), order)
    for end in range(nodes):
        known = {end}
        for link in order[::-1]:
            known |= {int(tail[link])} if int(head[link]) in known else set()
        assert {v for v in range(nodes) if table[end, v] >= 0} | {end} == known
        for node in known:
            taken, at = [], node
            while at != end:
                taken.append(int(rank[table[end, at]]))
                at = int(head[table[end, at]])
            assert taken == sorted(set(taken))


def potential(load: Floats, scale: Floats, steepness: float) -> float:
    """Return the potential that best responses lower."""
    return float(np.exp(scale * load - steepness).sum())


@given(networks(), SEEDS, st.booleans())
def test_tables_respond_to_prices(network: Network, seed: int, keeps_order: bool) -> None:
    """The potential falls, loads are those of the tables, and turns stay free of cycles."""
    nodes, tail, head = network
    rng = np.random.default_rng(seed)
    order, every = rng.permutation(len(tail)), np.arange(nodes)
    table = tables_in_order(topology_of(network), order)
    is_there = (table.T >= 0) & ~np.eye(nodes, dtype=np.bool_)
    demand = np.where(is_there, rng.integers(0, 3, (nodes, nodes)), 0).astype(np.float64)
    given = graph_of(network), every, strided(table), strided(demand)
    tables = core.ForwardingTables(*given, order if keeps_order else None)
    scale = strided(rng.random(len(tail)))
    before = potential(tables.load, scale, 3.0)
    tables.respond(every, rng.permutation(nodes), scale, 3.0)
    assert potential(tables.load, scale, 3.0) <= before * (1 + 1e-9)
    load = np.zeros(len(tail))
    turns: set[Any] = set()
    for source, end in zip(*np.nonzero(demand), strict=True):
        node, last = int(source), None
        while node != end:
            link = int(tables.table[end, node])
            load[link] += demand[source, end]
            turns |= set() if last is None else {(last, link)}
            node, last = int(head[link]), link
    assert tables.load == pytest.approx(load)
    assert not keeps_order or is_acyclic(turns)


@given(networks(), SEEDS, st.integers(1, 3))
def test_lengths_grow_with_flow(network: Network, seed: int, most: int) -> None:
    """Flows deliver what reachable nodes want, and lengths grow by their shares of capacity."""
    nodes, tail, head = network
    rng = np.random.default_rng(seed)
    capacity, lengths = rng.integers(1, 4, len(tail)).astype(float), np.ones(len(tail))
    wanted = np.where(
        np.isfinite(reachable(network)), rng.integers(0, 3, (nodes, nodes)), 0
    ).astype(float)
    np.fill_diagonal(wanted, 0)
    flows, state = np.zeros((nodes, len(tail))), (0, 1.0)
    while state[0] < nodes:
        given = graph_of(network), capacity, np.arange(nodes), strided(wanted), 0.1
        state = core.grow_lengths(*given, state, most, lengths, flows)
    for source in range(nodes):
        into = np.bincount(head, flows[source], nodes) - np.bincount(tail, flows[source], nodes)
        into[source] = 0
        assert into == pytest.approx(wanted[source])
    steps = flows.sum(axis=0) / capacity
    assert (lengths >= 1 + 0.1 * steps - 1e-9).all()
    assert (lengths <= np.exp(0.1 * steps) + 1e-9).all()


@given(networks(), SEEDS)
def test_shortest_paths_are_counted_and_shared(network: Network, seed: int) -> None:
    """Against a list of all of them."""
    nodes, tail, head = network
    hops = reachable(network)
    paths: dict[tuple[int, int], list[list[int]]] = {(v, v): [[]] for v in range(nodes)}
    for start in range(nodes):
        reached = np.flatnonzero(hops[start] < np.inf).tolist()
        for node in sorted(reached, key=lambda v: float(hops[start, v]))[1:]:
            near = [
                e
                for e in np.flatnonzero(head == node)
                if hops[start, tail[e]] + 1 == hops[start, node]
            ]
            paths[start, node] = [[*p, int(e)] for e in near for p in paths[start, int(tail[e])]]
    expected = [[len(paths.get((v, w), [])) for w in range(nodes)] for v in range(nodes)]
    shortest = ShortestLinks(topology_of(network), np.arange(nodes))
    count = shortest.count
    assert count.tolist() == expected
    amount = np.where(count > 0, np.random.default_rng(seed).random((nodes, nodes)), 0)
    flows, load = shortest.flows(amount), np.zeros((nodes, len(tail)))
    for (start, end), several in paths.items():
        for path in several:
            np.add.at(load[start], path, amount[start, end] / len(several))
    assert flows == pytest.approx(load)


GRAPH = core.Graph(2, np.array([0, 1]), np.array([1, 0]))
ONES, EVERY = np.ones(2), np.arange(2)
BACK = core.Graph(2, EVERY[::-1], EVERY)
TURNS = core.RouteTurns(core.Graph(2, EVERY[:1], EVERY[1:]), EVERY, EVERY[:1])
TABLE, DEMAND = np.array([[-1, 1], [0, -1]]), np.array([[0.0, 1.0], [1.0, 0.0]])
ENDLESS = np.where(DEMAND > 0, np.inf, 0)
SINGLE, SQUARE = np.ones(2, np.float32), np.ones((2, 2), np.float32)
TABLES = core.ForwardingTables(GRAPH, EVERY, TABLE, DEMAND)
CHANNELS = GRAPH, EVERY[None]

BAD: dict[str, Callable[[], object]] = {
    "held in no order": lambda: core.RouteTurns(BACK, EVERY[:1], EMPTY),
    "turns that are not there": lambda: core.RouteTurns(GRAPH, EVERY, np.array([7])),
    "bounds that fall": lambda: core.RouteTurns(GRAPH, np.array([0, 2, 1]), EVERY[:1]),
    "routes that are not there": lambda: core.LayerFilling(TURNS).offer(np.array([1])),
    "no cycles to break": lambda: core.CycleBreaking(TURNS).run(0),
    "too few weights": lambda: core.LinkSifting(TURNS, np.array([0]), np.zeros(0), ONES),
    "ranks that are no numbers": lambda: core.LinkSifting(TURNS, EMPTY, np.zeros(0), ONES * np.nan),
    "too few powers": lambda: core.LinkSifting(TURNS, EVERY[:1], ONES[:1], ONES).place(EVERY, ONES),
    "a channel twice": lambda: core.improve_order(EVERY * 0, *CHANNELS, SINGLE, SQUARE, 0, 0),
    "too few lengths": lambda: core.improve_order(EVERY, *CHANNELS, SINGLE[:1], SQUARE, 0, 0),
    "demands of others": lambda: core.improve_order(EVERY, *CHANNELS, SINGLE, SQUARE[:1], 0, 0),
    "links of other nodes": lambda: core.ForwardingTables(GRAPH, EVERY, TABLE[::-1].copy(), DEMAND),
    "a cycle": lambda: core.ForwardingTables(
        core.Graph(3, np.array([0, 1]), np.array([1, 0])), np.array([2]), np.array([[0, 1, -1]]),
        np.zeros((1, 1)),
    ),
    "no path": lambda: core.ForwardingTables(GRAPH, EVERY, TABLE * 0 - 1, DEMAND),
    "a demand below 0": lambda: core.ForwardingTables(GRAPH, EVERY, TABLE, -DEMAND),
    "an endless demand": lambda: core.ForwardingTables(GRAPH, EVERY, TABLE, ENDLESS),
    "too few prices": lambda: TABLES.respond(EVERY, EVERY, ONES[:1], 1.0),
    "nodes that are not there": lambda: TABLES.respond(EVERY, EVERY + 1, ONES, 1.0),
    "no capacity": lambda: core.grow_lengths(
        GRAPH, ONES * 0, EVERY, DEMAND, 0.1, (0, 1.0), 1, np.ones(2), np.zeros((2, 2))
    ),
    "a length below 0": lambda: core.grow_lengths(
        GRAPH, ONES, EVERY, DEMAND, 0.1, (0, 1.0), 1, -np.ones(2), np.zeros((2, 2))
    ),
    "flows of others": lambda: core.grow_lengths(
        GRAPH, ONES, EVERY, DEMAND, 0.1, (0, 1.0), 1, np.ones(2), np.zeros((1, 2))
    ),
    "epsilon of 0": lambda: core.grow_lengths(
        GRAPH, ONES, EVERY, DEMAND, 0.0, (0, 1.0), 1, np.ones(2), np.zeros((2, 2))
    ),
}  # fmt: skip
"""Arrays that no kernel may see."""


@pytest.mark.parametrize("name", BAD)
def test_bad_arrays_are_refused(name: str) -> None:
    """As a ValueError that names the argument, before anything is computed."""
    with pytest.raises(ValueError, match="expected"):
        BAD[name]()


def test_filled_arrays_are_never_copies() -> None:
    """An array of another type, or strided, would be filled in a copy."""
    with pytest.raises(TypeError):
        core.grow_lengths(
            GRAPH, ONES, EVERY, DEMAND, 0.1, (0, 1.0), 1, np.ones(2, np.float32), np.zeros((2, 2))
        )
    with pytest.raises(TypeError):
        core.improve_order(np.arange(4)[::2], *CHANNELS, SINGLE, SQUARE, 1, 0)
