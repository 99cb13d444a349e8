"""Max-min fair rates by progressive filling, from event to event, compiled.

All flows grow together, each at its weight, until a resource is full: the flows on it keep the
level that they have reached, and the others grow on. A flow's rate is its weight times its level.

When flows end, only levels at or above the lowest of theirs can change: a flow is on no resource
that fills below its own level, so without it the filling goes the same way up to there. Where sizes
are as weights, the flows of the highest level end first, and one filling serves all events.
"""

import heapq

import numpy as np
from numba import njit

from alltoall.ir.arrays import Floats, Ints

WAITING, ACTIVE, DONE = 0, 1, 2
"""What a flow is: not begun, or between two rounds; sending; sent."""

SAME_MOMENT = 1e-9
"""Times, and levels, that differ by this share are one: sums in another order give the same."""


@njit(cache=True)
def advance(
    paths: tuple[Ints, Ints],
    capacity: Floats,
    weight: Floats,
    part: Floats,
    pause: float,
    window: float,
    flows: tuple[Ints, Ints, Floats, Floats, Floats],
    free: Floats,
    live: Ints,
    alive: int,
    now: float,
    events: int,
) -> tuple[int, float]:
    """Go on for some events; return how many flows are left, the first of `live`, and the time.

    Flow f uses the resources `paths[1][paths[0][f]:paths[0][f + 1]]` and sends `part[f]` bytes in
    each of its rounds, with a pause in between. `flows` are the state, the rounds left, when it
    begins or ends, the level and the rate of each. Events within a window are one, at its end: what
    ends in it ends when it does, but what it leaves is taken up only then.
    """
    when, level, rate = flows[2:]
    chosen = np.empty(alive, dtype=np.int64)
    for _ in range(events):
        if alive == 0:
            break
        now, lowest = _happen(paths, pause, window, flows, free, live[:alive], now)
        alive, growing = _sort_out(flows[0], level, lowest, live[:alive], chosen)
        _take_back(paths, part, lowest, capacity, when, rate, free, chosen[:growing], now)
        if growing:
            fill(paths, weight, chosen[:growing], level, free)
        for flow in chosen[:growing]:
            rate[flow] = weight[flow] * level[flow]
            when[flow] = now + when[flow] / rate[flow]
    return alive, now


@njit(cache=True)
def _happen(
    paths: tuple[Ints, Ints],
    pause: float,
    window: float,
    flows: tuple[Ints, Ints, Floats, Floats, Floats],
    free: Floats,
    live: Ints,
    now: float,
) -> tuple[float, float]:
    """Let flows begin and end whose time has come; return the time, and the lowest level changed.

    It is 0 if any begins, for nobody knows yet how high that will come.
    """
    state, rounds, when, level, rate = flows
    first = np.inf
    for flow in live:
        first = min(first, when[flow])
    now = max(now, first)
    limit = now + max(window, SAME_MOMENT * now)
    lowest = np.inf
    for flow in live:
        if when[flow] > limit:
            continue
        now = max(now, when[flow])
        if state[flow] == WAITING:
            state[flow], rate[flow], lowest = ACTIVE, 0.0, 0.0
            continue
        lowest = min(lowest, level[flow])
        for at in range(paths[0][flow], paths[0][flow + 1]):
            free[paths[1][at]] += rate[flow]
        rounds[flow] -= 1
        state[flow] = WAITING if rounds[flow] else DONE
        when[flow] += pause if rounds[flow] else 0.0
    return now, lowest


@njit(cache=True)
def _sort_out(
    state: Ints, level: Floats, lowest: float, live: Ints, chosen: Ints
) -> tuple[int, int]:
    """Move what is not done to the front, and choose what changes; return how many of each."""
    kept, growing = 0, 0
    for flow in live:
        if state[flow] == DONE:
            continue
        live[kept] = flow
        kept += 1
        if state[flow] == ACTIVE and level[flow] >= lowest * (1 - SAME_MOMENT):
            chosen[growing] = flow
            growing += 1
    return kept, growing


@njit(cache=True)
def _take_back(
    paths: tuple[Ints, Ints],
    part: Floats,
    lowest: float,
    capacity: Floats,
    when: Floats,
    rate: Floats,
    free: Floats,
    chosen: Ints,
    now: float,
) -> None:
    """Free what the chosen flows use; their `when` becomes what each has left, in bytes."""
    for flow in chosen:
        if rate[flow] == 0.0:
            when[flow] = part[flow]
            continue
        when[flow] = max(0.0, when[flow] - now) * rate[flow]
        for at in range(paths[0][flow], paths[0][flow + 1]):
            free[paths[1][at]] += rate[flow]
    if lowest == 0.0:  # All is free again, and without what rounding left behind.
        free[:] = capacity


@njit(cache=True)
def fill(
    paths: tuple[Ints, Ints], weight: Floats, chosen: Ints, level: Floats, free: Floats
) -> None:
    """Set the levels of the chosen flows, which share what is free, and take it away from that."""
    start, resource = paths
    left = np.zeros(len(free), dtype=np.int64)
    heavy = np.zeros(len(free))
    for flow in chosen:
        for at in range(start[flow], start[flow + 1]):
            left[resource[at]] += 1
            heavy[resource[at]] += weight[flow]
    first = np.zeros(len(free) + 1, dtype=np.int64)
    first[1:] = np.cumsum(left)
    cursor = first[:-1].copy()
    users = np.empty(first[-1], dtype=np.int64)
    for index in range(len(chosen)):
        flow = chosen[index]
        for at in range(start[flow], start[flow + 1]):
            users[cursor[resource[at]]] = index
            cursor[resource[at]] += 1
    heap = [(free[each] / heavy[each], each) for each in range(len(free)) if left[each]]
    heapq.heapify(heap)
    settled = np.zeros(len(chosen), dtype=np.bool_)
    while heap:
        share, each = heapq.heappop(heap)
        if left[each] == 0:
            continue
        # What others left behind only ever makes a share larger: look again before it counts.
        fair = free[each] / heavy[each]
        if fair > share * (1 + 1e-12):
            heapq.heappush(heap, (fair, each))
            continue
        for at_user in range(first[each], first[each + 1]):
            index = users[at_user]
            if settled[index]:
                continue
            settled[index] = True
            flow = chosen[index]
            level[flow] = fair
            for at in range(start[flow], start[flow + 1]):
                free[resource[at]] -= weight[flow] * fair
                heavy[resource[at]] -= weight[flow]
                left[resource[at]] -= 1
