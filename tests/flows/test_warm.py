"""Warm restarts: what is left of an answer is repaired, or solved from, and proven anew."""

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings

from alltoall.check.flow import check_flow
from alltoall.errors import InputError
from alltoall.flows import SolveSettings, matching, solve, warm
from alltoall.flows.by_lp import plain_flow
from alltoall.flows.groups import by_source
from alltoall.flows.matching import NOWHERE, matching_nodes, require_same_network
from alltoall.flows.methods import solve_master
from alltoall.flows.program import whole_program
from alltoall.flows.warm import repair, solve_from
from alltoall.ir.demand import Demand
from alltoall.ir.flow import Flow, Status
from alltoall.ir.problem import Problem
from alltoall.ir.topology import Topology
from alltoall.topologies.operators import (
    drop_links,
    drop_nodes,
    remove_links,
    remove_nodes,
    scale_capacities,
    set_capacities,
    with_host_bandwidth,
)
from alltoall.topologies.spec import build
from strategies import problems

COARSE = SolveSettings(gap=1e-3, workers=1)
FINE = SolveSettings(workers=1)


def jellyfish(nodes: int = 16) -> Topology:
    """Return a graph without symmetry."""
    return build(f"jellyfish:n={nodes},d=4,seed=1")


def first_link(topology: Topology, index: int = 0) -> tuple[int, int]:
    """Return the ends of a link."""
    return int(topology.tail[index]), int(topology.head[index])


def with_node(topology: Topology) -> Topology:
    """Return the topology with one more node, which has cables to the first two."""
    links = zip(topology.tail, topology.head, topology.capacity, strict=True)
    more, nodes = topology.nodes, topology.nodes + 1
    cables = [(more, 0, 1.0), (0, more, 1.0), (more, 1, 1.0), (1, more, 1.0)]
    return Topology.from_links(
        "more", nodes, [*((int(u), int(v), c) for u, v, c in links), *cables]
    )


def skewed(terminals: int) -> Demand:
    """Return a demand of unequal rows, with one that sends nothing."""
    matrix = 1 + np.arange(terminals**2, dtype=np.float64).reshape(terminals, terminals) % 5
    matrix[2] = 0.0
    np.fill_diagonal(matrix, 0.0)
    return Demand(terminals, matrix)


KAUTZ = build("genkautz:n=16,d=3")
RANDOM = jellyfish()
TORUS = build("torus:3x4")

CHANGES: dict[str, tuple[Topology, Problem]] = {
    "nothing": (RANDOM, Problem.all_to_all(RANDOM)),
    "a link": (RANDOM, Problem.all_to_all(remove_links(RANDOM, [first_link(RANDOM)]))),
    "links": (KAUTZ, Problem.all_to_all(drop_links(KAUTZ, 3, seed=2))),
    "a node": (KAUTZ, Problem.all_to_all(remove_nodes(KAUTZ, [5]))),
    "two nodes": (RANDOM, Problem.all_to_all(drop_nodes(RANDOM, 2, seed=3))),
    "a node and a link": (
        TORUS,
        Problem.all_to_all(remove_links(remove_nodes(TORUS, [0]), [(4, 5)])),
    ),
    "capacities": (
        RANDOM,
        Problem.all_to_all(set_capacities(scale_capacities(RANDOM, 3), {first_link(RANDOM): 0.5})),
    ),
    "demand": (KAUTZ, Problem(KAUTZ, skewed(16))),
    "a node more": (TORUS, Problem.all_to_all(with_node(TORUS))),
    "a hosted node": (
        with_host_bandwidth(TORUS, 2.0),
        Problem.all_to_all(with_host_bandwidth(remove_nodes(TORUS, [3]), 2.0)),
    ),
    "symmetry": (TORUS, Problem.all_to_all(scale_capacities(TORUS, 2))),
}


@pytest.mark.parametrize("name", CHANGES)
def test_a_repaired_flow_is_feasible_and_proven(name: str) -> None:
    """Whatever changed, the checker agrees, and the bound is one on the true optimum."""
    before, problem = CHANGES[name]
    repaired = repair(problem, solve(Problem.all_to_all(before), "grouped"), COARSE)
    report = check_flow(repaired)
    exact = solve(problem, "grouped").time
    assert repaired.method == "repair"
    assert report.bound <= exact * (1 + 1e-9)
    assert report.time >= exact * (1 - 1e-6)
    assert repaired.status.done == (repaired.gap <= COARSE.gap)
    assert repaired.status.done or repaired.status is Status.GAP_NOT_REACHED


