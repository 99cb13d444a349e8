"""Answers in forked processes and in threads of a process that has solved before.

Every wait has a bound: a child that hangs, or that is ended and started again, fails the test.
"""

import ast
import inspect
import multiprocessing
import os
import select
import signal
import sys
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from functools import partial

import numba
import pytest
from numba.core.dispatcher import Dispatcher

import a2aflow
from a2aflow.flows import METHODS
from a2aflow.ir.flow import Flow
from a2aflow.ir.routes import Routes
from a2aflow.ir.schedule import Schedule

LONGEST = 60.0
"""Seconds after which an answer is not waited for any more."""

SPECS = {"torus:3x3": 3.0, "ring:6": 4.5, "hypercube:3": 4.0, "bipartite:3x3": 7 / 3}
"""Networks, and their times."""

PRODUCERS: dict[str, Callable[[str], Flow | Routes | Schedule]] = {
    **{method: partial(a2aflow.solve, method=method) for method in METHODS},
    "route": a2aflow.route,
    "single": partial(a2aflow.route, method="single"),
    "hipo": partial(a2aflow.solve, method="link", solver="hipo"),
    "ilp": partial(a2aflow.route, method="ilp-disjoint"),
    "list": partial(a2aflow.schedule, method="list"),
}


def bound_of(item: tuple[str, str]) -> float:
    """Return the certified bound that a producer has for a network."""
    name, spec = item
    return PRODUCERS[name](spec).bound


ITEMS = [(name, spec) for name in PRODUCERS for spec in SPECS]
BOUNDS = [pytest.approx(SPECS[spec], rel=1e-5) for _, spec in ITEMS]


@pytest.fixture(autouse=True, scope="module")
def _solved_before() -> None:
    """Compile all that is needed, and start the threads of this process."""
    assert [bound_of(item) for item in ITEMS] == BOUNDS
    assert numba.threading_layer() in ("tbb", "workqueue")


def test_a_pool_of_forked_processes_solves() -> None:
    """Those of `multiprocessing`, as Linux has it before Python 3.14."""
    with multiprocessing.get_context("fork").Pool(2) as pool:
        assert pool.map_async(bound_of, ITEMS).get(LONGEST) == BOUNDS


def test_a_forked_child_solves() -> None:
    """As a program's own `os.fork` makes it; parent and child go on."""
    reading, writing = os.pipe()
    child = os.fork()
    if child == 0:
        try:
            os.write(writing, b"".join(b"%.6f " % bound_of(item) for item in ITEMS))
        finally:
            os._exit(0)
    os.close(writing)
    assert [bound_of(item) for item in ITEMS] == BOUNDS
    answered, _, _ = select.select([reading], [], [], LONGEST)
    if not answered:
        os.kill(child, signal.SIGKILL)
    os.waitpid(child, 0)
    with os.fdopen(reading, "rb") as pipe:
        assert list(map(float, pipe.read().split())) == BOUNDS


def test_eight_threads_solve_at_once() -> None:
    """None of them ends the process, nor waits for another for ever."""
    with ThreadPoolExecutor(8) as pool:
        found = [pool.submit(bound_of, item) for item in ITEMS * 2]
        assert [each.result(LONGEST) for each in found] == BOUNDS * 2


def is_parallel(value: object) -> bool:
    """Whether this is a kernel that runs threads, or that calls such a kernel."""
    if not isinstance(value, Dispatcher):
        return False
    names, there = value.py_func.__code__.co_names, value.py_func.__globals__
    others = (there[name] for name in names if there.get(name, value) is not value)
    return value.targetoptions.get("parallel", False) or any(map(is_parallel, others))


def test_parallel_kernels_take_turns() -> None:
    """Two of them at once would end the process: only `run_in_turn` calls them, or a kernel.

    `run_steps_together` is itself given a turn.
    """
    found = set()
    for name in [each for each in sys.modules if each.startswith("a2aflow.")]:
        module = sys.modules[name]
        kernels = {key for key, value in vars(module).items() if is_parallel(value)}
        for function in ast.parse(inspect.getsource(module)).body:
            source = ast.unparse(function)
            calls = [each for each in ast.walk(function) if isinstance(each, ast.Call)]
            direct = {ast.unparse(each.func) for each in calls} & kernels
            if not source.startswith("@njit") and "def run_steps_together" not in source:
                assert not direct, f"{name}: {direct}"
        found |= kernels
    assert {"_distances", "_exact", "find_trees", "run_steps", "wave"} <= found
