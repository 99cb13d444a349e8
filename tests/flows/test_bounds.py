"""Bounds hold, and are tight where they should be."""

from dataclasses import replace
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given

from alltoall.check.flow import recompute_bound
from alltoall.errors import UsageError
from alltoall.flows import solve
from alltoall.flows.bounds import cut_bound, distance_bound, measure_cut, regular_bound
from alltoall.flows.program import certify, length_bound
from alltoall.ir.problem import Problem
from alltoall.ir.topology import Topology
from alltoall.topologies.spec import build
from strategies import problems


@given(problem=problems())
def test_no_bound_exceeds_the_optimum(problem: Problem) -> None:
    """Distance, cut and certificate all stay below the time of a feasible flow."""
    time = solve(problem).time * (1 + 1e-9)
    assert distance_bound(problem) <= time
    assert cut_bound(problem).bound <= time


@pytest.mark.parametrize("d", [2, 3, 4, 7])
@pytest.mark.parametrize("k", [2, 3, 4, 5])
def test_the_closed_form_is_the_sum_over_a_full_tree(d: int, k: int) -> None:
    """Both forms of the paper's bound agree where the tree is full."""
    nodes = (d**k - 1) // (d - 1)
    closed = Fraction(d ** (k + 1) * (k - 1) - d**k * k + d, (d - 1) ** 2 * d)
    assert regular_bound(nodes, d) == closed


def test_regular_bound_by_hand() -> None:
    """N=10, d=3: three nodes at depth 1 and six at depth 2 make 15 hops over 3 ports."""
    assert regular_bound(10, 3) == 5
    assert regular_bound(6, 1) == 15
    assert regular_bound(2, 4) == Fraction(1, 4)
    with pytest.raises(UsageError, match="1 nodes"):
        regular_bound(1, 3)


def test_kautz_graphs_nearly_reach_the_regular_bound() -> None:
    """Generalized Kautz graphs are within 10 % of the bound for any regular digraph."""
    time = solve(Problem.all_to_all(build("genkautz:n=60,d=4")), "grouped").time
    assert 1 <= time / float(regular_bound(60, 4)) < 1.1


@pytest.mark.parametrize(
    ("spec", "bound"),
    [
        ("hypercube:3", 4.0),
        ("hypercube:8", 128.0),
        ("torus:4x8", 32.0),
        ("torus:7x7x7", 294.0),
        ("torus:8x8x8", 512.0),
        ("ring:30", 112.5),
        ("fattree:k=4", 15.0),
    ],
)
def test_the_worst_cut_is_found(spec: str, bound: float) -> None:
    """Bisections of symmetric graphs, and the port of a host."""
    problem = Problem.all_to_all(build(spec))
    cut = cut_bound(problem)
    assert cut.bound == pytest.approx(bound)
    assert measure_cut(problem, cut.inside).bound == cut.bound


def test_a_narrow_waist_is_found_by_its_cut() -> None:
    """Two cliques joined by one cable: the cut through it proves the optimum."""
    edges = [(u, v) for half in (range(10), range(10, 20)) for u in half for v in half if u < v]
    problem = Problem.all_to_all(Topology.from_edges("dumbbell", 20, [*edges, (0, 10)]))
    assert cut_bound(problem).bound == pytest.approx(100.0)
    assert solve(problem, "grouped").time == pytest.approx(100.0)


@given(problem=problems())
def test_any_lengths_prove_a_bound_that_the_checker_confirms(problem: Problem) -> None:
    """Our Dijkstra and the checker's Bellman-Ford read the same bound off random lengths."""
    rng = np.random.default_rng(problem.topology.links)
    lengths = rng.random(problem.topology.links) * rng.integers(0, 2, problem.topology.links)
    proven = length_bound(problem, lengths)
    checked, trouble = recompute_bound(problem, lengths)
    assert bool(trouble) == (proven == 0)  # lengths that prove nothing are said to
    assert proven == pytest.approx(checked, rel=1e-12)
    assert certify(problem, [lengths]).bound >= proven * (1 - 1e-12)
    assert certify(problem, [-lengths]).bound == pytest.approx(distance_bound(problem))


@pytest.mark.parametrize("scale", [1e-15, 2.5e10])
def test_cuts_have_no_unit(scale: float) -> None:
    """The cut that is found is the same in any unit of capacity."""
    topology = build("dragonfly:a=4,h=1")
    scaled = replace(topology, capacity=topology.capacity * scale)
    found, plain = (cut_bound(Problem.all_to_all(each)) for each in (scaled, topology))
    assert found.bound * scale == pytest.approx(plain.bound)
