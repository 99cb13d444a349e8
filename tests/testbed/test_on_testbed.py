"""Schedules on a fabric: every byte checked, and the bytes of every link."""

import re
from pathlib import Path

import pytest
from fabrics import fabric, needs_testbed

import alltoall
from alltoall.errors import UsageError, VerificationError
from alltoall.lowering.programs.messages import messages_of
from alltoall.runtime.launch import RunSettings
from alltoall.testbed import launch
from alltoall.testbed.launch import BedWork, run_on_bed
from alltoall.testbed.loads import pair_bytes
from alltoall.testbed.namespaces import counted
from alltoall.testbed.report import BedReport
from gloo import INSTALLED
from programs_in_c import compiled, mpi_of, with_engine, wrapped

SETTINGS = RunSettings((48_000,), iterations=1, warmup=0, mpi="mpich", timeout=120)


def ran(schedule: alltoall.Schedule, through: str = "mpi") -> BedReport:
    """Run a schedule on a fabric of its own."""
    report = alltoall.run(
        schedule,
        on="testbed",
        bytes=[48_000],
        iterations=1,
        warmup=0,
        mpi="mpich",
        rate="20mbit",
        through=through,
    )
    assert isinstance(report, BedReport)
    return report


@needs_testbed
def test_a_schedule_crosses_the_links_that_it_says() -> None:
    """Eight ranks over links one way, with the library's own beside them; counters agree."""
    report = ran(alltoall.schedule("genkautz:n=8,d=2"))
    (row,) = report.rows
    assert row.counters_ok
    assert report.links_emulated
    # A run on a busy machine may be slow, but none beats the bound.
    assert 0 < row.fraction <= 1
    assert row.native_seconds is not None
    assert row.native_throughput is not None
    assert row.native_throughput <= row.bound_throughput


@needs_testbed
@pytest.mark.parametrize("exchange", ["c", "python"])
def test_many_short_steps_end(exchange: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """A rank that relays has few places to receive into, and must not drown in what comes early.

    libfabric's tcp keeps 64 messages that nobody expects; less shows it sooner.
    """
    monkeypatch.setenv("FI_TCP_MAX_SAVED", "32")
    monkeypatch.setenv("ALLTOALL_EXCHANGE", exchange)
    schedule = alltoall.schedule("hypercube:2", groups=[[0, 1, 2]])
    assert schedule.steps > 64
    (row,) = ran(schedule).rows
    assert row.counters_ok


@needs_testbed
def test_a_lowered_file_runs_where_the_user_says(tmp_path: Path) -> None:
    """Hosts behind switches: NIC halves are namespaces that only forward."""
    schedule = alltoall.schedule(alltoall.topology("hypercube:2", host_bandwidth=2))
    path = tmp_path / "square.messages"
    alltoall.lower(schedule, to="messages").save(path)
    with pytest.raises(UsageError, match="--topology"):
        alltoall.run(path, on="testbed")
    topology = schedule.problem.topology
    report = alltoall.run(
        path, on="testbed", bytes=[48_000], iterations=1, topology=topology, native=False
    )
    assert isinstance(report, BedReport)
    assert report.rows[0].counters_ok


@pytest.mark.skipif(not INSTALLED, reason="torch is not installed")
@needs_testbed
def test_ranks_of_torch_run_there_too() -> None:
    """Gloo over the same links."""
    report = ran(alltoall.schedule("complete:2"), through="torch")
    assert report.rows[0].counters_ok
    assert report.runtime.startswith("torch")


@needs_testbed
def test_bytes_on_other_links_than_said_are_found_out(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """If ranks hand each other twice what the file says, the counters tell."""
    schedule = alltoall.schedule("ring:4")
    with fabric(schedule.problem.topology, "forged") as bed:
        work = BedWork("ring.json", messages_of(schedule), bound=schedule.bound)
        for factor, said in ((10, "expected [1-9],"), (0, "expected 0 to")):
            monkeypatch.setattr(
                launch, "pair_bytes", lambda *given, by=factor: by * pair_bytes(*given)
            )
            with pytest.raises(VerificationError, match=f"bytes have left .*{said}"):
                run_on_bed(bed, work, SETTINGS, native=False)


@needs_testbed
def test_a_schedule_for_another_fabric_is_refused(tmp_path: Path) -> None:
    """The same number of ranks does not make the same links."""
    alltoall.schedule("hypercube:2").save(tmp_path / "square.json")
    with (
        fabric(alltoall.topology("complete:4"), "others"),
        pytest.raises(UsageError, match="is for"),
    ):
        alltoall.run(tmp_path / "square.json", on="testbed", fabric="others")
    with pytest.raises(UsageError, match="no runtime 'gpu'"):
        alltoall.run(tmp_path / "square.json", on="testbed", through="gpu")


@needs_testbed
def test_workloads_run_there_too() -> None:
    """A transform and a layer of experts, by links that the report names."""
    report = alltoall.fft3d("10x9x7", schedule="ring:4", iterations=1, rate="20mbit")
    assert report.links == "ring:4, links of 20Mbps"
    assert [row.way for row in report.rows] == ["library", "schedule"]
    assert report.checked == "sums"
    with fabric(alltoall.topology("ring:4"), "shared"):
        layer = alltoall.moe(64, hidden=8, schedule="ring:4", iterations=1, fabric="shared")
        assert [row.error for row in layer.rows] == [0.0, 0.0]
        with pytest.raises(UsageError, match="expected --on mpi"):
            alltoall.moe(64, hidden=8, schedule="ring:4", on="torch", fabric="shared")


@needs_testbed
@pytest.mark.parametrize("ranks", [1, 2], ids=["alone", "two"])
@pytest.mark.parametrize("kind", ["mpich", "openmpi"])
def test_an_unchanged_program_runs_there(
    tmp_path: Path, shared: Path, kind: str, ranks: int
) -> None:
    """A program in C under `wrap`: all is right, and its bytes have crossed the links."""
    mpi, mpicc = mpi_of(kind)
    program = compiled("alltoalls", mpicc, shared)
    with_engine(tmp_path, mpicc, shared)
    alltoall.schedule("ring:4").save(tmp_path / "ring.json")
    with fabric(alltoall.topology("ring:4")) as bed:
        command = [*bed.prefix([ranks] * 4), str(program)]
        words = [str(tmp_path / "ring.json"), "--report"]
        said = wrapped(words, mpi, 4 * ranks, command, tmp_path)
        sent = counted(bed).sent
    assert "right\n" in said
    taken = re.search(r"(\d+) of \d+ all-to-alls used the schedule \((\d+) bytes", said)
    assert taken is not None
    assert int(taken[1]) > 50
    assert sum(sent.values()) > int(taken[2]) * (ranks == 1)


@needs_testbed
@pytest.mark.parametrize("kind", ["schedule", "routes"])
def test_a_cut_is_survived(kind: str) -> None:
    """A cable is cut under a run, which says so; what is left is solved and run."""
    make = alltoall.schedule if kind == "schedule" else alltoall.route
    answer: alltoall.Schedule | alltoall.Routes = make("complete:4")
    report = alltoall.run(
        answer, on="testbed", bytes=[64_000], iterations=1, warmup=0, rate="10mbit", cut="0-1"
    )
    assert isinstance(report, BedReport)
    found = report.recovery
    assert found is not None
    assert "(0 -> 1)" in found.said
    assert 0 < found.solved <= found.installed <= found.complete
    assert report.rows[0].counters_ok
