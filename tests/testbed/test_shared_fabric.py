"""Several jobs on one fabric: alone, at once, and by one schedule for all of them."""

import time
from collections.abc import Callable
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from fabrics import fabric, needs_testbed

import alltoall
from alltoall.cli.run import shared_table
from alltoall.errors import UsageError, VerificationError
from alltoall.ir.chunks import shards_of
from alltoall.lowering.programs.messages import messages_of
from alltoall.runtime.launch import RunSettings
from alltoall.runtime.metered import Reading
from alltoall.runtime.needs import demand_of
from alltoall.testbed import launch, public, sharing
from alltoall.testbed.launch import BedWork
from alltoall.testbed.loads import pair_bytes
from alltoall.testbed.namespaces import Bed, Counted
from alltoall.testbed.plan import Plan
from alltoall.testbed.report import BedReport, BedRow, SharedJob, SharedReport
from alltoall.testbed.sharing import share

SIZE = 32_000
SETTINGS = RunSettings((SIZE,), iterations=1, warmup=0, mpi="mpich", timeout=120)
ALL = alltoall.schedule("ring:4")
ROW = BedRow(SIZE, 1.0, 1.0, 1.0, 0, 1.0, 1.0, 1.0, True, 0.0, 0, 0)
ALONE = BedReport("bed", "ring:4", 4, 1e6, "MPI", None, True, (ROW,), ())


def across() -> alltoall.Schedule:
    """Return a schedule for two nodes of a ring that are opposite each other; others relay."""
    return alltoall.schedule("ring:4", "list:max-chunks=2", groups=[[0, 2]])


