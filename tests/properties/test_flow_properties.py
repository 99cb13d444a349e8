"""Invariants of solving, over random digraphs with random capacities and demands."""

import json

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from alltoall.check.flow import check_flow
from alltoall.flows import METHODS, solve
from alltoall.ir.demand import Demand
from alltoall.ir.files.json.saved_answers import answer_from_json, answer_to_json
from alltoall.ir.files.json.values import parse_json
from alltoall.ir.problem import Problem
from alltoall.ir.topology import Topology
from alltoall.topologies.operators import scale_capacities
from strategies import problems

CLOSED = 1e-5


@pytest.mark.parametrize("method", METHODS)
@given(problem=problems())
def test_every_answer_passes_the_checker_and_closes_its_gap(problem: Problem, method: str) -> None:
    """The flow is feasible and the certificate proves it optimal to 1e-5."""
    flow = solve(problem, method)
    report = check_flow(flow)
    assert report.gap <= CLOSED
    assert report.max_load == pytest.approx(1.0)


@given(problem=problems())
def test_link_and_decomposed_agree(problem: Problem) -> None:
    """Grouping commodities by source does not change the optimum."""
    times = [solve(problem, method).time for method in METHODS]
    assert times == pytest.approx([times[0]] * len(times), rel=1e-6)


@given(problem=problems(), data=st.data())
def test_relabelling_the_nodes_leaves_the_rate_unchanged(
    problem: Problem, data: st.DataObject
) -> None:
    """The optimum is a property of the graph, not of its numbering."""
    topology = problem.topology
    new = np.array(data.draw(st.permutations(range(topology.nodes))))
    order = np.argsort(new[topology.terminals])
    renamed = Topology(
        name="renamed",
        nodes=topology.nodes,
        tail=new[topology.tail],
        head=new[topology.head],
        capacity=topology.capacity,
        terminals=new[topology.terminals][order],
    )
    matrix = problem.demand.matrix
    demand = Demand(len(order), None if matrix is None else matrix[np.ix_(order, order)])
    assert solve(Problem(renamed, demand)).rate == pytest.approx(solve(problem).rate, rel=1e-6)


@given(problem=problems(), factor=st.sampled_from([1e-3, 0.1, 3.0, 1e4]))
def test_scaling_the_capacities_scales_the_rate(problem: Problem, factor: float) -> None:
    """Twice the bandwidth is half the time."""
    scaled = Problem(scale_capacities(problem.topology, factor), problem.demand)
    assert solve(scaled).rate == pytest.approx(factor * solve(problem).rate, rel=1e-6)


@given(problem=problems(), factor=st.sampled_from([1e-3, 0.1, 3.0, 1e4]))
@settings(max_examples=20)
def test_scaling_the_demand_scales_the_time(problem: Problem, factor: float) -> None:
    """Twice the data takes twice the time."""
    matrix = problem.demand.rows(np.arange(problem.demand.terminals)) * factor
    scaled = Problem(problem.topology, Demand(problem.demand.terminals, matrix))
    assert solve(scaled).time == pytest.approx(factor * solve(problem).time, rel=1e-6)


@given(problem=problems(), method=st.sampled_from(sorted(METHODS)))
def test_flows_survive_json_exactly(problem: Problem, method: str) -> None:
    """What is read back is what was written, to the last bit."""
    flow = solve(problem, method)
    text = json.dumps(answer_to_json(flow))
    again = answer_from_json(parse_json(text, "text"), "text")
    assert again == flow
    assert json.dumps(answer_to_json(again)) == text
