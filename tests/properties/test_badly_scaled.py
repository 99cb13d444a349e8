"""Small problems are solved to the end, however different their links are."""

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from alltoall.check.flow import check_flow
from alltoall.flows import METHODS, SolveSettings, solve
from alltoall.flows import by_lp as concurrent
from alltoall.flows.exact import by_source
from alltoall.flows.first_order import solve_by_steps
from alltoall.flows.program import whole_program
from alltoall.ir.problem import Problem
from alltoall.ir.topology import Topology
from alltoall.ir.units import normal_units
from alltoall.lp.program import LinearProgram, LPResult
from alltoall.lp.settings import LPSettings, LPStatus
from alltoall.lp.solve import solve_program
from strategies import problems

QUIET = SolveSettings(workers=1)

POWERS = [1.0, 1e3, 1e6]
"""Capacities as they meet in one machine, and further apart."""


@st.composite
def uneven(draw: st.DrawFn) -> Problem:
    """Draw a problem with capacities of different powers, or anything over eight orders."""
    problem = draw(problems(max_nodes=6))
    width = st.sampled_from(POWERS) | st.floats(-4, 4).map(lambda power: 10.0**power)
    count = problem.topology.links
    capacity = draw(st.lists(width, min_size=count, max_size=count))
    unit = draw(st.sampled_from([1.0, 1e-9, 2.5e10]))
    topology = replace(problem.topology, capacity=unit * np.array(capacity))
    return Problem(topology, problem.demand)


@pytest.mark.parametrize("method", ["auto", *METHODS])
@given(problem=uneven())
def test_small_problems_are_solved_to_the_end(method: str, problem: Problem) -> None:
    """The certified gap is 1e-9 by every method, and the checker agrees."""
    assert check_flow(solve(problem, method, QUIET)).gap <= 1e-9


def wide_and_narrow() -> Topology:
    """Return three nodes with a link a million times narrower than the others."""
    links = [(1, 0, 1e6), (2, 1, 1e6), (0, 2, 1.0), (0, 1, 1e6), (2, 0, 1e6), (0, 1, 1e6)]
    return Topology.from_links("three", 3, links)


CASES = {
    "two nodes": Topology.from_links("two", 2, [(0, 1, 1.0), (1, 0, 1e6), (0, 1, 1e6)]),
    "three nodes": wide_and_narrow(),
    "eight orders, with a switch": Topology.from_links(
        "four",
        4,
        [(0, 3, 1e4), (3, 1, 1e-4), (1, 2, 1.0), (2, 0, 1e2), (0, 1, 1e-4), (3, 2, 1e4)],
        [0, 1, 2],
    ),
}


@pytest.mark.parametrize("name", CASES)
def test_steps_alone_reach_their_gap(name: str) -> None:
    """Orders of magnitude between links do not matter to primal-dual steps."""
    problem = normal_units(Problem.all_to_all(CASES[name])).problem
    program = whole_program(problem, by_source(problem))
    flow = solve_by_steps(problem, program, replace(QUIET, gap=1e-3), "first-order")
    assert check_flow(flow).gap <= 1e-3


def test_another_solver_takes_over(monkeypatch: pytest.MonkeyPatch) -> None:
    """Where the first one gives up, the second one finishes."""
    problem = Problem.all_to_all(wide_and_narrow())
    asked: list[str] = []

    def first_fails(program: LinearProgram, solver: str, settings: LPSettings) -> LPResult:
        asked.append(solver)
        lost = LPResult(LPStatus.STOPPED, None, None)
        return lost if len(asked) == 1 else solve_program(program, solver, settings)

    monkeypatch.setattr(concurrent, "solve_program", first_fails)
    flow = solve(problem, "link", QUIET)
    assert asked == ["simplex", "ipm"]
    assert check_flow(flow).gap <= 1e-6
