"""Sums over pairs of group and node that occur are those of the whole table."""

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from alltoall.check import flow as verify
from alltoall.check.flow import check_flow
from alltoall.check.sums import pair_balances, pair_demand, runs
from alltoall.errors import VerificationError
from alltoall.flows import solve
from alltoall.ir.arrays import Floats
from alltoall.ir.demand import Demand
from alltoall.ir.flow import Flow
from alltoall.ir.problem import Problem
from alltoall.topologies.spec import build
from strategies import flows


@pytest.fixture(scope="module")
def flow() -> Flow:
    """Return a correct flow per commodity."""
    return solve(Problem.all_to_all(build("genkautz:n=9,d=2")), "decomposed")


def whole_table(flow: Flow) -> tuple[Floats, Floats]:
    """Return net and gross flow for every group and node, entry by entry."""
    topology = flow.problem.topology
    net = np.zeros((flow.groups, topology.nodes))
    gross = np.zeros_like(net)
    for group in range(flow.groups):
        for entry in range(flow.start[group], flow.start[group + 1]):
            link, amount = flow.link[entry], flow.amount[entry]
            net[group, topology.head[link]] += amount
            net[group, topology.tail[link]] -= amount
            gross[group, topology.head[link]] += amount
            gross[group, topology.tail[link]] += amount
    return net, gross


def blocks_of(flow: Flow, size: int) -> list[tuple[int, int]]:
    """Cut the groups of a flow as the checker does: by entries, and ends of groups."""
    numbers = 2 * (flow.start + np.arange(flow.groups + 1))
    return [(run.start, run.stop) for run in runs(numbers, size)]


@pytest.mark.parametrize(
    ("size", "blocks"),
    [
        (1, [(0, 1), (1, 2), (2, 3), (3, 4)]),
        (4, [(0, 1), (1, 2), (2, 3), (3, 4)]),
        (5, [(0, 1), (1, 2), (2, 3), (3, 4)]),
        (6, [(0, 1), (1, 2), (2, 4)]),
        (12, [(0, 1), (1, 3), (3, 4)]),
        (16, [(0, 3), (3, 4)]),
        (19, [(0, 3), (3, 4)]),
        (20, [(0, 4)]),
        (99, [(0, 4)]),
    ],
)
def test_where_blocks_are_cut(size: int, blocks: list[tuple[int, int]]) -> None:
    """After the last item with which a block is not too large."""
    assert [(run.start, run.stop) for run in runs(np.array([0, 4, 14, 16, 20]), size)] == blocks


def test_balances_of_two_groups(flow: Flow) -> None:
    """By hand: a path of two links, and a pair without any; nodes and groups in order."""
    topology = flow.problem.topology
    first = 3
    second = int(np.flatnonzero(topology.tail == topology.head[first])[0])
    nodes = [int(topology.tail[first]), int(topology.head[first]), int(topology.head[second])]
    some = replace(
        flow,
        source=np.array([nodes[0], nodes[1]]),
        destination=np.array([nodes[2], nodes[0]]),
        start=np.array([0, 2, 2]),
        link=np.array([first, second]),
        amount=np.array([1.0, 0.25]),
    )
    assert some.destination is not None
    found = pair_balances(some, some.destination, 0, 2)
    sums = {(0, nodes[0]): (-1.0, 1.0), (0, nodes[1]): (0.75, 1.25), (0, nodes[2]): (0.25, 0.25)}
    expected = sorted({**sums, (1, nodes[1]): (0.0, 0.0), (1, nodes[0]): (0.0, 0.0)}.items())
    columns = (found.group, found.node, found.net, found.gross)
    rows = list(zip(*(each.tolist() for each in columns), strict=True))
    assert rows == [(*pair, *both) for pair, both in expected]
    assert [found.node[each].tolist() for each in found.ends] == [nodes[:2], [nodes[2], nodes[0]]]
    alone = pair_balances(some, some.destination, 1, 2)
    assert (alone.group.tolist(), alone.node.tolist()) == ([0, 0], sorted(nodes[:2]))


@given(flow=flows().filter(lambda flow: flow.destination is not None), size=st.integers(1, 30))
def test_balances_are_those_of_the_whole_table(flow: Flow, size: int) -> None:
    """Whatever the blocks, every pair that occurs has its sums and no other has any."""
    flow = replace(flow, amount=np.ones(len(flow.amount)))
    assert flow.destination is not None
    net, gross = whole_table(flow)
    terminals, seen = flow.problem.topology.terminals, []
    for begin, end in blocks_of(flow, size):
        at = pair_balances(flow, flow.destination, begin, end)
        group = begin + at.group
        seen += list(zip(group.tolist(), at.node.tolist(), strict=True))
        assert np.array_equal(net[group, at.node], at.net)
        assert np.array_equal(gross[group, at.node], at.gross)
        for place, ends in zip(at.ends, (flow.source, flow.destination), strict=True):
            assert np.array_equal(group[place], np.arange(begin, end))
            assert np.array_equal(at.node[place], terminals[ends[begin:end]])
    assert seen == sorted(set(seen))
    assert {(g, v) for g, v in np.argwhere(gross > 0).tolist()} <= set(seen)


@given(flow=flows(), size=st.integers(1, 30))
def test_blocks_follow_each_other(flow: Flow, size: int) -> None:
    """Every group is in exactly one block, and a block of several groups is not too large."""
    blocks = blocks_of(flow, size)
    assert [group for begin, end in blocks for group in range(begin, end)] == [*range(flow.groups)]
    for begin, end in blocks:
        numbers = 2 * (int(flow.start[end] - flow.start[begin]) + end - begin)
        assert numbers <= size or end == begin + 1


def test_demands_of_pairs() -> None:
    """The amount of each group's pair; nothing for a terminal to itself."""
    matrix = np.arange(9.0).reshape(3, 3)
    np.fill_diagonal(matrix, 0.0)
    flow = solve(Problem.all_to_all(build("ring:3")), "decomposed")
    source, destination = np.array([2, 0, 1, 1, 2, 0]), np.array([0, 2, 1, 0, 1, 0])
    uniform = replace(flow, source=source)
    assert pair_demand(uniform, destination).tolist() == [1, 1, 0, 1, 1, 0]
    skewed = replace(uniform, problem=Problem(flow.problem.topology, Demand(3, matrix)))
    assert pair_demand(skewed, destination).tolist() == [6, 2, 0, 3, 7, 0]


def test_the_worst_offender_is_found_in_any_block(
    flow: Flow, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Two errors: the larger one is named, however the groups are cut."""
    amount = np.array(flow.amount)
    amount[3] *= 1 - 1e-6
    amount[-2] *= 0.5
    bad = replace(flow, amount=amount)
    messages = set()
    for block in (1, 7, 50, 4_000_000):
        monkeypatch.setattr(verify, "BLOCK", block)
        check_flow(flow)
        with pytest.raises(VerificationError, match="not conserved") as caught:
            check_flow(bad)
        messages.add(str(caught.value))
    (message,) = messages
    assert f"expected {flow.rate:.12g}" in message or "expected 0" in message


def test_a_group_without_any_flow_is_found(flow: Flow) -> None:
    """A pair that is listed but not served touches no link at all."""
    begin, end = int(flow.start[4]), int(flow.start[5])
    start = np.array(flow.start)
    start[5:] -= end - begin
    bad = replace(
        flow,
        start=start,
        link=np.delete(flow.link, np.s_[begin:end]),
        amount=np.delete(flow.amount, np.s_[begin:end]),
    )
    with pytest.raises(VerificationError, match="nets 0 of the flow from node 0, expected"):
        check_flow(bad)
