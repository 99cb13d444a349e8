"""Certificates, number by number: what given lengths prove, and which of them is kept."""

import numpy as np
import pytest

from alltoall.flows.program import certify, length_bound
from alltoall.ir.demand import Demand
from alltoall.ir.problem import Problem
from alltoall.ir.topology import Topology

RING = Topology.from_links("ring", 3, [(0, 1, 2.0), (1, 2, 4.0), (2, 0, 1.0)])
ALL = Problem.all_to_all(RING)


@pytest.mark.parametrize(
    ("lengths", "bound"),
    [
        ([1.0, 1.0, 1.0], 9 / 7),  # three sources with distances 1 and 2, over 2 + 4 + 1
        ([0.0, 0.0, 1.0], 3 / 1),  # what crosses the narrow link: 1 to 0, 2 to 0 and 2 to 1
        ([1.0, 0.0, 0.0], 3 / 2),
        ([3.0, 0.0, 0.0], 3 / 2),  # a factor changes nothing
        ([1.0, 0.0, 2.0], 9 / 4),
        ([0.0, 0.0, 0.0], 0.0),
    ],
)
def test_what_lengths_prove(lengths: list[float], bound: float) -> None:
    """Demand times distance over capacity times length, counted by hand."""
    assert length_bound(ALL, np.array(lengths)) == pytest.approx(bound)


def test_demand_weighs_the_distances() -> None:
    """An uneven demand counts each distance as often as it asks for it."""
    matrix = np.array([[0.0, 0.0, 5.0], [0.0, 0.0, 0.0], [0.5, 0.0, 0.0]])
    problem = Problem(RING, Demand(3, matrix))
    assert length_bound(problem, np.ones(3)) == pytest.approx((5 * 2 + 0.5 * 1) / 7)


def test_the_best_candidate_is_kept() -> None:
    """The largest bound wins, wherever it stands; its lengths come with it, longest 1."""
    narrow = np.array([0.0, 0.0, 8.0])
    for candidates in ([narrow, np.ones(3)], [np.array([1.0, 0, 0]), narrow], [narrow]):
        found = certify(ALL, candidates)
        assert found.bound == pytest.approx(3.0)
        assert found.lengths.tolist() == [0.0, 0.0, 1.0]


def test_unit_lengths_always_take_part() -> None:
    """Candidates that prove less than unit lengths, or nothing at all, do no harm."""
    poor = [np.zeros(3), -np.ones(3), np.array([0.0, 1.0, 0.0])]
    found = certify(ALL, poor)
    assert found.bound == pytest.approx(9 / 7)
    assert found.lengths.tolist() == [1.0, 1.0, 1.0]
    assert certify(ALL, []).bound == pytest.approx(9 / 7)


def test_negative_lengths_are_dropped() -> None:
    """A solver's duals may be slightly negative; lengths are not."""
    found = certify(ALL, [np.array([-1e-9, -0.5, 0.5])])
    assert found.lengths.tolist() == [0.0, 0.0, 1.0]
    assert found.bound == pytest.approx(3.0)
