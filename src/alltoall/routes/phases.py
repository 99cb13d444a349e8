"""Injection control: routes split into phases, so that few flows are active at once.

Routes of a phase run together, phases run in turn, and a phase lasts as long as its busiest link.
Each route goes to one of K phases so that the total time stays within a stated loss of the time of
all routes at once. Every phase gets an equal budget, in whole chunks if possible, and the routes
negotiate until all budgets hold (`placing.listed`). Then routes move, within the budgets, to phases
in which their source has fewer flows.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

from alltoall import core
from alltoall.errors import InputError, UsageError
from alltoall.ir.arrays import Floats, Ints, frozen
from alltoall.ir.routes import Routes
from alltoall.lp.settings import never
from alltoall.placing.listed import (
    UNPLACED,
    Choice,
    ListedChunks,
    first_found,
    negotiate_listed,
    phase_loads,
)
from alltoall.routes.weights import TARGETS, tries_for
from alltoall.settings import Late


@dataclass(frozen=True, eq=False)
class Phases:
    """Route r runs in phase `phase[r]`; phases are numbered from 0 and none is empty."""

    routes: Routes
    phase: Ints

    def __post_init__(self) -> None:
        object.__setattr__(self, "phase", frozen(self.phase, np.int64))
        if self.phase.shape != (self.routes.count,):
            raise InputError(
                f"{len(self.phase)} phases for {self.routes.count} routes; expected one per route"
            )
        if not np.array_equal(np.unique(self.phase), np.arange(self.phase.max() + 1)):
            raise InputError("the phases have gaps in their numbers; expected 0, 1, 2, ... in use")

    @property
    def count(self) -> int:
        """The number of phases."""
        return int(self.phase.max()) + 1

    @cached_property
    def times(self) -> Floats:
        """The time of each phase: the largest load over the capacity of any link in it."""
        used = phase_loads(
            self.routes.problem.topology,
            _items(self.routes),
            Choice(np.arange(self.routes.count), self.phase),
            self.count,
        )
        return frozen(used.max(axis=1), np.float64)

    @property
    def time(self) -> float:
        """The total time of all phases."""
        return float(self.times.sum())

    @property
    def loss(self) -> float:
        """The cost of phases: their time over that of all routes at once, less one."""
        return self.time / self.routes.time - 1

    @cached_property
    def active(self) -> Ints:
        """The number of flows of each phase."""
        return np.bincount(self.phase, minlength=self.count)

    @cached_property
    def active_of_source(self) -> Ints:
        """The number of flows of each phase and source, shape [phases, terminals]."""
        terminals = len(self.routes.problem.topology.terminals)
        key = self.phase * terminals + self.routes.source
        return np.bincount(key, minlength=self.count * terminals).reshape(self.count, terminals)

    def summary(self) -> dict[str, Any]:
        """Return the numbers to print."""
        return {
            "phases": self.count,
            "flows": self.routes.count,
            "max_active_flows": int(self.active.max()),
            "mean_active_flows": float(self.active.mean()),
            "max_active_flows_per_source": int(self.active_of_source.max()),
            "mean_active_flows_per_source": float(self.active_of_source.mean()),
            "phased_time": self.time,
            "phase_loss": self.loss,
        }


def split_phases(routes: Routes, phases: int | None, loss: float, late: Late = never) -> Phases:
    """Split routes into `phases` phases, or into as many as the stated loss allows if None.

    When it is `late`, the search for more phases, or for a smaller loss, ends.
    """
    if not 0 <= loss <= 10:
        raise UsageError(f"loss {loss:g}; expected a share from 0 to 10")
    if phases is None:
        return _most_phases(routes, loss, late)
    if not 1 <= phases <= routes.count:
        raise UsageError(
            f"{phases} phases for {routes.count} routes; expected 1 to {routes.count} phases"
        )
    found = first_found(TARGETS, lambda step: _try(routes, phases, loss * step / TARGETS, late))
    if found is None:
        raise InputError(
            f"no {phases} phases of these {routes.count} routes within a loss of {loss:.4g} "
            f"were found; allow {'more time, ' if late() else ''}a larger loss, fewer phases, "
            "or cut the shards into more chunks"
        )
    return found


def _most_phases(routes: Routes, loss: float, late: Late) -> Phases:
    """Try as many phases as can be, then double their number while that works, then bisect."""
    most_phases = min(routes.count, int(routes.time * (1 + loss) / float(_own_time(routes).max())))
    best, low, high = _all_at_once(routes), 1, most_phases + 1
    middle = most_phases
    while low < middle < high:
        found = _try(routes, middle, loss, late)
        if found is None:
            high = middle
        else:
            best, low = found, middle
        middle = min(2 * low, (low + high) // 2)
    return best


def _all_at_once(routes: Routes) -> Phases:
    return Phases(routes, np.zeros(routes.count, dtype=np.int64))


def _try(routes: Routes, phases: int, loss: float, late: Late) -> Phases | None:
    """Return exactly this many phases within the loss, or None if none are found."""
    if phases == 1:
        return _all_at_once(routes)
    items = _items(routes)
    nowhere = Choice(np.arange(routes.count), np.full(routes.count, UNPLACED))
    for budget in _budgets(routes, phases, loss):
        for seed in range(tries_for(routes.count)):
            topology = routes.problem.topology
            places = negotiate_listed(topology, items, nowhere, budget, seed, late)
            if places is not None:
                phase = _even_out(routes, places, budget)
                # A phase that nothing needed would be a number only.
                return Phases(routes, phase) if len(np.unique(phase)) == phases else None
    return None


def _items(routes: Routes) -> ListedChunks:
    """Return every route as an item with one path."""
    every = np.arange(routes.count, dtype=np.int64)
    return ListedChunks(routes.start, routes.link, every, every + 1, routes.weight)


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


def _even_out(routes: Routes, places: Choice, budget: Floats) -> Ints:
    """Return phases with fewer flows of a source at once, still within the budgets."""
    topology, phase = routes.problem.topology, np.array(places.phase)
    load = phase_loads(topology, _items(routes), places, len(budget))
    time = routes.weight[routes.path_of_link] / topology.capacity[routes.link]
    active = np.zeros((len(budget), len(topology.terminals)), dtype=np.int64)
    np.add.at(active, (phase, routes.source), 1)
    limit, paths = budget * (1 + 1e-9), (routes.start, routes.link, time)
    while core.even_phases(*paths, routes.source, limit, load, active, phase):
        pass
    return phase
