"""The MPIs that C programs are compiled for, and how such programs are started."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from alltoall.errors import MissingComponentError
from alltoall.runtime.engine.build import build
from alltoall.runtime.mpiexec import Mpi, find_mpi
from alltoall.runtime.processes import Command, grouped

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


def compiled(name: str, mpicc: Path, shared: Path) -> Path:
    """Return a program of ours, compiled as a user would, once in a run of pytest."""
    program = shared / f"{mpicc.parts[-3]}-{name}"
    if not program.exists():
        new = program.with_suffix(f".{os.getpid()}")
        source = HERE / "runtime" / "programs" / f"{name}.c"
        command = [str(mpicc), "-O1", "-Wall", "-Werror", "-pthread", "-o", str(new), str(source)]
        ended = subprocess.run(command, capture_output=True, text=True, check=False)
        assert ended.returncode == 0, ended.stderr
        new.rename(program)
    return program


def with_engine(folder: Path, mpicc: Path, shared: Path) -> Path:
    """Give a folder a cache of its own, in which there is an engine, built once in a run."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("XDG_CACHE_HOME", str(shared / "cache"))
        built = build(mpicc).engine.parent
    link = folder / "cache" / "alltoall" / built.name
    link.parent.mkdir(parents=True)
    link.symlink_to(built)
    return folder


def wrapped(words: list[str], mpi: Mpi, ranks: int, program: list[str], folder: Path) -> str:
    """Run `alltoall wrap` over ranks of a program, and return what was said."""
    inner = mpi.command(ranks, program)
    command = [sys.executable, "-m", "alltoall", "wrap", *words, "--", *inner]
    variables = {**mpi.variables(ranks), "XDG_CACHE_HOME": str(folder / "cache")}
    return started(command, variables, folder)


def started(command: list[str], variables: dict[str, str], folder: Path) -> str:
    """Run a command to its end, and return what was said."""
    log = folder / "log"
    with grouped() as group:
        group.run([Command(command, variables, log)], 120, "the test")
    return log.read_text()
