"""Certificates: link lengths, and the bound that our own shortest paths read off them."""

from collections.abc import Iterable

import numpy as np

from a2aflow.ir.arrays import Floats
from a2aflow.ir.flow import Certificate
from a2aflow.ir.problem import Problem
from a2aflow.solve.paths import shortest_distances

SOURCES_AT_ONCE = 256
"""Distances are summed up in blocks of sources so that memory stays flat."""


def certify(problem: Problem, candidates: Iterable[Floats]) -> Certificate:
    """Return the best certificate among candidate lengths; unit lengths always take part.

    Any lengths prove some bound, so a solver's duals need not be optimal, nor even feasible.
    """
    lengths = [np.ones(problem.topology.links), *map(_cleaned, candidates)]
    proven = [(length_bound(problem, each), index) for index, each in enumerate(lengths)]
    bound, best = max(proven)
    return Certificate(lengths[best], bound)


def length_bound(problem: Problem, lengths: Floats) -> float:
    """Return sum of demand times distance over sum of capacity times length; 0 if all are 0."""
    volume = float(problem.topology.capacity @ lengths)
    if volume <= 0:
        return 0.0
    weighted = 0.0
    for begin in range(0, len(problem.sources), SOURCES_AT_ONCE):
        sources = problem.sources[begin : begin + SOURCES_AT_ONCE]
        starts = problem.topology.terminals[sources]
        distance = shortest_distances(problem.topology, lengths, starts)
        wanted = problem.demand.rows(sources)
        weighted += float((wanted * distance[:, problem.topology.terminals]).sum())
    return weighted / volume


def _cleaned(lengths: Floats) -> Floats:
    """Return lengths without negative ones, scaled so that the longest is 1."""
    positive = np.maximum(lengths, 0.0)
    longest = positive.max(initial=0.0)
    return positive / longest if longest > 0 else positive
