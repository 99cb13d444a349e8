"""Exact repair, sweeps and primal-dual steps, in the compiled core, against plain references."""

from itertools import pairwise
from typing import Any

import numpy as np
import pytest
from core_reference import Network, distances, graph_of, networks
from hypothesis import assume, given
from hypothesis import strategies as st

from alltoall import core
from alltoall.ir.arrays import Floats, Ints

SEEDS = st.integers(0, 2**32 - 1)
THREADS = st.sampled_from([1, 3])

Demands = tuple[Ints, Floats]
"""Sources and what every node wants of each."""


def demands_of(network: Network, seed: int) -> Demands:
    """Draw what every node sends to nodes that it reaches."""
    nodes, tail, _ = network
    ones, rng = np.ones(len(tail)), np.random.default_rng(seed)
    hops = np.array([distances(network, ones, start) for start in range(nodes)])
    wanted = np.where(np.isfinite(hops), rng.integers(0, 4, hops.shape), 0).astype(float)
    np.fill_diagonal(wanted, 0.0)
    return np.arange(nodes), wanted


def surplus(network: Network, flows: Floats, demands: Demands) -> Floats:
    """Return how much more than it wants each node keeps, except sources."""
    nodes, tail, head = network
    source, wanted = demands
    net = np.array([np.bincount(head, row, nodes) - np.bincount(tail, row, nodes) for row in flows])
    net = net - wanted
    net[np.arange(len(source)), source] = 0.0
    return net


def has_cycle(network: Network, flow: Floats) -> bool:
    """Return whether links with flow close a cycle: whether nodes without inflow run out."""
    nodes, tail, head = network
    left = flow > 0
    for _ in range(nodes):
        entered = np.bincount(head[left], minlength=nodes) > 0
        left &= entered[tail]
    return bool(left.any())


@given(networks(), SEEDS, THREADS)
def test_exact_flows_deliver_and_have_no_cycles(network: Network, seed: int, threads: int) -> None:
    """From noise that is partly negative, infinite or not a number."""
    source, wanted = demands_of(network, seed)
    rng = np.random.default_rng(seed)
    flows = rng.normal(0.0, 2.0, (len(source), len(network[1])))
    flows[rng.random(flows.shape) < 0.1] = np.nan
    lengths = rng.random(len(network[1]))
    core.make_exact(graph_of(network), lengths, source, wanted, flows, threads)
    assert abs(surplus(network, flows, (source, wanted))).max() < 1e-9
    assert (flows >= 0).all()
    assert not any(has_cycle(network, row) for row in flows)


@given(networks(), SEEDS)
def test_exact_flows_stay_as_they_are(network: Network, seed: int) -> None:
    """A flow down shortest-path trees delivers exactly, and is changed by rounding at most."""
    source, wanted = demands_of(network, seed)
    lengths = 1 + np.random.default_rng(seed).random(len(network[1]))
    flows = np.zeros((len(source), len(lengths)))
    core.add_tree_flows(graph_of(network), lengths, source, wanted, flows)
    before = flows.copy()
    core.make_exact(graph_of(network), lengths, source, wanted, flows)
    assert flows == pytest.approx(before)


@given(st.lists(st.tuples(*[st.floats(0.01, 10.0)] * 3), min_size=1, max_size=9))
def test_level(classes: list[tuple[float, float, float]]) -> None:
    """Prices above it sum to 1."""
    target, slope, width = np.array(classes).T
    level = core.find_level(target, slope, width)
    assert (width * np.maximum(0.0, target - slope * level)).sum() == pytest.approx(1.0)


def priced(time: Floats, multiplier: Floats, slope: Floats) -> Floats:
    """Return the prices of classes at given times."""
    target = multiplier + slope * time
    return np.maximum(0.0, target - slope * core.find_level(target, slope, np.ones(len(slope))))


