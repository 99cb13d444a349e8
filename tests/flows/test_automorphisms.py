"""Automorphisms keep links, capacities, terminals and demand in place, and none is missed."""

from collections import Counter
from dataclasses import replace
from itertools import permutations
from math import factorial

import numpy as np
import pytest
from hypothesis import given

from alltoall.flows import sizes
from alltoall.flows.symmetry.automorphisms import count_automorphisms, find_generators
from alltoall.ir.arrays import Floats, Ints
from alltoall.ir.demand import Demand
from alltoall.ir.problem import Problem
from alltoall.ir.topology import Topology
from alltoall.topologies.operators import with_host_bandwidth
from alltoall.topologies.spec import build
from strategies import problems, symmetric_problems


def keeps_all(problem: Problem, image: tuple[int, ...]) -> bool:
    """Whether a map of the nodes keeps links with capacities, terminals and demand, by hand."""
    topology = problem.topology
    if sorted(image) != list(range(topology.nodes)):
        return False
    ends = list(zip(topology.tail.tolist(), topology.head.tolist(), strict=True))
    capacity = topology.capacity.tolist()
    before = Counter((u, v, c) for (u, v), c in zip(ends, capacity, strict=True))
    after = Counter((image[u], image[v], c) for (u, v), c in zip(ends, capacity, strict=True))
    terminals = topology.terminals.tolist()
    if before != after or {image[node] for node in terminals} != set(terminals):
        return False
    rows = problem.demand.rows(np.arange(len(terminals)))
    place = {node: index for index, node in enumerate(terminals)}
    return all(
        rows[place[u], place[v]] == rows[place[image[u]], place[image[v]]]
        for u in terminals
        for v in terminals
    )


def orbits_under(maps: list[tuple[int, ...]], nodes: int) -> set[frozenset[int]]:
    """Return the orbits of the nodes, by following every map from every node."""
    orbits = set()
    for node in range(nodes):
        orbit, queue = {node}, [node]
        while queue:
            at = queue.pop()
            for image in maps:
                if image[at] not in orbit:
                    orbit.add(image[at])
                    queue.append(image[at])
        orbits.add(frozenset(orbit))
    return orbits


def rows_of(generators: Ints) -> list[tuple[int, ...]]:
    """Return generators as tuples."""
    return [tuple(row) for row in generators.tolist()]


def ring_demand(terminals: int, amounts: list[float]) -> Floats:
    """Return the demand amounts[k - 1] for each terminal to the one k places on."""
    matrix = np.zeros((terminals, terminals))
    for step, amount in enumerate(amounts, start=1):
        for source in range(terminals):
            matrix[source, (source + step) % terminals] = amount
    return matrix


@given(problem=problems(max_nodes=6) | symmetric_problems(max_nodes=4))
def test_generators_have_the_orbits_of_all_automorphisms(problem: Problem) -> None:
    """Each generator is an automorphism, and orbits and count are those of all permutations."""
    nodes = problem.topology.nodes
    found = rows_of(find_generators(problem))
    every = [image for image in permutations(range(nodes)) if keeps_all(problem, image)]
    assert all(keeps_all(problem, image) for image in found)
    assert orbits_under(found, nodes) == orbits_under(every, nodes)
    assert count_automorphisms(problem.topology, problem.demand) == len(every)


@given(problem=problems(max_nodes=5) | symmetric_problems(max_nodes=4))
def test_kept_numbers_fix_a_node(problem: Problem) -> None:
    """With a number of its own a node stays, and the orbits are those of all that leave it."""
    nodes = problem.topology.nodes
    kept = (np.arange(nodes) == 0).astype(np.int64)
    found = rows_of(find_generators(problem, kept))
    every = [
        image for image in permutations(range(nodes)) if image[0] == 0 and keeps_all(problem, image)
    ]
    assert all(image[0] == 0 and keeps_all(problem, image) for image in found)
    assert orbits_under(found, nodes) == orbits_under(every, nodes)


SYMMETRIC = {
    "torus": build("torus:4x4"),
    "hypercube": build("hypercube:4"),
    "Kautz": build("kautz:d=2,k=3"),
    "generalized Kautz": build("genkautz:n=20,d=4"),
    "fat tree": build("fattree:k=4"),
    "hosted torus": with_host_bandwidth(build("torus:3x3"), 2.0),
}


