"""All-to-all within groups, the others relaying: what it gains, and what its messages cost."""

from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import alltoall
from alltoall.check.schedule import check_schedule
from alltoall.errors import UsageError
from alltoall.ir.demand import Demand
from alltoall.ir.problem import Problem
from alltoall.ir.schedule import operations_of
from alltoall.schedules.found import Choice, worth_telling
from alltoall.schedules.methods import find_schedule
from alltoall.settings import ScheduleSettings
from alltoall.topologies.operators import scale_capacities
from alltoall.topologies.spec import build
from command_line import Run
from uneven_cases import uneven_problems

MESH = build("complete:8")
PAIR, PAIRS = [[0, 1]], [[0, 1], [2, 3], [4, 5], [6, 7]]
FOUR, FOURS = [[0, 1, 2, 3]], [[0, 1, 2, 3], [4, 5, 6, 7]]


@pytest.mark.parametrize(
    ("groups", "ceiling"), [(PAIR, 7.0), (PAIRS, 4.0), (FOUR, 7 / 3), (FOURS, 5 / 3)]
)
def test_what_relays_gain_over_direct_sends(groups: list[list[int]], ceiling: float) -> None:
    """On a mesh of eight, where direct sends take 1: as far as any schedule could go, proven."""
    flow = alltoall.solve(MESH, groups=groups)
    assert 1 / flow.time == pytest.approx(ceiling)
    assert 1 / flow.bound == pytest.approx(ceiling)
    direct = alltoall.schedule(MESH, groups=groups, steps=1)
    assert direct.time == pytest.approx(1.0)
    assert direct.chunks_per_shard == 1


@pytest.mark.parametrize(
    ("groups", "steps", "chunks", "gain"),
    [
        (PAIRS, 2, 8, 4.0),
        (FOURS, 2, 10, 5 / 3),
        (PAIR, 2, 8, 4.0),
        (PAIR, 3, 15, 5.0),
        (PAIR, 10, 64, 6.4),
        (FOUR, 2, 10, 5 / 3),
        (FOUR, 4, 16, 2.0),
    ],
)
def test_what_whole_chunks_reach(
    groups: list[list[int]], steps: int, chunks: int, gain: float
) -> None:
    """Where all relay for each other, all of it; a group alone fills its relays step by step.

    In T steps six relays of a pair forward in all but the first what they got in all but the last:
    7 T - 6 chunks take T.
    """
    found = alltoall.schedule(MESH, groups=groups, steps=steps, chunks=chunks)
    assert 1 / found.time == pytest.approx(gain)
    assert found.bound <= found.time


def test_a_pair_in_two_groups_sends_a_shard_in_each() -> None:
    """Groups may overlap; each is an all-to-all of its own."""
    overlapping = Demand.of_groups(4, [[0, 1, 2], [1, 2]])
    assert overlapping.table().tolist() == [
        [0, 1, 1, 0],
        [1, 0, 2, 0],
        [1, 2, 0, 0],
        [0, 0, 0, 0],
    ]


def test_operations_are_messages_of_a_step() -> None:
    """All chunks for a neighbour are one message, and it counts at both ends, behind switches."""
    direct = alltoall.schedule(MESH, groups=FOUR, steps=1, chunks=3)
    assert operations_of(direct).tolist() == [6] * 4 + [0] * 4
    relayed = alltoall.schedule(MESH, groups=PAIR, steps=2, chunks=8)
    assert operations_of(relayed).tolist() == [16] * 2 + [4] * 6
    switched = alltoall.schedule("fattree:k=2")
    assert operations_of(switched).tolist() == [2, 2]


def cheapest(groups: list[list[int]], cost: float, **more: Any) -> tuple[Choice, ...]:
    """Return the trade-off on the mesh at a cost per operation."""
    problem = Problem(MESH, Demand.of_groups(8, groups))
    found = find_schedule(problem, settings=ScheduleSettings(operation_cost=cost, **more))
    chosen = next(each for each in found.tradeoff if each.chosen)
    assert chosen.total == min(each.total for each in found.tradeoff)
    assert chosen.time == pytest.approx(check_schedule(found.schedule).time)
    assert chosen.operations == operations_of(found.schedule).max()
    assert found.schedule.bound == pytest.approx(alltoall.solve(problem).bound)
    return found.tradeoff


