"""Whole items on links within budgets: each picks a path of its pair and a phase.

The negotiation is that of `paths.negotiate`, over a given choice of paths instead of all. A phase
has its own copy of every link; with one phase this picks paths (weights to chunks), with one path
it picks phases (injection control).
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import TypeVar

import numpy as np
from numba import njit

from alltoall.ir.arrays import Floats, Ints
from alltoall.ir.topology import Topology
from alltoall.lp.settings import never
from alltoall.paths.negotiate import BUDGET_ROUNDING, HARDEST_LESSON, LESSON, Pace, until_within
from alltoall.settings import Late

UNPLACED = -1
"""The phase of an item that has no place yet."""

LISTED_PACE = Pace(pressure=1.0, growth=1.2, patience=61)
"""Few places to choose from take a gentler pressure and more patience than all there are."""

PRICED_PER_CALL = 1_000_000
"""Places that are priced in one call of the compiled code, so that Ctrl-C is heard."""

Answer = TypeVar("Answer")


@dataclass(frozen=True, eq=False)
class ListedChunks:
    """Item i of `size[i]` takes one of the paths `low[i]` to `high[i] - 1`.

    Path p is `link[start[p]:start[p + 1]]`.
    """

    start: Ints
    link: Ints
    low: Ints
    high: Ints
    size: Floats

    @property
    def count(self) -> int:
        """The number of items."""
        return len(self.size)


@dataclass(frozen=True, eq=False)
class Placement:
    """The path and the phase of every item."""

    path: Ints
    phase: Ints


def negotiate_listed(
    topology: Topology,
    items: ListedChunks,
    begin: Placement,
    budget: Floats,
    rounds: int,
    seed: int,
    late: Late = never,
) -> Placement | None:
    """Return places in which no link of phase k is used for longer than `budget[k]`, if found.

    It is given up when it is `late`.
    """
    order = np.random.default_rng(seed).permutation(items.count).astype(np.int64)
    places = Placement(np.array(begin.path), np.array(begin.phase))
    paths = (items.start, items.link, 1.0 / topology.capacity)
    load, history = np.zeros((2, len(budget), topology.links))
    _place_all(paths, items.size, places.path, places.phase, load)
    talks = _OnLists(paths, items, order, (load, history, budget), places)
    return places if until_within(talks, items.count, rounds, late, LISTED_PACE) else None


@dataclass(frozen=True, eq=False)
class _OnLists:
    """Items in an order, their places, and what these put on the links of each phase."""

    paths: tuple[Ints, Ints, Floats]
    items: ListedChunks
    order: Ints
    phases: tuple[Floats, Floats, Floats]
    places: Placement

    def reroute(self, begin: int, pressure: float) -> int:
        """Let some of the items over a budget look for a place."""
        items = self.items
        stopped: int = _reroute(
            self.paths,
            (items.low, items.high, items.size, self.order),
            self.phases,
            pressure,
            begin,
            self.places.path,
            self.places.phase,
        )
        return stopped

    def learn(self) -> float:
        """Make links over the budget of a phase dearer."""
        load, history, budget = self.phases
        over: float = _learn(load, history, self.paths[2], budget, self.items.size)
        return over

    def complete(self) -> bool:
        """Whether all have a place: they do, once they have looked."""
        return True


def phase_loads(topology: Topology, items: ListedChunks, places: Placement, phases: int) -> Floats:
    """Return for how long each link is used in each phase, shape [phases, links]."""
    hops = np.diff(items.start)[places.path]
    entry = np.repeat(items.start[places.path] - np.cumsum(hops) + hops, hops)
    link = items.link[entry + np.arange(len(entry))]
    spot = np.repeat(places.phase, hops) * topology.links + link
    used = np.bincount(spot, np.repeat(items.size, hops), phases * topology.links)
    return np.asarray(used.reshape(phases, topology.links) / topology.capacity, dtype=np.float64)


def first_found(last: int, attempt: Callable[[int], Answer | None]) -> Answer | None:
    """Return the result of the lowest of the tries 0..last that gives any, by bisection.

    The first try is 0, which is the best there can be and often works.
    """
    best = attempt(0)
    if best is not None or last < 1:
        return best
    low, high = 0, last + 1
    while high - low > 1:
        middle = (low + high) // 2
        found = attempt(middle)
        if found is None:
            low = middle
        else:
            best, high = found, middle
    return best


@njit(cache=True)
def _place_all(
    paths: tuple[Ints, Ints, Floats], size: Floats, path: Ints, phase: Ints, load: Floats
) -> None:
    """Add up what the items with a place put on the links."""
    for item in range(len(size)):
        if phase[item] != UNPLACED:
            _add(load[phase[item]], paths[0], paths[1], paths[2], path[item], size[item])


@njit(cache=True)
def _reroute(
    paths: tuple[Ints, Ints, Floats],
    items: tuple[Ints, Ints, Floats, Ints],
    phases: tuple[Floats, Floats, Floats],
    pressure: float,
    begin: int,
    path: Ints,
    phase: Ints,
) -> int:
    """Let the items from `order[begin]` on look for a place; return where it stopped."""
    start, link, width = paths
    low, high, size, order = items
    load, _, budget = phases
    pressure /= size.mean()
    priced = 0
    for at in range(begin, len(order)):
        item = order[at]
        if phase[item] != UNPLACED:
            used = load[phase[item]]
            if _fits(used, start, link, path[item], budget[phase[item]]):
                continue
            _add(used, start, link, width, path[item], -size[item])
        path[item], phase[item] = _cheapest(
            phases, paths, low[item], high[item], size[item], pressure
        )
        _add(load[phase[item]], start, link, width, path[item], size[item])
        priced += (high[item] - low[item]) * len(budget)
        if priced > PRICED_PER_CALL:
            return at + 1
    return len(order)


@njit(cache=True)
def _cheapest(
    phases: tuple[Floats, Floats, Floats],
    paths: tuple[Ints, Ints, Floats],
    low: int,
    high: int,
    size: float,
    pressure: float,
) -> tuple[int, int]:
    """Return the path and the phase in which an item costs least."""
    load, history, budget = phases
    best, path, phase = np.inf, low, 0
    for each in range(low, high):
        for k in range(len(budget)):
            cost = _cost((load[k], history[k]), paths, each, size, budget[k], pressure, best)
            if cost < best:
                best, path, phase = cost, each, k
    return path, phase


@njit(cache=True)
def _cost(
    phase: tuple[Floats, Floats],
    paths: tuple[Ints, Ints, Floats],
    path: int,
    size: float,
    budget: float,
    pressure: float,
    best: float,
) -> float:
    """Price a place: how full its links would be, and much more where they would be over."""
    start, link, width = paths
    load, history = phase
    cost = 0.0
    for index in range(start[path], start[path + 1]):
        each = link[index]
        share = size * width[each]
        filled = load[each] + share
        over = max(0.0, filled - budget) / width[each]
        cost += (1.0 + history[each]) * (0.25 + filled / max(budget, share) + pressure * over)
        if cost >= best:
            break
    return cost


@njit(cache=True)
def _learn(load: Floats, history: Floats, width: Floats, budget: Floats, size: Floats) -> float:
    """Make links over their budget dearer; return how much they are over it in all."""
    total, grain = 0.0, size.mean()
    for k in range(len(budget)):
        for each in range(load.shape[1]):
            over = (load[k, each] - budget[k] * (1 + BUDGET_ROUNDING)) / width[each]
            if over > 0.0:
                total += over
                history[k, each] += LESSON * min(HARDEST_LESSON, max(1.0, over / grain))
    return total


@njit(cache=True)
def _fits(used: Floats, start: Ints, link: Ints, path: int, budget: float) -> bool:
    for index in range(start[path], start[path + 1]):
        if used[link[index]] > budget * (1 + BUDGET_ROUNDING):
            return False
    return True


@njit(cache=True)
def _add(used: Floats, start: Ints, link: Ints, width: Floats, path: int, size: float) -> None:
    for index in range(start[path], start[path + 1]):
        used[link[index]] += size * width[link[index]]
