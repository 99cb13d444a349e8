"""Writers of one file: those that are killed leave nothing for long, those that live are safe."""

import os
import signal
import subprocess
import sys
import tempfile
import threading
from pathlib import Path
from typing import Any

import pytest

from alltoall.ir.files import text as files
from alltoall.ir.files.text import write_text

WRITER = """
import os, sys, threading
from pathlib import Path
from alltoall.ir.files.text import write_text
replace = Path.replace
def wait(self, target):
    os.write(1, b"written\\n")
    sys.stdin.readline()
    return replace(self, target)
Path.replace = wait
for path in sys.argv[1:]:
    threading.Thread(target=write_text, args=(Path(path), "theirs")).start()
"""
"""Writes files, and waits before it gives them their names."""

NAMES = ("plain.json", "a [b]* name?.json", "ö" * 120, "x" * 250, "\U0001f600" * 60)
"""Of targets: such as a pattern would take for another, and nearly as long as names can be."""


def writer(*paths: Path) -> "subprocess.Popen[str]":
    """Start a process that has written its temporary files, and no more."""
    process = subprocess.Popen(
        [sys.executable, "-c", WRITER, *map(str, paths)],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    )
    assert process.stdout is not None
    for _ in paths:
        assert process.stdout.readline() == "written\n"
    return process


def names(folder: Path) -> list[str]:
    """Return what is in a folder."""
    return sorted(entry.name for entry in folder.iterdir())


def test_the_next_write_removes_what_a_killed_one_left(tmp_path: Path) -> None:
    """After kill -9 there are temporary files; after the next write there are none."""
    targets = [tmp_path / str(index) / name for index, name in enumerate(NAMES)]
    with writer(*targets) as process:
        process.send_signal(signal.SIGKILL)
    for target in targets:
        assert len(names(target.parent)) == 1
        assert names(target.parent) != [target.name]
        write_text(target, "ours")
        assert names(target.parent) == [target.name]
        assert target.read_text() == "ours"


def test_a_writer_that_lives_is_left_alone(tmp_path: Path) -> None:
    """Two write the same file at once: both succeed, and the last name given counts."""
    target = tmp_path / "file"
    with writer(target) as process:
        write_text(target, "ours")
        assert len(names(tmp_path)) == 2
        assert target.read_text() == "ours"
        process.communicate("go\n")
    assert process.returncode == 0
    assert names(tmp_path) == ["file"]
    assert target.read_text() == "theirs"


def test_other_files_are_left_alone(tmp_path: Path) -> None:
    """Only temporary files of the same name go."""
    others = (".file.alltoall-x", ".other.alltoall-x.tmp", "file.alltoall-x.tmp", ".file.x.tmp")
    for other in others:
        (tmp_path / other).touch()
    (tmp_path / ".file.alltoall-folder.tmp").mkdir()
    os.mkfifo(tmp_path / ".file.alltoall-pipe.tmp")
    before = names(tmp_path)
    write_text(tmp_path / "file", "text")
    assert names(tmp_path) == sorted([*before, "file"])


def test_a_file_swept_away_before_it_was_locked(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Whoever sweeps between the making and the locking of a file makes its writer try again."""
    target, make = tmp_path / "file", tempfile.mkstemp
    swept: list[tuple[int, str]] = []

    def sweep_at_once(**options: Any) -> tuple[int, str]:
        made = make(**options)
        if len(swept) < 2:
            files._remove_leftovers(target)
            swept.append(made)
        return made

    monkeypatch.setattr(tempfile, "mkstemp", sweep_at_once)
    write_text(target, "text")
    assert len(swept) == 2
    assert target.read_text() == "text"
    assert names(tmp_path) == ["file"]
    for handle, _ in swept:
        with pytest.raises(OSError, match="Bad file descriptor"):
            os.fstat(handle)


def test_many_writers_at_once(tmp_path: Path) -> None:
    """Threads that write and sweep the same file all succeed, and leave one whole file."""
    target = tmp_path / "file"
    failures: list[Exception] = []

    def write(text: str) -> None:
        try:
            for _ in range(50):
                write_text(target, text)
        except Exception as error:
            failures.append(error)

    threads = [threading.Thread(target=write, args=(letter * 5000,)) for letter in "abcd"]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert failures == []
    assert names(tmp_path) == ["file"]
    assert target.read_text() in {letter * 5000 for letter in "abcd"}


def test_a_folder_that_cannot_be_listed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Where nothing can be swept, files are written all the same."""

    def refuse(_: Path) -> None:
        raise PermissionError

    monkeypatch.setattr(os, "scandir", refuse)
    write_text(tmp_path / "file", "text")
    assert (tmp_path / "file").read_text() == "text"