@given(networks(), SEEDS, THREADS, st.integers(1, 3))
def test_batches_lower_costs_and_keep_deliveries(
    network: Network, seed: int, threads: int, parts: int
) -> None:
    """Flows deliver the same, times are theirs, and one source's cost at its prices falls."""
    nodes, tail, _ = network
    links = len(tail)
    assume(links > 0)
    source, wanted = demands_of(network, seed)
    rng = np.random.default_rng(seed)
    classes = int(rng.integers(1, links + 1))
    link_class, unit_cost = rng.integers(0, classes + 1, links), rng.uniform(0.5, 2.0, links)
    multiplier = rng.random(classes) + 0.1
    multiplier, slope = multiplier / multiplier.sum(), rng.uniform(0.1, 1.0, classes)
    weight = rng.uniform(0.5, 2.0, nodes)
    flows = np.zeros((nodes, links))
    graph = graph_of(network)
    core.add_tree_flows(graph, rng.random(links), source, wanted, flows)

    def times(some: Floats) -> Floats:
        loads = unit_cost * (weight @ some)
        return np.bincount(link_class, loads, classes + 1)[:classes].astype(np.float64)

    before, time = flows.copy(), times(flows)
    cuts = np.arange(parts + 1) * nodes // parts
    given_arrays = graph, link_class, unit_cost, multiplier, slope, source, weight, wanted
    change = core.update_batch(*given_arrays, flows, time, cuts, 2.0, threads)
    assert abs(surplus(network, flows, (source, wanted))).max() < 1e-9
    assert (flows >= -1e-12).all()
    # Each part counts its own moves once, whatever it expects of others.
    assert time + change[:, :-1].sum(axis=0) == pytest.approx(times(flows))
    lengths = np.append(priced(time, multiplier, slope), 0.0)[link_class] * unit_cost
    far = np.array([distances(network, lengths, node) for node in range(nodes)])
    least = weight @ (wanted * np.where(wanted > 0, far, 0.0)).sum(axis=1)
    assert change[:, -1].sum() == pytest.approx(least, rel=1e-6, abs=1e-6)
    again = before.copy()
    assert np.array_equal(core.update_batch(*given_arrays, again, time, cuts, 2.0, 1), change)
    assert np.array_equal(again, flows)


def plain_step(
    network: Network, state: tuple[Floats, Floats], start: tuple[Floats, Floats], problem: Any
) -> tuple[Floats, Floats, Floats, float]:
    """Return flows, potentials, loads and the squared move of a step of one group at a time."""
    nodes, tail, head = network
    (flow, potential), (flow_anchor, potential_anchor) = state, start
    source, wanted, share, length, flow_step, potential_step, keep = problem
    price = length + potential[:, tail] - potential[:, head]
    new = np.maximum(flow - flow_step * price, 0.0)
    passed = 2 * new - flow
    missing = wanted.copy()
    for group, row in enumerate(passed):
        missing[group] += np.bincount(tail, row, nodes) - np.bincount(head, row, nodes)
        missing[group, source[group]] = 0.0
    moved = share @ (((new - flow) ** 2 / flow_step).sum(axis=1))
    moved += share @ ((potential_step * missing**2).sum(axis=1))
    return (
        keep * passed + (1 - keep) * flow_anchor,
        keep * (potential + 2 * potential_step * missing) + (1 - keep) * potential_anchor,
        share @ passed,
        float(moved),
    )


def plain_prices(
    price: Floats, anchor: Floats, load: Floats, keep: float, steps: tuple[Floats, Floats, Ints]
) -> tuple[Floats, float]:
    """Return prices after a step and the squared move, for classes of one link each."""
    step, capacity, first = steps
    target, slope, new = price + step * load, step * capacity, np.empty_like(price)
    for low, high in pairwise(first):
        part = slice(low, high)
        level = core.find_level(target[part], slope[part], capacity[part])
        new[part] = np.maximum(0.0, target[part] - slope[part] * level)
    after = keep * (2 * new - price) + (1 - keep) * anchor
    return after, float(((new - price) ** 2 / step).sum())


