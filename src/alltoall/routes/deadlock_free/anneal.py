"""The compiled annealing of link orders: one link at a time moves next to one that it meets."""

import numpy as np
from numba import njit

from alltoall.ir.arrays import Floats, Ints

FIRST_HEAT, LAST_HEAT = 3e-4, 1e-5
"""First and last temperature, as shares of the score at the start."""

MEAN_WEIGHT = 1.0
"""Weight of the mean of all bounds beside the largest, which alone would leave plateaus."""

ANNEALED_STRETCHES = 200
"""The annealing stays with one layer for this part of all moves: changing it costs time."""


@njit(cache=True)
def forward_distances(
    order: Ints,
    ends: tuple[Ints, Ints],
    lengths: Floats,
    starts: Ints,
    unreachable: float,
    distance: Floats,
) -> None:
    """Fill distances [lengths, nodes, starts] of the ways whose links come in the given order."""
    tail, head = ends
    distance[:] = unreachable
    for row in range(len(lengths)):
        for start in range(len(starts)):
            distance[row, starts[start], start] = 0.0
        for link in order:
            near, far = distance[row, tail[link]], distance[row, head[link]]
            length = lengths[row, link]
            for start in range(len(starts)):
                far[start] = min(far[start], near[start] + length)


@njit(cache=True)
def anneal(
    orders: Ints,
    ends: tuple[Ints, Ints],
    lengths: Floats,
    terminals: Ints,
    wanted: Floats,
    meets: tuple[Ints, Ints],
    moves: int,
    rng: np.random.Generator,
) -> Ints:
    """Return the best orders seen; `wanted` is by destination and source, `meets` by link."""
    # Farther than any way, so that the search first of all connects what is not.
    unreachable = 2.0 * lengths.sum()
    nodes = max(ends[0].max(), ends[1].max()) + 1
    distance = np.empty((len(orders), len(lengths), nodes, len(terminals)))
    for layer in range(len(orders)):
        forward_distances(orders[layer], ends, lengths, terminals, unreachable, distance[layer])
    others = np.empty_like(distance[0])
    best, best_orders = np.inf, orders.copy()
    hottest = 0.0
    for stretch in range(ANNEALED_STRETCHES):
        layer = int(rng.integers(0, len(orders)))
        _best_of_others(distance, layer, unreachable, others)
        if stretch == 0:
            hottest = FIRST_HEAT * _score(distance[layer], others, terminals, wanted)
        heat = hottest * (LAST_HEAT / FIRST_HEAT) ** (stretch / ANNEALED_STRETCHES)
        task = (lengths, terminals, wanted, others, unreachable)
        count = max(1, moves // ANNEALED_STRETCHES)
        score, order = _anneal_layer(
            orders[layer], distance[layer], ends, task, meets, count, heat, rng
        )
        if score < best:
            best = score
            best_orders[:] = orders
            best_orders[layer] = order
    return best_orders


@njit(cache=True)
def _anneal_layer(
    order: Ints,
    distance: Floats,
    ends: tuple[Ints, Ints],
    task: tuple[Floats, Ints, Floats, Floats, float],
    meets: tuple[Ints, Ints],
    moves: int,
    heat: float,
    rng: np.random.Generator,
) -> tuple[float, Ints]:
    """Change the order of one layer in place; return the best score and the order that had it."""
    lengths, terminals, wanted, others, unreachable = task
    place = np.argsort(order)
    trial = np.empty_like(distance)
    score = _score(distance, others, terminals, wanted)
    best, best_order = score, order.copy()
    for _ in range(moves):
        link = rng.integers(0, len(order))
        neighbour = meets[1][rng.integers(meets[0][link], meets[0][link + 1])]
        source, target = place[link], place[neighbour]
        _move(order, place, source, target)
        forward_distances(order, ends, lengths, terminals, unreachable, trial)
        changed = _score(trial, others, terminals, wanted)
        if changed > score and rng.random() >= np.exp((score - changed) / heat):
            _move(order, place, target, source)
            continue
        score = changed
        distance[:] = trial
        if score < best:
            best = score
            best_order[:] = order
    return best, best_order


@njit(cache=True)
def _score(distance: Floats, others: Floats, terminals: Ints, wanted: Floats) -> float:
    """Return the largest bound, and some of their mean, if a pair takes the better of two ways."""
    largest, total = 0.0, 0.0
    for row in range(len(distance)):
        bound = 0.0
        for d in range(len(terminals)):
            mine, other = distance[row, terminals[d]], others[row, terminals[d]]
            for s in range(len(terminals)):
                bound += wanted[d, s] * min(mine[s], other[s])
        largest = max(largest, bound)
        total += bound
    return largest + MEAN_WEIGHT * total / len(distance)


@njit(cache=True)
def _best_of_others(distance: Floats, layer: int, unreachable: float, others: Floats) -> None:
    """Fill in the distances in the best of all layers but one."""
    others[:] = unreachable
    for each in range(len(distance)):
        if each != layer:
            others[:] = np.minimum(others, distance[each])


@njit(cache=True)
def _move(order: Ints, place: Ints, source: int, target: int) -> None:
    """Take the link at one position out and put it in at another."""
    link = order[source]
    step = 1 if target > source else -1
    for position in range(source, target, step):
        order[position] = order[position + step]
        place[order[position]] = position
    order[target] = link
    place[link] = target
