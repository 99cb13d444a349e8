"""The compiled loops of the first-order method: primal-dual steps over all flows.

One step reads and writes every flow once. Groups are cut into a fixed number of blocks, each with
its own sums, so that the result does not depend on the number of threads. Many groups stand in
lanes (`first_order_lanes`); few of them, each with a row of its own, are stepped here.
"""

from typing import NamedTuple

import numpy as np
from numba import njit, prange
from numpy.typing import NDArray

from alltoall.flows.exact import make_exact
from alltoall.flows.first_order_lanes import lane_step
from alltoall.flows.threads import BLOCKS
from alltoall.ir.arrays import Floats, Ints, Reals
from alltoall.settings import Team


class Network(NamedTuple):
    """The graph, and by group its source, what the nodes want and its share in the loads.

    What is by group stands in lanes. Unsigned ends save the check for negative indices, a third of
    the time of a step.
    """

    tail: NDArray[np.uint32]
    head: NDArray[np.uint32]
    root: Ints
    wanted: Reals
    share: Reals


class Prices(NamedTuple):
    """Classes of links in the order of their budgets: those of budget b are first[b]:first[b + 1].

    `of_link` is the class of each link, `size` the links of a class, `capacity` that of each.
    """

    first: Ints
    of_link: Ints
    size: Floats
    capacity: Floats


class Steps(NamedTuple):
    """Step sizes: of flows per link, also inverted, of potentials per node, of prices per class."""

    flow: Reals
    inverse: Reals
    potential: Reals
    price: Floats


class State(NamedTuple):
    """Flows and potentials by group, in lanes, a price per class, and the anchor of each."""

    flow: Reals
    potential: Reals
    price: Floats
    flow_anchor: Reals
    potential_anchor: Reals
    price_anchor: Floats


@njit(cache=True)
def run_steps(
    network: Network, prices: Prices, steps: Steps, state: State, done: int, count: int
) -> float:
    """Take `count` reflected Halpern steps after `done` since the anchor; return how far T moves.

    With T the primal-dual step, z becomes a (2 T(z) - z) + (1 - a) anchor, a = (k + 1) / (k + 2).
    """
    distance = 0.0
    for step in range(done, done + count):
        keep = (step + 1) / (step + 2)
        load = _step_flows(network, prices, steps, state, keep)
        distance = load[-1] + _price_step(prices, steps, state, load[:-1], keep)
    return float(np.sqrt(distance))


def run_steps_together(
    network: Network, prices: Prices, steps: Steps, state: State, done: int, count: int, team: Team
) -> float:
    """Take the same steps as one of a team, whose ranks have some of the groups each.

    All ranks have the same prices; a step needs the sum of their loads, and nothing else.
    """
    distance = 0.0
    for step in range(done, done + count):
        keep = (step + 1) / (step + 2)
        load = team.total(_step_flows(network, prices, steps, state, keep))
        distance = load[-1] + _price_step(prices, steps, state, load[:-1], keep)
    return float(np.sqrt(distance))


@njit(cache=True)
def _step_flows(
    network: Network, prices: Prices, steps: Steps, state: State, keep: float
) -> Floats:
    """Step all flows and potentials; return the reflected flows' loads, and the move squared."""
    links = len(network.head)
    load = np.empty((BLOCKS, links), dtype=state.flow.dtype)
    moved = np.empty(BLOCKS)
    length = np.empty(links, dtype=state.flow.dtype)
    _lengths(prices, state.price, length)
    if state.flow.shape[2] == 1:
        _flow_step(network, steps, state, length, keep, load, moved)
    else:
        lane_step(
            (network.tail, network.head),
            (network.root, network.wanted, network.share),
            (steps.flow, steps.inverse, steps.potential),
            (state.flow, state.flow_anchor),
            (state.potential, state.potential_anchor),
            length,
            keep,
            load,
            moved,
        )
    told = np.empty(links + 1)
    told[:links] = load.sum(axis=0)
    told[links] = moved.sum()
    return told


@njit(cache=True)
def _lengths(prices: Prices, price: Floats, length: Reals) -> None:
    for link in range(len(length)):
        kind = prices.of_link[link]
        length[link] = price[kind] if kind < len(price) else 0.0


