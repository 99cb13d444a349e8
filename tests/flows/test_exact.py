"""Post-processing turns any numbers into flows that conserve exactly."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from alltoall.flows.exact import Groups, by_commodity, by_source, exact_flows
from alltoall.ir.arrays import Floats
from alltoall.ir.problem import Problem
from alltoall.ir.topology import Topology
from alltoall.topologies.spec import build
from strategies import problems


def imbalance(topology: Topology, groups: Groups, flows: Floats) -> float:
    """Return the largest error of conservation over all groups and nodes."""
    net = np.zeros_like(groups.wanted)
    for link in range(topology.links):
        net[:, topology.head[link]] += flows[:, link]
        net[:, topology.tail[link]] -= flows[:, link]
    wanted = groups.wanted.copy()
    rows = np.arange(len(groups.start))
    wanted[rows, groups.start] = -wanted.sum(axis=1)
    return float(np.abs(net - wanted).max())


def is_acyclic(topology: Topology, flow: Floats) -> bool:
    """Whether the links with positive flow form no cycle, by peeling off nodes without inflow."""
    used = flow > 0
    while used.any():
        entered = np.zeros(topology.nodes, dtype=bool)
        entered[topology.head[used]] = True
        peeled = used & ~entered[topology.tail]
        if not peeled.any():
            return False
        used &= ~peeled
    return True


@given(problem=problems(), seed=st.integers(0, 2**31), per_pair=st.booleans())
def test_any_numbers_become_exact_acyclic_flows(
    problem: Problem, seed: int, per_pair: bool
) -> None:
    """Whatever a solver returns, the result conserves, meets the demand and has no cycle."""
    groups = by_commodity(problem) if per_pair else by_source(problem)
    shape = (len(groups.start), problem.topology.links)
    rng = np.random.default_rng(seed)
    noise = rng.normal(size=shape) * rng.choice([0.0, 1e-12, 1.0, 50.0], size=shape)
    flows = exact_flows(problem.topology, groups, noise)
    assert (flows >= 0).all()
    assert imbalance(problem.topology, groups, flows) <= 1e-12 * max(1.0, float(flows.max()))
    assert all(is_acyclic(problem.topology, flow) for flow in flows)


def test_an_exact_flow_is_left_alone() -> None:
    """A flow that needs no repair comes back as it was."""
    topology = build("ring:4")
    groups = by_commodity(Problem.all_to_all(topology))
    flows = exact_flows(topology, groups, np.zeros((len(groups.start), topology.links)))
    assert np.array_equal(exact_flows(topology, groups, flows), flows)


def test_surplus_near_the_source_is_trimmed() -> None:
    """The paper's pass from the sink to the source: what never arrives is not sent."""
    topology = Topology.from_links("line", 3, [(0, 1), (1, 2), (2, 0)])
    groups = Groups(np.array([0]), np.array([2]), np.array([0]), np.array([[0.0, 0.0, 1.0]]))
    flows = exact_flows(topology, groups, np.array([[5.0, 1.0, 0.0]]))
    assert flows.tolist() == [[1.0, 1.0, 0.0]]


def test_a_cycle_is_cancelled() -> None:
    """A circulation beside the path, and one through it, both vanish."""
    links = [(0, 1), (1, 2), (2, 1), (2, 0), (1, 0)]
    topology = Topology.from_links("cycles", 3, links)
    groups = Groups(np.array([0]), np.array([2]), np.array([0]), np.array([[0.0, 0.0, 1.0]]))
    flows = exact_flows(topology, groups, np.array([[3.0, 4.0, 3.0, 0.0, 2.0]]))
    assert flows == pytest.approx(np.array([[1.0, 1.0, 0.0, 0.0, 0.0]]))
