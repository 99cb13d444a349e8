"""Injection control: routes split into phases, so that few flows are active at once.

Routes of a phase run together, phases run in turn, and a phase lasts as long as its busiest link.
Each route goes to one of K phases so that the total time stays within a stated loss of the time of
all routes at once. Every phase gets an equal budget, in whole chunks if possible, and the routes
negotiate until all budgets hold (`placing.listed`). Then routes move, within the budgets, to phases
in which their source has fewer flows.
"""

from collections.abc import Iterator
from itertools import pairwise

import numpy as np

from alltoall.errors import InputError, UsageError
from alltoall.ir.arrays import Floats, Ints
from alltoall.ir.routes import Routes
from alltoall.placing.listed import (
    UNPLACED,
    Choice,
    ListedChunks,
    first_found,
    negotiate_listed,
    phase_loads,
)
from alltoall.routes.weights import TARGETS, tries_for


def split_phases(routes: Routes, phases: int | None, loss: float) -> Ints:
    """Return the phase of each route, of `phases` or, if None, of as many as the loss allows."""
    if not 0 <= loss <= 10:
        raise UsageError(f"loss {loss:g}; expected a share from 0 to 10")
    if phases is None:
        # As many as can be, then twice as many while that works, then by bisection.
        most = min(routes.count, int(routes.time * (1 + loss) / float(_own_time(routes).max())))
        best, low, middle, high = np.zeros(routes.count, dtype=np.int64), 1, most, most + 1
        while low < middle < high:
            found = _try(routes, middle, loss)
            if found is None:
                high = middle
            else:
                best, low = found, middle
            middle = min(2 * low, (low + high) // 2)
        return best
    if not 1 <= phases <= routes.count:
        raise UsageError(
            f"{phases} phases for {routes.count} routes; expected 1 to {routes.count} phases"
        )
    found = first_found(TARGETS, lambda step: _try(routes, phases, loss * step / TARGETS))
    if found is None:
        raise InputError(
            f"no {phases} phases of these {routes.count} routes within a loss of {loss:.4g} "
            "were found; allow a larger loss, fewer phases, or cut the shards into more chunks"
        )
    return found


def _try(routes: Routes, phases: int, loss: float) -> Ints | None:
    """Return exactly this many phases within the loss, or None if none are found."""
    if phases == 1:
        return np.zeros(routes.count, dtype=np.int64)
    every = np.arange(routes.count, dtype=np.int64)
    items = ListedChunks(routes.start, routes.link, every, every + 1, routes.weight)
    nowhere = Choice(every, np.full(routes.count, UNPLACED))
    for budget in _budgets(routes, phases, loss):
        for seed in range(tries_for(routes.count)):
            topology = routes.problem.topology
            places, fits = negotiate_listed(topology, items, nowhere, budget, seed)
            if fits:
                phase = _even_out(routes, items, places, budget)
                # A phase that nothing needed would be a number only.
                return phase if len(np.unique(phase)) == phases else None
    return None


def _budgets(routes: Routes, phases: int, loss: float) -> Iterator[Floats]:
    """Yield times for the phases: in whole chunks, in the largest weights, and equal ones.

    The rest after whole weights is shared equally. Times below the largest route are skipped.
    """
    total = routes.time * (1 + loss)
    widest = float(routes.problem.topology.capacity.max())
    largest = float(_own_time(routes).max())
    finest = 0.0 if routes.denominator is None else 1.0 / (routes.denominator * widest)
    for unit in dict.fromkeys((finest, float(routes.weight.max()) / widest)):
        whole = int(np.floor(total / unit * (1 + 1e-9))) if unit else 0
        parts = whole // phases + (np.arange(phases) < whole % phases)
        left = 0.0 if unit and unit == finest else max(0.0, total - whole * unit)
        budget = parts * unit + left / phases
        if budget.min() > 0 and budget.max() * (1 + 1e-9) >= largest:
            yield np.asarray(budget, dtype=np.float64)


def _own_time(routes: Routes) -> Floats:
    """Return the time of each route alone."""
    narrowest = np.minimum.reduceat(
        routes.problem.topology.capacity[routes.link], routes.start[:-1]
    )
    return np.asarray(routes.weight / narrowest, dtype=np.float64)


def _even_out(routes: Routes, items: ListedChunks, places: Choice, budget: Floats) -> Ints:
    """Return phases with fewer flows of a source at once, still within the budgets."""
    topology, phase = routes.problem.topology, np.array(places.phase)
    load = phase_loads(topology, items, places, len(budget))
    time = routes.weight[routes.path_of_link] / topology.capacity[routes.link]
    active = np.zeros((len(budget), len(topology.terminals)), dtype=np.int64)
    np.add.at(active, (phase, routes.source), 1)
    start, link = routes.start, routes.link
    rows = [(link[low:high], time[low:high]) for low, high in pairwise(start)]
    while even_phases(rows, routes.source, budget * (1 + 1e-9), load, active, phase):
        pass
    return phase


def even_phases(
    rows: list[tuple[Ints, Floats]],
    source: Ints,
    budget: Floats,
    load: Floats,
    active: Ints,
    phase: Ints,
) -> bool:
    """Move routes to phases where their source has fewer flows, in place; return whether any did.

    A row has the links of a route and the time that it takes of each. `active` counts the flows of
    each phase and source.
    """
    moved = False
    for route, (links, time) in enumerate(rows):
        flows = active[:, source[route]]  # a view, which follows every move
        for there in np.flatnonzero(flows + 1 < flows[phase[route]]):
            here, after = phase[route], load[there, links] + time
            if flows[there] + 1 >= flows[here] or (after > budget[there]).any():
                continue
            load[there, links] = after
            load[here, links] -= time
            flows[here] -= 1
            flows[there] += 1
            phase[route], moved = there, True
    return moved
