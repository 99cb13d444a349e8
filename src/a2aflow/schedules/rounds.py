"""Rounds: chunks are cut finer and follow one another, a step behind, on the same paths.

Every chunk on its path is cut into R parts, and part r passes leg h of the path in step r + h. So
in each step a link carries at most one part of each chunk that passes it, and all steps take

    time of the paths  *  (R + D - 1) / R

at most, for paths of up to D legs: no order loses more than D - 1 parts of R. That takes no search,
and many small chunks. It is the answer where few pairs send over long ways, so that links at their
ends have nothing else to do while the first chunk comes.
"""

from dataclasses import replace

import numpy as np

from a2aflow.ir.arrays import inner_index
from a2aflow.ir.chunks import Chunks
from a2aflow.schedules.orders import Ordered
from a2aflow.schedules.placed import Placed
from a2aflow.schedules.serve import Served, ways_of


def rounds_for(placed: Placed, enough: float) -> int | None:
    """Return the fewest rounds that take `enough` time, or None if the paths alone take longer."""
    spare = enough / placed.time - 1
    legs = ways_of(placed.problem.topology, placed.paths, placed.size).legs
    return None if spare <= 0 else max(1, int(np.ceil((legs - 1) / spare * (1 - 1e-9))))


def in_rounds(placed: Placed, rounds: int) -> Ordered:
    """Return the order in which all chunks follow their paths in so many rounds."""
    parts = _cut(placed, rounds)
    ways = ways_of(placed.problem.topology, parts.paths, parts.size)
    legs = np.diff(ways.first)
    step = np.repeat(parts.chunk % rounds, legs) + inner_index(legs)
    order = Ordered(parts, ways, Served(step, int(step.max()) + 1, 0.0))
    return replace(order, served=replace(order.served, time=float(order.durations().sum())))


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