@needs_testbed
def test_jobs_share_a_fabric(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """All bytes of all jobs are checked and counted, and the joint schedule moves as many."""
    given: list[tuple[list[BedWork], BedWork]] = []

    def spied(bed: Bed, works: list[BedWork], joint: BedWork, *rest: Any) -> SharedReport:
        given.append((works, joint))
        return share(bed, works, joint, *rest)

    monkeypatch.setattr(public, "share", spied)
    across().save(tmp_path / "across.json")
    report = alltoall.run(
        ALL,
        on="testbed",
        jobs=[tmp_path / "across.json"],
        rate="10mbit",
        bytes=SIZE,
        iterations=1,
        warmup=0,
    )
    assert isinstance(report, SharedReport)
    assert report.counters_ok
    assert report.rows[0].counters_ok
    assert report.jobs[1].file == str(tmp_path / "across.json")
    assert report.together_seconds == max(job.together_seconds for job in report.jobs)
    assert report.ratio == report.together_seconds / report.joint_seconds
    # Links send their first burst at once, which may be a large part of so few bytes.
    assert report.joint_seconds + report.rows[0].credit_seconds >= report.bound_seconds
    assert report.bound_seconds == pytest.approx(2.5 * SIZE / 1.25e6)
    ((works, joint),) = given
    moved, *parts = (shards_of(demand_of(work.parts), SIZE) for work in (joint, *works))
    assert moved.total == sum(part.total for part in parts) == 14 * SIZE
    assert np.array_equal(
        demand_of(joint.parts).table(), sum(demand_of(work.parts).table() for work in works)
    )


@needs_testbed
def test_bytes_that_no_job_should_send_are_found_out(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The counters of the whole time that jobs run together are held against their files."""
    work = BedWork("ring.json", messages_of(ALL), bound=2)
    monkeypatch.setattr(sharing, "run_on_bed", lambda *_given, **_named: ALONE)
    monkeypatch.setattr(launch, "pair_bytes", lambda *given: 10 * pair_bytes(*given))
    with (
        fabric(ALL.problem.topology) as bed,
        pytest.raises(VerificationError, match=r"(?s)together on ring:4.*bytes have left"),
    ):
        share(bed, [work, work], work, SETTINGS, "mpi")


def stubbed(
    monkeypatch: pytest.MonkeyPatch, told: Callable[..., dict[str, Any]]
) -> tuple[Bed, list[BedWork], BedWork]:
    """Have ranks tell what a test says; return a fabric that does not exist, and jobs for it."""
    seconds = {"short": 0.2, "long": 1.0, "joint": 0.8}

    def alone(_bed: Bed, work: BedWork, *_given: Any, **_named: Any) -> BedReport:
        return replace(ALONE, rows=(replace(ROW, seconds=seconds[work.name]),))

    monkeypatch.setattr(sharing, "run_on_bed", alone)
    monkeypatch.setattr(sharing, "counted", lambda _bed: Counted({}, 0, 0, 0))
    monkeypatch.setattr(sharing, "told", told)
    short, long, joint = (BedWork(name, messages_of(ALL), bound=2) for name in seconds)
    return Bed(Plan("none", ALL.problem.topology, 1e6)), [short, long], joint


def test_a_short_job_lasts_as_long_as_a_long_one(monkeypatch: pytest.MonkeyPatch) -> None:
    """It is repeated; each job has a gate of its own first, and the gates of all others."""
    gates: dict[str, list[Path]] = {}

    def told(_bed: Bed, work: BedWork, settings: RunSettings, *given: Any) -> dict[str, Any]:
        gates[work.name] = given[3]
        count = settings.iterations
        reading = Reading(SIZE, [1.6] * count, [0.01] * count, count, [], [], 0, [])
        return {"readings": [asdict(reading)]}

    bed, works, joint = stubbed(monkeypatch, told)
    report = share(bed, works, joint, replace(SETTINGS, iterations=3), "mpi")
    assert [job.iterations for job in report.jobs] == [15, 3]
    assert report.ratio == pytest.approx(2.0)
    assert report.steal == 0.01
    assert gates["short"] == gates["long"][::-1]
    assert gates["short"][0] != gates["long"][0]


def test_all_jobs_end_if_one_fails(monkeypatch: pytest.MonkeyPatch) -> None:
    """The others are told to, and the error is that of the first."""
    said: list[str] = []

    def told(_bed: Bed, work: BedWork, *given: Any) -> dict[str, Any]:
        if work.name == "short":
            raise VerificationError("short", ["a rank ended early"])
        watch, deadline = given[-1], time.monotonic() + 60
        while not watch() and time.monotonic() < deadline:
            time.sleep(0.01)
        said.append(watch())
        raise VerificationError("long", said)

    bed, works, joint = stubbed(monkeypatch, told)
    with pytest.raises(VerificationError, match="a rank ended early"):
        share(bed, works, joint, SETTINGS, "mpi")
    assert said == ["another job has failed"]


def test_what_cannot_share_is_refused(tmp_path: Path) -> None:
    """Before any fabric is made."""
    alltoall.route("ring:4").save(tmp_path / "routes.json")
    with pytest.raises(UsageError, match=r"7 sizes for jobs .* expected one"):
        alltoall.run(ALL, on="testbed", jobs=[ALL])
    with pytest.raises(UsageError, match="expected one of the two"):
        alltoall.run(ALL, on="testbed", jobs=[ALL], bytes=SIZE, cut="0-1")
    with pytest.raises(UsageError, match="a Routes in the place of a job"):
        alltoall.run(ALL, on="testbed", jobs=[tmp_path / "routes.json"], bytes=SIZE)
    with pytest.raises(UsageError, match="'mpi' has none"):
        alltoall.run(ALL, on="mpi", jobs=[ALL], bytes=SIZE)


@needs_testbed
def test_jobs_for_other_links_are_refused() -> None:
    """All are for the topology of the first."""
    with pytest.raises(UsageError, match=r"is for complete:4, and the fabric .* ring:4"):
        alltoall.run(ALL, on="testbed", jobs=[alltoall.schedule("complete:4")], bytes=SIZE)


def test_the_table_says_what_a_joint_schedule_saves() -> None:
    """In words that fit either way, and that the bytes differ if jobs were repeated unequally."""
    jobs = (SharedJob("a.json", 1.0, 1.5, 5), SharedJob("b.json", 0.9, 2.0, 5))
    report = SharedReport(
        "bed", "ring:4", 4, 1.25e6, "MPI", True, SIZE, jobs, 2.0, 1.6, 1.25, 1.5, True, 0, 0, 0, ()
    )
    lines = shared_table(report)
    assert lines[-4].split() == ["1.0000", "1.5000", "5", "a.json"]
    assert "together 2.0000 s, the slowest; by one joint schedule 1.6000 s, 20.0% less" in lines[-2]
    assert "25.0% more" in shared_table(replace(report, ratio=0.8))[-2]
    unequal = replace(report, jobs=(jobs[0], replace(jobs[1], iterations=6)))
    assert [each for each in shared_table(unequal) if "more bytes" in each]
    assert not [each for each in lines if "more bytes" in each]
