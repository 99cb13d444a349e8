"""Rounds of finer chunks on the same paths, and orders without their last steps.

Rounds follow one another, a period apart. A cycle says in which of W steps each chunk passes each
leg of its path, and after how many steps, the period P, the next round of chunks follows. In every
step the load of all rounds on a link is then that of one round in all steps that are a multiple of
P apart. So R rounds, each with 1 / R of a chunk, take, with the durations d[0..P-1] of the P steps
of a cycle,

    (R (d[0] + ... + d[P-1])  +  d[P mod P] + ... + d[(W-1) mod P]) / R

at most: only the W - P steps at the beginning and the end are lost. That helps if few pairs send
over long paths, where links at the ends would idle. Two cycles are tried. In a pipeline leg h is
passed in step h, and P is 1, without any search. In a short cycle a step takes as long as one
chunk, and P is the number of chunks on the busiest link; chunks negotiate for links and steps
modulo P, in the fewest steps W found.

An order is shortened (`tighten`) while all chunks fit into the other steps. List scheduling keeps
chunks on their paths. If few pairs send much over long paths, the last links of a path idle until
the first chunk arrives, and the first ones while the last chunk goes on. So the chunks negotiate
(`placing.negotiate`) for links and steps at once, starting from a list of short steps and its
durations. The number of dropped steps is found by bisection, beginning with one that is good
enough.
"""

from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np

from alltoall.flows import sizes
from alltoall.ir.arrays import Floats, inner_index
from alltoall.ir.chunks import Chunks
from alltoall.ir.paths import NOTHING, Paths
from alltoall.placing.chunks import Chunks as CutChunks
from alltoall.placing.negotiate import negotiate
from alltoall.placing.network import in_steps
from alltoall.schedules.orders import ListParams, Ordered, Placed, legs_of, order_by_list
from alltoall.schedules.search import least_steps
from alltoall.schedules.timestepped import Expansion, without_detours
from alltoall.settings import Late


def tighten(placed: Placed, bound: float, enough: float, late: Late) -> Ordered | None:
    """Return an order of short steps that takes `enough`, or the least time found.

    No order takes less than the `bound`. Return None if the time is up, or if there are too many
    chunks for a negotiation.
    """
    longest = longest_send(placed)
    steps = placed.time / longest
    if len(placed.size) * placed.problem.topology.links * steps > sizes.TIGHTENED_WORK:
        return None
    best = order_by_list(placed, longest, 1.0, late)
    if best is None:
        return None
    durations = best.durations()
    elapsed = np.cumsum(durations)
    # The negotiation needs enough steps for every shortest path.
    shortest = least_steps(placed.problem) - 1
    fails = max(shortest, int(np.searchsorted(elapsed, bound * (1 - 1e-9))))
    works = best.steps
    kept = max(fails + 1, int(np.searchsorted(elapsed, enough * (1 + 1e-9), side="right")))
    while fails + 1 < works and best.time > enough * (1 + 1e-9) and not late():
        found = within(best, durations[:kept], kept, late)
        if found is None:
            fails = kept
        else:
            works, best = kept, found
        kept = (fails + works) // 2
    return best.without_empty()


def longest_send(placed: Placed) -> float:
    """Return the duration of the slowest send of any chunk."""
    capacity, paths = placed.problem.topology.capacity, placed.paths
    return float((placed.size[paths.path_of_link] / capacity[paths.link]).max())


