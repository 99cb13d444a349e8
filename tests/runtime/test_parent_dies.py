"""Whatever kills the parent of a run, its ranks and its scratch directory go with it."""

import importlib.util
import os
import select
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from alltoall.errors import MissingComponentError
from alltoall.runtime.mpiexec import find_mpi
from saved import save

RANKS = 2
ANNOUNCE = """
import os, sys, time
if "alltoall.runtime.worker" in sys.orig_argv:
    pipe, clock, told = os.open({pipe!r}, os.O_WRONLY), time.perf_counter, []
    def perf_counter():
        if not told and sys._getframe(1).f_code.co_name == "timed":
            told.append(os.write(pipe, b"%7d\\n" % os.getpid()))
        return clock()
    time.perf_counter = perf_counter
"""
"""Loaded by every Python as it starts: a rank holds a pipe, and tells its number once timed."""

RUNTIMES = {
    "reference": ["--on", "reference"],
    "mpich": ["--on", "mpi", "--mpi", "mpich"],
    "openmpi": ["--on", "mpi", "--mpi", "openmpi"],
    "torch": ["--on", "torch"],
}


def require(runtime: str) -> None:
    """Skip where a runtime is not installed."""
    if runtime == "torch" and importlib.util.find_spec("torch") is None:
        pytest.skip("torch is not installed; pip install '.[torch]'")
    if runtime in ("mpich", "openmpi"):
        try:
            find_mpi(runtime)
        except MissingComponentError as error:
            pytest.skip(str(error))


def start(runtime: str, folder: Path) -> "tuple[subprocess.Popen[bytes], int]":
    """Start a run that would go on for hours; return it and the pipe that its ranks hold."""
    pipe = folder / "pipe"
    os.mkfifo(pipe)
    (folder / "sitecustomize.py").write_text(ANNOUNCE.format(pipe=str(pipe)))
    (folder / "scratch").mkdir()
    words = [*RUNTIMES[runtime], "--iterations", "1000000000", "--bytes", "64"]
    path = os.pathsep.join([str(folder), *filter(None, [os.environ.get("PYTHONPATH")])])
    process = subprocess.Popen(
        [sys.executable, "-m", "alltoall", "run", str(save(folder, "complete:2", 1)), *words],
        env={**os.environ, "PYTHONPATH": path, "TMPDIR": str(folder / "scratch")},
        stdout=subprocess.DEVNULL,
        stderr=subprocess.PIPE,
    )
    return process, os.open(pipe, os.O_RDONLY | os.O_NONBLOCK)


def hear(pipe: int, ranks: int) -> list[int]:
    """Wait until so many ranks have told their number."""
    heard = b""
    while heard.count(b"\n") < ranks:
        ready, _, _ = select.select([pipe], [], [], 120)
        assert ready, "the ranks did not come to exchange anything"
        heard += os.read(pipe, 4096)
    return [int(number) for number in heard.split()]


def segments(ranks: list[int]) -> set[Path]:
    """Return the named shared memory of ranks."""
    lines = [line for rank in ranks for line in Path(f"/proc/{rank}/maps").read_text().splitlines()]
    return {Path(words[-1]) for words in map(str.split, lines) if "/dev/shm/" in words[-1]}


@pytest.mark.parametrize(
    ("runtime", "number"),
    [*((runtime, signal.SIGKILL) for runtime in RUNTIMES), ("reference", signal.SIGTERM)],
)
def test_nothing_outlives_the_parent(runtime: str, number: signal.Signals, tmp_path: Path) -> None:
    """Killed while bytes are under way, it leaves neither a process nor a file."""
    require(runtime)
    process, pipe = start(runtime, tmp_path)
    try:
        ranks = hear(pipe, 1 if runtime == "reference" else RANKS)
        assert list((tmp_path / "scratch").iterdir()) != []
        shared = segments(ranks)
        assert (len(shared) > 0) == (runtime in ("mpich", "openmpi"))
    finally:
        process.send_signal(number)
        # The end of its errors is that of the guard, who has the same place to write them to.
        process.communicate(timeout=120)
    assert process.returncode != 0
    assert os.read(pipe, 1) == b"", "a rank still holds the pipe"
    os.close(pipe)
    assert list((tmp_path / "scratch").iterdir()) == []
    assert not any(each.exists() for each in shared)
