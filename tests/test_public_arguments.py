"""Public functions given what they cannot take: our own errors, or an answer, and nothing else."""

import inspect
import pickle
from collections.abc import Callable
from pathlib import Path
from random import Random
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import alltoall as package
from alltoall.errors import AlltoallError, TopologyError, UsageError
from alltoall.settings import ScheduleSettings
from public_calls import WRONG, attempt, draw, every_argument, nouns, sound_calls

alltoall: Any = package  # what is wrong here is for the functions to find, not for mypy

SLOW = {"design", "report", "reproduce", "schedule", "failures", "Solver"}
"""Calls that take more than some milliseconds when a wrong value turns out to be a right one."""

QUICK = [each for each in every_argument() if each[0] not in SLOW]


@pytest.fixture(autouse=True)
def _in_a_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)


def test_every_public_function_is_called() -> None:
    """The table of calls has all of them."""
    public = {name for name in alltoall.__all__ if inspect.isfunction(getattr(alltoall, name))}
    assert public <= set(sound_calls())


@settings(max_examples=300)
@given(where=st.sampled_from(QUICK), wrong=st.sampled_from(sorted(WRONG)))
def test_only_our_errors_come_out(where: tuple[str, str], wrong: str) -> None:
    """Whichever argument has whichever wrong value."""
    attempt(*where, wrong)


@settings(max_examples=10)
@given(seed=st.integers(0, 10**6))
def test_what_takes_longer_is_tried_less(seed: int) -> None:
    """Of all calls, those that search too."""
    attempt(*draw(Random(seed)))


RING = alltoall.topology("ring:4")
JOBS = [alltoall.Job("one", alltoall.Demand(4))]
NAMED: dict[str, tuple[Callable[[], Any], str]] = {
    "groups of texts": (
        lambda: alltoall.solve(RING, groups=["10", "23"]),
        "group '10' names one terminal; expected several",
    ),
    "one group": (
        lambda: alltoall.solve(RING, groups=[0, 1, 2]),
        "expected a list of texts or lists",
    ),
    "endless latency": (lambda: alltoall.schedule(RING, latency=np.inf), "latency is inf"),
    "endless latency in settings": (
        lambda: ScheduleSettings(latency=np.inf),
        "latency inf; expected shard times",
    ),
    "a flow to lower": (
        lambda: alltoall.lower(nouns()["flow"], to="msccl"),
        "subject is <Flow .*; expected a Schedule",
    ),
    "a negative seed": (lambda: alltoall.topology(RING, seed=-1), "seed -1; expected 0 or more"),
    "NUL in a path": (lambda: alltoall.load("a\0b"), "with a NUL in it"),
    "NUL in an output": (lambda: alltoall.topology("ring:4").save("a\0b"), "a NUL in its name"),
    "NUL in a SPEC": (lambda: alltoall.solve("a\0b"), "with a NUL in it"),
    "a number as a network": (lambda: alltoall.topology(4), "a int in the place of a topology"),
}


@pytest.mark.parametrize(
    ("call", "argument", "wrong"),
    [
        ("Topology", "tail", "-1"),
        ("Topology", "terminals", "-1"),
        ("Topology", "terminals", "True"),
        ("run", "topology", repr(np.array([0.5, np.nan]))),
        ("Demand.of_groups", "terminals", "-1"),
        ("register_method", "method", repr(int)),
    ],
)
def test_what_once_escaped(call: str, argument: str, wrong: str) -> None:
    """Found by the fuzzer of calls."""
    attempt(call, argument, wrong)


@pytest.mark.parametrize("name", NAMED)
def test_a_wrong_argument_is_named(name: str) -> None:
    """With its value, and what is expected."""
    call, words = NAMED[name]
    with pytest.raises(UsageError, match=words):
        call()