def test_dear_operations_make_relays_a_loss() -> None:
    """Four of eight: relaying gains 1.67 in time, and loses if starting a message costs enough."""
    dear, cheap = (cheapest(FOUR, cost, max_chunks=10) for cost in (0.05, 0.01))
    (direct,) = [each for each in dear if each.chosen]
    assert (direct.relays, direct.steps, direct.operations, direct.time) == (0, 1, 6, 1.0)
    assert direct.total == pytest.approx(1 + 6 * 0.05)
    (relayed,) = [each for each in cheap if each.chosen]
    assert (relayed.relays, relayed.steps, relayed.operations) == (4, 2, 20)
    assert relayed.total == pytest.approx(0.6 + 20 * 0.01)


def test_latency_and_operations_are_weighed_together() -> None:
    """What a step costs decides as well; what was asked for is kept to."""
    assert next(each for each in cheapest(PAIR, 1e-3, max_chunks=4) if each.chosen).steps == 2
    dear = cheapest(PAIR, 1e-3, max_chunks=4, latency=1.0)
    assert next(each for each in dear if each.chosen).steps == 1
    asked = cheapest(PAIR, 0.1, steps=2, chunks=4)
    assert {(each.steps, each.chunks_per_shard) for each in asked} == {(1, 4), (2, 4)}


def test_costs_have_the_unit_of_the_time() -> None:
    """Links that are ten times as wide take a tenth of the costs, and the same schedule."""
    wide = scale_capacities(MESH, 10.0)
    problem = Problem(wide, Demand.of_groups(8, PAIR))
    settings = ScheduleSettings(steps=2, operation_cost=0.001, latency=0.001, max_chunks=4)
    scaled = find_schedule(problem, settings=settings).tradeoff
    plain = cheapest(PAIR, 0.01, steps=2, latency=0.01, max_chunks=4)
    assert [each.operations for each in scaled] == [each.operations for each in plain]
    assert [10 * each.total for each in scaled] == pytest.approx([each.total for each in plain])


def test_what_is_told_is_what_nothing_beats() -> None:
    """In order of operations; what was chosen is told in any case, and of equals the first."""
    rows = [
        Choice(0, 1, 1, 2, 1.0, 9.0),
        Choice(0, 1, 2, 2, 1.0, 9.0),
        Choice(1, 2, 3, 2, 2.0, 1.0),
    ]
    told = worth_telling([*rows, Choice(3, 1, 8, 4, 0.5, 7.0)], rows[2])
    assert [(each.chunks_per_shard, each.chosen) for each in told] == [
        (1, False),
        (3, True),
        (8, False),
    ]


def test_the_trade_off_is_printed(run: Run) -> None:
    """A row per schedule that nothing beats, the chosen one marked; in JSON by names."""
    words = ("schedule", "complete:4", "--group", "0,1", "--method")
    cheap, dear, free = (f"auto:max-chunks=4,message-cost={cost}" for cost in (0.01, 0.5, 0))
    text = run(*words, cheap).out
    assert "operations" in text
    assert len([line for line in text.splitlines() if " * " in line]) == 1
    rows = run(*words, cheap, "--json").json["tradeoff"]
    assert set(rows[0]) >= {"relays", "steps", "operations", "time", "total", "chosen"}
    scaled = run(*words, dear, "--link-bandwidth", "8Gbps", "--bytes", "1M", "--json").json
    (total,) = [row["total"] for row in scaled["tradeoff"] if row["chosen"]]
    assert scaled["transfer_seconds"] == pytest.approx(total * 2**20 / 1e9)
    assert "tradeoff" not in run(*words, free, "--json").json


def test_costs_that_cannot_be() -> None:
    """Negative, endless, or for a method that does not weigh them."""
    for cost in (-1.0, float("inf"), float("nan")):
        with pytest.raises(UsageError, match=r"operation cost .*; expected shard times"):
            ScheduleSettings(operation_cost=cost)
    with pytest.raises(UsageError, match="with method sccl"):
        find_schedule(
            Problem.all_to_all(build("ring:3")), "sccl", ScheduleSettings(operation_cost=0.1)
        )


@given(problem=uneven_problems(), cost=st.sampled_from([1e-3, 0.1, 10.0]))
@settings(max_examples=15)
def test_any_problem_has_a_cheapest_schedule(problem: Problem, cost: float) -> None:
    """Checked against the whole topology, whichever relays were left out."""
    asked = ScheduleSettings(max_chunks=2, operation_cost=cost, latency=0.1)
    found = find_schedule(problem, "tsmcf", asked)
    check_schedule(found.schedule)
    assert np.array_equal(found.schedule.chunk_counts() > 0, problem.demand.table() > 0)
    assert found.schedule.problem.topology == problem.topology
