"""Simulated annealing of a wiring: two cables exchange an end, and the sum of distances judges.

Links (a, b) and (c, d) become (a, d) and (c, b): every port stays in use, so degrees never change.
Cables that may be turned round first, (c, d) being (d, c), reach all simple graphs of the same
degrees; one-way links, and ports that only fit ports of another kind, are never turned round.
A move is tried on the adjacency itself and taken back where it is refused.
"""

import numpy as np
from numba import njit

from alltoall.designs.distances import Words, demand_cost, distance_cost, failure_cost
from alltoall.designs.loads import load_cost
from alltoall.ir.arrays import Floats, Ints


@njit(cache=True)
def anneal(
    out: Ints,
    ends: Ints,
    slots: Ints,
    mates: Ints,
    first: Ints,
    count: Ints,
    turns: bool,
    weight: Floats,
    demand: Floats,
    failing: bool,
    even: bool,
    price: Floats,
    budget: float,
    fine: float,
    room: Words,
    temperatures: Floats,
    best: Ints,
    costs: Floats,
    rng: np.random.Generator,
) -> None:
    """Try one move at each temperature, from the wiring of `ends`, which changes in place.

    Cable c joins the nodes `ends[c]`, which stand in the flat places `slots[c]` of each other's
    rows of `out`; it may exchange ends with `mates[first[c] : first[c] + count[c]]`. What is
    minimised is in `wiring_cost`; what cables cost above the budget is fined. `best` and `costs`
    (now, best) are kept up to date.
    """
    nodes, flat = len(out) - 1, out.reshape(-1)
    paid = _total_price(ends, price)
    for temperature in temperatures:
        one = rng.integers(0, len(ends))
        two = mates[first[one] + rng.integers(0, count[one])]
        if turns and rng.random() < 0.5:
            ends[two, 0], ends[two, 1] = ends[two, 1], ends[two, 0]
            slots[two, 0], slots[two, 1] = slots[two, 1], slots[two, 0]
        a, b, c, d = ends[one, 0], ends[one, 1], ends[two, 0], ends[two, 1]
        if a in (c, d) or b in (c, d) or _linked(out, a, d) or _linked(out, c, b):
            continue
        asked = paid
        if len(price):
            asked += price[a, d] + price[c, b] - price[a, b] - price[c, d]
        over = fine * max(0.0, asked - budget)
        limit = costs[0] - temperature * np.log(1.0 - rng.random())
        if over > limit:
            continue
        _exchange(flat, ends, slots, one, two)
        both = slots[one, 1] < len(flat) - out.shape[1]
        cost = over
        cost += wiring_cost(out, nodes, both, weight, demand, failing, even, room, limit - over)
        if cost > limit:
            _exchange(flat, ends, slots, one, two)
            continue
        costs[0], paid = cost, asked
        if cost < costs[1]:
            costs[1] = cost
            best[:] = ends


@njit(cache=True)
def wiring_cost(
    out: Ints,
    nodes: int,
    both: bool,
    weight: Floats,
    demand: Floats,
    failing: bool,
    even: bool,
    room: Words,
    limit: float,
) -> float:
    """Return the cost of a wiring for its aim, or some number above `limit` if that is.

    A demand comes first, then all failures if `failing`, then link loads if they are to be `even`.
    """
    cost: float
    if len(demand):
        cost = demand_cost(out, nodes, demand, room, limit)
    elif failing:
        cost = failure_cost(out, nodes, both, weight, room)
    else:
        cost = distance_cost(out, nodes, weight, room, limit)
        if even and cost <= limit:  # The norm of the loads is never below the sum of distances.
            cost = max(cost, load_cost(out, nodes))
    return cost


@njit(cache=True)
def _exchange(flat: Ints, ends: Ints, slots: Ints, one: int, two: int) -> None:
    """Exchange the second ends of two cables; doing so again takes it back."""
    ends[one, 1], ends[two, 1] = ends[two, 1], ends[one, 1]
    slots[one, 1], slots[two, 1] = slots[two, 1], slots[one, 1]
    for each in (one, two):
        flat[slots[each, 0]] = ends[each, 1]
        flat[slots[each, 1]] = ends[each, 0]


@njit(cache=True)
def _linked(out: Ints, node: int, other: int) -> bool:
    """Whether a link leads from a node to another."""
    for port in range(out.shape[1]):  # noqa: SIM110 -- numba takes no generators
        if out[node, port] == other:
            return True
    return False


@njit(cache=True)
def _total_price(ends: Ints, price: Floats) -> float:
    """Return what all cables cost."""
    total = 0.0
    if len(price):
        for each in ends:
            total += price[each[0], each[1]]
    return total
