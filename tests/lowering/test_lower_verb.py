"""`alltoall lower` as a user sees it."""

import json
from dataclasses import replace
from pathlib import Path

import pytest
import typer
from lowering_cases import schedule_named
from typer.testing import CliRunner

import alltoall
from alltoall import grammar
from alltoall.cli.lower import lower_verb
from alltoall.errors import FormatError, LimitError, UsageError, VerificationError
from alltoall.ir.files.json.saved_answers import answer_to_json
from alltoall.ir.files.json.values import write_json
from alltoall.ir.schedule import Schedule
from alltoall.lowering import TARGETS, Options, targets_for
from alltoall.verification import verify
from hop_schedules import KEYS
from lowered_files import EXECUTED, SIMULATED

APP = typer.Typer()
APP.command()(lower_verb)


@pytest.fixture
def saved(tmp_path: Path) -> Path:
    """Save a schedule, as `alltoall schedule` does."""
    return save(tmp_path, schedule_named("hypercube:3", 2))


def save(folder: Path, schedule: Schedule) -> Path:
    """Save a schedule in a folder."""
    path = folder / "cube.schedule.json"
    write_json(path, answer_to_json(schedule))
    return path


def call(*words: object) -> str:
    """Run the verb; return what it prints, or raise what it raises."""
    result = CliRunner().invoke(APP, [str(word) for word in words])
    if result.exception and not isinstance(result.exception, SystemExit):
        raise result.exception
    return result.stdout


@pytest.mark.parametrize("target", targets_for(Schedule))
def test_lower_writes_a_checked_file(saved: Path, tmp_path: Path, target: str) -> None:
    """The file is written, is correct, and the summary says what it is."""
    output = tmp_path / "out"
    asked = f"{target}:channels=2" if "channels" in grammar.TARGETS[target].keys else target
    summary = json.loads(call(saved, "--to", asked, "-o", output, "--json"))
    assert summary["format"] == target
    # Messages and what is only written have no channels.
    assert summary["chunks_per_shard"] == (2 if target in ("messages", *SIMULATED) else 4)
    files = sorted(output.iterdir()) if output.is_dir() else [output]
    assert sorted(summary["saved"]) == [str(file) for file in files]
    assert summary["bytes"] == sum(file.stat().st_size for file in files)
    if target in EXECUTED:
        assert summary["correct"]
        assert verify(output).facts["steps"] == summary["steps"]


@pytest.mark.parametrize("target", SIMULATED)
def test_what_is_only_written_is_not_read(saved: Path, tmp_path: Path, target: str) -> None:
    """The message names what to use instead; a wrong schedule is refused before it is lowered."""
    output = tmp_path / "out"
    call(saved, "--to", target, "-o", output)
    for use in (verify, alltoall.load, alltoall.run):
        with pytest.raises(FormatError, match=r"use the saved schedule|what `lldpcli|: Is a dir"):
            use(output)
    schedule = schedule_named("hypercube:3", 2)
    cut = replace(schedule, **{key: getattr(schedule, key)[:-1] for key in KEYS})
    with pytest.raises(VerificationError, match="never arrive"):
        alltoall.lower(cut, to=target)


@pytest.mark.parametrize("words", [(), ("-o", "-")])
def test_several_files_do_not_go_to_standard_output(saved: Path, words: tuple[str, ...]) -> None:
    """A target that writes a folder says so."""
    with pytest.raises(UsageError, match=r"chakra writes 8 files; save them to a folder"):
        call(saved, "--to", "chakra", *words)


def test_files_of_a_larger_run_are_not_left_beside_those_of_a_smaller(
    saved: Path, tmp_path: Path
) -> None:
    """A reader takes a folder as a whole; the same files again, and files of others, are fine."""
    folder = tmp_path / "traces"
    for _ in range(2):
        call(saved, "--to", "chakra", "-o", folder)
    (folder / "notes.txt").write_text("not a trace")
    smaller = save(tmp_path, schedule_named("hypercube:2"))
    before = {each.name: each.read_bytes() for each in folder.iterdir()}
    with pytest.raises(UsageError, match=r"has alltoall\.4\.et \(4 such files\)"):
        call(smaller, "--to", "chakra", "-o", folder)
    assert {each.name: each.read_bytes() for each in folder.iterdir()} == before


def test_lower_prints_the_file_without_an_output(saved: Path) -> None:
    """Standard output is the file itself, so that it can be piped."""
    assert call(saved, "--to", "msccl:runtime=rccl").startswith("<algo ")


def test_lower_prints_lines_for_people(saved: Path, tmp_path: Path) -> None:
    """With an output and without --json the summary is readable."""
    lines = call(saved, "--to", "msccl", "-o", tmp_path / "a.xml")
    assert "accepted by" in lines
    assert "msccl, executor, rccl" in lines


def test_lower_refuses_what_it_cannot_do(saved: Path, tmp_path: Path) -> None:
    """Unknown targets, files that are no schedules and programs that do not fit leave no file."""
    output = tmp_path / "never.xml"
    with pytest.raises(
        UsageError,
        match="target 'nccl' for a schedule; expected one of messages, msccl, msc",
    ):
        call(saved, "--to", "nccl", "-o", output)
    with pytest.raises(LimitError, match="rccl takes at most 64"):
        call(saved, "--to", "msccl:runtime=rccl,channels=32", "-o", output)
    broken = tmp_path / "broken.json"
    broken.write_text("{")
    with pytest.raises(FormatError, match=r"broken\.json"):
        call(broken, "--to", "msccl", "-o", output)
    assert not output.exists()


def test_wrong_programs_are_never_written(
    saved: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A bug in an emitter is found before the file is there."""
    target = TARGETS["oneccl"]
    broken = target.emit(schedule_named("hypercube:3", 2), Options()).replace("<sync/>", "", 1)
    monkeypatch.setitem(
        TARGETS._entries, "oneccl", replace(target, emit=lambda _schedule, _: broken)
    )
    output = tmp_path / "never.xml"
    with pytest.raises(VerificationError, match=r"race|nothing has been written"):
        call(saved, "--to", "oneccl", "-o", output)
    assert not output.exists()
