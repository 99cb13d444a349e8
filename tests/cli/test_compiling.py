"""Kernels: compiled once, announced, not charged, and all of them by `warmup`."""

import subprocess
import sys
from collections.abc import Iterator
from typing import Any

import pytest
from numba import njit
from numba.core import event
from numba.core.dispatcher import Dispatcher

from alltoall import settings
from alltoall.cli import compiling, warmup
from alltoall.cli.compiling import MESSAGE, listen_to_compiler
from alltoall.cli.warmup import kernels, small_jobs
from alltoall.paths import kernels as kernels_module
from alltoall.paths.kernels import COMPILE
from alltoall.settings import Pauses, SolveSettings, now
from command_line import Run

UNUSED = {"alltoall.routes.baselines.ewsp._loads"}
"""Kernels that no verb needs: they are for comparisons."""


class SlowCompiler(event.Listener):  # type: ignore[misc]
    """A clock that only compilation moves, an hour each time, and what is left meanwhile."""

    def __init__(self) -> None:
        self.now, self.left = 0.0, 0.0
        self.settings = SolveSettings(time_limit=5.0)

    def __call__(self) -> float:
        """Return the time."""
        return self.now

    def on_start(self, _: Any) -> None:
        """Let an hour pass, and look at the limit."""
        self.now += 3600.0
        self.left = self.settings.seconds_left() or 0.0

    def on_end(self, _: Any) -> None:
        """Leave the time as it is."""


@pytest.fixture
def slow(monkeypatch: pytest.MonkeyPatch) -> Iterator[SlowCompiler]:
    """Put a slow compiler, which has compiled nothing yet, in the place of the real one."""
    monkeypatch.setattr(compiling, "_ANNOUNCER", compiling._Announcer())
    monkeypatch.setattr(kernels_module, "PAUSES", pauses := Pauses())
    monkeypatch.setattr("alltoall.settings.PAUSES", pauses)
    mine = SlowCompiler()
    monkeypatch.setattr("alltoall.settings.clock", mine)
    mine.settings = mine.settings.begin()
    with event.install_listener(COMPILE, mine):
        yield mine


def compile_three() -> None:
    """Compile a kernel for two types, and with it the one that it calls."""

    @njit
    def inner(x: Any) -> Any:
        return x + 1

    @njit
    def outer(x: Any) -> Any:
        return inner(x) * 2

    assert outer(1) == 4
    assert outer(1.0) == 4


def test_compilation_is_announced_once_and_not_charged(
    capsys: pytest.CaptureFixture[str], slow: SlowCompiler
) -> None:
    """Two kernels, one of which compiles the other; the clock stands still meanwhile."""
    before = now()
    with listen_to_compiler():
        compile_three()
    slow.now += 2.0
    assert now() - before == 2.0
    assert slow.settings.known()["seconds"] == 2.0
    assert compiling._ANNOUNCER.kernels == 4
    assert settings.PAUSES.seconds == 4 * 3600.0
    assert capsys.readouterr().err == f"{MESSAGE}\n"


def test_compilation_takes_nothing_of_a_time_limit(slow: SlowCompiler) -> None:
    """Neither afterwards nor, for threads that look at it, meanwhile; all else does."""
    compile_three()
    assert slow.now == 4 * 3600.0
    assert slow.left == 5.0
    assert slow.settings.seconds_left() == 5.0
    slow.now += 4.0
    assert not slow.settings.out_of_time()
    assert slow.settings.sharing(0.5).seconds_left() == 0.5
    slow.now += 1.0
    assert slow.settings.out_of_time()


def test_kernels_pause_the_limit_whoever_calls() -> None:
    """The library listens to the compiler by itself, once, without the command line."""
    script = (
        "from numba.core import event; import alltoall; alltoall.route('ring:3', method='sssp');"
        "print(len(event._registered['numba:compile']))"
    )
    done = subprocess.run(
        [sys.executable, "-c", script], capture_output=True, check=True, text=True
    )
    assert done.stdout.split() == ["1"]


def test_warmup_leaves_no_kernel_out() -> None:
    """Each is called by one of its jobs, or by a kernel that is."""
    for job in small_jobs().values():
        job()
    every = kernels()
    reached = {name for name, kernel in every.items() if kernel.overloads}
    todo = list(reached)
    while todo:
        called = {_name(each) for each in _called_by(every[todo.pop()])} - reached
        reached |= called
        todo += called
    assert every.keys() - reached <= UNUSED


def test_warmup_shares_its_jobs_out(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    """Each is done in a process of its own, and kernels that are there are not compiled again."""
    done = ("topology", "route by single")
    monkeypatch.setattr(warmup, "small_jobs", lambda: dict.fromkeys(done, print))
    first = run("warmup")
    assert first.code == 0
    assert f"{len(kernels())}" in first.out
    outcome = run("warmup", "--json")
    assert outcome.code == 0, outcome.err
    assert outcome.json["compiled"] == 0
    assert outcome.json["kernels"] == len(kernels())
    assert warmup._in_words(outcome.json) == f"all {len(kernels())} were compiled before"


def _called_by(kernel: Dispatcher) -> list[Dispatcher]:
    known = kernel.py_func.__globals__
    values = (known.get(name) for name in kernel.py_func.__code__.co_names)
    return [value for value in values if isinstance(value, Dispatcher)]


def _name(kernel: Dispatcher) -> str:
    return f"{kernel.py_func.__module__}.{kernel.py_func.__name__}"
