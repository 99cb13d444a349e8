"""The checker accepts compact flows that are true, and finds each way in which one can lie."""

import json
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from hypothesis import given

from alltoall.check.flow import check_flow, check_generators
from alltoall.errors import FormatError, InputError, VerificationError
from alltoall.flows import SolveSettings
from alltoall.flows.methods import solve_master
from alltoall.flows.symmetry.orbits import find_symmetry, link_maps, orbits
from alltoall.ir.answer import Certificate
from alltoall.ir.arrays import Floats, Ints
from alltoall.ir.demand import Demand
from alltoall.ir.files.json.saved_answers import answer_from_json, answer_to_json
from alltoall.ir.files.json.values import parse_json
from alltoall.ir.flow import Flow, orbits_of
from alltoall.ir.problem import Problem
from alltoall.ir.topology import Topology
from alltoall.topologies.operators import with_host_bandwidth
from alltoall.topologies.spec import build
from strategies import symmetric_problems

QUIET = SolveSettings()


@pytest.fixture(scope="module")
def flow() -> Flow:
    """Return a correct compact flow of three orbits: corners, edges and the middle of a mesh."""
    found = solve_master(Problem.all_to_all(build("mesh:3x3")), QUIET)
    assert found.generators is not None
    assert found.groups == 3
    return found


def two_way_ring(nodes: int, terminals: list[int] | None = None) -> Topology:
    """Return a ring with links both ways."""
    ends = [(node, (node + 1) % nodes) for node in range(nodes)]
    return Topology.from_links("ring", nodes, ends + [(v, u) for u, v in ends], terminals)


def turn(nodes: int, by: int = 1) -> Ints:
    """Return the turn of a ring as the one generator."""
    return (np.arange(nodes)[None, :] + by) % nodes


def maps_of(flow: Flow) -> Ints:
    """Return the generators of a flow that has some."""
    assert flow.generators is not None
    return flow.generators


def without_group(flow: Flow, group: int) -> Flow:
    """Return the flow without one of its groups."""
    begin, end = flow.start[group], flow.start[group + 1]
    sizes = np.delete(np.diff(flow.start), group)
    return replace(
        flow,
        source=np.delete(flow.source, group),
        start=np.concatenate(([0], np.cumsum(sizes))),
        link=np.delete(flow.link, np.s_[begin:end]),
        amount=np.delete(flow.amount, np.s_[begin:end]),
    )


def with_first_group_twice(flow: Flow) -> Flow:
    """Return the flow with its first group once more at the end."""
    end = int(flow.start[1])
    return replace(
        flow,
        source=np.append(flow.source, flow.source[0]),
        start=np.append(flow.start, flow.start[-1] + end),
        link=np.append(flow.link, flow.link[:end]),
        amount=np.append(flow.amount, flow.amount[:end]),
    )


def lengths_of(flow: Flow, change: Callable[[Floats], None]) -> Flow:
    """Return the flow with other lengths."""
    lengths = np.array(flow.certificate.lengths)
    change(lengths)
    return replace(flow, certificate=Certificate(lengths, flow.bound))


def lengthen_one(lengths: Floats) -> None:
    """Make one link longer than those that it is symmetric to."""
    lengths[np.argmax(lengths)] *= 1.001


FAULTS: dict[str, tuple[Callable[[Flow], Flow], str]] = {
    "all nodes to one": (
        lambda f: replace(f, generators=np.zeros_like(f.generators)),
        "generator 0 is not a permutation",
    ),
    "two nodes to one": (
        lambda f: replace(f, generators=np.array([[0, 1, 2, 3, 4, 5, 6, 7, 7]])),
        "generator 0 is not a permutation",
    ),
    "a turn of the numbers": (
        lambda f: replace(f, generators=turn(9)),
        "generator 0 does not map links to links",
    ),
    "a false generator behind true ones": (
        lambda f: replace(f, generators=np.concatenate((maps_of(f), turn(9)))),
        "generator 2 does not map links to links",
    ),
    "two groups of one orbit": (with_first_group_twice, r"4 groups \(3 distinct"),
    "an orbit missing": (lambda f: without_group(f, 2), r"2 groups \(2 distinct"),
    "less symmetry than groups need": (
        lambda f: replace(f, generators=maps_of(f)[:0]),
        "where the demand has 9",
    ),
    "a length that differs within its orbit": (
        lambda f: lengths_of(f, lengthen_one),
        "differ between links that are symmetric",
    ),
    "more than the capacity": (
        lambda f: replace(f, rate=f.rate * 1.001, amount=f.amount * 1.001),
        "more than their capacity",
    ),
    "a rate that is not delivered": (
        lambda f: replace(f, rate=f.rate * 0.999),
        "demand not met",
    ),
    "a bound that is not proven": (
        lambda f: replace(f, certificate=Certificate(f.certificate.lengths, f.bound * 1.001)),
        "its lengths prove",
    ),
}


