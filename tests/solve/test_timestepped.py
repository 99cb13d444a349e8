"""Time-stepped flows: the two forms agree, and enough steps reach the plain optimum."""

from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given, settings

from a2aflow.ir.problem import Problem
from a2aflow.schedule.steps import best_flow, least_steps, timed_flows
from a2aflow.solve import SolveSettings, solve
from a2aflow.solve.expansion import Expansion
from a2aflow.solve.timestepped import solve_timestepped
from a2aflow.topologies.operators import drop_links, with_host_bandwidth
from a2aflow.topologies.spec import build
from strategies import problems

QUIET = SolveSettings()

FABRICS = {
    "3-cube": build("hypercube:3"),
    "twisted 3-cube": build("twisted-hypercube:3"),
    "K4,4": build("bipartite:4x4"),
    "ring": build("ring:7"),
    "mesh": build("mesh:3x3"),
    "torus": build("torus:3x3x3"),
    "hosted torus": with_host_bandwidth(build("torus:3x3"), 2.0),
    "punctured torus": drop_links(build("torus:3x3x3"), 3, seed=2),
    "generalized Kautz": build("genkautz:n=16,d=4"),
    "fat tree": build("fattree:k=4"),
    "DGX-1": build("dgx1"),
    "dragonfly": build("dragonfly:a=3,h=1"),
}


@pytest.mark.parametrize("name", FABRICS)
def test_enough_steps_reach_the_plain_optimum(name: str) -> None:
    """The sum of the durations falls with every step, down to 1/F of the plain flow."""
    problem = Problem.all_to_all(FABRICS[name])
    master = solve(problem, "grouped")
    times = [flow.time for flow in timed_flows(master, QUIET, 1e-7)]
    assert all(later <= earlier * (1 + 1e-9) for earlier, later in pairwise(times))
    assert times[-1] == pytest.approx(master.bound, rel=1e-6)


@pytest.mark.parametrize("name", ["3-cube", "K4,4", "ring", "mesh", "DGX-1", "hosted torus"])
def test_the_forms_per_source_and_per_commodity_agree(name: str) -> None:
    """Grouping by source does not change the optimum of any number of steps."""
    problem = Problem.all_to_all(FABRICS[name])
    steps = least_steps(problem)
    grouped = solve_timestepped(problem, steps, QUIET)
    single = solve_timestepped(problem, steps, QUIET, per_commodity=True)
    assert grouped.time == pytest.approx(single.time, rel=1e-6)


@given(problem=problems(max_nodes=5))
@settings(max_examples=25)
def test_forms_agree_on_random_problems_with_any_demand(problem: Problem) -> None:
    """Uneven demand, uneven capacities, switches: one optimum, never below the plain one."""
    steps = least_steps(problem) + 1
    grouped = solve_timestepped(problem, steps, QUIET)
    single = solve_timestepped(problem, steps, QUIET, per_commodity=True)
    assert grouped.time == pytest.approx(single.time, rel=1e-6)
    assert grouped.time >= solve(problem).bound * (1 - 1e-9)


def test_switches_take_no_step() -> None:
    """Through a fat tree everything arrives in one step; hosts' NICs add none to a torus."""
    assert least_steps(Problem.all_to_all(FABRICS["fat tree"])) == 1
    assert least_steps(Problem.all_to_all(FABRICS["hosted torus"])) == 2
    assert least_steps(Problem.all_to_all(FABRICS["torus"])) == 3


def test_the_expanded_graph_has_the_stated_copies() -> None:
    """T+1 copies of terminals, T of switches and links, and storage between moments."""
    problem = Problem.all_to_all(FABRICS["hosted torus"])
    graph = Expansion(problem, 3).graph
    assert graph.nodes == 4 * 9 + 3 * 18
    assert graph.links == 3 * problem.topology.links + 3 * 9
    assert np.all(graph.tail[-27:] + 9 == graph.head[-27:])


def test_latency_trades_steps_for_bandwidth() -> None:
    """Free steps are taken, dear ones are not."""
    problem = Problem.all_to_all(FABRICS["generalized Kautz"])
    master = solve(problem, "grouped")
    flows = list(timed_flows(master, QUIET))
    assert best_flow(flows, master.bound, latency=0.0).expansion.steps == 3
    assert best_flow(flows, master.bound, latency=1.0).expansion.steps == 2
