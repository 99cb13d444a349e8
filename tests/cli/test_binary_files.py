"""The compact form by the command line: saved by a suffix, read by every verb."""

import json
import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from command_line import Run


@pytest.mark.parametrize(
    "words",
    [
        ("solve", "torus:3x3", "--host-bandwidth", "2"),
        ("route", "genkautz:n=12,d=3", "--method", "single"),
        ("route", "bipartite:4x4", "--method", "few", "--chunks", "2", "--max-routes", "2"),
        ("schedule", "bipartite:3x3"),
    ],
    ids=" ".join,
)
def test_both_forms_say_the_same(run: Run, tmp_path: Path, words: tuple[str, ...]) -> None:
    """`verify` finds in the compact file what it finds in the JSON, in fewer bytes."""
    text, compact = tmp_path / "artefact.json", tmp_path / "artefact.npz"
    for path in (text, compact):
        saved = run(*words, "-o", path)
        assert saved.code == 0, saved.err
        assert str(path) in saved.out
    assert compact.read_bytes()[:2] == b"PK"
    first, second = run("verify", text, "--json"), run("verify", compact, "--json")
    assert second.code == 0, second.err
    said = [{**found.json, "provenance": None} for found in (first, second)]
    assert said[0] == said[1]


def test_compact_routes_are_lowered(run: Run, tmp_path: Path) -> None:
    """The table from a compact file is the table from the JSON, byte by byte."""
    texts = []
    for name in ("routes.json", "routes.npz"):
        table = tmp_path / f"{name}.table"
        assert run("route", "genkautz:n=12,d=3", "-o", tmp_path / name).code == 0
        lowered = run("lower", tmp_path / name, "--to", "routes", "-o", table)
        assert lowered.code == 0, lowered.err
        assert run("verify", table).code == 0
        texts.append(table.read_bytes())
    assert texts[0] == texts[1]


def test_compact_schedules_are_lowered_and_run(run: Run, tmp_path: Path) -> None:
    """A schedule goes to a runtime's file, and its bytes arrive."""
    path, program = tmp_path / "schedule.npz", tmp_path / "program.xml"
    assert run("schedule", "bipartite:2x2", "-o", path).code == 0
    assert run("lower", path, "--to", "msccl", "-o", program).code == 0
    assert run("verify", program).code == 0
    ran = run("run", path, "--bytes", "1K", "--json")
    assert ran.code == 0, ran.err
    assert ran.json["valid"] is True


@pytest.mark.parametrize("verb", [("verify",), ("lower", "--to", "routes"), ("run",)])
def test_a_damaged_file_is_exit_code_3(run: Run, tmp_path: Path, verb: tuple[str, ...]) -> None:
    """One message that names the file, and no traceback."""
    path = tmp_path / "routes.npz"
    assert run("route", "ring:4", "--method", "single", "-o", path).code == 0
    path.write_bytes(path.read_bytes()[:-30])
    outcome = run(verb[0], path, *verb[1:])
    assert outcome.code == 3
    assert f"{path}: the archive has no end" in outcome.err
    assert "Traceback" not in outcome.err


def test_a_flow_is_not_lowered(run: Run, tmp_path: Path) -> None:
    """The message says which verbs save what can be lowered."""
    for name in ("flow.json", "flow.npz"):
        assert run("solve", "ring:4", "-o", tmp_path / name).code == 0
        outcome = run("lower", tmp_path / name, "--to", "msccl")
        assert outcome.code == 3
        assert "alltoall.flow/1" in outcome.err
        assert "alltoall schedule" in outcome.err
        assert run("run", tmp_path / name).code == 3


@contextmanager
def piped(data: bytes) -> Iterator[str]:
    """Give a path from which data can be read once."""
    reading, writing = os.pipe()
    os.write(writing, data)
    os.close(writing)
    try:
        yield f"/dev/fd/{reading}"
    finally:
        os.close(reading)


def test_files_from_a_pipe_are_verified(run: Run, tmp_path: Path) -> None:
    """Artefacts of both forms and lowered files are read once, from wherever they come."""
    names = ("schedule.json", "schedule.npz", "routes.json", "program.xml", "routes.table")
    schedule, compact, routes, program, table = (tmp_path / name for name in names)
    assert run("schedule", "bipartite:2x2", "-o", schedule).code == 0
    assert run("schedule", "bipartite:2x2", "-o", compact).code == 0
    assert run("route", "bipartite:2x2", "-o", routes).code == 0
    assert run("lower", schedule, "--to", "msccl", "-o", program).code == 0
    assert run("lower", routes, "--to", "routes", "-o", table).code == 0
    for path in (schedule, compact, routes, program, table):
        with piped(path.read_bytes()) as pipe:
            outcome = run("verify", pipe, "--json")
        assert outcome.code == 0, outcome.err
        assert outcome.json["format"] == run("verify", path, "--json").json["format"]


def test_lowered_files_have_a_smaller_limit(
    run: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A program beyond its limit is refused, while a schedule of the same size is not."""
    schedule, program = tmp_path / "schedule.json", tmp_path / "program.json"
    assert run("schedule", "bipartite:2x2", "-o", schedule).code == 0
    assert run("lower", schedule, "--to", "mscclpp", "-o", program).code == 0
    assert json.loads(program.read_text())["name"]
    monkeypatch.setattr("alltoall.loading.MAX_LOWERED_BYTES", 100)
    assert run("verify", schedule).code == 0
    outcome = run("verify", program)
    assert outcome.code == 3
    assert "larger than the limit of 100 bytes" in outcome.err
