"""The small nouns, number by number: demands, problems, reach, and arrays that nobody changes."""

import numpy as np
import pytest

from alltoall.errors import DemandError, TopologyError
from alltoall.ir.arrays import connected_pairs, frozen, inner_index, reachable
from alltoall.ir.demand import Demand
from alltoall.ir.problem import Problem
from alltoall.ir.topology import LARGEST, SMALLEST, Topology

MATRIX = np.array([[0.0, 2.0, 0.0], [0.0, 0.0, 0.0], [0.5, 3.0, 0.0]])


def test_the_uniform_demand() -> None:
    """One shard for every pair of different terminals, without a matrix."""
    demand = Demand(3)
    assert demand.uniform
    assert demand.total == 6.0
    assert demand.rows(np.array([2, 0])).tolist() == [[1.0, 1.0, 0.0], [0.0, 1.0, 1.0]]
    assert demand.sources().tolist() == [0, 1, 2]
    assert [each.tolist() for each in demand.pairs()] == [[0, 0, 1, 1, 2, 2], [1, 2, 0, 2, 0, 1]]


def test_a_demand_by_matrix() -> None:
    """Amounts are those of the matrix; who sends nothing is no source."""
    demand = Demand(3, MATRIX)
    assert not demand.uniform
    assert demand.total == 5.5
    assert demand.rows(np.array([2])).tolist() == [[0.5, 3.0, 0.0]]
    assert demand.sources().tolist() == [0, 2]
    assert [each.tolist() for each in demand.pairs()] == [[0, 2, 2], [1, 0, 1]]


def test_what_rows_returns_may_be_changed() -> None:
    """A caller's copy is its own; the demand stays as it was."""
    demand = Demand(3, MATRIX)
    demand.rows(np.array([0]))[:] = 7.0
    assert demand.total == 5.5
    with pytest.raises(ValueError, match="read-only"):
        demand.matrix[0, 1] = 1.0  # type: ignore[index]


@pytest.mark.parametrize("amount", [SMALLEST, LARGEST, 1.0])
def test_the_edges_of_what_can_be_asked_for(amount: float) -> None:
    """The smallest and the largest amount are allowed."""
    assert Demand(2, np.array([[0.0, amount], [0.0, 0.0]])).total == amount


@pytest.mark.parametrize("amount", [SMALLEST / 2, LARGEST * 2, -1.0, np.inf, np.nan])
def test_beyond_the_edges(amount: float) -> None:
    """What is below, above, or no number is refused, naming the terminals."""
    with pytest.raises(DemandError, match=r"from terminal 1 to terminal 0 is .*; expected 0, or"):
        Demand(2, np.array([[0.0, 1.0], [amount, 0.0]]))


@pytest.mark.parametrize(
    ("matrix", "words"),
    [
        (np.zeros((2, 2)), "zero everywhere"),
        (np.ones((2, 2)), "from terminal 0 to terminal 0 is 1; expected 0: a terminal sends"),
        (np.ones((2, 3)), "shape 2x3; expected 2x2"),
        (np.ones((3, 3)), "shape 3x3; expected 2x2"),
    ],
)
def test_what_is_no_demand(matrix: object, words: str) -> None:
    """Shape, diagonal and emptiness are checked."""
    with pytest.raises(DemandError, match=words):
        Demand(2, np.asarray(matrix))


def test_when_demands_are_the_same() -> None:
    """Both uniform and of one size, or the same amounts; a matrix of ones is not `uniform`."""
    assert Demand(3) == Demand(3)
    assert Demand(3) != Demand(4)
    assert Demand(3, MATRIX) == Demand(3, MATRIX.copy())
    assert Demand(3, MATRIX) != Demand(3, MATRIX * 2)
    assert Demand(3, MATRIX) != Demand(3)
    assert Demand(3) != Demand(3, MATRIX)


def test_what_nodes_are_to_receive() -> None:
    """Amounts stand at the nodes of the terminals; switches want nothing."""
    star = Topology.from_edges("star", 4, [(0, 1), (1, 2), (1, 3)], terminals=[0, 2, 3])
    problem = Problem(star, Demand(3, MATRIX))
    assert problem.sources.tolist() == [0, 2]
    assert problem.node_demand(np.array([2, 0])).tolist() == [[0.5, 0, 3.0, 0], [0, 0, 2.0, 0]]


