"""Every verb against an optimum from outside, on digraphs with switches and uneven demand."""

from pathlib import Path
from tempfile import TemporaryDirectory

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import alltoall
from alltoall.flows import METHODS
from alltoall.ir.demand import Demand
from alltoall.ir.flow import Flow
from alltoall.ir.problem import Problem
from alltoall.ir.routes import Routes
from alltoall.ir.schedule import Schedule
from alltoall.ir.topology import Topology
from alltoall.lowering import targets_for
from alltoall.routes import ROUTERS
from outside import (
    SMALL,
    demand_of,
    links_of,
    outside_time,
    simple_paths,
    walked_flow,
    walked_routes,
    walked_schedule,
)

EXACT = ("extp",)
"""Routing methods that reach the optimum."""

SCHEDULERS = ("auto", "tsmcf", "list")
"""Scheduling methods but for the baseline, which takes seconds for each of these."""

CHOOSY = ("dor", "updown")
"""Routing methods that need a grid, or links in both directions."""

UNSPLIT = ("opensm", "simgrid")
"""Targets that take one route of each pair."""

EVEN_ONLY = ("msccl",)
"""Targets that take shards of one size."""

CLOSE = 1e-5
"""How near an optimum is met."""

capacities = st.sampled_from([0.5, 1.0, 1.0, 2.0, 3.0])
amounts = st.sampled_from([0.0, 0.0, 0.0, 0.5, 1.0, 1.0, 2.0, 3.0])


@st.composite
def sparse_problems(draw: st.DrawFn) -> Problem:
    """Draw links between terminals and switches: any node may lack ways in, ways out, or both.

    The first terminal has a link to the second; other pairs have demand only where there is a path.
    """
    nodes = draw(st.integers(2, 6))
    where = sorted(draw(st.sets(st.integers(0, nodes - 1), min_size=2, max_size=4)))
    ends = st.tuples(st.integers(0, nodes - 1), st.integers(0, nodes - 1))
    drawn = draw(st.lists(ends, min_size=nodes, max_size=2 * nodes + 4))
    pairs = [(where[0], where[1]), *((a, b) for a, b in drawn if a != b)]
    links = [(a, b, draw(capacities)) for a, b in pairs]
    matrix = np.zeros((len(where), len(where)))
    for a, b in np.ndindex(*matrix.shape):
        if a != b and next(simple_paths(links, where[a], where[b]), None):
            matrix[a, b] = draw(amounts)
    matrix[0, 1] = max(matrix[0, 1], 0.5)
    topology = Topology.from_links("sparse", nodes, links, where)
    return Problem(topology, Demand(len(where), matrix))


def require_true(found: Flow | Routes | Schedule, walked: float) -> float:
    """Hold the time of an answer against what a walk found, and its bound against the optimum.

    It is verified as it is and as a file; its time over the optimum is returned.
    """
    optimum = outside_time(found.problem)
    assert optimum is not None
    assert found.time == pytest.approx(walked, rel=SMALL)
    assert found.bound <= optimum * (1 + SMALL)
    assert optimum * (1 - SMALL) <= found.time
    with TemporaryDirectory() as folder:
        found.save(Path(folder) / "answer.json")
        for each in (found, Path(folder) / "answer.json"):
            facts = alltoall.verify(each).facts
            assert (facts["time"], facts["bound"]) == pytest.approx(
                (found.time, found.bound), rel=SMALL
            )
    return found.time / optimum


@given(problem=sparse_problems(), method=st.sampled_from(sorted(METHODS)))
def test_solve_finds_the_optimum(problem: Problem, method: str) -> None:
    """By every method, in flows that arrive and fit."""
    flow = alltoall.solve(problem, f"{method}:symmetry=false")
    assert require_true(flow, walked_flow(flow)) <= 1 + CLOSE


@given(problem=sparse_problems(), method=st.sampled_from(sorted({*ROUTERS} - {*CHOOSY})))
def test_routes_are_paths_that_carry_the_demand(problem: Problem, method: str) -> None:
    """By every method: as fast as they say, and the best of them as fast as can be."""
    routes = alltoall.route(problem, method=method)
    ratio = require_true(routes, walked_routes(routes))
    assert ratio <= 1 + CLOSE or method not in EXACT


@given(problem=sparse_problems(), method=st.sampled_from(SCHEDULERS))
@settings(max_examples=15)
def test_schedules_deliver_every_chunk(problem: Problem, method: str) -> None:
    """By every method: nothing is sent before it is there, in the time that the steps take."""
    schedule = alltoall.schedule(problem, method=method)
    require_true(schedule, walked_schedule(schedule))


@given(problem=sparse_problems())
@settings(max_examples=8)
def test_what_is_lowered_keeps_its_demand(problem: Problem) -> None:
    """To every target that takes uneven demand; each file is parsed back and proven."""
    nouns: dict[type, Routes | Schedule] = {
        Routes: alltoall.route(problem),
        Schedule: alltoall.schedule(problem, method="list"),
    }
    links = links_of(problem)
    one_way = any(next(simple_paths(links, b, a), None) is None for a, b in demand_of(problem))
    for kind, noun in nouns.items():
        for target in sorted(targets_for(kind).keys() - {*UNSPLIT, *EVEN_ONLY}):
            most = ":max-routes=4096" if target in ("routes", "ompi", "srv6") else ""
            if target == "linux" and one_way:
                with pytest.raises(alltoall.InputError, match="for what acknowledges"):
                    alltoall.lower(noun, target)
                continue
            assert alltoall.lower(noun, target + most).files


@given(problem=sparse_problems())
@settings(max_examples=10)
def test_demand_without_a_path_is_refused(problem: Problem) -> None:
    """As no valid problem, before any verb looks at it."""
    links, demand = links_of(problem), demand_of(problem)
    kept = [link for link in links if link[1] != problem.topology.terminals[1]]
    if kept and (problem.topology.terminals[0], problem.topology.terminals[1]) in demand:
        terminals = problem.topology.terminals.tolist()
        cut = Topology.from_links("cut", problem.topology.nodes, kept, terminals)
        with pytest.raises(alltoall.InputError, match="cannot reach"):
            alltoall.solve(Problem(cut, problem.demand))
