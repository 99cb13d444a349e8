"""Direct sends: where they are optimal, answers say so, and nowhere else."""

import numpy as np
import pytest

import alltoall
from alltoall.ir.demand import Demand
from alltoall.ir.problem import Problem
from alltoall.ir.summaries import OPTIMAL_NOTE, direct_notes, direct_time
from alltoall.topologies.operators import set_capacities
from command_line import Run

SINGLE_HOSTS = {
    "mi300x": (8, 7 * 64.0),
    "mi300x:hosts=1": (8, 7 * 64.0),
    "dgxh100": (9, 450.0),
    "cluster:hosts=1": (9, 450.0),
    "cluster:hosts=1,gpus=4,inside=xgmi": (4, 3 * 64.0),
}


@pytest.mark.parametrize(("spec", "expected"), SINGLE_HOSTS.items())
def test_a_single_host_works_and_says_that_direct_sends_are_optimal(
    spec: str, expected: tuple[int, float], run: Run
) -> None:
    """In every verb, in words and in JSON; its name builds it again."""
    for verb in ("solve", "route", "schedule"):
        found = run(verb, spec, "--json").json
        assert (found["nodes"], found["throughput_GBps"]) == pytest.approx(expected)
        assert OPTIMAL_NOTE in found["notes"]
        assert alltoall.topology(found["topology"]) == alltoall.topology(spec)
    assert OPTIMAL_NOTE in run("solve", spec).out


def test_the_nodes_of_a_single_host_have_names() -> None:
    """The same as those of the first of many."""
    names = alltoall.topology("dgxh100").names
    assert names == (*(f"host0:gpu{gpu}" for gpu in range(8)), "host0:switch")


@pytest.mark.parametrize("spec", ["complete:5", "switch:n=5", "ring:3", "nvswitch:n=4"])
def test_direct_sends_are_optimal_where_nobody_can_relay_better(spec: str) -> None:
    """Each pair has its own link, or all pass one switch."""
    flow = alltoall.solve(spec)
    assert direct_time(flow.problem) == pytest.approx(flow.time)
    assert direct_notes(flow) == [OPTIMAL_NOTE]


@pytest.mark.parametrize("spec", ["ring:5", "torus:3x3", "dgx1", "mi300x:hosts=2", "fattree:k=4"])
def test_where_others_relay_there_is_no_direct_time(spec: str) -> None:
    """Pairs without a link of their own, and switches behind switches."""
    flow = alltoall.solve(spec)
    assert direct_time(flow.problem) is None
    assert direct_notes(flow) == []


def test_relays_can_beat_direct_sends() -> None:
    """If only one pair sends, or its link is narrow, the others help."""
    topology = alltoall.topology("complete:4")
    matrix = np.zeros((4, 4))
    matrix[0, 1] = 3.0
    lone = alltoall.solve(Problem(topology, Demand(4, matrix)))
    assert direct_time(lone.problem) == 3.0
    assert lone.time == pytest.approx(1.0)
    assert direct_notes(lone) == []
    narrow = alltoall.solve(set_capacities(topology, {(0, 1): 0.25}))
    assert direct_time(narrow.problem) == 4.0
    assert direct_notes(narrow) == []


def test_uneven_demand_through_a_switch() -> None:
    """The busiest of all links to and from the switch sets the time."""
    matrix = np.array([[0, 1, 1], [0, 0, 4], [0, 0, 0]], dtype=np.float64)
    assert direct_time(Problem(alltoall.topology("switch:n=3"), Demand(3, matrix))) == 5.0
