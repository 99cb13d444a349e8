"""Unmodified programs under `alltoall wrap`: same results, calls taken, nothing ever broken."""

import re
import subprocess
import sys
from pathlib import Path

import pytest

import alltoall
from alltoall.errors import FormatError, UsageError
from alltoall.ir.files.messages import messages_text
from alltoall.lowering.programs.messages import messages_of
from alltoall.runtime.mpiexec import Mpi
from command_line import Run
from programs_in_c import PREFIX, compiled, mpi_of, started, with_engine, wrapped

REPORT = re.compile(
    r"alltoall: (\d+) of (\d+) all-to-alls? used (?:the schedule|schedules) \((\d+) bytes in"
)
RANKS = 4
SPECS = {4: "ring:4", 2: "complete:2"}


@pytest.fixture(scope="module", params=["mpich", "openmpi"])
def mpi(request: pytest.FixtureRequest) -> tuple[Mpi, Path]:
    """Every MPI, with its compiler."""
    return mpi_of(request.param)


@pytest.fixture(scope="module")
def program(mpi: tuple[Mpi, Path], shared: Path) -> Path:
    """Compile a program that makes all-to-alls in every way, and checks what comes of it."""
    return compiled("alltoalls", mpi[1], shared)


@pytest.fixture
def folder(mpi: tuple[Mpi, Path], shared: Path, tmp_path: Path) -> Path:
    """Give a folder with a cache in which the engine for an MPI is all there is."""
    return with_engine(tmp_path, mpi[1], shared)


@pytest.fixture(scope="module")
def files(tmp_path_factory: pytest.TempPathFactory) -> list[str]:
    """Schedules for four ranks and for two."""
    folder = tmp_path_factory.mktemp("files")
    for ranks, spec in SPECS.items():
        alltoall.schedule(spec).save(folder / f"{ranks}.json")
    return [str(folder / f"{ranks}.json") for ranks in SPECS]


def counts(said: str) -> tuple[int, int, int]:
    """Return the calls that used a schedule and those that did not, and the bytes."""
    found = REPORT.search(said)
    assert found, said
    return int(found[1]), int(found[2]) - int(found[1]), int(found[3])


def lines(said: str) -> list[str]:
    """Return the lines of all ranks that are ours."""
    return [line for line in said.splitlines() if line.startswith("alltoall: ")]


@pytest.mark.parametrize("level", ["single", "multiple"])
def test_every_call_is_right(
    mpi: tuple[Mpi, Path], program: Path, files: list[str], folder: Path, level: str
) -> None:
    """World, copies, other orders and halves; with threads those that do not wait are taken too."""
    said = wrapped([*files, "--report"], mpi[0], RANKS, [str(program), level], folder)
    taken, passed, moved = counts(said)
    assert said.count("right\n") == 1
    assert "wrong" not in said
    assert (passed == 0) == (level == "multiple")
    assert taken + passed == 115
    assert moved > 0


def test_what_no_schedule_is_for_is_the_library_s_own(
    mpi: tuple[Mpi, Path], program: Path, files: list[str], folder: Path
) -> None:
    """Three ranks, and a schedule for four: nothing is taken, and all is right."""
    said = wrapped([files[0], "--report"], mpi[0], 3, [str(program)], folder)
    assert "right\n" in said
    assert counts(said)[0] == 0


def test_all_to_alls_that_used_no_schedule_are_said_once(
    mpi: tuple[Mpi, Path], files: list[str], folder: Path, shared: Path
) -> None:
    """By default, with why and how often; nothing where all used one, or with --quiet."""
    program = str(compiled("left_out", mpi[1], shared))
    assert lines(wrapped([files[0]], mpi[0], 3, [program, "world"], folder)) == [
        "alltoall: 0 of 3 all-to-alls used the schedule: communicator has 3 ranks, schedule has 4"
    ]
    assert lines(wrapped([files[0]], mpi[0], RANKS, [program, "world"], folder)) == []
    assert lines(wrapped([*files, "--quiet"], mpi[0], 3, [program], folder)) == []


