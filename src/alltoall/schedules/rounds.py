"""Rounds: finer chunks that follow one another on the same paths, a period apart.

A cycle says in which of W steps each chunk passes each leg of its path, and after how many steps,
the period P, the next round of chunks follows. In every step the load of all rounds on a link is
then that of one round in all steps that are a multiple of P apart. So R rounds, each with 1 / R of
a chunk, take, with the durations d[0..P-1] of the P steps of a cycle,

    (R (d[0] + ... + d[P-1])  +  d[P mod P] + ... + d[(W-1) mod P]) / R

at most: only the W - P steps at the beginning and the end are lost. That helps if few pairs send
over long paths, where links at the ends would idle. Two cycles are tried. In a pipeline leg h is
passed in step h, and P is 1, without any search. In a short cycle a step takes as long as one
chunk, and P is the number of chunks on the busiest link; chunks negotiate for links and steps
modulo P, in the fewest steps W found.
"""

from dataclasses import dataclass
from functools import cached_property

import numpy as np

from alltoall.flows import sizes
from alltoall.ir.arrays import Floats, inner_index
from alltoall.ir.chunks import Chunks
from alltoall.schedules.orders import Ordered, legs_of, order_by_list
from alltoall.schedules.placed import ListParams, Placed
from alltoall.schedules.steps import least_steps
from alltoall.schedules.tighten import longest_send, within
from alltoall.settings import Late


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
    """Return the order of all chunks in so many rounds."""
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
