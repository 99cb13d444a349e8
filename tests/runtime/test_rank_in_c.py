"""Ranks that are a program in C: they tell what ranks in Python tell, and find wrong bytes."""

from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import alltoall
from alltoall.ir.messages import Messages
from alltoall.lowering.programs.messages import messages_of
from alltoall.runtime import launch
from alltoall.runtime.engine.job import fits
from alltoall.runtime.launch import RunSettings, run_ranks
from alltoall.runtime.metered import Reading
from alltoall.runtime.parts import RankWork
from alltoall.runtime.worker import RunJob

SETTINGS = RunSettings(sizes=(7, 4096), iterations=2, warmup=1, timeout=60)


def messages(uneven: bool) -> Messages:
    """Return the messages of a schedule of two chunks, or of one for an uneven demand."""
    problem = alltoall.Problem.all_to_all(alltoall.topology("bipartite:2x2"))
    if uneven:
        matrix = np.array([[0, 1, 2, 3], [4, 0, 1, 0], [2, 2, 0, 1], [1, 0, 5, 0]], dtype=float)
        problem = alltoall.Problem(problem.topology, alltoall.Demand(4, matrix))
    return messages_of(alltoall.schedule(problem, chunks=2))


def told(work: Messages, way: str, sync: str, gates: tuple[Path, ...] = ()) -> dict[str, Any]:
    """Run metered ranks on this machine."""
    settings = replace(SETTINGS, sync=sync)
    return run_ranks(RankWork("x", work), "mpi", settings, "the run", metered=way, gates=gates)


@pytest.mark.parametrize("uneven", [False, True], ids=["even", "uneven"])
@pytest.mark.parametrize(
    ("way", "sync"), [("ours", "dataflow"), ("ours", "step"), ("native", "dataflow")]
)
def test_c_tells_what_python_tells(
    uneven: bool, way: str, sync: str, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """All keys, as many iterations, counters of all ranks; and a run passes its own gate."""
    work = messages(uneven)
    gate = tmp_path / "ready"
    found = told(work, way, sync, (gate,))
    assert gate.exists()
    monkeypatch.setattr(launch, "fits", lambda *_: False)
    expected = told(work, way, sync)
    assert found["native"] == expected["native"]
    for ours, theirs in zip(found["readings"], expected["readings"], strict=True):
        one, other = Reading(**ours), Reading(**theirs)
        assert (one.bytes, one.violations) == (other.bytes, [])
        assert len(one.seconds) == len(one.steal) == SETTINGS.iterations <= one.calls
        assert all(0 < each < SETTINGS.timeout for each in one.seconds)
        assert [set(each) for each in one.sent] == [set(each) for each in other.sent]
        assert [set(each) for each in one.received] == [set(each) for each in other.received]


def test_c_finds_wrong_bytes_as_python_does(monkeypatch: pytest.MonkeyPatch) -> None:
    """A rank that sends another chunk than it says; the first size ends the run."""
    good = messages(uneven=False)
    part = good.ranks[1]
    index = int(
        np.flatnonzero(part.sends[np.repeat(np.arange(part.messages), np.diff(part.first))])[0]
    )
    chunk, count = part.chunk.copy(), part.count.copy()
    assert part.chunks.per_shard == 2
    if count[index] == 2:
        pytest.fail("expected a range of one chunk")
    chunk[index] = 1 - chunk[index]
    bad = replace(good, ranks=(good.ranks[0], replace(part, chunk=chunk), *good.ranks[2:]))
    found = told(bad, "ours", "dataflow")
    monkeypatch.setattr(launch, "fits", lambda *_: False)
    expected = told(bad, "ours", "dataflow")
    (reading,) = found["readings"]
    assert reading["violations"] == expected["readings"][0]["violations"]
    assert "wrong bytes in the shard from rank 1" in reading["violations"][0]


def test_what_c_cannot_do_is_left_to_python() -> None:
    """Programs, other runtimes, times without counters, shards beyond 31 bits."""
    job = RunJob("m", False, "mpi", [8], 1, 0, "dataflow", 1.0, "r", metered="ours")
    demand = messages(uneven=False).demand
    assert fits(job, demand)
    others: list[dict[str, Any]] = [
        {"program": True},
        {"on": "torch"},
        {"metered": None},
        {"sizes": [2**31]},
        {"messages": "a\nb"},
    ]
    for each in others:
        assert not fits(replace(job, **each), demand)