def within(start: Ordered, durations: Floats, steps: int, late: Late) -> Ordered | None:
    """Return an order of at most so many steps within these durations, if one is found.

    Fewer durations than steps repeat, and steps that share a duration share its budget.
    """
    placed = start.placed
    topology = placed.problem.topology
    expansion = Expansion(placed.problem, steps)
    ends = (expansion.starts[placed.paths.source], expansion.ends[placed.paths.destination])
    shared = len(durations) * topology.links
    free = np.full(expansion.graph.links - expansion.timed_links, shared)
    budget = np.outer(durations, topology.capacity).ravel()
    link_class = np.concatenate((np.arange(expansion.timed_links) % shared, free))
    # The path of each chunk in the expanded graph; that of a late chunk is an empty row.
    paths = placed.paths
    switches = topology.nodes - len(topology.terminals)
    table = np.full((paths.count, steps * (1 + switches)), NOTHING, dtype=np.int64)
    early = np.maximum.reduceat(start.step, paths.start[:-1]) < steps
    taken = np.repeat(early, paths.hops)
    timed = start.step * topology.links + paths.link
    table[paths.path_of_link[taken], inner_index(paths.hops)[taken]] = timed[taken]
    found, fits = negotiate(
        in_steps(expansion.graph, steps, topology.links, link_class, budget),
        CutChunks(*ends, placed.size),
        table,
        budget,
        0,
        late,
        grain=float(np.median(placed.size)),
    )
    if not fits:
        return None
    direct = without_detours(expansion, found.astype(np.int64))
    sent = direct != NOTHING
    link = np.where(sent, direct % topology.links, NOTHING)
    paths = Paths.from_table(paths.source, paths.destination, link)
    step = (direct[sent] // topology.links)[legs_of(topology, paths).begin[:-1]]
    return Ordered.of(replace(placed, paths=paths), step)


@dataclass(frozen=True, eq=False)
class Cycle:
    """The order of one round, and the number of steps to the next one."""

    order: Ordered
    period: int

    @cached_property
    def durations(self) -> Floats:
        """The duration of each step of a period while all rounds are under way."""
        placed = self.order.placed
        paths, topology = placed.paths, placed.problem.topology
        load = np.zeros((self.period, topology.links))
        place = self.order.step % self.period, paths.link
        np.add.at(load, place, placed.size[paths.path_of_link])
        return np.asarray((load / topology.capacity).max(axis=1), dtype=np.float64)

    @property
    def time(self) -> float:
        """The time that each round adds."""
        return float(self.durations.sum())

    @property
    def lost(self) -> float:
        """The time lost at the beginning and the end, if the chunks of a round stay whole."""
        return float(self.durations[np.arange(self.period, self.order.steps) % self.period].sum())


def pipeline(placed: Placed) -> Cycle:
    """Return the cycle of period 1, in which every chunk passes leg h in step h."""
    legs = legs_of(placed.problem.topology, placed.paths)
    return Cycle(Ordered.of(placed, inner_index(np.diff(legs.first))), 1)


def short_cycle(placed: Placed, late: Late) -> Cycle | None:
    """Return the cycle of fewest steps found, each as long as a chunk, or None.

    Cycles that lose as much as the pipeline, or take much work, are not tried.
    """
    longest = longest_send(placed)
    period = max(1, round(placed.time / longest))
    begin = order_by_list(placed, longest, 1.0, late)
    if begin is None:
        return None
    durations = np.full(period, placed.time / period)
    legs = legs_of(placed.problem.topology, placed.paths).most
    narrowest = max(period, least_steps(placed.problem))
    for steps in range(narrowest, period * legs, max(1, period // ListParams.finer_window)):
        work = len(placed.size) * placed.problem.topology.links * steps
        if work > sizes.TIGHTENED_WORK or late():
            return None
        found = within(begin, durations, steps, late)
        if found is not None:
            return Cycle(found, period)
    return None


def rounds_for(cycle: Cycle, enough: float) -> int | None:
    """Return the fewest rounds within a time of `enough`, or None if there are none."""
    spare = enough - cycle.time
    return None if spare <= 0 else max(1, int(np.ceil(cycle.lost / spare * (1 - 1e-9))))


def in_rounds(cycle: Cycle, rounds: int) -> Ordered:
    """Return the order of all chunks in a number of rounds."""
    placed, first = cycle.order.placed, cycle.order.legs.first
    legs = np.repeat(np.diff(first), rounds)
    leg = np.repeat(np.repeat(first[:-1], rounds), legs) + inner_index(legs)
    begin = np.repeat(np.tile(np.arange(rounds), placed.paths.count), legs) * cycle.period
    return Ordered.of(_cut(placed, rounds), cycle.order.leg_step[leg] + begin).without_empty()


def _cut(placed: Placed, rounds: int) -> Placed:
    """Cut each chunk into as many parts as there are rounds."""
    every = np.repeat(np.arange(placed.paths.count), rounds)
    chunks = placed.chunks
    if chunks.counts is None:
        finer = Chunks(chunks.ranks, chunks.most * rounds)
    else:
        finer = Chunks(chunks.ranks, counts=chunks.counts * rounds)
    return Placed(
        problem=placed.problem,
        chunks=finer,
        paths=placed.paths.select(every),
        chunk=placed.chunk[every] * rounds + np.tile(np.arange(rounds), placed.paths.count),
        size=placed.size[every] / rounds,
    )
