"""Ways take turns, and the slowest rank of each step counts."""

from collections.abc import Iterator
from functools import partial
from typing import Any

import pytest

from alltoall.errors import UsageError
from alltoall.workloads.ranks import MAX_TURNS, Turns
from alltoall.workloads.timing import median_times


class Pair:
    """A rank, and another one whose times are known."""

    rank, size, name = 0, 2, "pair"

    def __init__(self, other: Any) -> None:
        self.other, self.events = other, []  # type: ignore[var-annotated]

    def barrier(self) -> None:
        """Note that all ranks wait."""
        self.events.append("barrier")

    def gather(self, value: Any) -> list[Any]:
        """Return this rank's times and the other's."""
        return [value, self.other]

    def collect(self, value: Any) -> list[Any]:
        """Return the same."""
        return self.gather(value)

    def close(self) -> None:
        """Nothing is held."""


def test_times_are_medians_of_the_slowest_rank(monkeypatch: pytest.MonkeyPatch) -> None:
    """In each step and iteration; what comes before is not counted, and ways take turns."""
    # Of warm-up and three iterations, a way of two steps each: when they begin and end.
    mine = [[9, 9], [1, 2], [3, 4], [2, 2]]
    clock: Iterator[float] = iter([t for pair in mine for each in pair for t in (100, 100 + each)])
    monkeypatch.setattr("alltoall.workloads.timing.time.perf_counter", lambda: next(clock))
    ranks = Pair([[[0, 5]], [[7, 0]], [[0, 0]]])
    steps = [(name, partial(ranks.events.append, name)) for name in ("one", "two")]
    # The slowest are 1 5, 7 4 and 2 2: in all 6, 11 and 4.
    assert median_times(ranks, [steps], Turns(3, 1)) == [{"seconds": 6, "one": 2, "two": 4}]
    assert ranks.events == ["barrier", "one", "barrier", "two"] * 4


def test_a_band_is_all_of_its_steps(monkeypatch: pytest.MonkeyPatch) -> None:
    """Of ways with as many steps as they like."""
    clock: Iterator[float] = iter([t for each in (1, 2, 4, 8) for t in (100, 100 + each)])
    monkeypatch.setattr("alltoall.workloads.timing.time.perf_counter", lambda: next(clock))
    ranks = Pair([[[0, 0, 5], [0]]])
    nothing = partial(ranks.events.append, "nothing")
    ways = [[("a", nothing), ("b", nothing), ("a", nothing)], [("b", nothing)]]
    assert median_times(ranks, ways, Turns(1, 0)) == [
        {"seconds": 8, "a": 6, "b": 2},
        {"seconds": 8, "b": 8},
    ]


def test_ways_take_turns() -> None:
    """What else the machine does meets all alike."""
    ranks = Pair([[[0], [0]], [[0], [0]]])
    ways = [[(name, partial(ranks.events.append, name))] for name in ("a", "b")]
    found = median_times(ranks, ways, Turns(2, 0))
    assert [each for each in ranks.events if each != "barrier"] == ["a", "b", "a", "b"]
    assert len(found) == 2


@pytest.mark.parametrize(("iterations", "warmup"), [(0, 1), (1, -1), (MAX_TURNS + 1, 0)])
def test_turns_that_make_no_sense(iterations: int, warmup: int) -> None:
    """Are refused with what is expected."""
    with pytest.raises(UsageError, match="expected 1 to"):
        Turns(iterations, warmup)
