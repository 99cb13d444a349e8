"""Rounds: chunks are cut finer and follow one another on the same ways, a period behind.

A cycle says in which of W steps each chunk passes each leg of its path, and after how many steps,
the period P, the next round of chunks follows. In every step then all rounds together put on a link
what one round puts on it in all steps that are a multiple of P apart. So R rounds take, for parts
of R that last as long as the P steps d[0..P-1] of a cycle,

    (R (d[0] + ... + d[P-1])  +  d[P mod P] + ... + d[(W-1) mod P]) / R

at most: only the W - P steps in which the first round comes and the last one goes are lost. It is
the answer where few pairs send over long ways, so that links at their ends have nothing else to do
meanwhile. Two cycles are tried. In a pipeline leg h is passed in step h, and P is 1: that takes no
search. In a short cycle a step takes as long as one chunk, and P is as many as pass the busiest
link; the chunks negotiate for links and steps modulo P, in the fewest steps W that they find.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from alltoall.flows import sizes
from alltoall.ir.arrays import Floats, inner_index
from alltoall.ir.chunks import Chunks
from alltoall.schedules.orders import Ordered, order_by_list, ways_of
from alltoall.schedules.placed import ListParams, Placed
from alltoall.schedules.steps import least_steps
from alltoall.schedules.tighten import longest_send, within
from alltoall.settings import Late


@dataclass(frozen=True, eq=False)
class Cycle:
    """The order of one round, and after how many steps the next one follows."""

    order: Ordered
    period: int

    @cached_property
    def durations(self) -> Floats:
        """How long each step of a period takes when all rounds are on their way."""
        links = self.order.placed.problem.topology.links
        load = np.zeros((self.period, links))
        paths = self.order.placed.paths
        size = self.order.placed.size[paths.path_of_link]
        np.add.at(load, (self.order.step % self.period, paths.link), size)
        slowest = (load / self.order.placed.problem.topology.capacity).max(axis=1)
        return np.asarray(slowest, dtype=np.float64)

    @property
    def time(self) -> float:
        """What each round adds."""
        return float(self.durations.sum())

    @property
    def lost(self) -> float:
        """What coming and going adds, if the chunks of a round are not cut."""
        return float(self.durations[np.arange(self.period, self.order.steps) % self.period].sum())


def pipeline(placed: Placed) -> Cycle:
    """Return the cycle in which every chunk passes leg h in step h, and rounds follow at once."""
    ways = ways_of(placed.problem.topology, placed.paths, placed.size)
    step = inner_index(np.diff(ways.first))
    return Cycle(Ordered.of(placed, step, int(step.max()) + 1), 1)


def short_cycle(placed: Placed, late: Late) -> Cycle | None:
    """Return the cycle of fewest steps, each as long as a chunk, that was found; it may be none.

    One that loses as much as the pipeline is not looked for, nor one that takes much work.
    """
    longest = longest_send(placed)
    period = max(1, round(placed.time / longest))
    begin = order_by_list(placed, longest, 1.0, late)
    if begin is None:
        return None
    durations = np.full(period, placed.time / period)
    for steps in _windows(placed, period):
        work = len(placed.size) * placed.problem.topology.links * steps
        if work > sizes.TIGHTENED_WORK or late():
            return None
        found = within(begin, durations, steps, late)
        if found is not None:
            return Cycle(found, period)
    return None


def _windows(placed: Placed, period: int) -> Iterator[int]:
    """Yield how many steps a round may take, from as few as there can be."""
    legs = ways_of(placed.problem.topology, placed.paths, placed.size).legs
    steps = max(period, least_steps(placed.problem))
    while steps < period * legs:
        yield steps
        steps += max(1, period // ListParams.finer_window)


def rounds_for(cycle: Cycle, enough: float) -> int | None:
    """Return the fewest rounds that take `enough` time, or None if none are enough."""
    spare = enough - cycle.time
    return None if spare <= 0 else max(1, int(np.ceil(cycle.lost / spare * (1 - 1e-9))))


def in_rounds(cycle: Cycle, rounds: int) -> Ordered:
    """Return the order in which all chunks go in so many rounds."""
    placed, first = cycle.order.placed, cycle.order.ways.first
    legs = np.repeat(np.diff(first), rounds)
    leg = np.repeat(np.repeat(first[:-1], rounds), legs) + inner_index(legs)
    begin = np.repeat(np.tile(np.arange(rounds), placed.paths.count), legs) * cycle.period
    step = cycle.order.served.step[leg] + begin
    return Ordered.of(_cut(placed, rounds), step, int(step.max()) + 1).without_empty()


def _cut(placed: Placed, rounds: int) -> Placed:
    """Return chunks that are cut into as many parts as there are rounds, one after the other."""
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
