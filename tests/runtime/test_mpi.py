import os
import sys
from pathlib import Path

import pytest

import alltoall
from alltoall.errors import MissingComponentError, UsageError, VerificationError
from alltoall.runtime.mpiexec import Mpi, find_mpi
from alltoall.runtime.processes import Command, grouped
from programs_in_c import mpi_of, with_engine
from saved import RANKS, save_all

HERE = Path(__file__).parent
PREAMBLE = """
import os, sys, threading
from pathlib import Path
from mpi4py import MPI
comm = MPI.COMM_WORLD
Path(sys.argv[1], str(os.getpid())).touch()
"""


@pytest.fixture(scope="module", params=["mpich", "openmpi"])
def mpi(request: pytest.FixtureRequest) -> Mpi:
    """Every MPI that is installed."""
    try:
        return find_mpi(request.param)
    except MissingComponentError as error:
        pytest.skip(str(error))


def start(mpi: Mpi, ranks: int, arguments: list[str], folder: Path, timeout: float) -> str:
    """Run a command as ranks and return what they said."""
    command = mpi.command(ranks, [sys.executable, *arguments])
    log = folder / "log"
    with grouped() as group:
        group.run([Command(command, mpi.variables(ranks), log)], timeout, "the test")
    return log.read_text()


def running(folder: Path) -> list[str]:
    """Return the processes that left their number in a folder and still run."""
    found = []
    for entry in folder.iterdir():
        status = Path("/proc", entry.name, "stat")
        if status.exists() and status.read_text().rpartition(")")[2].split()[0] != "Z":
            found.append(entry.name)
    return found


def test_every_byte_arrives(
    mpi: Mpi, tmp_path: Path, shared: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """All schedules, types, sizes, buffers and ways to synchronise move the right bytes."""
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    with_engine(tmp_path, mpi_of(mpi.kind)[1], shared)
    said = start(mpi, RANKS, [str(HERE / "mpi_ranks.py"), *save_all(tmp_path)], tmp_path, 300)
    assert "all as it must be" in said


def test_no_compiler_for_the_engine(
    mpi: Mpi, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """All ranks say so, and none waits for another."""
    (tmp_path / "cache").touch()
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    script = "from alltoall.runtime.mpi import *; Alltoall('ring:3', MPI.COMM_WORLD)"
    with pytest.raises(VerificationError, match="set XDG_CACHE_HOME"):
        start(mpi, 3, ["-c", f"from mpi4py import MPI; {script}"], tmp_path, 60)


def test_a_schedule_for_a_spec_is_made_by_one_rank(mpi: Mpi, tmp_path: Path) -> None:
    """Ranks that have the SPEC or the path only."""
    script = """
import sys
import numpy as np
from mpi4py import MPI
from alltoall.runtime.mpi import Alltoall
comm = MPI.COMM_WORLD
send = np.arange(12) + 100 * comm.rank
for given in ("ring:4", sys.argv[1]):
    recv = np.zeros_like(send)
    with Alltoall(given, comm) as alltoall:
        alltoall(send, recv)
    other = np.zeros_like(send)
    comm.Alltoall(send, other)
    assert (recv == other).all()
heavy = "alltoall.schedules.methods" in sys.modules
assert comm.gather(heavy) in (None, [True, False, False, False])
print("right")
"""
    alltoall.schedule("ring:4").save(tmp_path / "ring.json")
    said = start(mpi, 4, ["-c", script, str(tmp_path / "ring.json")], tmp_path, 120)
    assert said.count("right") == 4


def test_a_rank_that_dies_ends_the_run(mpi: Mpi, tmp_path: Path) -> None:
    """The others wait for it in vain; they are ended, and the error says why."""
    pids = tmp_path / "pids"
    pids.mkdir()
    script = PREAMBLE + "if comm.rank == 1: os._exit(7)\ncomm.Barrier()"
    with pytest.raises(VerificationError, match="a rank ended early"):
        start(mpi, 3, ["-c", script, str(pids)], tmp_path, 60)
    assert running(pids) == []


def test_a_rank_that_hangs_ends_the_run(mpi: Mpi, tmp_path: Path) -> None:
    """When the time is up, no rank is left behind."""
    pids = tmp_path / "pids"
    pids.mkdir()
    script = PREAMBLE + "if comm.rank == 1: threading.Event().wait()\ncomm.Barrier()"
    with pytest.raises(VerificationError, match="not done within 2 seconds"):
        start(mpi, 3, ["-c", script, str(pids)], tmp_path, 2)
    assert running(pids) == []


def test_an_mpi_by_its_path(mpi: Mpi) -> None:
    """The path of an mpiexec is as good as its name; what it is, it says itself."""
    assert find_mpi(str(mpi.mpiexec)) == mpi


def test_what_is_no_mpiexec(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Files that are no mpiexec are refused, and a missing mpi4py names its remedy."""
    monkeypatch.setattr("importlib.util.find_spec", lambda name: name)
    with pytest.raises(UsageError, match="not an executable file"):
        find_mpi(str(tmp_path / "mpiexec"))
    script = tmp_path / "mpiexec"
    script.write_text("#!/bin/sh\necho something else\n")
    script.chmod(0o755)
    with pytest.raises(UsageError, match="neither MPICH nor Open MPI"):
        find_mpi(str(script))
    monkeypatch.setattr(sys, "executable", str(tmp_path / "python"))
    monkeypatch.setitem(os.environ, "PATH", str(tmp_path))
    with pytest.raises(MissingComponentError, match=r"'\.\[mpi\]' in a clone"):
        find_mpi("mpich")
    monkeypatch.setattr("importlib.util.find_spec", lambda name: None)
    with pytest.raises(MissingComponentError, match=r"'\.\[mpi\]' in a clone"):
        find_mpi()
