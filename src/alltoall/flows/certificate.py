"""Certificates: link lengths, and the bound that our own shortest paths read off them."""

from collections.abc import Iterable

import numpy as np

from alltoall.flows.groups import by_source
from alltoall.flows.program import FlowProgram, whole_program
from alltoall.ir.answer import Certificate
from alltoall.ir.arrays import Floats
from alltoall.ir.problem import Problem
from alltoall.paths.shortest import distance_sums
from alltoall.settings import ALONE, Team


def certify(problem: Problem, candidates: Iterable[Floats]) -> Certificate:
    """Return the best certificate among candidate lengths; unit lengths always take part."""
    return certify_program(whole_program(problem, by_source(problem)), candidates)


def certify_program(program: FlowProgram, candidates: Iterable[Floats]) -> Certificate:
    """Return the best certificate among candidate lengths; unit lengths always take part.

    Any lengths prove some bound, so a solver's duals need not be optimal, nor even feasible. Under
    symmetry the lengths must be equal within each class of links.
    """
    lengths = [np.ones(program.graph.links), *map(_cleaned, candidates)]
    proven = [(program_bound(program, each), index) for index, each in enumerate(lengths)]
    bound, best = max(proven)
    return Certificate(lengths[best], bound)


def length_bound(problem: Problem, lengths: Floats) -> float:
    """Return sum of demand times distance over sum of capacity times length; 0 if all are 0."""
    return program_bound(whole_program(problem, by_source(problem)), lengths)


def program_bound(program: FlowProgram, lengths: Floats, team: Team = ALONE) -> float:
    """Return the bound of lengths on the optimum of a program; 0 if all are 0.

    With several budgets it is the largest share of length in one of them that counts. In a team
    the program is the part of one rank, and the bound that of the whole.
    """
    spent = program.spent(lengths)
    if spent <= 0:
        return 0.0
    sums = distance_sums(program.graph, lengths, program.groups.start, program.groups.wanted)
    return float(team.total(np.array([program.weight @ sums]))[0]) / spent


def _cleaned(lengths: Floats) -> Floats:
    """Return lengths without negative ones, scaled so that the longest is 1."""
    positive = np.maximum(lengths, 0.0)
    longest = positive.max(initial=0.0)
    return positive / longest if longest > 0 else positive