@pytest.mark.parametrize("name", SYMMETRIC)
def test_generators_of_families_are_automorphisms(name: str) -> None:
    """There are some, and each keeps everything in place."""
    problem = Problem.all_to_all(SYMMETRIC[name])
    found = rows_of(find_generators(problem))
    assert found
    assert all(keeps_all(problem, image) for image in found)


@pytest.mark.parametrize(
    ("spec", "count"),
    [("complete:9", factorial(9)), ("hypercube:4", 384), ("ring:8", 16), ("torus:4x4", 384)],
)
def test_known_counts(spec: str, count: int) -> None:
    """Groups whose order every textbook has; the 4x4 torus is the 4-cube."""
    assert count_automorphisms(build(spec)) == count


def test_a_count_may_have_thousands_of_digits() -> None:
    """Five hubs with 420 leaves each: 4603 digits, beyond the 4300 that Python reads as text."""
    links = [(u, v) for u in range(5) for v in range(5) if u != v]
    for leaf in range(5, 5 + 5 * 420):
        links += [(leaf % 5, leaf), (leaf, leaf % 5)]
    broom = Topology.from_links("broom", 5 + 5 * 420, links)
    assert count_automorphisms(broom) == factorial(5) * factorial(420) ** 5


def test_one_wider_link_breaks_the_symmetry() -> None:
    """A ring of eight turns; with one link of another capacity nothing is left."""
    ring = Topology.from_links("ring", 8, _directed(8))
    wide = np.array(ring.capacity)
    wide[3] = 2.0
    assert count_automorphisms(ring) == 8
    assert count_automorphisms(replace(ring, capacity=wide)) == 1
    assert len(find_generators(Problem.all_to_all(replace(ring, capacity=wide)))) == 0


def _directed(nodes: int) -> list[tuple[int, int]]:
    """Return the links of a ring in one direction."""
    return [(node, (node + 1) % nodes) for node in range(nodes)]


def test_a_switch_is_no_terminal() -> None:
    """Of a ring of six with two switches only the half turn and mirrors of them remain."""
    links = _directed(6) + [(v, u) for u, v in _directed(6)]
    whole = Topology.from_links("ring", 6, links)
    some = Topology.from_links("ring", 6, links, [1, 2, 4, 5])
    assert count_automorphisms(whole) == 12
    assert count_automorphisms(some) == 4


def test_parallel_links_count() -> None:
    """A doubled link is not a link of twice the capacity, nor one of two capacities."""
    doubled = Topology.from_links("doubled", 4, [*_directed(4), (0, 1), (2, 3)])
    assert count_automorphisms(doubled) == 2
    wide = [(u, v, 1.0) for u, v in _directed(4)] + [(0, 1, 1.0), (2, 3, 2.0)]
    assert count_automorphisms(Topology.from_links("mixed", 4, wide)) == 1


@pytest.mark.parametrize(
    ("amounts", "count"),
    [([1.0] * 5, 720), ([1.0, 2.0, 3.0, 2.0, 1.0], 12), ([1.0, 2.0, 3.0, 4.0, 5.0], 6)],
)
def test_demand_counts_as_much_as_links(amounts: list[float], count: int) -> None:
    """On K_6: all permutations, those of a ring both ways, those of a ring one way."""
    demand = Demand(6, ring_demand(6, amounts))
    topology = build("complete:6")
    assert count_automorphisms(topology, demand) == count
    found = rows_of(find_generators(Problem(topology, demand)))
    assert all(keeps_all(Problem(topology, demand), image) for image in found)


def test_demands_that_all_differ_leave_nothing() -> None:
    """As many values as pairs: the identity alone."""
    matrix = np.arange(36.0).reshape(6, 6) + 1
    np.fill_diagonal(matrix, 0.0)
    problem = Problem(build("complete:6"), Demand(6, matrix))
    assert find_generators(problem).shape == (0, 6)
    assert count_automorphisms(problem.topology, problem.demand) == 1


def test_no_symmetry_is_looked_for_among_too_many_demands(monkeypatch: pytest.MonkeyPatch) -> None:
    """Beyond the limit the answer is that there is none, which is always safe."""
    problem = Problem(build("complete:6"), Demand(6, ring_demand(6, [1, 2, 3, 2, 1])))
    assert len(find_generators(problem)) > 0
    monkeypatch.setattr(sizes, "SYMMETRIC_DEMANDS", 3)
    assert find_generators(problem).shape == (0, 6)
