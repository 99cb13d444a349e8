"""Construction of topologies and problems refuses what cannot be solved, and says why."""

import math

import numpy as np
import pytest

from alltoall.errors import DemandError, TopologyError
from alltoall.ir.arrays import starts_of
from alltoall.ir.demand import Demand
from alltoall.ir.problem import Problem
from alltoall.ir.topology import Topology


def triangle(**changes: object) -> Topology:
    """Return a directed triangle with some fields changed."""
    fields: dict[str, object] = {
        "name": "triangle",
        "nodes": 3,
        "tail": [0, 1, 2],
        "head": [1, 2, 0],
        "capacity": [1.0, 1.0, 1.0],
        "terminals": [0, 1, 2],
    }
    return Topology(**(fields | changes))  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"capacity": [1.0, 0.0, 1.0]}, r"link 1 \(1 -> 2\) has capacity 0"),
        ({"capacity": [1.0, 1.0, -2.0]}, r"link 2 \(2 -> 0\) has capacity -2"),
        ({"capacity": [math.inf, 1.0, 1.0]}, r"link 0 .* capacity inf"),
        ({"capacity": [math.nan, 1.0, math.nan]}, r"capacity nan.*1 more"),
        ({"head": [1, 2, 2]}, "link 2 .* self-loop"),
        ({"head": [1, 3, 0]}, r"link 1 .* outside the nodes 0\.\.2"),
        ({"tail": [0, -1, 2]}, "link 1 .* outside the nodes"),
        ({"terminals": [0]}, "1 terminal.* at least 2"),
        ({"terminals": [0, 0, 1]}, "distinct"),
        ({"terminals": [0, 7]}, "terminal 7 is not a node"),
        ({"nodes": 0}, "0 nodes"),
        ({"nodes": 10**9}, "1000000000 nodes"),
        ({"capacity": [1.0]}, "one entry per link"),
    ],
)
def test_unsound_topologies_are_refused(changes: dict[str, object], words: str) -> None:
    """The message names the offending item."""
    with pytest.raises(TopologyError, match=words):
        triangle(**changes)


def test_arrays_are_read_only_and_not_shared() -> None:
    """Nobody can change a noun, nor the array that it was made from by accident."""
    capacity = np.ones(3)
    topology = triangle(capacity=capacity)
    capacity[0] = 7.0
    assert topology.capacity[0] == 1.0
    with pytest.raises(ValueError, match="read-only"):
        topology.capacity[0] = 2.0


def test_edges_become_links_both_ways() -> None:
    """An undirected edge is two links, and the topology knows that it is bidirectional."""
    topology = Topology.from_edges("path", 3, [(1, 2, 2.0), (0, 1)])
    assert topology.tail.tolist() == [0, 1, 1, 2]
    assert topology.head.tolist() == [1, 0, 2, 1]
    assert topology.bidirectional
    assert not triangle().bidirectional
    assert not Topology.from_links("uneven", 2, [(0, 1, 1.0), (1, 0, 2.0)]).bidirectional


def test_disconnected_names_a_pair() -> None:
    """A problem without an answer is refused with two terminals that show it."""
    one_way = Topology.from_links("one way", 3, [(0, 1), (1, 0), (1, 2)])
    with pytest.raises(TopologyError, match="terminal 2 cannot reach terminal 0"):
        Problem.all_to_all(one_way)
    apart = Topology.from_edges("apart", 4, [(0, 1), (2, 3)])
    with pytest.raises(TopologyError, match="terminal 0 cannot reach terminal 2"):
        Problem.all_to_all(apart)


def test_unreachable_switches_do_no_harm() -> None:
    """Only terminals must reach each other."""
    topology = Topology.from_links("spare", 3, [(0, 1), (1, 0), (2, 0)], terminals=[0, 1])
    assert Problem.all_to_all(topology).sources.tolist() == [0, 1]


@pytest.mark.parametrize(
    ("matrix", "words"),
    [
        ([[0.0, -1.0], [1.0, 0.0]], "terminal 0 to terminal 1 is -1"),
        ([[0.0, math.nan], [1.0, 0.0]], "is nan"),
        ([[0.0, math.inf], [1.0, 0.0]], "is inf"),
        ([[1.0, 1.0], [1.0, 0.0]], "terminal 0 to terminal 0 is 1"),
        ([[0.0, 0.0], [0.0, 0.0]], "zero everywhere"),
        ([[0.0, 1.0, 1.0]], "shape 1x3; expected 2x2"),
    ],
)
def test_bad_demand_is_refused(matrix: list[list[float]], words: str) -> None:
    """The message names the offending entry."""
    with pytest.raises(DemandError, match=words):
        Demand(2, np.array(matrix))


def test_uniform_demand_without_a_matrix() -> None:
    """The uniform all-to-all is one shard between any two terminals."""
    uniform = Demand(3)
    explicit = Demand(3, np.ones((3, 3)) - np.eye(3))
    rows = np.arange(3)
    assert np.array_equal(uniform.rows(rows), explicit.rows(rows))
    assert uniform.total == explicit.total == 6.0
    assert [each.tolist() for each in uniform.pairs()] == [
        each.tolist() for each in explicit.pairs()
    ]


def test_demand_must_fit_the_topology() -> None:
    """A demand for another number of terminals is refused."""
    with pytest.raises(DemandError, match="between 2 terminals on a topology with 3"):
        Problem(triangle(), Demand(2))


def test_positions_are_the_way_back_from_nodes_to_terminals() -> None:
    """A node that is no terminal has none."""
    topology = Topology.from_links("hub", 4, [(0, 1), (1, 3), (3, 0)], terminals=[0, 3])
    assert topology.position.tolist() == [0, -1, -1, 1]
    assert topology.position[topology.terminals].tolist() == [0, 1]


@pytest.mark.parametrize("matrix", [None, [[0.0, 2.0], [3.0, 0.0]]])
def test_the_table_of_a_demand_has_the_amount_of_every_pair(matrix: list[list[float]]) -> None:
    """Whether or not it is uniform; a terminal sends nothing to itself."""
    demand = Demand(2, None if matrix is None else np.array(matrix))
    source, destination = np.divmod(np.arange(4), 2)
    assert demand.table().ravel().tolist() == demand.of(source, destination).tolist()


def test_rows_of_all_lengths_start_one_after_the_other() -> None:
    """Empty ones too; the last start is where all end."""
    assert starts_of([2, 0, 3]).tolist() == [0, 2, 2, 5]
    assert starts_of([]).tolist() == [0]