@pytest.mark.parametrize("name", CHANGES)
def test_solving_from_the_last_answer_reaches_the_gap(name: str) -> None:
    """The checker finds the gap that was asked for, and a cold solve the same time."""
    before, problem = CHANGES[name]
    flow = solve_from(problem, solve(Problem.all_to_all(before), "grouped"), COARSE)
    report = check_flow(flow)
    assert flow.status.done
    assert report.gap <= COARSE.gap
    assert report.time == pytest.approx(solve(problem, "grouped").time, rel=1.1e-3)


@pytest.mark.parametrize("name", ["nothing", "symmetry"])
def test_an_answer_that_still_holds_is_returned_without_a_step(
    name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The same problem, or one whose capacities all doubled, needs nothing but a new proof."""
    before, problem = CHANGES[name]
    monkeypatch.delattr(warm, "solve_by_steps")
    flow = solve_from(problem, solve(Problem.all_to_all(before), "grouped"), FINE)
    assert check_flow(flow).gap <= FINE.gap


@pytest.mark.parametrize("name", ["a link", "links", "a node", "two nodes"])
def test_a_repair_is_better_than_shortest_paths(name: str) -> None:
    """What still stands of an optimum is worth more than a fresh but simple answer."""
    before, problem = CHANGES[name]
    repaired = repair(problem, solve(Problem.all_to_all(before), "grouped"), COARSE)
    program = whole_program(problem, by_source(problem))
    assert repaired.time < plain_flow(problem, program, "plain").time


def test_new_capacities_alone_move_nothing() -> None:
    """All of the flow can stay, so it does, and its time is that of the links as they are now."""
    before, problem = CHANGES["capacities"]
    last = solve(Problem.all_to_all(before), "grouped")
    repaired = repair(problem, last, COARSE)
    loads = [np.bincount(flow.link, flow.amount * flow.time) for flow in (last, repaired)]
    assert loads[1] == pytest.approx(loads[0], rel=1e-6)
    assert repaired.time == pytest.approx((loads[0] / problem.topology.capacity).max(), rel=1e-6)


def test_what_used_no_failed_link_stays() -> None:
    """Sources whose flow avoids the failed cable keep it, link by link."""
    problem = Problem.all_to_all(RANDOM)
    last = solve(problem, "grouped", FINE)
    gone = first_link(RANDOM)
    fewer = remove_links(RANDOM, [gone])
    repaired = repair(Problem.all_to_all(fewer), last, FINE)
    untouched = 0
    for group in range(last.groups):
        old, new = link_volumes(last, group), link_volumes(repaired, group)
        if gone not in old and gone[::-1] not in old:
            untouched += 1
            assert new == pytest.approx(old, abs=1e-9)
        else:
            assert gone not in new
    assert 0 < untouched < last.groups


def link_volumes(flow: Flow, group: int) -> dict[tuple[int, int], float]:
    """Return what a group sends over each link, in shards, by the ends of the link."""
    topology = flow.problem.topology
    part = slice(flow.start[group], flow.start[group + 1])
    ends = zip(
        topology.tail[flow.link[part]].tolist(),
        topology.head[flow.link[part]].tolist(),
        strict=True,
    )
    return dict(zip(ends, (flow.amount[part] * flow.time).tolist(), strict=True))


@pytest.mark.parametrize("method", ["link", "decomposed"])
def test_a_flow_per_commodity_serves_as_the_last_answer(method: str) -> None:
    """Its commodities are summed up by source, which is what the flow per source was."""
    problem = Problem.all_to_all(RANDOM)
    last = solve(problem, method)
    assert last.destination is not None
    assert check_flow(repair(problem, last, FINE)).gap <= 1e-6
    fewer = Problem.all_to_all(remove_links(RANDOM, [first_link(RANDOM, 7)]))
    assert check_flow(solve_from(fewer, last, COARSE)).gap <= COARSE.gap


@pytest.mark.parametrize("symmetry", [True, False])
def test_a_compact_flow_serves_as_the_last_answer(symmetry: bool) -> None:
    """One source that stands for all is written out, and reduced again where that is asked for."""
    problem = Problem.all_to_all(TORUS)
    last = solve_master(problem, FINE)
    assert last.groups == 1
    again = solve_from(problem, last, replace(FINE, symmetry=symmetry))
    assert again.groups == (1 if symmetry else 12)
    assert check_flow(again).gap <= 1e-6
    fewer = Problem.all_to_all(remove_links(TORUS, [(0, 1)]))
    for flow in (repair(fewer, last, COARSE), solve_from(fewer, last, COARSE)):
        check_flow(flow)
    assert flow.gap <= COARSE.gap


@pytest.mark.parametrize("spec", ["complete:5", "hypercube:5", "genkautz:n=16,d=2", "fattree:k=4"])
def test_an_unrelated_answer_does_no_harm(spec: str) -> None:
    """Smaller, larger, of other degree, with switches: the answer has its own proof."""
    last = solve(Problem.all_to_all(build(spec)), "grouped")
    problem = Problem.all_to_all(RANDOM)
    check_flow(repair(problem, last, COARSE))
    flow = solve_from(problem, last, COARSE)
    assert check_flow(flow).gap <= COARSE.gap
    assert flow.time == pytest.approx(solve(problem, "grouped").time, rel=1.1e-3)


@given(last=problems(max_nodes=5), problem=problems(max_nodes=5))
@settings(max_examples=30)
def test_any_answer_can_be_repaired_for_any_problem(last: Problem, problem: Problem) -> None:
    """Parallel links, switches, skewed demands, any sizes: feasible, with a bound that holds."""
    report = check_flow(repair(problem, solve(last, "grouped", FINE), FINE))
    assert report.bound <= solve(problem, "grouped", FINE).time * (1 + 1e-6)


@pytest.mark.parametrize("exact", [True, False])
@pytest.mark.parametrize("gone", [[0], [7], [19], [3, 11], [0, 1], [18, 19], [2, 9, 16]])
@pytest.mark.parametrize("spec", ["genkautz:n=20,d=4", "jellyfish:n=20,d=4,seed=1"])
def test_the_removed_nodes_are_found(
    spec: str, gone: list[int], exact: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    """By the links of the others alone, wherever in the order they were; guesses find few, too."""
    if not exact:
        monkeypatch.setattr(matching, "MOST_SHIFTS", 0)
    old = build(spec)
    found = matching_nodes(old, remove_nodes(old, gone))
    assert found.tolist() == [node for node in range(20) if node not in gone]


@pytest.mark.parametrize("spec", ["torus:6x6", "hypercube:5", "mesh:6x6", "fattree:k=4"])
@pytest.mark.parametrize("seed", range(3))
def test_what_is_left_of_a_network_is_the_same_network(spec: str, seed: int) -> None:
    """Whatever is gone, and however many nodes could be those that are."""
    old = build(spec)
    left = drop_links(drop_nodes(old, 5, seed), 2, seed)
    require_same_network(old, left)
    require_same_network(old, scale_capacities(old, 2.0))
    require_same_network(remove_links(old, [first_link(old)]), old)
    require_same_network(left, old)


@pytest.mark.parametrize("spec", ["torus:3x3", "torus:5x4", "ring:16", "hypercube:4", "mesh:3x3"])
def test_another_network_is_refused(spec: str) -> None:
    """Smaller, larger, of as many nodes, or the same by other numbers."""
    with pytest.raises(InputError, match=f"is for {spec}, .*torus:4x4.* Expected an answer for"):
        require_same_network(build(spec), build("torus:4x4"))


def test_new_nodes_match_nothing() -> None:
    """Nodes keep their numbers, and those beyond the last were not there before."""
    assert matching_nodes(TORUS, TORUS).tolist() == list(range(12))
    assert matching_nodes(TORUS, with_node(TORUS)).tolist() == [*range(12), NOWHERE]


def test_nodes_are_not_looked_for_where_it_takes_too_long(monkeypatch: pytest.MonkeyPatch) -> None:
    """They keep their numbers then; though no link matches here, the answer is certified."""
    monkeypatch.setattr(matching, "MOST_SHIFTS", 0)
    monkeypatch.setattr(matching, "MOST_LOOKUPS", 0)
    fewer = remove_nodes(KAUTZ, [0])
    assert matching_nodes(KAUTZ, fewer).tolist() == list(range(15))
    last = solve(Problem.all_to_all(KAUTZ), "grouped")
    assert check_flow(solve_from(Problem.all_to_all(fewer), last, COARSE)).gap <= COARSE.gap


def test_parallel_links_match_in_their_order() -> None:
    """The flow of each of two cables between the same ends stays on it."""
    links = [(0, 1, 1.0), (0, 1, 3.0), (1, 2, 4.0), (2, 0, 4.0), (1, 0, 2.0)]
    problem = Problem.all_to_all(Topology.from_links("parallel", 3, links))
    last = solve(problem, "grouped", FINE)
    again = repair(problem, last, FINE)
    assert again.time == pytest.approx(last.time, rel=1e-9)
    loads = [np.bincount(flow.link, flow.amount, 5) for flow in (last, again)]
    assert loads[1] == pytest.approx(loads[0], abs=1e-9)