@njit(cache=True, parallel=True, fastmath={"contract", "reassoc", "nsz", "nnan", "ninf"})
def _flow_step(
    network: Network,
    steps: Steps,
    state: State,
    length: Reals,
    keep: float,
    load: Reals,
    moved: Floats,
) -> None:
    """Step all flows and potentials; leave the reflected flows' sums in `load`, by block.

    Loops are split so that all but the one over nodes' balances run several links at a time.
    """
    groups, links, nodes = len(network.root), len(length), network.wanted.shape[1]
    zero, two = length.dtype.type(0.0), length.dtype.type(2.0)
    stride, inverse = steps.flow, steps.inverse
    flows, flow_anchors = (
        state.flow.reshape(groups, links),
        state.flow_anchor.reshape(groups, links),
    )
    potentials = state.potential.reshape(groups, nodes)
    potential_anchors = state.potential_anchor.reshape(groups, nodes)
    roots, shares = network.root.reshape(groups), network.share.reshape(groups)
    wanted = network.wanted.reshape(groups, nodes)
    a, b = length.dtype.type(keep), length.dtype.type(1.0 - keep)
    for block in prange(BLOCKS):
        carried = load[block]
        carried[:] = zero
        missing, passed = np.empty(nodes, dtype=length.dtype), np.empty(links, dtype=length.dtype)
        distance = 0.0
        for group in range(groups * block // BLOCKS, groups * (block + 1) // BLOCKS):
            flow, anchor = flows[group], flow_anchors[group]
            potential, far = potentials[group], potential_anchors[group]
            share, change = shares[group], zero
            for link in range(links):
                tail, head = network.tail[link], network.head[link]
                passed[link] = length[link] + potential[tail] - potential[head]
            for link in range(links):
                old = flow[link]
                new = max(old - stride[link] * passed[link], zero)
                step = new - old
                change += step * step * inverse[link]
                passed[link] = new + step
                flow[link] = a * (new + step) + b * anchor[link]
            for link in range(links):
                carried[link] += share * passed[link]
            missing[:] = wanted[group]
            for link in range(links):
                missing[network.head[link]] -= passed[link]
                missing[network.tail[link]] += passed[link]
            missing[roots[group]] = zero
            for node in range(len(missing)):
                step = steps.potential[node] * missing[node]
                change += step * missing[node]
                potential[node] = a * (potential[node] + two * step) + b * far[node]
            distance += share * change
        moved[block] = distance


@njit(cache=True)
def _price_step(prices: Prices, steps: Steps, state: State, load: Floats, keep: float) -> float:
    """Step the prices towards the loaded classes, within their budgets; return the move squared."""
    raised = np.zeros(len(prices.size) + 1)
    for link in range(len(load)):
        raised[prices.of_link[link]] += load[link]
    price, anchor = state.price, state.price_anchor
    slope = steps.price * prices.capacity
    target = np.empty(len(price))
    for kind in range(len(price)):
        target[kind] = price[kind] + steps.price[kind] * raised[kind] / prices.size[kind]
    distance = 0.0
    for budget in range(len(prices.first) - 1):
        part = slice(prices.first[budget], prices.first[budget + 1])
        width = prices.size[part] * prices.capacity[part]
        level = level_of(target[part], slope[part], width)
        for kind in range(prices.first[budget], prices.first[budget + 1]):
            new = max(0.0, target[kind] - slope[kind] * level)
            step = new - price[kind]
            distance += prices.size[kind] * step * step / steps.price[kind]
            price[kind] = keep * (new + step) + (1 - keep) * anchor[kind]
    return distance


@njit(cache=True)
def level_of(target: Floats, slope: Floats, width: Floats) -> float:
    """Return the level at which the sum of width * max(0, target - slope * level) is 1.

    That sum is convex and falls, so Newton's method from the left arrives in a few rounds.
    """
    level = -np.inf
    for kind in range(len(target)):
        level = max(level, target[kind] / slope[kind] - 1.0 / (width[kind] * slope[kind]))
    for _ in range(len(target) + 1):
        total, fall = -1.0, 0.0
        for kind in range(len(target)):
            left = target[kind] - slope[kind] * level
            if left > 0.0:
                total += width[kind] * left
                fall += width[kind] * slope[kind]
        if total <= 1e-15 or fall == 0.0:
            break
        level += total / fall
    return level


@njit(cache=True, parallel=True)
def exact_load(
    ends: tuple[Ints, Ints],
    out: tuple[Ints, Ints],
    into: tuple[Ints, Ints],
    lengths: Floats,
    roots: Ints,
    wanted: Floats,
    weight: Floats,
    flow: Reals,
) -> Floats:
    """Return the load, by block, of flows [groups, links] once made exact; they stay as is."""
    groups, links = flow.shape
    load = np.zeros((BLOCKS, links))
    for block in prange(BLOCKS):
        exact, distance = np.empty(links), np.empty(wanted.shape[1])
        for group in range(groups * block // BLOCKS, groups * (block + 1) // BLOCKS):
            exact[:] = flow[group]
            make_exact(ends, out, into, lengths, roots[group], wanted[group], exact, distance)
            for link in range(links):
                load[block, link] += weight[group] * exact[link]
    return load
