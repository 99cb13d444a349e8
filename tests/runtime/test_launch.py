"""What is started for a run, with a group that starts nothing."""

import json
import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path

import pytest

from alltoall.errors import MissingComponentError, UsageError, VerificationError
from alltoall.runtime import launch
from alltoall.runtime.bench import Report
from alltoall.runtime.launch import RunSettings, run_schedule
from alltoall.runtime.mpiexec import Mpi
from alltoall.runtime.processes import Command
from saved import save

REPORT = Report("fake", "its own", 8, False, (), ())


@dataclass
class Fake:
    """A group that notes what it is to run, and writes what a first rank would."""

    folder: Path
    report: object = field(default_factory=REPORT.to_json)
    ran: list[tuple[list[Command], float, str]] = field(default_factory=list)

    def run(
        self, commands: Sequence[Command], timeout: float, subject: str, watch: object = None
    ) -> None:
        """Start nothing."""
        assert watch is None
        self.ran.append((list(commands), timeout, subject))
        for command in commands:
            command.log.write_text("what was said")
        if self.report is not None:
            Path(self.job["results"]).write_text(json.dumps(self.report))

    @property
    def job(self) -> dict[str, str]:
        """What the ranks are told."""
        found: dict[str, str] = json.loads((self.folder / "job.json").read_text())["job"]
        return found


@pytest.fixture
def fake(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Fake:
    """Put the fake group in the place of the real one."""
    found = Fake(tmp_path / "scratch")
    found.folder.mkdir()

    @contextmanager
    def grouped() -> Iterator[Fake]:
        yield found

    monkeypatch.setattr(launch, "grouped", grouped)
    monkeypatch.setattr(
        launch, "find_mpi", lambda choice: Mpi(f"{choice}", Path("run"), {"V": "1"})
    )
    monkeypatch.setattr("importlib.util.find_spec", lambda name: name)
    return found


def test_ranks_are_told_the_job(
    fake: Fake, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """All of the settings reach them, and the messages of the schedule, wherever they are."""
    path = save(tmp_path)
    monkeypatch.chdir(tmp_path)
    settings = RunSettings((3, 5), 7, 2, "dataflow", None, 11.0)
    assert run_schedule(Path(path.name), "reference", settings, 8) == REPORT
    assert fake.job == {
        "messages": str(fake.folder / "run.messages"), "program": False, "on": "reference",
        "sizes": [3, 5],
        "iterations": 7, "warmup": 2, "sync": "dataflow", "timeout": 11.0,
        "results": str(fake.folder / "report.json"), "metered": None, "gates": [],
    }  # fmt: skip
    ((commands, timeout, subject),) = fake.ran
    assert (timeout, subject) == (11.0, f"the run of {path.name} on reference")
    assert [command.log for command in commands] == [fake.folder / "reference.log"]
    worker = [sys.executable, "-m", "alltoall.runtime.worker", str(fake.folder / "job.json")]
    assert list(commands[0].arguments) == worker


def test_mpi_is_one_command(fake: Fake, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The launcher of the MPI that was asked for starts all ranks."""
    monkeypatch.setattr(Mpi, "engine", lambda _: None)
    run_schedule(save(tmp_path), "mpi", RunSettings(mpi="mine"))
    ((commands, _, _),) = fake.ran
    (command,) = commands
    assert command.arguments[:3] == ["run", "-n", "8"]
    assert command.arguments[3:6] == [sys.executable, "-m", "alltoall.runtime.worker"]
    assert command.environment["V"] == "1"
    assert command.log == fake.folder / "mpi.log"


def test_torch_is_one_command_a_rank(
    fake: Fake, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Each is told its rank, and finds the others on this machine unless the user says where."""
    monkeypatch.setenv("OMP_NUM_THREADS", "3")
    run_schedule(save(tmp_path), "torch")
    ((commands, _, _),) = fake.ran
    assert [command.arguments[-1] for command in commands] == [str(rank) for rank in range(8)]
    assert [command.log.name for command in commands] == [f"{rank}.log" for rank in range(8)]
    assert commands[0].environment["GLOO_SOCKET_IFNAME"] == "lo"
    assert commands[0].environment["OMP_NUM_THREADS"] == "3"
    monkeypatch.setattr("importlib.util.find_spec", lambda name: None)
    with pytest.raises(MissingComponentError, match=r"'\.\[torch\]' in a clone"):
        run_schedule(save(tmp_path), "torch")


def test_ranks_that_report_nothing(fake: Fake, tmp_path: Path) -> None:
    """All ended well, and yet there is no report: what they said is told."""
    fake.report = None
    with pytest.raises(VerificationError, match="without a report; they said:\n    what was said"):
        run_schedule(save(tmp_path), "reference")


def test_what_ranks_found_wrong_is_an_error(fake: Fake, tmp_path: Path) -> None:
    """A report with violations is never returned."""
    fake.report = Report("fake", None, 8, False, (), ("a byte is wrong",)).to_json()
    with pytest.raises(VerificationError) as caught:
        run_schedule(save(tmp_path), "reference")
    assert caught.value.violations == ("a byte is wrong",)


@pytest.mark.parametrize("ranks", [7, 9])
def test_another_number_of_ranks(ranks: int, fake: Fake, tmp_path: Path) -> None:
    """It is that of the schedule, and nothing is started for another."""
    with pytest.raises(UsageError, match=f"8 ranks, one per terminal, and {ranks} were asked for"):
        run_schedule(save(tmp_path), "reference", ranks=ranks)
    with pytest.raises(UsageError, match="no runtime 'other'; expected one of reference, mpi"):
        run_schedule(save(tmp_path), "other")
    assert fake.ran == []


@pytest.mark.parametrize(
    ("make", "problem"),
    [
        (lambda: RunSettings(sizes=()), "at least one byte each"),
        (lambda: RunSettings(sizes=(5, 0)), "at least one byte each"),
        (lambda: RunSettings(iterations=0), "0 iterations after 3"),
        (lambda: RunSettings(warmup=-1), "20 iterations after -1"),
        (lambda: RunSettings(timeout=0.0), "for 0 seconds"),
        (lambda: RunSettings(timeout=float("nan")), "for nan seconds"),
        (lambda: RunSettings(timeout=1e6 + 1), "time above 0, at most"),
        (lambda: RunSettings(sync="never"), "one of dataflow, step"),
    ],
)
def test_settings_that_make_no_sense(make: Callable[[], RunSettings], problem: str) -> None:
    """They are refused when they are made."""
    with pytest.raises(UsageError, match=problem):
        make()


def test_settings_at_the_edge() -> None:
    """The least of everything is allowed, and both ways to synchronise."""
    assert RunSettings((1,), iterations=1, warmup=0, timeout=1e-9, sync="step").sizes == (1,)
    assert RunSettings().sync == "dataflow"
