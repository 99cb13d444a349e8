import importlib.util
import json
import re
import sys
from pathlib import Path

import pytest
import typer
from typer.testing import CliRunner

from alltoall.cli.run import run_verb, table
from alltoall.errors import AlltoallError, FormatError, UsageError, VerificationError
from alltoall.ir.chunks import shards_of
from alltoall.ir.files.json.saved_answers import answer_to_json
from alltoall.ir.files.json.values import write_json
from alltoall.lowering import TARGETS, Options
from alltoall.runtime.bench import Report, Row, Times
from alltoall.runtime.launch import RunSettings, run_schedule
from alltoall.runtime.processes import Command, grouped
from alltoall.topologies.spec import build
from hop_schedules import hop_schedule
from saved import save, without_last_send
from uneven_cases import CASES

APP = typer.Typer()
APP.command()(run_verb)
QUICK = RunSettings(sizes=(5, 64), iterations=2, warmup=0, timeout=120)
needs_mpi = pytest.mark.skipif(
    importlib.util.find_spec("mpi4py") is None,
    reason="mpi4py is not installed; pip install '.[mpi]'",
)
needs_torch = pytest.mark.skipif(
    importlib.util.find_spec("torch") is None,
    reason="torch is not installed; pip install '.[torch]'",
)
RUNTIMES = ["reference", pytest.param("mpi", marks=needs_mpi)]


@pytest.mark.parametrize("on", RUNTIMES)
def test_times_and_throughput(on: str, tmp_path: Path) -> None:
    """Every size has times in order, and the figures that follow from them."""
    report = run_schedule(save(tmp_path, chunks=3), on, QUICK, ranks=8)
    assert [(row.bytes, row.size) for row in report.rows] == [(5, 40), (64, 512)]
    assert report.ranks == 8
    assert not report.links_emulated
    for row in report.rows:
        for times in filter(None, (row.ours, row.native)):
            assert 0 < times.least <= times.mean <= times.most
            assert times.throughput == times.busbw == pytest.approx(7 * row.bytes / times.mean)
            assert times.algbw == pytest.approx(8 * row.bytes / times.mean)
    assert (report.native is None) == (on == "reference")


