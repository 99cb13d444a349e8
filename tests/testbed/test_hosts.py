"""Several ranks per host on a fabric: the library's call, under which a schedule for hosts lies."""

import os
import subprocess
from pathlib import Path
from typing import Any

import pytest
from fabrics import fabric, needs_testbed

import alltoall
from alltoall.errors import UsageError, VerificationError
from alltoall.testbed import public
from alltoall.testbed.launch import ranks_on
from alltoall.testbed.report import BedReport
from alltoall.workloads import public as workloads
from command_line import Run

RING = alltoall.schedule("ring:4")
QUICK: Any = {"on": "testbed", "rate": "10mbit", "iterations": 1, "warmup": 0, "mpi": "mpich"}


@needs_testbed
@pytest.mark.parametrize(("ranks", "total", "bound"), [(2, 8, 2.0), ("1,2,1,3", 7, None)])
def test_hosts_carry_what_their_ranks_send(
    ranks: int | str, total: int, bound: float | None
) -> None:
    """All bytes are right, and every link has those of the schedule times pairs of ranks."""
    report = alltoall.run(RING, bytes="16K", ranks_per_host=ranks, **QUICK)
    assert isinstance(report, BedReport)
    assert report.ranks == total
    assert "of ranks on hosts under wrap" in report.runtime
    (row,) = report.rows
    assert row.counters_ok
    assert 0 < row.fraction <= 1
    assert row.native_seconds is not None
    if bound is not None:
        # A host sends 4 shards to each of 3 others, and the busiest link carries 2 of those.
        assert row.bound_throughput == pytest.approx(3 * 1.25e6 / bound)


@needs_testbed
def test_a_schedule_that_is_not_under_the_call_is_found_out(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """The library's own all-to-all takes other links."""
    monkeypatch.setattr(public, "wrap", lambda *_given, **_named: {})
    with pytest.raises(VerificationError, match="bytes have left"):
        alltoall.run(RING, bytes="64K", ranks_per_host=2, native=False, **QUICK)


@needs_testbed
def test_workloads_run_on_hosts() -> None:
    """Slabs by the library's call, alone and with a schedule under it."""
    given: Any = {"schedule": RING, "rate": "10mbit", "ranks_per_host": 2, "iterations": 1}
    report = alltoall.fft3d(16, warmup=0, **given)
    assert (report.ranks, report.even) == (8, True)
    assert [row.way for row in report.rows] == ["library", "schedule"]
    cut = alltoall.fft3d(16, pencils="2x4", warmup=0, **{**given, "schedule": "hypercube:2"})
    ways = ["library", "library, slabs", "schedule", "schedule, slabs"]
    assert [row.way for row in cut.rows] == ways
    layer = alltoall.moe(64, hidden=16, warmup=0, **given)
    assert [(row.way, row.error) for row in layer.rows] == [("library", 0.0), ("template", 0.0)]


@needs_testbed
def test_a_workload_past_its_schedule_is_found_out(monkeypatch: pytest.MonkeyPatch) -> None:
    """The library's own would be fast or slow, but not what is asked for."""
    other = alltoall.schedule("ring:3")
    monkeypatch.setattr(
        workloads, "wrap", lambda _, launcher: alltoall.wrap([other], launcher=launcher)
    )
    with pytest.raises(VerificationError, match="communicator has 8 ranks, schedule has 3"):
        alltoall.fft3d(8, schedule=RING, rate="10mbit", ranks_per_host=2, iterations=1)


@needs_testbed
def test_a_command_knows_its_host(run: Run, tmp_path: Path) -> None:
    """`exec` puts ranks on nodes in order, so many on each, and names the node."""
    (tmp_path / "pair.edges").write_text("ada bob\nbob eve\neve ada\n")
    with fabric(alltoall.topology(tmp_path / "pair.edges")) as bed:
        for rank, host in enumerate(("ada", "bob", "bob", "eve")):
            command = [
                *bed.prefix(ranks_on("1,2,1", 3)),
                "sh",
                "-c",
                "echo $ALLTOALL_HOST; ip -o l",
            ]
            told = subprocess.check_output(
                command, env={**os.environ, "PMI_RANK": str(rank)}, text=True
            )
            assert told.startswith(f"{host}\n")
        words = ("testbed", "exec", "--fabric", bed.plan.name, "--ranks-per-host", "2")
        outcome = run(*words, "--node", "ada", "--", "true")
        assert (outcome.code, "expected one of them" in outcome.err) == (2, True)


def test_how_many_ranks_each_host_has() -> None:
    """A number for all, or one for each."""
    assert ranks_on(2, 3) == ranks_on("2", 3) == ranks_on([2, 2, 2], 3) == (2, 2, 2)
    assert ranks_on("1,2,4", 3) == (1, 2, 4)
    for wrong in ("0", "1,2", "a", "", 1000, [1, 2, 3, 4], 2.5, None):
        with pytest.raises(UsageError, match="expected a number from 1 to 128, or one for each"):
            ranks_on(wrong, 3)  # type: ignore[arg-type]


def test_what_has_no_hosts_is_refused(tmp_path: Path) -> None:
    """Before anything is started."""
    given: Any = {"ranks_per_host": 2}
    with pytest.raises(UsageError, match="ranks-per-host on 'reference'"):
        alltoall.run(RING, **given)
    with pytest.raises(UsageError, match="no testbed that has them"):
        alltoall.fft3d(8, schedule=RING, **given)
    uneven: Any = {"ranks_per_host": "1,2,3,2"}
    with pytest.raises(UsageError, match="pencils 2x4 of 1,2,3,2 ranks per host; expected as many"):
        alltoall.fft3d(8, schedule=RING, pencils="2x4", rate="10mbit", **uneven)
    with pytest.raises(UsageError, match="ranks per host and --resolve"):
        alltoall.moe(8, schedule=RING, resolve=True, rate="10mbit", **given)


@needs_testbed
def test_what_hosts_cannot_run_is_refused() -> None:
    """Routes, torch, and schedules of groups."""
    given: Any = {**QUICK, "ranks_per_host": 2}
    with pytest.raises(UsageError, match="ranks per host of Routes; expected a schedule"):
        alltoall.run(alltoall.route("ring:4", "sssp:layering=none"), **given)
    with pytest.raises(UsageError, match="several ranks per host through torch"):
        alltoall.run(RING, through="torch", **given)
    with pytest.raises(UsageError, match="expected one for the uniform all-to-all of hosts"):
        alltoall.run(alltoall.schedule("ring:4", groups=["0,1", "2,3"]), **given)
