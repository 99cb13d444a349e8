"""Search for wirings of short distances: symmetric ones first, then any.

Lifts are found and certified in milliseconds. Annealing finds wirings without symmetry, from a
regular start and from the best so far, and then balances their link loads, which decide near the
bound. The cost of a move grows with nodes x links, so the number of moves falls with the size, and
grows with the time limit.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import count

import numpy as np

from alltoall.designs.lift_search import search_lifts
from alltoall.designs.wiring import Aim, Annealing, Wiring, least_time
from alltoall.settings import SolveSettings


@dataclass(frozen=True)
class AnnealParams:
    """Effort of one annealing.

    Its moves, `least_moves` to `most_moves`, touch `work` words: links x words of a set x moves.
    Moves for even loads, `least_even_moves` to `most_even_moves`, touch `even_work` links: links x
    sources x moves. Above `most_nodes` only symmetric wirings are searched.
    """

    most_moves: int = 200_000
    least_moves: int = 2_000
    work: float = 4e8
    most_even_moves: int = 10_000
    least_even_moves: int = 200
    even_work: float = 5e8
    most_nodes: int = 2048


@dataclass(frozen=True)
class Cooling:
    """The temperatures of an annealing, in hops, and whether it starts from the best so far.

    The first temperature is `hot`, and for cables `share` more for each node: one-way links start
    from generalized Kautz graphs, which heat destroys.
    """

    hot: float
    cold: float
    share: float = 0.0
    from_best: bool = False

    def temperatures(self, wiring: Wiring) -> tuple[float, float]:
        """Return the first and the last; a cable changes the distances in both directions."""
        if wiring.directed:
            return self.hot, self.cold
        return 2 * self.hot + self.share * wiring.nodes, 2 * self.cold


COOLINGS = (
    Cooling(1.0, 0.5, share=0.05),
    Cooling(0.5, 0.2, share=0.01),
    Cooling(1.0, 0.2),
    Cooling(0.35, 0.1),
    Cooling(1.0, 0.2, from_best=True),
    Cooling(0.35, 0.1, from_best=True),
)
"""Cooling schedules, tried in turn with a growing number of moves: the best depends on size and
degree."""

EVEN_COOLING = Cooling(0.35, 0.1)
"""The temperatures of annealing for even loads."""

EVEN = Aim(even=True)
"""Short distances and even loads."""


@dataclass(frozen=True, eq=False)
class Found:
    """A wiring, its name, the bound on its time by distances, and its rank.

    The rank is the time by its link loads if even loads are the aim.
    """

    name: str
    wiring: Wiring
    time: float
    rank: float


class Pool:
    """The best few wirings found.

    Wirings of equal distances may balance differently, so all are kept from different searches.
    """

    def __init__(self, most: int) -> None:
        self.most = most
        self.found: list[Found] = []

    def offer(self, found: Found) -> None:
        """Keep a wiring if it is among the best and within its budget."""
        known = any(found.name == each.name and found.rank == each.rank for each in self.found)
        if not known and found.wiring.paid() <= found.wiring.budget:
            self.found = sorted([*self.found, found], key=lambda each: each.rank)[: self.most]

    def __iter__(self) -> Iterator[Found]:
        return iter(self.found)


def search_regular(
    wiring: Wiring,
    degree: int,
    seed: int,
    settings: SolveSettings,
    most: int,
    effort: float = 1.0,
    known: Wiring | None = None,
) -> Pool:
    """Return the best wirings of this degree; with a time limit, use all the time.

    A `known` wiring, such as that of the catalogue, is one more start.
    """
    pool, late = Pool(most), settings.sharing(0.5).out_of_time
    if wiring.nodes > degree + 1:
        for lift in search_lifts(wiring.nodes, degree, wiring.directed, seed, effort, late):
            time = lift.cost / degree
            if len(pool.found) < pool.most or time < pool.found[-1].rank:
                found = lift.wiring()
                pool.offer(Found(f"lift {lift.name}", found, time, least_time(found, EVEN)))
                settings.report(f"lifts: time at least {pool.found[0].time:.6g}")
    anneal_into(pool, wiring, Aim(), seed, settings, effort, known)
    return pool


def anneal_into(
    pool: Pool,
    wiring: Wiring,
    aim: Aim,
    seed: int,
    settings: SolveSettings,
    effort: float = 1.0,
    known: Wiring | None = None,
) -> None:
    """Anneal from one seed after the other, and offer the results.

    Round r takes r times the moves of the first, so an effort of 1, 3, 6, 10 is 1, 2, 3, 4 rounds.
    """
    if wiring.nodes > AnnealParams.most_nodes or len(wiring.ends) < 2:
        return
    rounds = max(1, int((np.sqrt(8 * effort + 1) - 1) / 2))
    for run in count() if settings.time_limit is not None else range(rounds * len(COOLINGS)):
        cooling = COOLINGS[run % len(COOLINGS)]
        start = wiring
        if cooling.from_best:
            best, start = next(iter(pool), None), known or wiring
            if best is not None and best.rank <= least_time(start, EVEN):
                start = best.wiring
        more = min(effort, 1.0) * (1 + run // len(COOLINGS))
        # Plain distances are annealed once more, for even loads.
        steps = ((aim, cooling), (EVEN, EVEN_COOLING)) if aim.plain else ((aim, cooling),)
        for step_aim, step_cooling in steps:
            start = _anneal(start, step_aim, step_cooling, seed + run, settings, more)
            times = least_time(start, aim), least_time(start, EVEN if aim.plain else aim)
            pool.offer(Found(f"annealed, seed {seed + run}", start, *times))
        if settings.out_of_time():
            return


def _anneal(
    start: Wiring, aim: Aim, cooling: Cooling, seed: int, settings: SolveSettings, effort: float
) -> Wiring:
    """Return the best wiring of one annealing until the time is up."""
    annealing = Annealing(start, aim, seed)
    for cost in annealing.round(_moves(start, aim, effort), *cooling.temperatures(start)):
        if settings.out_of_time():
            break
        settings.report(f"annealing, seed {seed}: time at least {cost / start.links:.6g}")
    return annealing.found()


def _moves(wiring: Wiring, aim: Aim, effort: float) -> int:
    """Return the number of moves of an annealing."""
    if aim.even:
        moves = AnnealParams.even_work / (wiring.links * wiring.nodes)
        limits = AnnealParams.least_even_moves, AnnealParams.most_even_moves
    else:
        words = wiring.links * -(-wiring.nodes // 64) * (wiring.links if aim.failures else 1)
        moves = AnnealParams.work / words
        limits = AnnealParams.least_moves, AnnealParams.most_moves
    return 1 + int(effort * np.clip(moves, *limits))
