"""Whole items on links within budgets: each picks a path of its pair and a phase.

The negotiation is that of `paths.negotiate`, over a given choice of paths instead of all: an item
that passes a link over its budget looks for the cheapest of its places, links over their budget
become dearer, now and for good. A phase has its own copy of every link; with one phase this picks
paths (weights to chunks), with one path it picks phases (injection control).
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import TypeVar

import numpy as np
from numba import njit

from a2aflow.ir.arrays import Floats, Ints
from a2aflow.ir.topology import Topology
from a2aflow.lp.settings import never
from a2aflow.settings import Late

UNPLACED = -1
"""The phase of an item that has no place yet."""

PATIENCE = 60
"""Rounds without an improvement after which a negotiation is given up."""

Found = TypeVar("Found")


@dataclass(frozen=True, eq=False)
class Items:
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
class Places:
    """The path and the phase of every item."""

    path: Ints
    phase: Ints


def settle(
    topology: Topology,
    items: Items,
    begin: Places,
    budget: Floats,
    rounds: int,
    seed: int,
    late: Late = never,
) -> Places | None:
    """Return places in which no link of phase k is used for longer than `budget[k]`, if found.

    It is given up when it is `late`.
    """
    order = np.random.default_rng(seed).permutation(items.count).astype(np.int64)
    path, phase = np.array(begin.path), np.array(begin.phase)
    paths = (items.start, items.link, 1.0 / topology.capacity)
    load, history = np.zeros((2, len(budget), topology.links))
    _place_all(paths, items.size, path, phase, load)
    pressure, least, stale = 1.0, np.inf, 0
    for _ in range(rounds):
        if late():
            break
        over = _round(
            paths,
            (items.low, items.high, items.size, order),
            (load, history, budget),
            pressure,
            path,
            phase,
        )
        if over == 0.0:
            return Places(path, phase)
        stale = 0 if over < least else stale + 1
        least = min(least, over)
        if stale > PATIENCE:
            break
        pressure = min(1.2 * pressure, 1e3)
    return None


def loads(topology: Topology, items: Items, places: Places, phases: int) -> Floats:
    """Return for how long each link is used in each phase, shape [phases, links]."""
    hops = np.diff(items.start)[places.path]
    entry = np.repeat(items.start[places.path] - np.cumsum(hops) + hops, hops)
    link = items.link[entry + np.arange(len(entry))]
    spot = np.repeat(places.phase, hops) * topology.links + link
    used = np.bincount(spot, np.repeat(items.size, hops), phases * topology.links)
    return np.asarray(used.reshape(phases, topology.links) / topology.capacity, dtype=np.float64)


def first_found(last: int, attempt: Callable[[int], Found | None]) -> Found | None:
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
def _round(
    paths: tuple[Ints, Ints, Floats],
    items: tuple[Ints, Ints, Floats, Ints],
    phases: tuple[Floats, Floats, Floats],
    pressure: float,
    path: Ints,
    phase: Ints,
) -> float:
    """Let every item look for a place once; return by how much links are over their budgets."""
    start, link, width = paths
    low, high, size, order = items
    load, history, budget = phases
    grain = size.mean()
    for item in order:
        if phase[item] != UNPLACED:
            used = load[phase[item]]
            if _fits(used, start, link, path[item], budget[phase[item]]):
                continue
            _add(used, start, link, width, path[item], -size[item])
        path[item], phase[item] = _cheapest(
            phases, paths, low[item], high[item], size[item], pressure / grain
        )
        _add(load[phase[item]], start, link, width, path[item], size[item])
    over: float = _learn(load, history, width, budget, grain)
    return over


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
def _learn(load: Floats, history: Floats, width: Floats, budget: Floats, grain: float) -> float:
    """Make links over their budget dearer; return how much they are over it in all."""
    total = 0.0
    for k in range(len(budget)):
        for each in range(load.shape[1]):
            over = (load[k, each] - budget[k] * (1 + 1e-9)) / width[each]
            if over > 0.0:
                total += over
                history[k, each] += 0.3 * min(3.0, max(1.0, over / grain))
    return total


@njit(cache=True)
def _fits(used: Floats, start: Ints, link: Ints, path: int, budget: float) -> bool:
    for index in range(start[path], start[path + 1]):
        if used[link[index]] > budget * (1 + 1e-9):
            return False
    return True


@njit(cache=True)
def _add(used: Floats, start: Ints, link: Ints, width: Floats, path: int, size: float) -> None:
    for index in range(start[path], start[path + 1]):
        used[link[index]] += size * width[link[index]]
