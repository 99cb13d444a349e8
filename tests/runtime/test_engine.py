"""The C reader of messages: it takes what the writer writes, and no damage leads it astray."""

import json
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

import alltoall
from alltoall.errors import FormatError, InputError
from alltoall.ir.files.messages import messages_from_text, messages_text
from alltoall.lowering.programs.messages import messages_of
from alltoall.runtime.engine.build import Engine, build, find_mpicc
from programs_in_c import mpi_of

READ = """
import ctypes, json, sys
from pathlib import Path
engine, folder, ranks = sys.argv[1], Path(sys.argv[2]), int(sys.argv[3])
library = ctypes.CDLL(engine)
library.a2a_plan_read.restype = ctypes.c_void_p
library.a2a_plan_free.argtypes = [ctypes.c_void_p]
error = ctypes.create_string_buffer(256)
said = {}
for path in sorted(folder.iterdir()):
    for rank in range(ranks):
        error.value = b""
        plan = library.a2a_plan_read(str(path).encode(), ranks, rank, error)
        said.setdefault(path.name, []).append(None if plan else error.value.decode())
        library.a2a_plan_free(plan)
print(json.dumps(said))
"""
"""In a process of its own: what crashes there fails a test, and not the tests."""

DAMAGED = 400


@pytest.fixture(scope="module")
def engine(shared: Path) -> Engine:
    """Build the engine."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("XDG_CACHE_HOME", str(shared / "cache"))
        return build(mpi_of("mpich")[1])


def read(engine: Engine, folder: Path, ranks: int) -> dict[str, list[str | None]]:
    """Return what the reader has to say of every file and rank; nothing if it takes it."""
    command = [sys.executable, "-c", READ, str(engine.engine), str(folder), str(ranks)]
    ended = subprocess.run(command, capture_output=True, text=True, timeout=120, check=False)
    assert ended.returncode == 0, ended.stderr
    found: dict[str, list[str | None]] = json.loads(ended.stdout)
    return found


def texts(demand: bool) -> str:
    """Return the messages of a small schedule, with or without shards that differ."""
    problem = alltoall.Problem.all_to_all(alltoall.topology("mesh:2x3"))
    if demand:
        matrix = np.arange(36.0).reshape(6, 6) % 4
        np.fill_diagonal(matrix, 0)
        problem = alltoall.Problem(problem.topology, alltoall.Demand(6, matrix))
    return messages_text(messages_of(alltoall.schedule(problem)))


@pytest.mark.parametrize("demand", [False, True], ids=["even", "uneven"])
def test_what_python_takes_c_takes_and_nothing_worse(
    engine: Engine, tmp_path: Path, demand: bool
) -> None:
    """Files with a number changed, a line gone, or an end missing: no crash, and no difference.

    Python reads every rank, so what it refuses some rank of C refuses, too; but for what C has no
    use for: the name and the demand.
    """
    good, random = texts(demand), np.random.default_rng(5)
    verdicts = {}
    for index in range(DAMAGED):
        text = damaged(good, random) if index else good
        name = f"{index:03}"
        (tmp_path / name).write_text(text)
        try:
            messages_from_text(text, name)
            verdicts[name] = True
        except (FormatError, InputError):
            verdicts[name] = False
    said = read(engine, tmp_path, 6)
    assert said["000"] == [None] * 6
    strict = [name for name, taken in verdicts.items() if taken and any(said[name])]
    assert not strict, [(name, said[name]) for name in strict[:3]]
    loose = [name for name, taken in verdicts.items() if not taken and not any(said[name])]
    assert len(loose) < DAMAGED // 20, [(tmp_path / name).read_text()[:200] for name in loose[:3]]


def damaged(text: str, random: np.random.Generator) -> str:
    """Return a text with one thing wrong."""
    lines = text.splitlines(keepends=True)
    at = int(random.integers(len(lines)))
    match int(random.integers(5)):
        case 0:
            words = lines[at].split(" ")
            words[int(random.integers(len(words)))] = str(random.choice([0, 1, 7, 99, 2**31, -1]))
            lines[at] = " ".join(words).rstrip("\n") + "\n"
        case 1:
            del lines[at]
        case 2:
            lines.insert(at, lines[at])
        case 3:
            return text[: int(random.integers(len(text)))]
        case _:
            other = int(random.integers(len(lines)))
            lines[at], lines[other] = lines[other], lines[at]
    return "".join(lines)


def test_a_compiler_is_looked_for_beside_the_launcher(tmp_path: Path) -> None:
    """That of the launcher's MPI goes before any other."""
    mpi, mpicc = mpi_of("openmpi")
    assert find_mpicc(launcher=str(mpi.mpiexec)).resolve() == mpicc.resolve()
    assert find_mpicc(str(mpicc)) == mpicc


@pytest.mark.parametrize(("kind", "other"), [("mpich", "openmpi"), ("openmpi", "mpich")])
def test_the_compiler_of_another_mpi_is_left_out(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, kind: str, other: str
) -> None:
    """Two MPIs in one folder: its mpicc is that of whichever came last."""
    mpicc, foreign = mpi_of(kind)[1], mpi_of(other)[1]
    launcher = tmp_path / "launcher"
    for name, program in ((launcher, Path(sys.executable)), (tmp_path / "mpicc", foreign)):
        name.write_text(f'#!/bin/sh\nexec {program} "$@"\n')
        name.chmod(0o755)
    assert find_mpicc(launcher=str(launcher)) == tmp_path / "mpicc"
    monkeypatch.setenv("PATH", f"{mpicc.parent}:/usr/bin:/bin")
    assert find_mpicc(launcher=str(launcher), kind=kind) == mpicc
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(alltoall.errors.MissingComponentError, match=f"no mpicc of {kind} beside"):
        find_mpicc(launcher=str(launcher), kind=kind)


def test_a_compiler_that_fails_says_so(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Nothing half-built is left, and the message has what the compiler said."""
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    script = tmp_path / "mpicc"
    script.write_text('#!/bin/sh\n[ "$1" = -show ] && exit 0\necho "no such header" >&2\nexit 1\n')
    script.chmod(0o755)
    with pytest.raises(alltoall.errors.MissingComponentError, match="no such header"):
        build(script)
    assert list((tmp_path / "cache" / "alltoall").iterdir()) == []
