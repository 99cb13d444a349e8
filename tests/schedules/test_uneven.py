"""Any demand on any connected network has a schedule, and real numbers round well."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from alltoall.check.schedule import check_schedule
from alltoall.ir.demand import Demand
from alltoall.ir.problem import Problem
from alltoall.ir.topology import Topology
from alltoall.schedules.methods import find_schedule
from alltoall.settings import ScheduleSettings
from alltoall.topologies.spec import build
from strategies import topologies

wide = st.floats(-6, 6).map(lambda exponent: 10.0**exponent)
amounts = st.just(0.0) | st.floats(-4, 2).map(lambda exponent: 10.0**exponent)


@st.composite
def wild_problems(draw: st.DrawFn) -> Problem:
    """Draw a small connected digraph, with capacities over twelve orders of magnitude."""
    plain = draw(topologies(max_nodes=5))
    links = zip(plain.tail.tolist(), plain.head.tolist(), strict=True)
    topology = Topology.from_links(
        "wild", plain.nodes, [(u, v, draw(wide)) for u, v in links], plain.terminals.tolist()
    )
    terminals = len(topology.terminals)
    cells = draw(st.lists(amounts, min_size=terminals**2, max_size=terminals**2))
    matrix = np.array(cells).reshape(terminals, terminals)
    np.fill_diagonal(matrix, 0.0)
    matrix[0, 1] = matrix[0, 1] or 1.0
    return Problem(topology, Demand(terminals, matrix))


@given(problem=wild_problems(), chunks=st.none() | st.integers(1, 3))
def test_every_problem_has_a_schedule(problem: Problem, chunks: int | None) -> None:
    """Whatever the capacities and demands: a correct schedule, and an honest time."""
    wanted = ScheduleSettings(chunks=chunks, max_chunks=None if chunks else 4, loss=0.1)
    schedule = find_schedule(problem, "tsmcf", wanted).schedule
    assert check_schedule(schedule).time == pytest.approx(schedule.time)


@pytest.mark.parametrize("chunks", [None, 1, 3])
@pytest.mark.parametrize("width", [1e-6, 1.0, 1e6, 1e12])
def test_one_shard_over_one_link(width: float, chunks: int | None) -> None:
    """The links that nothing needs to cross do not matter, however wide the one that does."""
    ring = Topology.from_links("ring", 3, [(0, 1, width), (1, 2, 1.0), (2, 0, 1.0)])
    matrix = np.zeros((3, 3))
    matrix[0, 1] = 1.0
    problem = Problem(ring, Demand(3, matrix))
    schedule = find_schedule(problem, "tsmcf", ScheduleSettings(chunks=chunks)).schedule
    assert schedule.time * width == pytest.approx(1.0)
    assert schedule.gap == pytest.approx(0.0, abs=1e-9)


@pytest.mark.parametrize("scale", [1e-3, 1.0])
@pytest.mark.parametrize("spec", ["hypercube:3", "torus:4x4", "genkautz:n=16,d=3"])
def test_real_demand_loses_little(spec: str, scale: float) -> None:
    """Shards of random sizes, in any unit, within 3 % of the bound in 16 chunks of a mean one."""
    topology = build(spec)
    nodes = topology.nodes
    matrix = scale * np.random.default_rng(0).uniform(0, 1, (nodes, nodes))
    np.fill_diagonal(matrix, 0.0)
    found = find_schedule(Problem(topology, Demand(nodes, matrix)), "tsmcf", ScheduleSettings())
    assert check_schedule(found.schedule).gap <= 0.03
    assert found.schedule.chunk_counts().mean() <= 16
