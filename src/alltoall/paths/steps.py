"""Cheapest ways in a graph that is unrolled in time: step by step, without a heap.

Links t * per_step to (t + 1) * per_step - 1 are those of step t, from nodes of moment t to nodes of
moment t + 1 or to switches, which have a copy per step. The links of waiting come after all steps.
"""

import numpy as np
from numba import njit

from alltoall.ir.arrays import Floats, Ints

WAITING_COST = 1e-3
"""What a step of waiting costs, where a hop over a link that is not contended costs 1."""


@njit(cache=True)
def cheapest_in_steps(
    ends: tuple[Ints, Ints],
    kind: Ints,
    steps: tuple[int, int],
    cost: Floats,
    start: int,
    distance: Floats,
    parent: Ints,
) -> None:
    """Fill the cheapest way from `start` to every node, step by step; `kind` is a link's class.

    Links between terminals lead to the next moment, so one pass does; links to and from switches
    stay within the step, which is passed over again until nothing improves.
    """
    (tail, head), (count, per_step) = ends, steps
    distance[:] = np.inf
    distance[start] = 0.0
    waiting = (len(tail) - count * per_step) // count
    first_switch = (count + 1) * waiting
    for step in range(count):
        improved = True
        while improved:
            improved = False
            for link in range(step * per_step, (step + 1) * per_step):
                at, to = tail[link], head[link]
                reach = distance[at] + cost[kind[link]]
                if reach < distance[to]:
                    distance[to] = reach
                    parent[to] = link
                    improved |= to >= first_switch
        for link in range(
            count * per_step + step * waiting, count * per_step + (step + 1) * waiting
        ):
            at, to = tail[link], head[link]
            if distance[at] + WAITING_COST < distance[to]:
                distance[to] = distance[at] + WAITING_COST
                parent[to] = link