def test_every_reason_has_its_count(
    mpi: tuple[Mpi, Path], files: list[str], folder: Path, shared: Path
) -> None:
    """Those of communicators without rank 0, too; a rank alone has no all-to-all."""
    program = str(compiled("left_out", mpi[1], shared))
    files = [files[0], f"{files[0]}@4K"]
    said = wrapped(files, mpi[0], RANKS, [program], folder)
    assert said.count("right\n") == 1
    [line] = lines(said)
    assert line.startswith("alltoall: 3 of 9 all-to-alls used the schedule: ")
    assert sorted(line.partition("schedule: ")[2].split("; ")) == [
        "1 where communicator has 4 ranks, there are no bytes to send",
        "2 where communicator has 2 ranks, schedule has 4",
        "3 where communicator has 4 ranks, MPI_Ialltoallv, MPI_Alltoallw and MPI_Ialltoallw use "
        "no schedule",
    ]


def test_small_shards_are_the_library_s_own(
    mpi: tuple[Mpi, Path], program: Path, files: list[str], folder: Path
) -> None:
    """By one size for all files, or by a file's own."""
    words = [files[0], "--min-bytes", "4K", "--report"]
    said = wrapped(words, mpi[0], RANKS, [str(program)], folder)
    taken, passed, _ = counts(said)
    assert "right\n" in said
    assert taken == 24
    assert passed == 91
    assert "communicator has 4 ranks, shards are smaller than the least size given" in said
    assert "communicator has 2 ranks, schedule has 4" in said
    own = _variables(folder, mpi[1], f"{files[0]}@4K")
    assert own == _variables(folder, mpi[1], files[0], least="4K")
    assert own != _variables(folder, mpi[1], files[0])