def test_a_correct_compact_flow_passes(flow: Flow) -> None:
    """Time and bound of all sources are recomputed from three of them."""
    report = check_flow(flow)
    assert report.time == pytest.approx(flow.time)
    assert report.bound == pytest.approx(flow.bound)
    assert report.max_load == pytest.approx(1.0)


@pytest.mark.parametrize("fault", FAULTS)
def test_a_fault_is_found(flow: Flow, fault: str) -> None:
    """Each kind of tampering is named."""
    tamper, words = FAULTS[fault]
    with pytest.raises(VerificationError, match=words):
        check_flow(tamper(flow))


def only_violation(problem: Problem, generators: Ints) -> str:
    """Return what is wrong with generators, which is one thing."""
    (violation,) = check_generators(problem, generators)
    return violation


def test_generators_that_are_automorphisms_pass() -> None:
    """Turns of a ring, and everything that is found on families with switches and hosts."""
    assert not list(check_generators(Problem.all_to_all(two_way_ring(6)), turn(6)))
    for topology in (build("fattree:k=4"), with_host_bandwidth(build("torus:3x3"), 2.0)):
        problem = Problem.all_to_all(topology)
        assert not list(check_generators(problem, find_symmetry(problem).generators))


def test_a_terminal_must_not_become_a_switch() -> None:
    """A turn by one moves terminals to switches, a turn by three does not."""
    problem = Problem.all_to_all(two_way_ring(6, [1, 2, 4, 5]))
    assert only_violation(problem, turn(6)) == (
        "generator 0 moves a terminal to a node that is none"
    )
    assert not list(check_generators(problem, turn(6, by=3)))


def test_capacities_must_stay() -> None:
    """A turn of a ring with one wider link maps links to links, but not to equal ones."""
    ring = two_way_ring(6)
    wide = np.array(ring.capacity)
    wide[2] = 1.0 + 1e-12
    problem = Problem.all_to_all(replace(ring, capacity=wide))
    assert "links of the same capacity" in only_violation(problem, turn(6))


def test_parallel_links_must_stay_parallel() -> None:
    """A turn that maps a double link to a single one is none."""
    ends = [(node, (node + 1) % 4) for node in range(4)]
    doubled = Topology.from_links("doubled", 4, [*ends, (0, 1), (2, 3)])
    assert "same capacity" in only_violation(Problem.all_to_all(doubled), turn(4))
    assert not list(check_generators(Problem.all_to_all(doubled), turn(4, by=2)))


def test_demand_must_stay() -> None:
    """One pair that asks for more breaks every turn; between switches positions still fit."""
    matrix = np.ones((4, 4)) - np.eye(4)
    matrix[0, 2] = 2.0
    problem = Problem(two_way_ring(8, [1, 3, 5, 7]), Demand(4, matrix))
    assert only_violation(problem, turn(8, by=2)) == "generator 0 does not keep the demand"
    matrix[2, 0] = 2.0
    even = Problem(two_way_ring(8, [1, 3, 5, 7]), Demand(4, matrix))
    assert not list(check_generators(even, turn(8, by=4)))


def test_overload_is_judged_by_the_mean_over_an_orbit() -> None:
    """One link may look overloaded if its orbit is not, and the other way round."""
    found = solve_master(Problem.all_to_all(build("ring:8")), QUIET)
    assert found.groups == 1
    assert (8 * found.load()).max() > 1.5
    assert check_flow(found).max_load == pytest.approx(1.0)
    fast = replace(found, rate=found.rate * 1.01, amount=found.amount * 1.01)
    assert fast.load().max() < 1
    with pytest.raises(VerificationError, match="16 links carry more than their capacity"):
        check_flow(fast)


@given(problem=symmetric_problems())
def test_orbits_of_the_checker_are_those_of_the_solver(problem: Problem) -> None:
    """Two ways to find orbits: labels that spread, and connected components."""
    maps = find_symmetry(problem).generators
    topology = problem.topology
    found = orbits_of(topology, maps)
    for label, same in (
        (found.of_node, orbits(maps, topology.nodes)),
        (found.of_link, orbits(link_maps(topology, maps), topology.links)),
    ):
        pairs = set(zip(label.tolist(), same.tolist(), strict=True))
        assert len(pairs) == len(set(label.tolist())) == len(set(same.tolist()))


