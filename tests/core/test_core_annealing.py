"""Annealing in the compiled core, against plain references."""

from typing import Any

import networkx as nx
import numpy as np
import pytest
from core_reference import Network, distances, networks
from hypothesis import given
from hypothesis import strategies as st

from alltoall import core
from alltoall.ir.arrays import Ints

SEEDS = st.integers(0, 2**64 - 1)
UNREACHED = 1000.0


def annealing(nodes: int, ends: Ints, seed: int = 0, **other: Any) -> core.Annealing:
    """Return an annealing of one-way links, unless other arguments say otherwise."""
    asked: dict[str, Any] = {
        "fixed": np.zeros((0, 2), np.int64),
        "directed": True,
        "turns": False,
        "panel": np.zeros(len(ends), np.int64),
        "price": None,
        "budget": np.inf,
        "fine": 1.0,
        "weight": np.ones(1),
        "demand": None,
        "failures": False,
        "even": False,
    }
    return core.Annealing(nodes=nodes, ends=ends, seed=seed, **(asked | other))


def sum_of_distances(nodes: int, ends: Ints) -> float:
    """Return the sum over all pairs, infinite if some have no path."""
    network = (nodes, ends[:, 0].copy(), ends[:, 1].copy())
    ones = np.ones(len(ends))
    return float(sum(distances(network, ones, source).sum() for source in range(nodes)))


@given(networks(), st.booleans())
def test_the_first_cost_is_the_sum_of_distances(network: Network, fixed: bool) -> None:
    """Of all links, whether they may move or not; pairs without a path cost more than any."""
    nodes, tail, head = network
    ends = np.stack([tail, head], axis=1)
    split = len(ends) // 2 if fixed else 0
    ends.flags.writeable = False
    found = annealing(nodes, ends[split:], fixed=ends[:split]).least
    expected = sum_of_distances(nodes, ends)
    assert found == expected if np.isfinite(expected) else found >= UNREACHED


def circulant(nodes: int) -> Ints:
    """Return the links from every node to the next two."""
    every = np.arange(nodes)
    return np.stack([np.tile(every, 2), np.append(every + 1, every + 2) % nodes], axis=1)


@given(st.integers(4, 9), SEEDS)
def test_the_first_cost_follows_the_aim(nodes: int, seed: int) -> None:
    """Demand times distance, the mean after a failure, or the norm of loads on shortest paths."""
    ends, demand = circulant(nodes), np.random.default_rng(seed).random((nodes, nodes))
    network, ones = (nodes, ends[:, 0].copy(), ends[:, 1].copy()), np.ones(len(ends))
    hops = np.array([distances(network, ones, source) for source in range(nodes)])
    assert annealing(nodes, ends, demand=demand).least == pytest.approx((demand * hops).sum())
    failed = [sum_of_distances(nodes, np.delete(ends, link, 0)) for link in range(len(ends))]
    assert annealing(nodes, ends, failures=True).least == pytest.approx(np.mean(failed))
    shares = nx.edge_betweenness_centrality(nx.DiGraph(ends.tolist()), normalized=False)
    load = np.array(list(shares.values()))
    norm = np.sqrt(len(ends) * (load**2).sum())
    assert annealing(nodes, ends, even=True).least == pytest.approx(max(norm, hops.sum()))


@given(st.integers(4, 9), st.integers(0, 100), SEEDS)
def test_moves_keep_ports_and_the_best_is_what_it_costs(nodes: int, moves: int, seed: int) -> None:
    """From a circulant of two jumps; equal seeds give equal results, strided temperatures too."""
    ends = circulant(nodes)
    searches = [annealing(nodes, ends, seed) for _ in range(2)]
    before = searches[0].least
    searches[0].run(np.linspace(1.0, 0.2, moves))
    searches[1].run(np.repeat(np.linspace(1.0, 0.2, moves), 2)[::2])
    best = searches[0].best()
    assert np.array_equal(best, searches[1].best())
    assert searches[0].least == sum_of_distances(nodes, best) <= before
    for column in (0, 1):
        assert np.array_equal(np.bincount(best[:, column]), np.full(nodes, 2))


def test_annealing_refuses_what_it_cannot_read() -> None:
    """Nodes out of range, and moves without cables."""
    ends = np.array([[0, 1], [1, 0]])
    with pytest.raises(ValueError, match="ends: expected values from 0 to 0"):
        annealing(1, ends)
    with pytest.raises(ValueError, match="panel: expected 2 entries"):
        annealing(2, ends, panel=np.zeros(1, np.int64))
    with pytest.raises(ValueError, match="demand: expected a row and a column per node"):
        annealing(2, ends, demand=np.ones((1, 2)))
    with pytest.raises(ValueError, match="ends: expected a cable to move"):
        annealing(2, ends[:0]).run(np.ones(1))


def lift(m: int, voltages: list[int], seed: int) -> core.LiftAnnealing:
    """Return a search among circulants of one-way links."""
    count = len(voltages)
    arcs = np.array([[0, 0, voltage] for voltage in voltages])
    places = np.array([[port, -1] for port in range(count)])
    none = np.zeros(0, np.int64)
    return core.LiftAnnealing(
        1, count, m, 1, np.ones(1, np.int64), none, arcs, places, np.zeros(count, np.int64), seed
    )


@given(st.integers(4, 20), SEEDS)
def test_a_lift_costs_the_distances_from_one_node(m: int, seed: int) -> None:
    """Of the circulant with the jumps that it found."""
    search = lift(m, [1, 2], seed)
    assert search.is_simple
    search.run(np.full(50, 0.5))
    jumps = search.best()[:, 2]
    ends = np.array([(node, (node + jump) % m) for node in range(m) for jump in jumps])
    network = (m, ends[:, 0].copy(), ends[:, 1].copy())
    assert search.least == distances(network, np.ones(len(ends)), 0).sum()


def test_lifts_that_are_not_simple_or_not_in_range() -> None:
    """Loops, parallel links, and voltages that are no element of the group."""
    assert not lift(5, [0, 1], 0).is_simple
    assert not lift(5, [1, 1], 0).is_simple
    with pytest.raises(ValueError, match="arcs: expected elements of the group"):
        lift(5, [5, 1], 0)
