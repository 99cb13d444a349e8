"""Answers in forked processes and in threads of a process that has solved before.

Every wait has a bound: a child that hangs, or that is ended and started again, fails the test.
"""

import multiprocessing
import os
import select
import signal
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from typing import Any

import pytest

import alltoall
from alltoall.flows import METHODS

LONGEST = 60.0
"""Seconds after which an answer is not waited for any more."""

SPECS = {"torus:3x3": 3.0, "ring:6": 4.5, "hypercube:3": 4.0, "bipartite:3x3": 7 / 3}
"""Networks, and their times."""

PRODUCERS: dict[str, Callable[[str], Any]] = {
    **{method: partial(alltoall.solve, method=method) for method in METHODS},
    "route": alltoall.route,
    "single": partial(alltoall.route, method="single"),
    "hipo": partial(alltoall.solve, method="link:solver=hipo"),
    "ilp": partial(alltoall.route, method="ilp-disjoint"),
    "list": partial(alltoall.schedule, method="list"),
}


def bound_of(item: tuple[str, str]) -> float:
    """Return the certified bound that a producer has for a network."""
    name, spec = item
    return float(PRODUCERS[name](spec).bound)


ITEMS = [(name, spec) for name in PRODUCERS for spec in SPECS]
BOUNDS = [pytest.approx(SPECS[spec], rel=1e-5) for _, spec in ITEMS]


@pytest.fixture(autouse=True, scope="module")
def _solved_before() -> None:
    """Load all that is needed."""
    assert [bound_of(item) for item in ITEMS] == BOUNDS


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