TIMED = [each for each in every_argument() if each[1] in ("time_limit", "timeout")]
SOUND: dict[str, dict[str, Any]] = {
    "moe": {"on": "mpi", "ranks": 2},
    "reproduce": {"figure": "fft"},
}
"""What is to be right for a call to come as far as the time."""


@pytest.mark.parametrize("seconds", [2**70, 1e300, -1, 0.0, np.nan, np.inf, -np.inf, True, "1e30"])
@pytest.mark.parametrize("call", dict(TIMED))
def test_a_time_is_refused_that_no_clock_can_tell(call: str, seconds: Any) -> None:
    """At once: `design` uses all of the time that it is given."""
    function, arguments = sound_calls()[call]
    with pytest.raises(UsageError, match=r"time.limit|timeout|time above 0"):
        function(**{**arguments, **SOUND.get(call, {}), dict(TIMED)[call]: seconds})


@pytest.mark.parametrize("seconds", [2**70, -1, np.nan, np.inf])
@pytest.mark.parametrize("verb", ["route", "schedule"])
def test_a_solver_refuses_such_times_too(verb: str, seconds: Any) -> None:
    """Its methods take limits of their own."""
    with pytest.raises(UsageError, match=r"time.limit"):
        getattr(alltoall.Solver(RING), verb)(alltoall.Demand(4), time_limit=seconds)


def test_what_numpy_calls_a_number_is_one() -> None:
    """Arrays as groups and demands, numbers of arrays as counts and sizes."""
    expected = alltoall.solve(RING, groups=[[0, 1], [2, 3]]).time
    assert alltoall.solve(RING, groups=np.array([[0, 1], [2, 3]])).time == expected
    assert alltoall.solve(RING, groups=(each for each in ([0, 1], ("2", 3)))).time == expected
    found = alltoall.run(nouns()["schedule"], bytes=np.int64(4096), iterations=np.int64(1))
    assert [row.bytes for row in found.rows] == [4096]
    asked: dict[str, Any] = {"threads": np.int64(1), "gap": np.float32(0.01)}
    assert alltoall.solve(RING, **asked).gap <= 0.01


def test_a_generator_is_used_up_once() -> None:
    """Jobs are looked at more than once, and a generator has them only once."""
    expected = alltoall.fair_rates(RING, JOBS).rate
    generators: list[Any] = [(job for job in JOBS), iter(JOBS)]
    assert alltoall.fair_rates(RING, generators[0]).rate == pytest.approx(expected)
    assert alltoall.solve(RING, demand=generators[1]).time == alltoall.solve(RING, demand=JOBS).time


@pytest.mark.parametrize("node", [0.9, "0", None, float("nan"), 2**70])
def test_a_node_is_a_whole_number(node: Any) -> None:
    """Nothing is rounded to one."""
    for build in (alltoall.Topology.from_links, alltoall.Topology.from_edges):
        with pytest.raises(AlltoallError):
            build("t", 3, [(node, 1), (1, 2), (2, 0)])
    with pytest.raises(AlltoallError):
        alltoall.Topology.from_links("t", 2, [(0, 1), (1, 0)], terminals=[node, 1])


def test_edges_in_both_orders_are_asked_about() -> None:
    """One cable from both its ends, or two cables: a word settles it."""
    edges = [(0, 1), (1, 0), (1, 2)]
    with pytest.raises(TopologyError, match=r"name 1 pair in both orders.*parallel=True"):
        alltoall.Topology.from_edges("t", 3, edges)
    assert alltoall.Topology.from_edges("t", 3, edges, parallel=True).links == 6
    assert alltoall.Topology.from_edges("t", 3, [(0, 1), (0, 1), (1, 2)]).links == 6


def test_functions_can_be_sent_to_processes() -> None:
    """By the name that the package exports them under."""
    assert pickle.loads(pickle.dumps(alltoall.solve)) is alltoall.solve
    assert inspect.signature(alltoall.solve).parameters["gap"].default == 1e-6
