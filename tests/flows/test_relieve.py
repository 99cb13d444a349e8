"""Relief: flow leaves links that are too full, conserves, and its times are those it counts."""

from dataclasses import replace

import numpy as np
import pytest

from a2aflow.check.flow import check_flow
from a2aflow.flows import SolveSettings, solve, warm
from a2aflow.flows.certificate import certify_program
from a2aflow.flows.exact import exact_flows
from a2aflow.flows.groups import by_source
from a2aflow.flows.program import FlowProgram, reduced_program, whole_program
from a2aflow.flows.relieve import relieve
from a2aflow.flows.symmetry.orbits import find_symmetry
from a2aflow.ir.problem import Problem
from a2aflow.topologies.operators import drop_links, set_capacities
from a2aflow.topologies.spec import build

COARSE = SolveSettings(gap=2e-2, workers=1)


def problem_of(spec: str) -> Problem:
    """Return the all-to-all of a topology."""
    return Problem.all_to_all(build(spec))


def on_shortest_paths(program: FlowProgram) -> np.ndarray:
    """Return volumes that know nothing of loads."""
    nothing = np.zeros((len(program.weight), program.graph.links))
    return exact_flows(program.graph, program.groups, nothing)


@pytest.mark.parametrize("spec", ["jellyfish:n=24,d=4,seed=1", "genkautz:n=24,d=3", "mesh:4x4"])
def test_flow_leaves_full_links_and_still_arrives(spec: str) -> None:
    """The time falls, and every node gets what it wants."""
    problem = problem_of(spec)
    program = whole_program(problem, by_source(problem))
    volumes = on_shortest_paths(program)
    before, bound = program.time(volumes), solve(problem, "grouped").bound
    left = relieve(program, volumes, bound, COARSE)
    assert program.time(volumes) < before
    assert not left or program.time(volumes) > bound * (1 + COARSE.gap)
    graph, groups = program.graph, program.groups
    for row, start in enumerate(groups.start):
        arrives = np.bincount(graph.head, volumes[row], graph.nodes)
        arrives -= np.bincount(graph.tail, volumes[row], graph.nodes)
        wanted = groups.wanted[row].copy()
        wanted[start] = -wanted.sum()
        assert arrives == pytest.approx(wanted, abs=1e-9)
    assert (volumes >= 0).all()


def test_one_source_stands_for_all_that_are_symmetric() -> None:
    """Full are the classes of links, and so their mean load falls."""
    problem = problem_of("torus:4x4")
    program = reduced_program(find_symmetry(problem, True))
    volumes = on_shortest_paths(program)
    assert len(volumes) == 1
    relieve(program, volumes, certify_program(program, []).bound, COARSE)
    assert program.time(volumes) == pytest.approx(solve(problem, "grouped").time, rel=COARSE.gap)


def test_what_is_good_enough_stays() -> None:
    """No path moves where no link is too full."""
    problem = problem_of("jellyfish:n=16,d=4,seed=1")
    program = whole_program(problem, by_source(problem))
    volumes = on_shortest_paths(program)
    before = volumes.copy()
    assert relieve(program, volumes, program.time(volumes), COARSE) == ()
    assert np.array_equal(before, volumes)


def test_a_failure_at_hundreds_of_nodes_needs_no_step(monkeypatch: pytest.MonkeyPatch) -> None:
    """Moving paths alone comes within two per cent of what the last prices prove."""
    topology = build("jellyfish:n=100,d=4,seed=1")
    last = solve(Problem.all_to_all(topology), "first-order", replace(COARSE, gap=5e-3))
    monkeypatch.delattr(warm, "improve_by_steps")
    flow = warm.solve_from(Problem.all_to_all(drop_links(topology, 1, seed=1)), last, COARSE)
    assert flow.method == "relief"
    assert check_flow(flow).gap <= COARSE.gap


def test_narrow_links_are_relieved_by_what_they_can_carry() -> None:
    """Capacities decide how full a link is."""
    topology = build("jellyfish:n=24,d=4,seed=1")
    link = int(topology.tail[3]), int(topology.head[3])
    problem = Problem.all_to_all(set_capacities(topology, {link: 0.25}))
    flow = warm.solve_from(problem, solve(Problem.all_to_all(topology), "grouped"), COARSE)
    assert check_flow(flow).gap <= COARSE.gap
