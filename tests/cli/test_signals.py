"""Ctrl-C and SIGTERM: one line and an exit code at any moment, and the best so far of a search."""

import json
import random
import signal
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from shots import EVENTS, WORDS, default_signals, shoot

from alltoall.cli import signals
from alltoall.cli.signals import Stopped, printing, searching, working
from alltoall.errors import InputError
from command_line import Run

BOTH = [signal.SIGINT, signal.SIGTERM]


@pytest.fixture
def _listening(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Hear signals in this process, as the command line does in its own."""
    numbers = (*BOTH, signal.SIGALRM)
    before = [signal.getsignal(number) for number in numbers]
    default_signals()
    for name in ("exit_code", "first", "further"):
        monkeypatch.setattr(signals._Now, name, getattr(signals._Now, name))
    monkeypatch.setattr(sys, "unraisablehook", sys.unraisablehook)
    signals.listen()
    yield
    for number, handler in zip(numbers, before, strict=True):
        signal.signal(number, handler)


LONG = {
    "program": "genkautz:n=300,d=4 --method auto:solver=ipm,symmetry=false",
    "steps": "jellyfish:n=400,d=5,seed=1 --method first-order --gap 1e-14",
}
"""What runs far longer than it takes to report progress."""


@pytest.mark.parametrize("name", LONG)
def test_ctrl_c_gives_the_best_so_far(name: str) -> None:
    """An interrupted solve prints a certified answer and exits with 130."""
    default_signals()
    words = [sys.executable, "-m", "alltoall", "solve", *LONG[name].split(), "--json"]
    with subprocess.Popen(
        words, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    ) as process:
        assert process.stderr is not None
        process.stderr.readline()  # the first line of progress: the solver is running
        process.send_signal(signal.SIGINT)
        out, err = process.communicate(timeout=120)
    assert process.returncode == 130, err
    assert err.splitlines()[-1] == "stopped: this is the best found by then"
    found = json.loads(out)
    assert found["status"] == "interrupted"
    assert 0 < found["bound"] <= found["time"]


@pytest.mark.parametrize("verb", WORDS)
def test_from_the_first_import_to_the_last_byte(verb: str) -> None:
    """Whatever the moment: one line, the signal's exit code, and never half an object."""
    default_signals()
    moments = {signal.SIGINT: random.Random(verb).randint(1, EVENTS), signal.SIGTERM: 10 * EVENTS}
    for number, at in moments.items():
        shot = shoot(WORDS[verb], number, at)
        assert shot.verdict(number, WORDS[verb]) == "one line", (at, shot)


def test_a_background_job_goes_on() -> None:
    """It is started to ignore Ctrl-C, which is meant for what is in the foreground."""
    before = signal.signal(signal.SIGINT, signal.SIG_IGN)
    try:
        shot = shoot(WORDS["topology"], signal.SIGINT, 50)
    finally:
        signal.signal(signal.SIGINT, before)
    assert (shot.code, shot.err) == (0, "")


FABRIC = "jellyfish:n=12,d=3,seed=1"
SEARCHES = {
    "first-order": ("solve", FABRIC, "--method", "first-order", "--gap", 1e-14),
    "decomposed": ("solve", FABRIC, "--method", "decomposed"),
    "decomposed-lp": ("solve", FABRIC, "--method", "decomposed-lp", "--threads", 1),
    "single": ("route", FABRIC, "--method", "single"),
    "few": ("route", FABRIC, "--method", "few:loss=0"),
    "columns": ("route", "genkautz:n=16,d=2", "--method", "pmcf:paths=columns"),
    "tsmcf": ("schedule", FABRIC),
}
"""Searches that report what they do."""


def interrupting(number: int) -> Callable[[], object]:
    """Return a stand-in for `progress` that sends a signal at the first report."""
    left = [number]

    def report(_: str) -> None:
        if left:
            signal.raise_signal(left.pop())

    @contextmanager
    def progress() -> Iterator[Callable[[str], None]]:
        yield report

    return progress


@pytest.mark.usefixtures("_listening")
@pytest.mark.parametrize("number", BOTH)
@pytest.mark.parametrize("name", SEARCHES)
def test_every_search_saves_and_prints_its_best_so_far(
    run: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str, number: int
) -> None:
    """As with a time limit, and what is saved is valid."""
    words, path = SEARCHES[name], tmp_path / "best.json"
    monkeypatch.setattr("alltoall.cli.answers.progress", interrupting(number))
    found = run(*words, "--json", "-o", path)
    assert found.code == 128 + number
    assert found.err == "stopped: this is the best found by then\n"
    assert found.json["saved"] == [str(path)]
    assert 0 < found.json["bound"] <= found.json["time"] * (1 + 1e-9)
    assert found.json.get("status") in (None, "interrupted", "optimal")
    monkeypatch.setattr(signals._Now, "exit_code", None)
    assert run("verify", path).code == 0


@pytest.mark.usefixtures("_listening")
def test_a_search_with_nothing_to_show_is_just_stopped(
    run: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What it could not find by then is no error."""
    monkeypatch.setattr("alltoall.cli.answers.progress", interrupting(signal.SIGINT))

    def nothing(*_: object) -> None:
        raise InputError("no schedule was found")

    monkeypatch.setattr("alltoall.schedules.search._search", nothing)
    found = run("schedule", "bipartite:2x3", "--method", "tsmcf", "--json")
    assert (found.code, found.err) == (130, "stopped\n")
    assert found.json == {"error": {"code": 130, "message": "stopped"}}


@pytest.mark.usefixtures("_listening")
def test_what_a_signal_does_depends_on_the_moment() -> None:
    """Work is cut short, printing is not, a search is asked, and the second never waits."""
    with printing():
        signal.raise_signal(signal.SIGTERM)
        assert signals.heard() == 143
        with searching() as stopped:
            assert stopped()
            with pytest.raises(Stopped):
                signal.raise_signal(signal.SIGINT)
        with pytest.raises(Stopped) as stop, working():
            signal.raise_signal(signal.SIGINT)
    assert stop.value.exit_code == 143


class Fragile:
    """Something that a signal meets where Python can raise nothing."""

    def __del__(self) -> None:
        signal.raise_signal(signal.SIGINT)


@pytest.mark.usefixtures("_listening")
def test_a_signal_that_python_drops_comes_again() -> None:
    """An exception in `__del__` is lost; the one after it is not."""

    def drop_and_wait() -> None:
        Fragile()
        threading.Event().wait(60)

    with pytest.raises(Stopped), working():
        drop_and_wait()
