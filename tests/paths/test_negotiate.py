"""The one loop of all negotiations: when it ends, and that it listens in between."""

from dataclasses import dataclass, field

import numpy as np
import pytest

from alltoall.errors import InputError
from alltoall.ir.problem import Problem
from alltoall.paths import any_path
from alltoall.paths.any_path import Chunks, negotiate
from alltoall.paths.listed import ListedChunks, Placement, negotiate_listed
from alltoall.paths.negotiate import Pace, until_within
from alltoall.schedules.expansion import Expansion
from alltoall.topologies.spec import build


@dataclass
class Scripted:
    """Talks of ten who move three at a time and are over by what the script says."""

    excess: list[float]
    placed: bool = True
    pressures: list[float] = field(default_factory=list)

    def reroute(self, begin: int, pressure: float) -> int:
        """Remember the pressure."""
        self.pressures.append(pressure)
        return min(begin + 3, 10)

    def learn(self) -> float:
        """Read the script."""
        return self.excess.pop(0)

    def complete(self) -> bool:
        """Say what was told."""
        return self.placed


class Clock:
    """Counts how often it is asked, and is late from a given time on."""

    def __init__(self, late_from: float = np.inf) -> None:
        self.asked, self.late_from = 0, late_from

    def __call__(self) -> bool:
        """Whether it is late."""
        self.asked += 1
        return self.asked >= self.late_from


def test_it_ends_when_all_budgets_hold() -> None:
    """After three rounds of four parts each, under a pressure that rises from round to round."""
    talks, clock = Scripted([4.0, 2.0, 0.0]), Clock()
    assert until_within(talks, 10, 20, clock, Pace(1.0, 2.0, 5))
    assert talks.pressures == [1.0] * 4 + [2.0] * 4 + [4.0] * 4
    assert clock.asked == 12


def test_it_is_given_up_when_patience_ends() -> None:
    """Progress makes patient again; the fourth round without any is the last."""
    talks = Scripted([9.0, 9.0, 8.0, 8.0, 8.5, 9.0, 8.0, 0.0])
    assert not until_within(talks, 10, 20, Clock(), Pace(1.0, 2.0, 4))
    assert talks.excess == [0.0]


def test_within_all_budgets_but_without_a_place_is_not_the_end() -> None:
    """A path that fits nowhere puts no load anywhere."""
    assert not until_within(Scripted([0.0] * 3, placed=False), 10, 3, Clock(), Pace())


def test_the_time_limit_is_heard_within_a_round() -> None:
    """No round is finished first."""
    talks = Scripted([])
    assert not until_within(talks, 10, 20, Clock(late_from=3), Pace())
    assert len(talks.pressures) == 2


def test_listed_paths_listen_within_a_round() -> None:
    """Very many places are priced a part at a time."""
    topology, count, phases = build("ring:3"), 1200, 1000
    every = np.arange(count)
    items = ListedChunks(
        np.arange(count + 1), np.zeros(count, np.int64), every, every + 1, np.ones(count)
    )
    nowhere, clock = Placement(every, np.full(count, -1)), Clock()
    budget = np.full(phases, 0.5)
    assert negotiate_listed(topology, items, nowhere, budget, 1, 0, clock) is None
    assert clock.asked >= 2


@pytest.mark.parametrize("steps", [(0, 0), (1, 6)], ids=["by trees", "by steps"])
def test_any_paths_listen_within_a_round(
    steps: tuple[int, int], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Chunks are rerouted a part at a time."""
    monkeypatch.setattr(any_path, "TREES_PER_CALL", 2)
    monkeypatch.setattr(any_path, "SWEPT_PER_CALL", 12)
    topology, clock = build("ring:3"), Clock()
    chunks = Chunks(np.zeros(8, np.int64), np.ones(8, np.int64), np.ones(8))
    table = np.full((8, 3), -1, dtype=np.int64)
    _, fits = negotiate(topology, chunks, table, np.full(6, 0.5), 1, 0, clock, steps)
    assert not fits
    assert clock.asked >= 3


def test_fewer_steps_than_hops_are_refused() -> None:
    """A chunk that cannot arrive is an error with its ends, not a walk through stray memory."""
    expansion = Expansion(Problem.all_to_all(build("mesh:4")), 2)
    chunks = Chunks(expansion.starts[:1], expansion.ends[3:], np.ones(1))
    table = np.full((1, 4), -1, dtype=np.int64)
    budget = np.ones(expansion.graph.links)
    with pytest.raises(InputError, match="in 2 steps; allow more"):
        negotiate(expansion.graph, chunks, table, budget, 1, 0, steps=(2, 6))
