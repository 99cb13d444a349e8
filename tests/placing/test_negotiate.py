"""Negotiated congestion, and the loop that all placements share: when it ends, that it listens."""

from dataclasses import dataclass, field

import numpy as np
import pytest

from alltoall.errors import InputError
from alltoall.ir.problem import Problem
from alltoall.placing import negotiate as negotiation
from alltoall.placing.chunks import Chunks, grow_steeper
from alltoall.placing.listed import Choice, ListedChunks, negotiate_listed
from alltoall.placing.negotiate import Budgets, NegotiationParams, negotiate
from alltoall.placing.network import any_path, in_steps
from alltoall.schedules.timestepped import Expansion
from alltoall.topologies.spec import build


@dataclass
class Scripted:
    """Ten chunks that move three at a time, until the script says to stop."""

    script: list[bool]
    steepness: list[float] = field(default_factory=list)
    count: int = 10

    def move(self, begin: int, steepness: float) -> int:
        """Remember the steepness."""
        self.steepness.append(steepness)
        return min(begin + 3, 10)

    def end_round(self) -> bool:
        """Read the script."""
        return self.script.pop(0)


class Clock:
    """Counts how often it is asked, and is late from a given time on."""

    def __init__(self, late_from: float = np.inf) -> None:
        self.asked, self.late_from = 0, late_from

    def __call__(self) -> bool:
        """Return whether it is late."""
        self.asked += 1
        return self.asked >= self.late_from


def test_rounds_end_when_the_placing_says_so() -> None:
    """After three rounds of four parts each, at a steepness that grows from round to round."""
    placing, clock = Scripted([False, False, True]), Clock()
    grow_steeper(placing, [1.0, 2.0, 4.0, 8.0], clock)
    assert placing.steepness == [1.0] * 4 + [2.0] * 4 + [4.0] * 4
    assert clock.asked == 12


def test_the_time_limit_is_heard_within_a_round() -> None:
    """No round is finished first."""
    placing = Scripted([])
    grow_steeper(placing, [1.0, 2.0], Clock(late_from=3))
    assert len(placing.steepness) == 2


def test_pressure_grows_up_to_a_limit() -> None:
    """By a constant factor."""
    pressure = list(NegotiationParams(1.0, 2.0, rounds=12).steepness())
    assert pressure[:3] == [1.0, 2.0, 4.0]
    assert pressure[-1] == 1000.0


def test_it_is_given_up_when_patience_ends() -> None:
    """Progress makes patient again; the fourth round without any is the last."""
    budgets = Budgets(np.ones(1), np.ones(1), 1.0, NegotiationParams(patience=4))
    stops = []
    for load in (10.0, 10.0, 9.0, 9.0, 9.5, 10.0, 9.0):
        budgets.load[:] = load
        stops.append(budgets.learn())
    assert stops == [False] * 6 + [True]
    assert budgets.excess == 8.0


def test_links_over_their_budget_become_more_expensive() -> None:
    """By chunks over the budget; the others learn nothing."""
    budgets = Budgets(np.ones(3), np.ones(3), 1.0, NegotiationParams(lesson=0.3))
    budgets.load[:] = 1.0, 2.0, 4.0
    budgets.learn()
    assert budgets.history.tolist() == pytest.approx([0.0, 0.3, 0.9])


def test_within_all_budgets_but_without_a_path_is_not_the_end() -> None:
    """A path that fits in no row loads no link."""
    topology = build("ring:5")
    chunks = Chunks(np.zeros(1, np.int64), np.full(1, 2), np.ones(1))
    table, fits = negotiate(any_path(topology), chunks, np.full((1, 1), -1), np.ones(10), 0)
    assert not fits
    assert (table == -1).all()


def test_listed_paths_listen_within_a_round() -> None:
    """Very many choices are priced a part at a time."""
    topology, count, phases = build("ring:3"), 1200, 1000
    every = np.arange(count)
    chunks = ListedChunks(
        np.arange(count + 1), np.zeros(count, np.int64), every, every + 1, np.ones(count)
    )
    nowhere, clock = Choice(every, np.full(count, -1)), Clock()
    budget = np.full(phases, 0.5)
    assert not negotiate_listed(topology, chunks, nowhere, budget, 0, clock)[1]
    assert clock.asked >= 2


@pytest.mark.parametrize("steps", [0, 1], ids=["by trees", "by steps"])
def test_any_paths_listen_within_a_round(steps: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """Chunks are rerouted a part at a time."""
    monkeypatch.setattr(negotiation, "MOST_REROUTED", 2)
    topology, clock = build("ring:3"), Clock()
    network, end = any_path(topology), 1
    if steps:
        expansion = Expansion(Problem.all_to_all(topology), steps)
        classes = np.minimum(np.arange(expansion.graph.links), 6)
        network = in_steps(expansion.graph, steps, 6, classes, np.ones(6))
        end = int(expansion.ends[1])
    chunks = Chunks(np.zeros(8, np.int64), np.full(8, end), np.ones(8))
    _, fits = negotiate(network, chunks, np.full((8, 3), -1), np.full(6, 0.5), 0, clock)
    assert not fits
    assert clock.asked >= 3


def test_fewer_steps_than_hops_are_refused() -> None:
    """A chunk that cannot arrive is an error with its ends, not a walk through stray memory."""
    expansion = Expansion(Problem.all_to_all(build("mesh:4")), 2)
    chunks = Chunks(expansion.starts[:1], expansion.ends[3:], np.ones(1))
    budget = np.ones(expansion.graph.links)
    network = in_steps(expansion.graph, 2, 6, np.arange(expansion.graph.links), budget)
    with pytest.raises(InputError, match="from node 0 to node 11; allow more steps"):
        negotiate(network, chunks, np.full((1, 4), -1), budget, 0)
