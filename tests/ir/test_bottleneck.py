"""Bottlenecks: the links that set the time, and the links or the cut that prove the bound."""

from dataclasses import replace

import numpy as np
import pytest

from alltoall.flows import solve
from alltoall.ir.answer import Certificate, find_bottleneck
from alltoall.ir.chunks import Chunks
from alltoall.ir.flow import Flow
from alltoall.ir.problem import Problem
from alltoall.ir.schedule import Schedule
from alltoall.ir.topology import Topology
from alltoall.routes import route
from alltoall.topologies.spec import build
from hop_schedules import hop_schedule

DUMBBELL = Topology.from_edges("dumbbell", 4, [(0, 1), (1, 2), (2, 3)])
"""A path of four nodes; its links are 0-1, 1-0, 1-2, 2-1, 2-3, 3-2."""


def test_the_cut_in_the_middle() -> None:
    """On a path the middle link is full either way, and the cut there proves it."""
    found = solve(Problem.all_to_all(DUMBBELL)).bottleneck()
    assert found.fullest.tolist() == [2, 3]
    assert found.inside is not None
    assert found.inside.tolist() in ([0, 1], [2, 3])
    assert str(found).startswith("2 of 6 links, e.g. 1 -> 2 saturated; bound: cut of")


def test_symmetric_flows_count_their_images() -> None:
    """One source of a ring stands for all: every link is as full as the others."""
    flow = Flow(
        Problem.all_to_all(build("ring:3")),
        rate=1.0,
        source=np.array([0]),
        destination=None,
        start=np.array([0, 2]),
        link=np.array([0, 1]),
        amount=np.ones(2),
        certificate=Certificate(np.ones(6), 1.0),
        method="by hand",
        generators=np.array([[1, 2, 0]]),
    )
    assert flow.load().tolist() == [1, 1, 0, 0, 0, 0]
    assert flow.mean_load().tolist() == [1, 1, 1, 1, 1, 1]
    assert flow.bottleneck().words() == {
        "saturated": "all 6 links",
        "proof": "total hops / total capacity",
    }


def test_routes_name_the_link_that_is_overloaded() -> None:
    """The fullest link is that of the routes, whatever the certificate says."""
    routes = route(Problem.all_to_all(DUMBBELL), "single")
    assert routes.bottleneck().fullest.tolist() == [2, 3]
    heavy = replace(routes, weight=np.where(routes.source == 3, 2.0, 1.0))
    assert heavy.load().tolist() == [3, 4, 4, 6, 3, 6]
    assert heavy.bottleneck().fullest.tolist() == [3, 5]
    fast = replace(DUMBBELL, capacity=np.array([1.0, 1, 1, 1, 1, 2]))
    only = replace(heavy, problem=Problem.all_to_all(fast))
    assert str(only.bottleneck()).startswith("2 -> 1 saturated;")


def test_a_schedule_waits_for_the_links_that_are_fullest_for_longest() -> None:
    """A link that is fullest in one long step counts for more than one in a short step."""
    pair = Topology.from_edges("pair", 2, [(0, 1)])
    columns = (np.array([0, 0, 1]), np.array([0, 0, 1]), np.array([1, 1, 0]), np.array([0, 1, 0]))
    schedule = Schedule(
        Problem.all_to_all(pair),
        Chunks(2, 2),
        2,
        *columns,
        link=np.array([0, 0, 1]),
        certificate=Certificate(np.ones(2), 1.0),
        fractional_time=1.0,
        method="by hand",
    )
    assert schedule.step_times().tolist() == [1.0, 0.5]
    assert schedule.bottleneck().fullest.tolist() == [0]
    assert len(hop_schedule(DUMBBELL).bottleneck().fullest) > 0


@pytest.mark.parametrize(
    ("lengths", "inside", "words"),
    [
        ([0, 0, 1, 0, 0, 0], [0, 1], "cut of 1 link around 0, 1"),
        ([0, 0, 1, 1, 0, 0], [0, 1], "cut of 2 links around 0, 1"),
        ([0, 1, 0, 0, 0, 0], [0], "cut of 1 link around 0"),
        ([1, 0, 0, 0, 1, 0], None, "distances over 2 of 6 links"),
        ([0, 0, 2, 1, 0, 0], None, "distances over 2 of 6 links"),
        ([1, 1, 1, 1, 1, 1], None, "total hops / total capacity"),
        ([1, 1, 2, 2, 1, 1], None, "distances over 6 of 6 links"),
        ([0, 0, 0, 0, 0, 0], None, "distances over 0 of 6 links"),
    ],
)
def test_what_lengths_prove(lengths: list[float], inside: list[int] | None, words: str) -> None:
    """Even lengths on the links between two sets of nodes are a cut; others are distances."""
    found = find_bottleneck(DUMBBELL, np.ones(6), np.array(lengths, dtype=np.float64))
    assert (None if found.inside is None else found.inside.tolist()) == inside
    assert str(found).endswith(words)


def test_a_cut_of_one_way_links() -> None:
    """Its nodes need not reach each other, nor those on the other side."""
    links = [(0, 2), (1, 2), (2, 3), (3, 0), (3, 1)]
    topology = Topology.from_links("one way", 4, links)
    lengths = np.array([1.0, 1.0, 0.0, 0.0, 0.0])
    found = find_bottleneck(topology, np.ones(5), lengths).inside
    assert found is not None
    assert found.tolist() in ([0, 1], [2, 3])


def test_nodes_are_called_by_their_names() -> None:
    """Where a topology has names for its nodes, the cut has too."""
    named = replace(DUMBBELL, names=("ann", "bob", "cid", "dee"))
    found = find_bottleneck(named, np.array([0.0, 0, 1, 0, 0, 0]), np.array([0.0, 0, 1, 0, 0, 0]))
    assert str(found) == "bob -> cid saturated; bound: cut of 1 link around ann, bob"
