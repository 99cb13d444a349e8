"""Schedules behind NICs load the links of a step evenly, where that costs no time."""

import numpy as np
import pytest

import alltoall
from alltoall.ir.problem import Problem
from alltoall.ir.topology import Topology
from alltoall.schedules.search import narrow_links
from alltoall.topologies.operators import drop_links, with_host_bandwidth

TORUS = alltoall.topology("torus:3x3x3")
HOSTED = with_host_bandwidth(TORUS, 4.0)


def test_links_behind_a_nic_are_as_wide_as_their_share_of_it() -> None:
    """Six links share a NIC that fills four; a node that lost links shares it with fewer."""
    narrow = narrow_links(Problem.all_to_all(HOSTED)).topology
    assert sorted(set(narrow.capacity.tolist())) == pytest.approx([2 / 3, 4])
    fewer = with_host_bandwidth(drop_links(TORUS, 3, seed=1), 4.0)
    found = narrow_links(Problem.all_to_all(fewer)).topology.capacity
    between = fewer.capacity == 1.0
    assert set(np.round(found[between], 6)) <= {0.666667, 0.8, 1.0}


@pytest.mark.parametrize("spec", ["torus:3x3", "switch:5", "dgx2", "fattree:4"])
def test_nothing_is_narrowed_where_switches_pass_on_all_that_comes(spec: str) -> None:
    """Then the problem stays what it is."""
    problem = Problem.all_to_all(alltoall.topology(spec))
    assert narrow_links(problem) is problem


def test_every_step_loads_the_links_of_a_hosted_torus_alike() -> None:
    """With one chunk per shard, at the certified bound of the fabric as it is."""
    schedule = alltoall.schedule(Problem.all_to_all(HOSTED))
    assert schedule.problem.topology == HOSTED
    assert schedule.chunks_per_shard == 1
    assert schedule.gap == pytest.approx(0.0)
    between = np.flatnonzero(HOSTED.capacity == 1.0)
    for step in range(schedule.steps):
        here = schedule.step == step
        load = np.bincount(schedule.link[here], schedule.sizes()[here], HOSTED.links)
        assert load[between] == pytest.approx(np.full(len(between), load[between[0]]))


DEAD_ENDS = {
    "a sink": [(0, 3)],
    "a source": [(3, 0)],
    "a chain to a sink": [(0, 3), (3, 4)],
    "a chain from a source": [(4, 3), (3, 1)],
    "a sink behind a switch": [(0, 4), (4, 1), (4, 3)],
    "a switch without links": [],
}
"""Links of nodes 3 and 4, which are no terminals, beside a triangle."""


@pytest.mark.parametrize("method", ["tsmcf", "list", "auto"])
@pytest.mark.parametrize("links", DEAD_ENDS.values(), ids=DEAD_ENDS)
def test_a_switch_with_links_in_one_direction_changes_nothing(
    links: list[tuple[int, int]], method: str
) -> None:
    """The schedule is that of the triangle alone, and no link is narrowed."""
    triangle = [(u, v) for u in range(3) for v in range(3) if u != v]
    topology = Topology.from_links("triangle", 5, [*triangle, *links], terminals=range(3))
    problem = Problem.all_to_all(topology)
    assert narrow_links(problem) is problem
    assert alltoall.schedule(problem, method=method).time == pytest.approx(1.0)