def closure(generators: Ints) -> list[Ints]:
    """Return all automorphisms that generators generate."""
    start = tuple(range(generators.shape[1]))
    found, queue = {start}, [start]
    while queue:
        at = np.array(queue.pop())
        for image in generators:
            product = tuple(image[at].tolist())
            if product not in found:
                found.add(product)
                queue.append(product)
    return [np.array(each) for each in sorted(found)]


def averaged(flow: Flow) -> Flow:
    """Return what a compact flow claims to be: the average of all images, a row per source."""
    problem, topology = flow.problem, flow.problem.topology
    place = {int(node): index for index, node in enumerate(topology.terminals)}
    total = np.zeros((len(topology.terminals), topology.links))
    times = np.zeros(len(topology.terminals))
    for nodes in closure(maps_of(flow)):
        links = link_maps(topology, nodes[None, :])[0]
        for group, source in enumerate(flow.source):
            target = place[int(nodes[topology.terminals[source]])]
            entries = slice(flow.start[group], flow.start[group + 1])
            np.add.at(total[target], links[flow.link[entries]], flow.amount[entries])
            times[target] += 1
    rows = total[problem.sources] / times[problem.sources, None]
    row, link = np.nonzero(rows)
    start = np.searchsorted(row, np.arange(len(rows) + 1))
    return replace(
        flow,
        source=problem.sources,
        start=start,
        link=link,
        amount=rows[row, link],
        generators=None,
    )


@given(problem=symmetric_problems(max_nodes=5))
def test_an_accepted_flow_is_what_it_claims(problem: Problem) -> None:
    """The average over the whole group, formed by hand, passes the ordinary checker."""
    found = solve_master(problem, QUIET)
    check_flow(found)
    whole = averaged(found)
    assert check_flow(whole).max_load == pytest.approx(1.0)
    load, orbit = whole.load(), orbits_of(problem.topology, maps_of(found)).of_link
    mean = (np.bincount(orbit, load) / np.bincount(orbit))[orbit]
    assert load == pytest.approx(mean, rel=1e-9, abs=1e-12)


def test_json_keeps_a_compact_flow(flow: Flow) -> None:
    """Generators are read back as they were written, and the flow still verifies."""
    text = json.dumps(answer_to_json(flow))
    again = answer_from_json(parse_json(text, "text"), "text")
    assert np.array_equal(maps_of(again), maps_of(flow))
    assert check_flow(again).bound == pytest.approx(flow.bound)
    assert json.dumps(answer_to_json(again)) == text


def test_json_of_a_plain_flow_has_no_generators() -> None:
    """They appear only where a flow stands for its images."""
    plain = solve_master(Problem.all_to_all(build("mesh:3x3")), SolveSettings(symmetry=False))
    assert "generators" not in answer_to_json(plain)


BAD_GENERATORS: dict[str, tuple[Any, str]] = {
    "not a list": (7, "generators is 7; expected an array"),
    "no rows": ([0, 1, 2], r"generators\[0\] is 0"),
    "too short": ([[0, 1, 2]], r"generators\[0\] has 3 entries; expected one for each of the 9"),
    "too long": ([list(range(9)), list(range(10))], r"generators\[1\] has 10 entries"),
    "a fraction": ([[0.5, *range(1, 9)]], r"generators\[0\]"),
    "text": ([["0", *range(1, 9)]], r"generators\[0\]"),
    "nothing": ([[None, *range(1, 9)]], r"generators\[0\]"),
    "a truth": ([[True, *range(1, 9)]], r"generators\[0\]"),
    "beyond the nodes": ([[9, *range(1, 9)]], "generator 9; expected 0..8"),
    "negative": ([[-1, *range(1, 9)]], "generator -1; expected 0..8"),
    "beyond all machines": ([[10**30, *range(1, 9)]], "generators"),
}


@pytest.mark.parametrize("name", BAD_GENERATORS)
def test_bad_generators_in_a_file_are_named(flow: Flow, name: str) -> None:
    """Each message says where and what was expected."""
    generators, words = BAD_GENERATORS[name]
    value = answer_to_json(flow) | {"generators": generators}
    with pytest.raises((FormatError, InputError), match=words):
        answer_from_json(value, "file")


def test_generators_do_not_go_with_groups_per_pair(flow: Flow) -> None:
    """A flow per commodity stands for itself."""
    value = answer_to_json(flow)
    value["flows"] = [row | {"dst": (row["src"] + 1) % 9} for row in value["flows"]]
    with pytest.raises(InputError, match="groups per source"):
        answer_from_json(value, "file")