@pytest.mark.parametrize(
    ("on", "form"),
    [
        ("reference", "schedule"),
        ("reference", "messages"),
        pytest.param("mpi", "schedule", marks=needs_mpi),
        pytest.param("torch", "messages", marks=needs_torch),
    ],
)
def test_uneven_shards(on: str, form: str, tmp_path: Path) -> None:
    """Ranks that send nothing, receive nothing, or only relay; from either file, to the byte."""
    path, schedule = tmp_path / form, CASES["ring"]
    if form == "schedule":
        write_json(path, answer_to_json(schedule))
    else:
        path.write_text(TARGETS["messages"].emit(schedule, Options()))
    report = run_schedule(path, on, QUICK)
    sizes = [shards_of(schedule.problem.demand, size) for size in QUICK.sizes]
    assert [row.size for row in report.rows] == [shard.stored // 6 for shard in sizes]
    for row, shard in zip(report.rows, sizes, strict=True):
        assert row.ours.busbw == pytest.approx(shard.total / 6 / row.ours.mean)


def test_files_that_cannot_be_run(tmp_path: Path) -> None:
    """A lowered file of another target is no schedule, and damaged messages are none."""
    path = tmp_path / "file"
    text = TARGETS["messages"].emit(CASES["ring"], Options())
    for content in ("<schedule/>", text[:-1], "{}"):
        path.write_text(content)
        with pytest.raises(FormatError):
            run_schedule(path, "reference", QUICK)


@needs_mpi
def test_the_ratio_is_that_of_throughputs(tmp_path: Path) -> None:
    """It is above one where the schedule is faster than the library."""
    for row in run_schedule(save(tmp_path, "hypercube:2"), "mpi", QUICK).rows:
        assert row.native is not None
        assert row.ratio == pytest.approx(row.ours.throughput / row.native.throughput)


def test_one_process_is_compared_with_nothing(tmp_path: Path) -> None:
    """The reference has no all-to-all of its own, and so no ratio."""
    report = run_schedule(save(tmp_path), "reference", QUICK)
    assert report.native is None
    assert [(row.native, row.ratio) for row in report.rows] == [(None, None), (None, None)]


@pytest.mark.parametrize("on", RUNTIMES)
def test_a_chunk_that_never_arrives_is_found(on: str, tmp_path: Path) -> None:
    """A schedule that forgets one chunk fails, and the error names rank, shard and byte."""
    path = tmp_path / "wrong.schedule.json"
    wrong = without_last_send(hop_schedule(build("hypercube:3"), 2))
    write_json(path, answer_to_json(wrong))
    with pytest.raises(VerificationError) as caught:
        run_schedule(path, on, QUICK)
    assert caught.value.exit_code == 4
    assert "wrong bytes in the shard from rank" in caught.value.violations[0]


def test_the_command_line(tmp_path: Path) -> None:
    """The verb prints one JSON object, or a table with a line per size."""
    path = str(save(tmp_path))
    options = ["--bytes", "1:4", "--iterations", "1", "--warmup", "0"]
    found = CliRunner().invoke(APP, [path, *options, "--json"])
    told = json.loads(found.stdout)
    assert [row["bytes"] for row in told["rows"]] == [1, 2, 4]
    assert told["links_emulated"] is False
    found = CliRunner().invoke(APP, [path, *options])
    assert found.exit_code == 0
    assert "no link is emulated" in found.stdout
    assert [line.split()[0] for line in found.stdout.splitlines()[4:]] == ["1", "2", "4"]


TIMES = Times(2e-6, 1e-6, 3e-6, 4e9, 3e9, 3e9)
OTHER = Times(4e-6, 1e-6, 3e-6, 2e9, 1.5e9, 1.5e9)


def test_the_table() -> None:
    """The columns of OSU and nccl-tests stand under their names, then the library's own."""
    row = Row(2000, 8000, TIMES, OTHER, 2.0)
    *words, header, line = table(Report("MPICH", "MPI_Alltoall", 4, False, (row,), ()))
    assert all(word.startswith("# ") for word in words)
    assert "4 ranks, MPICH" in words[0]
    assert "MPI_Alltoall" in words[-1]
    names = re.findall(r"[a-z]+(?: B| us| GB/s)?|\|", header)
    assert dict(zip(names[:7], line.split(), strict=False)) == {
        "shard B": "2000", "size B": "8000", "time us": "2.0", "min us": "1.0", "max us": "3.0",
        "algbw GB/s": "4.000", "busbw GB/s": "3.000",
    }  # fmt: skip
    assert names[7:] == ["|", "time us", "algbw GB/s", "busbw GB/s", "ratio"]
    assert line.split()[7:] == ["|", "4.0", "2.000", "1.500", "2.00"]
    assert [at for at, each in enumerate(header) if each == "|"] == [line.index("|")]


def test_the_table_of_one_process() -> None:
    """What has nothing to be compared with has neither a bar nor a ratio."""
    row = Row(2000, 8000, TIMES, None, None)
    found = "\n".join(table(Report("reference", None, 4, False, (row,), ())))
    assert "no link is emulated" in found
    assert "|" not in found
    assert "ratio" not in found
    assert found.splitlines()[-1].split()[-1] == "3.000"


@pytest.mark.parametrize(
    ("words", "problem"),
    [
        (["--ranks", "7"], "a schedule for 8 ranks"),
        (["--on", "nccl"], "no runtime 'nccl'; expected one of reference, mpi, torch, testbed"),
        (["--sync", "never"], "sync 'never'"),
        (["--sync", "step"], "sync 'step' on 'reference'; expected mpi"),
        (["--rate", "10mbit"], "rate on 'reference', which emulates no links"),
        (["--cut", "0-1", "--no-native"], "no-native, cut on 'reference'"),
        (["--bytes", "0"], "sizes '0'"),
        (["--bytes", "1M:1K"], "smaller one first"),
        (["--iterations", "0"], "0 iterations"),
        (["--timeout", "nan"], "a time above 0"),
        (["--on", "reference", "--mpi", "mpich"], "leave --mpi out"),
        (["--timeout", "inf"], "time above 0, at most"),
    ],
)
def test_wrong_words(words: list[str], problem: str, tmp_path: Path) -> None:
    """Options that make no sense are refused before anything is started."""
    found = CliRunner().invoke(APP, [str(save(tmp_path)), *words])
    assert isinstance(found.exception, UsageError)
    assert problem in str(found.exception)


@pytest.mark.parametrize(
    ("one", "other", "problem"),
    [
        ("import sys; sys.exit(3)", "import threading; threading.Event().wait()", "exit code 3"),
        ("import os; os.kill(os.getpid(), 9)", "import threading; threading.Event().wait()",
         "signal SIGKILL"),
        ("print('here I am', flush=True); import threading; threading.Event().wait()", "",
         "here I am"),
    ],
)  # fmt: skip
def test_processes_end_together(one: str, other: str, problem: str, tmp_path: Path) -> None:
    """If one ends badly or does not end, all are ended, and its last words are told."""
    scripts = enumerate((one, other))
    commands = [Command([sys.executable, "-c", s], {}, tmp_path / str(i)) for i, s in scripts]
    with pytest.raises(AlltoallError) as caught, grouped() as group:
        group.run(commands, 2, "the test")
    assert problem in str(caught.value)
