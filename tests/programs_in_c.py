"""The MPIs that C programs are compiled for, and how such programs are started."""

import subprocess
import sys
from pathlib import Path

import pytest

from a2aflow.errors import MissingComponentError
from a2aflow.runtime.mpiexec import Mpi, find_mpi
from a2aflow.runtime.processes import Command, grouped

HERE = Path(__file__).parent
PREFIX = Path(sys.executable).parent.parent / "mpi"
"""Where `make setup` puts each MPI with headers of its own."""


def mpi_of(kind: str) -> tuple[Mpi, Path]:
    """Return an MPI and its compiler; skip where `make setup` has not installed it."""
    mpicc = PREFIX / kind / "bin" / "mpicc"
    if not mpicc.exists():
        pytest.skip(f"no {mpicc}: run make setup")
    try:
        return find_mpi(str(mpicc.with_name("mpiexec"))), mpicc
    except MissingComponentError as error:
        pytest.skip(str(error))


def compiled(name: str, mpicc: Path, folder: Path) -> Path:
    """Return a program of ours, compiled as a user would."""
    program = folder / name
    source = HERE / "runtime" / "programs" / f"{name}.c"
    command = [str(mpicc), "-O1", "-Wall", "-Werror", "-pthread", "-o", str(program), str(source)]
    ended = subprocess.run(command, capture_output=True, text=True, check=False)
    assert ended.returncode == 0, ended.stderr
    return program


def wrapped(words: list[str], mpi: Mpi, ranks: int, program: list[str], folder: Path) -> str:
    """Run `a2aflow wrap` over ranks of a program, and return what was said."""
    inner = mpi.command(ranks, program)
    command = [sys.executable, "-m", "a2aflow", "wrap", *words, "--", *inner]
    variables = {**mpi.variables(ranks), "XDG_CACHE_HOME": str(folder / "cache")}
    return started(command, variables, folder)


def started(command: list[str], variables: dict[str, str], folder: Path) -> str:
    """Run a command to its end, and return what was said."""
    log = folder / "log"
    with grouped() as group:
        group.run([Command(command, variables, log)], 120, "the test")
    return log.read_text()
