"""Negotiated congestion: the one loop in which all move until nothing is over its budget.

The idea is that of PathFinder, the router of field-programmable gate arrays: everyone takes its
cheapest place, links that are over their budget become dearer, now and for good, and those who pass
them look for another place. Starting from the optimal fractional flow, few chunks ever have to
move. `until_within` is the negotiation; there are three ways to find the cheapest place:

| places | cheapest by | where |
|---|---|---|
| all paths of a graph | a tree of shortest paths | `paths.any_path` |
| all paths of a graph unrolled in time | a sweep (`paths.steps`) | `paths.any_path` |
| some listed paths, each in one of some phases | trying each | `paths.listed` |
"""

from dataclasses import dataclass
from typing import Protocol

import numpy as np

from alltoall.settings import Late

BUDGET_ROUNDING = 1e-9
"""A load above its budget by less than this, or by less than this share of it, is within it."""

LESSON, HARDEST_LESSON = 0.3, 3.0
"""How much dearer a link is for good for every chunk over its budget, up to so many chunks."""

MOST_PRESSURE = 1e3
"""The most that a chunk over the budget counts, however many rounds there are."""


@dataclass(frozen=True)
class Pace:
    """How a negotiation gets serious: pressure per chunk over a budget, at first and its growth.

    After `patience` rounds without progress it is given up.
    """

    pressure: float = 0.5
    growth: float = 1.3
    patience: int = 40


class Talks(Protocol):
    """What is negotiated, and where everyone is."""

    def reroute(self, begin: int, pressure: float) -> int:
        """Let some of those over a budget, from a place in the order on, look for another place.

        Return where it stopped.
        """

    def learn(self) -> float:
        """Make what is over its budget dearer for good; return by how much all is over."""

    def complete(self) -> bool:
        """Whether everyone has a place."""


def until_within(talks: Talks, count: int, rounds: int, late: Late, pace: Pace) -> bool:
    """Negotiate between `count` until all budgets hold; return whether they do.

    It ends early when it is `late`. Only a part of a round is done at a time, so that Ctrl-C and
    the time limit are heard in between.
    """
    pressure, least, stale = pace.pressure, np.inf, 0
    for _ in range(rounds):
        done = 0
        while done < count:
            if late():
                return False
            done = talks.reroute(done, pressure)
        excess = talks.learn()
        if excess == 0.0 and talks.complete():
            return True
        stale = 0 if excess < least else stale + 1
        least = min(least, excess)
        if stale == pace.patience:
            return False
        pressure = min(pressure * pace.growth, MOST_PRESSURE)
    return False