@pytest.mark.parametrize(
    ("links", "terminals", "words"),
    [
        ([(0, 1), (1, 0), (2, 0)], None, r"terminal 0 cannot reach terminal 2 \(1 such"),
        ([(0, 1), (1, 0), (0, 2), (0, 3)], None, r"terminal 2 cannot reach terminal 0 \(2 such"),
        ([(0, 1), (1, 0), (2, 3), (3, 2)], None, r"terminal 0 cannot reach terminal 2 \(2 such"),
        ([(1, 2), (2, 3), (3, 2)], [1, 3], r"terminal 3 cannot reach terminal 1 \(1 such"),
    ],
)
def test_terminals_that_are_not_connected(
    links: list[tuple[int, int]], terminals: list[int] | None, words: str
) -> None:
    """A pair without a path is named, whichever way it lacks one."""
    nodes = 1 + max(max(ends) for ends in links)
    with pytest.raises(TopologyError, match=words):
        Problem.all_to_all(Topology.from_links("t", nodes, links, terminals))


def test_switches_need_not_be_reached() -> None:
    """Only terminals have to reach each other."""
    links = [(0, 1, 1.0), (1, 0, 1.0), (0, 2, 1.0), (3, 0, 1.0)]
    Problem.all_to_all(Topology.from_links("t", 4, links, [0, 1]))


def test_what_can_be_reached() -> None:
    """Along the direction of the links, over any number of them, from any node."""
    tail, head = np.array([3, 0, 1, 4]), np.array([0, 1, 2, 3])
    reach = {start: np.flatnonzero(reachable(6, tail, head, start)).tolist() for start in range(6)}
    assert reach == {0: [0, 1, 2], 1: [1, 2], 2: [2], 3: [0, 1, 2, 3], 4: [0, 1, 2, 3, 4], 5: [5]}
    assert reachable(3, np.array([0, 1, 2]), np.array([1, 2, 0]), 1).all()
    joined = connected_pairs(6, tail, head, np.array([0, 2, 4, 5]))
    assert joined.tolist() == [
        [True, True, False, False],
        [False, True, False, False],
        [True, True, True, False],
        [False, False, False, True],
    ]


def test_arrays_of_nouns_are_read_only() -> None:
    """A writable array is copied, one that is read-only already is shared."""
    given = np.arange(3)
    taken = frozen(given, np.int64)
    given[0] = 9
    assert taken.tolist() == [0, 1, 2]
    assert not taken.flags.writeable
    assert frozen(taken, np.int64) is taken
    assert frozen([1, 2], np.float64).dtype == np.float64


def test_the_inner_index_of_a_ragged_array() -> None:
    """It counts from 0 in every row; empty rows leave nothing."""
    assert inner_index(np.array([2, 0, 3, 1])).tolist() == [0, 1, 0, 1, 2, 0]
    assert inner_index(np.array([], dtype=np.int64)).tolist() == []


def test_demand_within_groups() -> None:
    """Members of a group send to each other; nobody else sends or receives."""
    demand = Demand.of_groups(5, [(3, 1), (0, 4)])
    assert [each.tolist() for each in demand.pairs()] == [[0, 1, 3, 4], [4, 3, 1, 0]]
    assert demand.total == 4.0
    assert Demand.of_groups(3, [(0, 1), (0, 1, 2)]).total == 8.0
    assert Demand.of_groups(3, [range(3)]) == Demand(3, 1 - np.eye(3))


@pytest.mark.parametrize(
    ("groups", "words"),
    [
        ([(0,)], r"group 0 is \[0\]; expected two or more terminals, each once"),
        ([(0, 1), (0, 1, 1)], r"group 1 is \[0, 1, 1\]; expected"),
        ([(0, 3)], r"group 0 has terminal 3; expected positions 0\.\.2"),
        ([(-1, 2)], "group 0 has terminal -1"),
        ([], "zero everywhere"),
    ],
)
def test_groups_that_are_none(groups: list[tuple[int, ...]], words: str) -> None:
    """Groups of one, with a member twice, or of strangers are refused."""
    with pytest.raises(DemandError, match=words):
        Demand.of_groups(3, groups)


def test_a_demand_has_terminals() -> None:
    """None at all is refused before anybody makes a table of them."""
    with pytest.raises(DemandError, match="a demand of 0 terminals"):
        Demand(0)
