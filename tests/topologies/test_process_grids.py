"""Rows and columns of a process grid: who is in them, who forwards, and what is refused."""

from typing import Any

import numpy as np
import pytest

import alltoall
from alltoall.errors import DemandError, UsageError
from command_line import Run

GRID = np.arange(32).reshape(4, 8)


@pytest.mark.parametrize(
    ("words", "groups", "time"),
    [
        ("rows", GRID, 8.0),
        ("columns", GRID.T, 2.0),
        ("rows:shape=8x4", np.arange(32).reshape(8, 4), 4.0),
        ("columns:relay=any", GRID.T, 2.0),
    ],
)
def test_groups_of_a_torus(words: str, groups: Any, time: float) -> None:
    """A ring of n takes n²/8; members alone forward, unless all may."""
    found = alltoall.schedule("torus:4x8", groups=[words])
    assert found.time == pytest.approx(time)
    assert found.bound == pytest.approx(time)
    given = alltoall.problem("torus:4x8", groups=groups.tolist()).demand
    assert np.array_equal(found.problem.demand.table(), given.table())
    group = np.empty(32, dtype=np.int64)
    for number, members in enumerate(groups):
        group[members] = number
    topology = found.problem.topology
    if "relay=any" in words:
        assert topology.links == 128
        assert "has to be in the call" in topology.notes[-1]
    else:
        assert np.array_equal(group[topology.tail], group[topology.head])
    alltoall.verify(found)


def test_relays_of_all_may_be_faster() -> None:
    """The bound is that of what is asked: with the links between rows there is more room."""
    given = ("rows:shape=2x4", "rows:shape=2x4,relay=any")
    within, beyond = (alltoall.solve("complete:8", groups=[each]) for each in given)
    assert [within.time, within.bound] == pytest.approx([1.0, 1.0])
    assert [beyond.time, beyond.bound] == pytest.approx([0.6, 0.6])


def test_hosts_and_their_nics() -> None:
    """The halves of a host that is split belong to its group."""
    network = alltoall.topology("torus:4x4", host_bandwidth=2)
    found = alltoall.solve(network, groups="columns:shape=4x4").problem.topology
    owner = np.arange(16).reshape(4, 4)
    links = [(int(t), int(h)) for t, h in zip(found.tail, found.head, strict=True)]
    assert len(links) == 64
    between = [(t % 16, h % 16) for t, h in links if t % 16 != h % 16]
    columns = {int(node): column for column in range(4) for node in owner[:, column]}
    assert all(columns[t] == columns[h] for t, h in between)


@pytest.mark.parametrize(
    ("spec", "groups", "error", "problem"),
    [
        ("torus:4x8", ["rows:shape=3x4"], UsageError, "grid of 3x4 sides; expected two that make"),
        ("hypercube:4", ["rows"], UsageError, "no known sides; expected two that make 16"),
        ("torus:2x2x4", ["rows"], UsageError, "no known sides"),
        ("torus:4x8", ["rows", "0,1"], UsageError, "expected rows or columns alone"),
        ("torus:4x8", ["rows:relay=all"], UsageError, "relay 'all' for rows; expected members or"),
        ("torus:4x8", ["rows:relays=any"], UsageError, "did you mean 'relay'"),
        ("torus:4x8", ["columns:shape=1x32"], DemandError, "columns of one terminal each"),
        ("bipartite:2x2", ["rows:shape=2x2"], DemandError, "no way among 0, 1 but over others"),
        ("switch:n=4", ["rows:shape=2x2"], DemandError, "groups meet at switches"),
    ],
)
def test_groups_that_are_refused(
    spec: str, groups: list[str], error: type[Exception], problem: str
) -> None:
    """With what to do."""
    with pytest.raises(error, match=problem):
        alltoall.problem(spec, groups=groups)


def test_words(run: Run) -> None:
    """`--rows` is short for `--group rows`."""
    short, long = (run("schedule", "torus:2x4", *words, "--json") for words in (("--rows",), GROUP))
    assert short.json["bound"] == long.json["bound"]
    assert short.json["time"] == 2.0


GROUP = ("--group", "rows")
