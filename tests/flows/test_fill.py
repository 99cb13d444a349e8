"""Filling: nothing is missing afterwards, and it went where there was room."""

import numpy as np
import pytest
from hypothesis import given

from alltoall.flows import guess
from alltoall.flows.exact import by_source
from alltoall.flows.guess import fill_missing, load_lengths
from alltoall.flows.program import FlowProgram, reduced_program, whole_program
from alltoall.flows.symmetry.orbits import find_symmetry
from alltoall.ir.arrays import Floats
from alltoall.ir.demand import Demand
from alltoall.ir.problem import Problem
from alltoall.ir.topology import Topology
from alltoall.topologies.spec import build
from strategies import problems


def whole(problem: Problem) -> FlowProgram:
    """Return the program of all sources."""
    return whole_program(problem, by_source(problem))


def lacking(program: FlowProgram, flow: Floats) -> Floats:
    """Return what each node but the source wants and does not receive, by group."""
    net = np.zeros(program.groups.wanted.shape)
    for row in range(len(flow)):
        np.add.at(net[row], program.graph.head, flow[row])
        np.subtract.at(net[row], program.graph.tail, flow[row])
    left = program.groups.wanted - net
    left[np.arange(len(flow)), program.groups.start] = 0.0
    return left


@given(problem=problems())
def test_nothing_is_missing_afterwards(problem: Problem) -> None:
    """From nothing, and from noise that is partly negative or not a number."""
    program = whole(problem)
    shape = (len(program.weight), problem.topology.links)
    noise = np.random.default_rng(1).normal(0.5, 1.0, shape)
    noise[0, 0] = np.nan
    for flow in (np.zeros(shape), noise):
        before = np.where(flow > 0, flow, 0.0)
        fill_missing(program, flow)
        assert lacking(program, flow).max() <= 1e-9 * problem.demand.total
        assert (flow >= before).all()


def test_what_lacks_nothing_stays() -> None:
    """A flow that delivers all is not touched, even where it delivers too much."""
    program = whole(Problem.all_to_all(build("complete:4")))
    flow = np.where(program.graph.tail == program.groups.start[:, None], 1.0, 0.0)
    flow[0] *= 1.5
    kept = flow.copy()
    fill_missing(program, flow)
    assert np.array_equal(flow, kept)


def two_ways(wide: float = 1.0) -> Problem:
    """Return a problem of two senders to node 3 over node 1 or node 2, at equal distance."""
    links = [(0, 1, 1.0), (0, 2, wide), (1, 3, 1.0), (2, 3, wide), (3, 0, 9.0), (4, 0, 9.0)]
    demand = np.zeros((5, 5))
    demand[0, 3] = demand[4, 3] = 1.0
    return Problem(Topology.from_links("two ways", 5, [*links, (3, 4, 9.0)]), Demand(5, demand))


@pytest.mark.parametrize("full", [0, 1])
def test_the_emptier_of_two_ways_is_preferred(full: int) -> None:
    """One sender's flow is there, on one way; the missing one takes the other."""
    program = whole(two_ways())
    flow = np.zeros((2, 7))
    flow[0, [full, full + 2]] = 1.0
    fill_missing(program, flow)
    assert flow[1, [1 - full, 3 - full]] == pytest.approx([1.0, 1.0])
    assert flow[1, [full, full + 2]] == pytest.approx([0.0, 0.0])


@pytest.mark.parametrize("wide", [1.0, 3.0])
def test_parts_are_spread_by_capacity(wide: float, monkeypatch: pytest.MonkeyPatch) -> None:
    """Each part sees the load of those before, so that both ways are equally busy."""
    program = whole(two_ways(wide))
    flow = np.zeros((2, 7))
    monkeypatch.setattr(guess, "FILLING_PARTS", 200)
    fill_missing(program, flow)
    busy = flow.sum(axis=0)[:2] / [1.0, wide]
    assert busy == pytest.approx([2 / (1 + wide)] * 2, rel=0.05)


def test_one_source_counts_for_its_orbit() -> None:
    """Under symmetry the length of a link is that of its class, and of all sources' load."""
    program = reduced_program(find_symmetry(Problem.all_to_all(build("torus:3x4"))))
    flow = np.zeros((1, program.graph.links))
    fill_missing(program, flow)
    assert lacking(program, flow).max() <= 1e-12
    lengths = load_lengths(program, program.weight @ flow)
    for each in range(program.classes):
        assert len(np.unique(lengths[program.link_class == each])) == 1
    assert lengths.max() == pytest.approx(1.0)