def test_a_file_that_breaks_meanwhile_breaks_no_program(
    mpi: tuple[Mpi, Path], program: Path, files: list[str], folder: Path
) -> None:
    """One warning, and the library's own call: the file cut off, gone, or of something else."""
    environment = {**mpi[0].variables(RANKS), "XDG_CACHE_HOME": str(folder / "cache")}
    environment |= _variables(folder, mpi[1], files[0])
    messages = next((folder / "cache" / "alltoall").glob("*.messages"))
    good = messages.read_bytes()
    for broken in (good[: len(good) // 2], good.replace(b"ranks 4", b"ranks 5"), b"", None):
        messages.unlink()
        if broken is not None:
            messages.write_bytes(broken)
        said = started(mpi[0].command(RANKS, [str(program)]), environment, folder)
        assert said.count("the MPI library's own all-to-all is used") >= 1
        assert "communicator has 4 ranks, its schedule could not be loaded" in said
        assert said.count("right\n") == 1, said
        messages.write_bytes(good)


def _variables(folder: Path, mpicc: Path, file: str, least: str = "0") -> dict[str, str]:
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("XDG_CACHE_HOME", str(folder / "cache"))
        return alltoall.wrap([file], mpicc=str(mpicc), min_bytes=least)


def in_two_kinds(mpi: Mpi, first: list[str], second: list[str]) -> list[str]:
    """Return the command of a job whose first rank runs one thing, and all others another."""
    return [*mpi.command(1, first), ":", "-n", str(RANKS - 1), *second]


@pytest.mark.parametrize(("others", "taken"), [("multiple", 1), ("single", 0)])
def test_threads_of_some_ranks_only(
    mpi: tuple[Mpi, Path], files: list[str], folder: Path, shared: Path, others: str, taken: int
) -> None:
    """Calls that do not wait are taken if all ranks have MPI_THREAD_MULTIPLE, and else by none."""
    program = str(compiled("unfriendly", mpi[1], shared))
    job = in_two_kinds(mpi[0], [program, "multiple"], [program, others])
    command = [sys.executable, "-m", "alltoall", "wrap", files[0], "--report", "--", *job]
    variables = {**mpi[0].variables(RANKS), "XDG_CACHE_HOME": str(folder / "cache")}
    said = started(command, variables, folder)
    assert said.count("right\n") == RANKS
    assert counts(said)[:2] == (taken, 1 - taken)
    assert ("MPI_Ialltoall needs MPI_THREAD_MULTIPLE" in said) == (not taken)


def test_ranks_that_were_told_otherwise(
    mpi: tuple[Mpi, Path], program: Path, files: list[str], folder: Path
) -> None:
    """Another configuration on one rank, or none: a warning, and the library's own calls."""
    variables = {**mpi[0].variables(RANKS), "XDG_CACHE_HOME": str(folder / "cache")}
    variables |= _variables(folder, mpi[1], files[0])
    other = folder / "other.wrap"
    other.write_text(Path(variables["ALLTOALL_WRAP"]).read_text().replace(" 0 ", " 1 "))
    for path in (other, folder / "none.wrap"):
        told = ["env", f"ALLTOALL_WRAP={path}", str(program)]
        said = started(in_two_kinds(mpi[0], told, [str(program)]), variables, folder)
        assert "ALLTOALL_WRAP: is not the same on all ranks" in said
        assert "communicator has 4 ranks, which were given different schedules" in said
        assert said.count("right\n") == 1


def test_ranks_that_are_not_wrapped(
    mpi: tuple[Mpi, Path], program: Path, files: list[str], folder: Path
) -> None:
    """The others cannot go on without them: a message and an end, however long they would wait."""
    variables = {**mpi[0].variables(RANKS), "ALLTOALL_PATIENCE": "0.5"}
    variables |= _variables(folder, mpi[1], files[0])
    job = in_two_kinds(mpi[0], ["env", "-u", "LD_PRELOAD", str(program)], [str(program)])
    ended = subprocess.run(
        job, env=variables, capture_output=True, text=True, timeout=100, check=False
    )
    assert ended.returncode
    assert "not all ranks are wrapped" in ended.stderr


def test_a_rank_that_is_killed(
    mpi: tuple[Mpi, Path], files: list[str], folder: Path, shared: Path
) -> None:
    """In the middle of the others' call: the job ends, as it does without us."""
    variables = {**mpi[0].variables(RANKS), **_variables(folder, mpi[1], files[0])}
    job = mpi[0].command(RANKS, [str(compiled("unfriendly", mpi[1], shared)), "dies"])
    ended = subprocess.run(
        job, env=variables, capture_output=True, text=True, timeout=100, check=False
    )
    assert ended.returncode


def test_programs_of_sessions(
    mpi: tuple[Mpi, Path], files: list[str], folder: Path, shared: Path
) -> None:
    """Where there is no world, calls are the library's own."""
    program = [str(compiled("unfriendly", mpi[1], shared)), "sessions"]
    said = wrapped([files[0]], mpi[0], RANKS, program, folder)
    assert said.count("right\n") == RANKS


def test_another_mpi_than_the_program_s(files: list[str], shared: Path, tmp_path: Path) -> None:
    """The engine of one MPI never meets the handles of another."""
    mpich, openmpi = mpi_of("mpich"), mpi_of("openmpi")
    program = compiled("alltoalls", mpich[1], shared)
    words = [files[0], "--mpicc", str(openmpi[1])]
    folder = with_engine(tmp_path, openmpi[1], shared)
    said = wrapped(words, mpich[0], RANKS, [str(program)], folder)
    assert "the program uses" in said
    assert "libmpi.so.40" in said
    assert "right\n" in said


def test_ranks_that_sit_elsewhere(mpi: tuple[Mpi, Path], program: Path, folder: Path) -> None:
    """A map of nodes to ranks: the schedule's messages follow it, and everything is right."""
    schedule = alltoall.schedule("ring:4")
    schedule.save(folder / "ring.json")
    ranks = folder / "ranks"
    ranks.write_text("0 2\n1 0\n2 3\n3 1\n")
    words = [str(folder / "ring.json"), "--rank-map", str(ranks), "--report"]
    said = wrapped(words, mpi[0], RANKS, [str(program)], folder)
    assert "right\n" in said
    assert counts(said)[0] > 0


def test_programs_of_mpi4py(mpi: tuple[Mpi, Path], files: list[str], folder: Path) -> None:
    """They load the library on their own, and call other functions of it."""
    script = """
import numpy as np
from mpi4py import MPI
comm = MPI.COMM_WORLD
send = np.arange(4 * 100) + 1000 * comm.rank
recv = np.empty_like(send)
comm.Alltoall(send, recv)
wanted = np.concatenate([np.arange(100) + 100 * comm.rank + 1000 * s for s in range(4)])
assert (recv == wanted).all()
recv[:] = 0
comm.Alltoallv([send, [100] * 4], [recv, [100] * 4])
assert (recv == wanted).all()
print("right")
"""
    program = [sys.executable, "-c", script]
    said = wrapped([files[0], "--report"], mpi[0], RANKS, program, folder)
    assert said.count("right") == RANKS
    assert counts(said)[:2] == (2, 0)


def test_fortran_names(mpi: tuple[Mpi, Path], files: list[str], folder: Path, shared: Path) -> None:
    """What Fortran calls is taken, with mpi_f08 too, and its way to say in place is understood."""
    program = str(compiled("fortran_names", mpi[1], shared))
    for words in ([program], [program, "threads"]):
        said = wrapped([files[0], "--report"], mpi[0], RANKS, words, folder)
        assert "right\n" in said
        assert counts(said)[:2] == (5, 0)
    said = wrapped([files[1]], mpi[0], RANKS, [program], folder)
    assert lines(said) == [
        "alltoall: 0 of 5 all-to-alls used the schedule: communicator has 4 ranks, schedule has 2"
    ]


def test_what_to_set_in_a_script(files: list[str], tmp_path: Path, run: Run) -> None:
    """--export prints the variables, and nothing is run."""
    mpicc = mpi_of("mpich")[1]
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("XDG_CACHE_HOME", str(tmp_path))
        ended = run("wrap", files[0], "--mpicc", str(mpicc), "--export")
    lines = ended.out.splitlines()
    assert {line.split("=")[0] for line in lines} == {
        "export LD_PRELOAD",
        "export ALLTOALL_ENGINE",
        "export ALLTOALL_LIBMPI",
        "export ALLTOALL_WRAP",
    }


@pytest.mark.parametrize(
    ("words", "meant"),
    [
        ("T mpiexec -n 4 ./p", "T -- mpiexec -n 4 ./p"),
        ("T --report mpiexec -n 4 ./p -x", "T --report -- mpiexec -n 4 ./p -x"),
        ("T T@4K no-such-launcher ./p", "T T@4K -- no-such-launcher ./p"),
        ("T --min-bytes 4K sh -c true", "T --min-bytes 4K -- sh -c true"),
    ],
)
def test_where_the_dashes_belong(words: str, meant: str, files: list[str], run: Run) -> None:
    """A command without them is told from files, and from a wrong option."""
    ended = run("wrap", *words.replace("T", files[0]).split())
    assert ended.code == 2
    expected = f"expected alltoall wrap {meant.replace('T', files[0])}\n"
    assert ended.err == f"error: no -- before the command; {expected}"
    for wrong in (("--nosuch",), ("--nosuch", "--", "sh"), ("-n", "4", "sh")):
        ended = run("wrap", files[0], *wrong)
        assert (ended.code, ended.out) == (2, "")
        assert f"No such option: {wrong[0]}" in ended.err


def test_refusals(
    files: list[str], shared: Path, tmp_path: Path, run: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What was found, what was expected: before anything starts."""
    mpicc = str(PREFIX / "mpich" / "bin" / "mpicc")
    monkeypatch.setenv("XDG_CACHE_HOME", str(shared / "cache"))
    ended = run("wrap", files[0])
    assert ended.code == 2
    assert "FILE... -- COMMAND" in ended.err
    with pytest.raises(UsageError, match="--report with --quiet"):
        alltoall.wrap(files, mpicc=mpicc, report=True, quiet=True)
    ended = run("wrap", files[0], "--mpicc", mpicc, "--", "no-such")
    assert ended.code == 2
    assert "no command" in ended.err
    with pytest.raises(UsageError, match="no file"):
        alltoall.wrap([tmp_path / "none.json"], mpicc=mpicc)
    with pytest.raises(UsageError, match="no schedule"):
        alltoall.wrap([], mpicc=mpicc)
    with pytest.raises(UsageError, match="expected the path of an mpicc"):
        alltoall.wrap(files, mpicc=str(tmp_path / "mpicc"))
    ranks = tmp_path / "ranks"
    ranks.write_text("0 1\n1 1\n2 2\n3 3\n")
    with pytest.raises(FormatError, match="one rank for two nodes"):
        alltoall.wrap(files[:1], rank_map=ranks, mpicc=mpicc)
    lowered = tmp_path / "ring.messages"
    text = messages_text(messages_of(alltoall.schedule("ring:4")))
    lowered.write_text(text[:-2])
    with pytest.raises(FormatError, match="truncated"):
        alltoall.wrap([lowered], mpicc=mpicc)
