"""The search for short distances: symmetric wirings first, then any, and the best of both kept.

Lifts are searched in milliseconds and certified in as many, and are what is best for most sizes;
annealing without symmetry is for the rest, such as primes. Cost grows with nodes x links for a move
of either, so moves are made until the work for this size is done, and more if there is time.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import count

import numpy as np

from a2aflow.designs.lift_search import search_lifts
from a2aflow.designs.wiring import Aim, Annealing, Wiring
from a2aflow.settings import SolveSettings

MOVES, LEAST_MOVES = 40_000, 2_000
"""Moves of one annealing, at most and at least."""

WORK = 4e8
"""Words that the moves of one annealing may touch: links x words of a set x moves."""

RUNS = 2
"""Annealings from different seeds, if there is no time limit."""

RUNS_CONSTRAINED = 6
"""The same where links stay, so that loads balance less by themselves."""

MOST_ANNEALED = 2048
"""Nodes beyond which only symmetric wirings are searched."""

WARM = 0.01
"""The temperature for each node, at first, of an annealing that starts from what is good."""


@dataclass(frozen=True, eq=False)
class Found:
    """A wiring, what it is called, and the least time that its distances allow."""

    name: str
    wiring: Wiring
    time: float


class Pool:
    """The best few of all that was found, each once.

    Equal distances need not balance equally, so they are kept if they come from different searches.
    """

    def __init__(self, most: int) -> None:
        self.most = most
        self.found: list[Found] = []

    def offer(self, found: Found) -> None:
        """Keep what is found, if it is among the best."""
        if all(found.name != each.name or found.time != each.time for each in self.found):
            self.found = sorted([*self.found, found], key=lambda each: each.time)[: self.most]

    def __iter__(self) -> Iterator[Found]:
        return iter(self.found)


def search_regular(
    wiring: Wiring, degree: int, seed: int, settings: SolveSettings, most: int, effort: float = 1.0
) -> Pool:
    """Return the best wirings of this degree, and go on for as long as a time limit allows."""
    pool = Pool(most)
    _offer_lifts(pool, wiring, degree, seed, settings.sharing(0.5), effort)
    anneal_into(pool, wiring, Aim(), seed, settings, effort)
    return pool


def _offer_lifts(
    pool: Pool, wiring: Wiring, degree: int, seed: int, settings: SolveSettings, effort: float
) -> None:
    nodes, late = wiring.nodes, settings.out_of_time
    if nodes > degree + 1:
        for lift in search_lifts(nodes, degree, wiring.directed, seed, effort, late):
            time = lift.cost / degree
            if len(pool.found) < pool.most or time < pool.found[-1].time:
                pool.offer(Found(f"lift {lift.name}", lift.wiring(), time))
                settings.report(f"lifts: time at least {pool.found[0].time:.6g}")


def anneal_into(
    pool: Pool, wiring: Wiring, aim: Aim, seed: int, settings: SolveSettings, effort: float = 1.0
) -> None:
    """Anneal from one seed after the other, and offer what each finds."""
    if wiring.nodes > MOST_ANNEALED or len(wiring.ends) < 2:
        return
    words = wiring.links * -(-wiring.nodes // 64) * (wiring.links if aim.failures else 1)
    moves = int(np.clip(WORK * effort / words, LEAST_MOVES, MOVES))
    most = RUNS if len(wiring.fixed) == 0 else RUNS_CONSTRAINED
    runs = count() if settings.time_limit is not None else range(most)
    for run in runs:
        annealing = Annealing(wiring, aim, seed + run)
        for cost in annealing.round(moves * (1 + run // RUNS), WARM if run % 2 else 5 * WARM):
            if settings.out_of_time():
                break
            settings.report(
                f"annealing, seed {seed + run}: time at least {cost / wiring.links:.6g}"
            )
        found = annealing.found()
        if found.paid() <= found.budget:
            pool.offer(Found(f"annealed, seed {seed + run}", found, annealing.least / wiring.links))
        if settings.out_of_time():
            return
