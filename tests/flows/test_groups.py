"""Groups: who sends, from where, and what every node is to receive."""

import numpy as np
import pytest

from alltoall.errors import InputError
from alltoall.flows import exact as groups
from alltoall.flows.exact import by_commodity, by_source
from alltoall.ir.demand import Demand
from alltoall.ir.problem import Problem
from alltoall.ir.topology import Topology

STAR = Topology.from_edges("star", 4, [(0, 1), (1, 2), (1, 3)], terminals=[0, 2, 3])
MATRIX = np.array([[0.0, 2.0, 0.0], [0.0, 0.0, 0.0], [0.5, 3.0, 0.0]])


def test_one_group_per_source() -> None:
    """Sources that send nothing have no group; what is wanted stands at nodes, not positions."""
    found = by_source(Problem(STAR, Demand(3, MATRIX)))
    assert found.source.tolist() == [0, 2]
    assert found.start.tolist() == [0, 3]
    assert found.wanted.tolist() == [[0.0, 0.0, 2.0, 0.0], [0.5, 0.0, 3.0, 0.0]]
    assert found.destination is None


def test_chosen_sources() -> None:
    """Under symmetry only some sources have groups, in the order in which they are given."""
    found = by_source(Problem.all_to_all(STAR), np.array([2, 0]))
    assert found.start.tolist() == [3, 0]
    assert found.wanted.tolist() == [[1.0, 0.0, 1.0, 0.0], [0.0, 0.0, 1.0, 1.0]]


def test_one_group_per_pair() -> None:
    """A pair without demand has no group; every other wants its amount at its destination."""
    found = by_commodity(Problem(STAR, Demand(3, MATRIX)))
    assert found.destination is not None
    ends = zip(found.source.tolist(), found.destination.tolist(), strict=True)
    assert list(ends) == [(0, 1), (2, 0), (2, 1)]
    assert found.start.tolist() == [0, 3, 3]
    wanted = [[0.0, 0.0, 2.0, 0.0], [0.5, 0.0, 0.0, 0.0], [0.0, 0.0, 3.0, 0.0]]
    assert found.wanted.tolist() == wanted


def test_too_many_cells_are_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    """The limit itself is allowed, one cell more is not, and the message counts."""
    problem = Problem.all_to_all(STAR)
    monkeypatch.setattr(groups, "MOST_GROUP_NODES", 24)
    assert len(by_commodity(problem).source) == 6
    monkeypatch.setattr(groups, "MOST_GROUP_NODES", 23)
    with pytest.raises(InputError, match="6 pairs times 4 nodes; expected at most 23"):
        by_commodity(problem)
    assert len(by_source(problem).source) == 3
    monkeypatch.setattr(groups, "MOST_GROUP_NODES", 11)
    with pytest.raises(InputError, match="3 sources times 4 nodes; expected at most 11"):
        by_source(problem)