@given(networks(6, 12), SEEDS, THREADS, st.integers(1, 70))
def test_steps_are_those_of_plain_arrays(
    network: Network, seed: int, threads: int, groups: int
) -> None:
    """For few groups and many, before and after a restart; prices stay within their budgets."""
    nodes, tail, _ = network
    links = len(tail)
    assume(links >= 2)
    rng = np.random.default_rng(seed)
    source, share = rng.integers(0, nodes, groups), rng.random(groups)
    wanted, flow = rng.random((groups, nodes)), rng.random((groups, links))
    potential = rng.random((groups, nodes))
    size, capacity = np.ones(links), rng.uniform(0.5, 2.0, links)
    first = np.array([0, links // 2, links])
    price = rng.random(links)
    flow_step, potential_step, price_step = (
        rng.uniform(0.1, 0.4, n) for n in (links, nodes, links)
    )
    method = core.PrimalDual(
        graph_of(network), np.arange(links), first, size, capacity, source, wanted, share,
        flow, potential, price,
    )  # fmt: skip
    method.set_steps(flow_step, potential_step, price_step)
    state, anchor, price_anchor = (flow, potential), (flow, potential), price
    for step, keep in enumerate((0.5, 2 / 3, 0.5)):
        if step == 2:
            method.restart()
            anchor, price_anchor = state, method.price
        problem = source, wanted, share, method.price, flow_step, potential_step, keep
        *after, load, moved = plain_step(network, state, anchor, problem)
        found = method.step_flows(keep, threads)
        assert found == pytest.approx(np.append(load, moved))
        state = after[0], after[1]
        steps = price_step, capacity, first
        price, moved = plain_prices(method.price, price_anchor, load, keep, steps)
        assert method.step_prices(found, keep) == pytest.approx(moved)
        assert method.price == pytest.approx(price)
        rows, heights = np.empty((groups, links)), np.empty((groups, nodes))
        method.write_flows(rows)
        method.write_potentials(heights)
        assert rows == pytest.approx(state[0])
        assert heights == pytest.approx(state[1])


def test_prices_move_to_the_loaded_class() -> None:
    """Within a budget of 1: what one class gains the other loses, by the projection's rule."""
    graph = core.Graph(2, np.array([0, 0]), np.array([1, 1]))
    method = core.PrimalDual(
        graph, np.arange(2), np.array([0, 2]), np.ones(2), np.ones(2), np.array([0]),
        np.array([[0.0, 1.0]]), np.ones(1), np.zeros((1, 2)), np.zeros((1, 2)), np.full(2, 0.5),
    )  # fmt: skip
    method.set_steps(np.ones(2), np.ones(2), np.ones(2))
    moved = method.step_prices(np.array([0.3, 0.1, 0.0]), 1.0)
    assert method.price == pytest.approx([0.7, 0.3])
    assert moved == pytest.approx(0.1**2 + 0.1**2)


GRAPH = core.Graph(2, np.array([0, 1]), np.array([1, 0]))
WANTED = np.array([[0.0, 1.0]])


@pytest.mark.parametrize(
    ("changed", "name"),
    [
        ({"lengths": np.ones(3)}, "lengths"),
        ({"source": np.array([2])}, "source"),
        ({"wanted": np.ones((1, 3))}, "wanted"),
        ({"flows": np.ones((2, 2))}, "flows"),
    ],
)
def test_wrong_arrays_are_refused(changed: dict[str, object], name: str) -> None:
    """With the name of the argument; what is filled is never a copy."""
    usual = {"lengths": np.ones(2), "source": np.array([0]), "wanted": WANTED}
    given_arrays = {**usual, "flows": np.zeros((1, 2)), **changed}
    with pytest.raises(ValueError, match=f"^{name}: expected"):
        core.make_exact(GRAPH, **given_arrays)  # type: ignore[arg-type]
    with pytest.raises(TypeError):
        core.make_exact(GRAPH, **usual, flows=np.zeros((1, 4))[:, ::2])  # type: ignore[arg-type]
    with pytest.raises(TypeError):
        core.make_exact(GRAPH, **usual, flows=np.zeros((1, 2), dtype=np.float32))  # type: ignore[arg-type]


def test_steps_need_sizes() -> None:
    """Before they are set there is nothing to step by."""
    zeros, ones = np.zeros((1, 2)), np.ones(2)
    method = core.PrimalDual(
        GRAPH, np.arange(2), np.array([0, 2]), ones, ones, np.array([0]), WANTED, np.ones(1),
        zeros, zeros, ones,
    )  # fmt: skip
    with pytest.raises(ValueError, match="set_steps"):
        method.step_flows(0.5)
