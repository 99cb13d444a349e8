"""Every command and every output in README and docs is true: all of them run here."""

import contextlib
import io
import os
import re
import shlex
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from alltoall.errors import MissingComponentError
from alltoall.runtime.processes import Command, grouped
from alltoall.testbed.namespaces import require_testbed
from command_line import Run
from doc_pages import (
    PAGES,
    ROOT,
    SLOW,
    Page,
    Step,
    needs_testbed,
    needs_torch,
    plain,
    read_page,
    stray_commands,
)
from gloo import INSTALLED, ON_THIS_MACHINE
from programs_in_c import PREFIX, mpi_of, with_engine

MOST_NOT_RUN = 8
"""Blocks that may say that they take too long, or need a machine that a test has not."""


OTHERS = ("mpicc", "mpiexec", "sh")
REPLACED = ("alltoall wrap ", "alltoall testbed exec ")
"""Commands that are not ours, and those of ours which become another one: a shell runs them."""

RANKS = 8
"""As many as any page starts; the machine has fewer cores."""


def name_of(path: Path) -> str:
    """Return the path of a page in the repository."""
    return str(path.relative_to(ROOT))


@pytest.mark.parametrize("path", PAGES, ids=name_of)
def test_what_a_page_shows_is_what_one_gets(
    path: Path,
    run: Run,
    tmp_path: Path,
    shared: Path,
    monkeypatch: pytest.MonkeyPatch,
    request: pytest.FixtureRequest,
) -> None:
    """Run a page from top to bottom in an empty directory, and compare what it shows."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / "examples").symlink_to(ROOT / "examples")
    page = read_page(path)
    updating = request.config.getoption("--update-docs")
    if page.name in SLOW and os.environ.get("CI") != "true" and not updating:
        pytest.skip("slow page: runs with CI=true")
    if needs_torch(page) and not INSTALLED:
        pytest.skip("torch is not installed; pip install '.[torch]'")
    if needs_testbed(page):
        try:
            require_testbed()
        except MissingComponentError as error:
            pytest.skip(f"no testbed: {error}")
    if any(step.text.startswith("alltoall wrap ") for step in page.steps):
        with_engine(tmp_path, mpi_of("mpich")[1], shared)
    names: dict[str, Any] = {}
    outputs = [(step, _output(step, run, names)) for step in page.steps]
    shown = [(step, output) for step, output in outputs if step.begin < step.end]
    if updating:
        path.write_text(_rewritten(page, shown))
        return
    wrong = [
        f"{page.name}:{step.line + 1}: {step.text}\nprints\n{output}"
        for step, output in shown
        if plain(output) != plain("\n".join(page.lines[step.begin : step.end]))
    ]
    assert not wrong, "\n".join([*wrong, "if this is right: `make outputs`"])


def _output(step: Step, run: Run, names: dict[str, Any]) -> str:
    """Run one step; return what it prints."""
    if step.kind == "python":
        with contextlib.redirect_stdout(io.StringIO()) as out:
            exec(compile(step.text, "page", "exec"), names)
        return out.getvalue()
    if step.text.split()[0] in OTHERS or step.text.startswith(REPLACED):
        return _in_shell(step.text)
    command, _, rest = step.text.removeprefix(".venv/bin/").partition(" | ")
    words = shlex.split(command)
    if "torchrun" in words:
        return _torchrun(words)
    assert words[0] == "alltoall", f"{step.text}: not a command of ours"
    outcome = run(*words[1:])
    assert outcome.code == 0, f"{step.text}\n{outcome.err}"
    if not rest:
        return outcome.out
    return subprocess.run(
        ["sh", "-c", rest], input=outcome.out, capture_output=True, text=True, check=True
    ).stdout


def _in_shell(command: str) -> str:
    """Run a command as a reader would: with the tools of one MPI, and the alltoall of this tree."""
    tools = (PREFIX / "mpich" / "bin", Path(sys.executable).parent)
    mpi, _ = mpi_of("mpich")
    variables = {
        **mpi.variables(RANKS),
        "PATH": os.pathsep.join([*map(str, tools), os.environ["PATH"]]),
        "XDG_CACHE_HOME": str(Path.cwd() / "cache"),
    }
    ended = subprocess.run(
        ["sh", "-c", command], env=variables, capture_output=True, text=True, check=False
    )
    assert ended.returncode == 0, f"{command}\n{ended.stderr}"
    return ended.stdout


def _torchrun(words: list[str]) -> str:
    """Run a command that starts ranks, after its variables; return what they print."""
    at = words.index("torchrun")
    variables = dict(word.split("=", 1) for word in words[:at])
    arguments = [
        str(ROOT / word) if word.startswith("examples/") else word for word in words[at + 1 :]
    ]
    command = [sys.executable, str(ROOT / "tests" / "torchrun_forked.py"), *arguments]
    with grouped() as group:
        log = group.folder / "torchrun.log"
        group.run(
            [Command(command, {**os.environ, **ON_THIS_MACHINE, **variables}, log)], 300, "it"
        )
        return log.read_text()


def _rewritten(page: Page, shown: list[tuple[Step, str]]) -> str:
    """Return the page with every output as it came; where only timings differ, as it was."""
    lines = list(page.lines)
    for step, output in reversed(shown):
        if plain(output) != plain("\n".join(lines[step.begin : step.end])):
            lines[step.begin : step.end] = [line.rstrip() for line in output.strip().splitlines()]
    return "\n".join(lines) + "\n"


@pytest.mark.parametrize("path", PAGES, ids=name_of)
def test_no_command_goes_unseen(path: Path) -> None:
    """Commands stand in ```console blocks after a prompt, or under a note why they are not run."""
    assert not stray_commands(path)


def test_few_blocks_are_not_run() -> None:
    """What is not run is the exception; the summary of a test run lists it."""
    assert len([each for path in PAGES for each in read_page(path).not_run]) <= MOST_NOT_RUN


@pytest.mark.parametrize("path", PAGES, ids=name_of)
def test_what_a_page_points_to_is_there(path: Path) -> None:
    """Links lead to files; benchmarks, tests and modules that are named exist."""
    text = path.read_text()
    targets = [target.partition("#")[0] for target in re.findall(r"\]\(([^)\s]+)\)", text)]
    files = [path.parent / target for target in targets if target and "://" not in target]
    files += [
        ROOT / each for each in re.findall(r"\b(?:benchmarks|examples|tests)/[\w/]+\.\w+", text)
    ]
    modules = re.findall(r"`(?!src|tests|benchmarks|examples)((?:[\w-]+/)+\w+\.py)`", text)
    files += [ROOT / "src" / "alltoall" / each for each in modules]
    missing = [str(each) for each in files if not each.exists()]
    assert not missing
