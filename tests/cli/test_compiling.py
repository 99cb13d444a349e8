"""Kernels: compiled once, announced, not charged, and all of them by `warmup`."""

import itertools
from typing import Any

import pytest
from numba import njit
from numba.core.dispatcher import Dispatcher

from a2aflow.cli import compiling
from a2aflow.cli.compiling import MESSAGE, clock, kernels_compiled, listen_to_compiler
from a2aflow.cli.warmup import kernels
from command_line import Run

UNUSED = {"a2aflow.routes.baselines.ewsp._loads"}
"""Kernels that no verb needs: they are for comparisons."""


def test_compilation_is_announced_once_and_not_charged(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Two kernels, one of which compiles a third; the clock stands still meanwhile."""
    monkeypatch.setattr(compiling, "_COMPILER", compiling._Compiler())
    ticks = itertools.count()
    monkeypatch.setattr("a2aflow.cli.compiling.time.monotonic", lambda: float(next(ticks)))

    @njit
    def inner(x: Any) -> Any:
        return x + 1

    @njit
    def outer(x: Any) -> Any:
        return inner(x) * 2

    with listen_to_compiler():
        before = clock()
        assert outer(1) == 4
        assert outer(1.0) == 4
        assert (
            clock() - before == 3.0
        )  # Of seven ticks, four are the starts and ends of compilations.
    kernels_seen, seconds = kernels_compiled()
    assert (kernels_seen, seconds) == (4, 2.0)
    assert capsys.readouterr().err == f"{MESSAGE}\n"


def test_warmup_leaves_no_kernel_out(run: Run) -> None:
    """Each is called by one of its jobs, or by a kernel that is."""
    outcome = run("warmup", "--json")
    assert outcome.code == 0, outcome.err
    every = kernels()
    assert outcome.json["kernels"] == len(every)
    reached = {name for name, kernel in every.items() if kernel.overloads}
    todo = list(reached)
    while todo:
        called = {_name(each) for each in _called_by(every[todo.pop()])} - reached
        reached |= called
        todo += called
    assert every.keys() - reached <= UNUSED
    assert "ready" in (shown := run("warmup").out) or "compiled before" in shown


def _called_by(kernel: Dispatcher) -> list[Dispatcher]:
    known = kernel.py_func.__globals__
    values = (known.get(name) for name in kernel.py_func.__code__.co_names)
    return [value for value in values if isinstance(value, Dispatcher)]


def _name(kernel: Dispatcher) -> str:
    return f"{kernel.py_func.__module__}.{kernel.py_func.__name__}"
