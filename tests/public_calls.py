"""Calls of everything public, with values of wrong types in them: only our own errors may come out.

Used by a property test and by a fuzzer.
"""

import inspect
import os
from collections.abc import Callable, Iterator
from fractions import Fraction
from functools import cache, partial
from pathlib import Path
from random import Random
from typing import Any

import networkx as nx
import numpy as np

import alltoall
from alltoall.lowering import TARGETS

Arguments = dict[str, Any]

VALUES: tuple[Any, ...] = (
    *(None, True, 0, -1, 0.9, -0.5, 1j, 2**70, float("nan"), float("inf"), float("-inf")),
    *("", "x", "0", "1-2", "a\0b", "\ud800", "ö@", b"x", Fraction(1, 2)),
    *([], (), {}, [[]], [None], {0: 1}, {0, 1}, ["10", "23"], [0, 1, 2], [[0.5, 1]], [[0, 1]]),
    *([(0, 1, "x")], {(0, 1): "x"}, {"a": 1}, [(1,)], int, len),
    *(np.int64(2), np.float32(0.5), np.bool_(True), np.array([[0, 1], [2, 3]])),
    *(np.array([0.5, np.nan]), np.array(["a", "b"]), np.array(None)),
    *(Path("nothing/here.json"), Path("a\0b"), Path(os.sep)),
)
"""What may be put in the place of any argument."""


def _noun(kind: str) -> Any:
    return nouns()[kind]


NOUNS = ("topology", "flow", "routes", "schedule", "demand", "problem", "job", "target")

WRONG: dict[str, Callable[[], Any]] = {
    **{repr(value): partial(lambda it: it, value) for value in VALUES},
    **{kind: partial(_noun, kind) for kind in NOUNS},
    "object": object,
    "function that fails in a call": lambda: lambda: None,
    "generator": lambda: (each for each in (0, 1)),
    "empty generator": lambda: iter(()),
    "graph": lambda: nx.path_graph(3),
    "graph of nothing": nx.Graph,
}
"""Values by what a message calls them, each made anew: a generator can be used up only once."""


@cache
def nouns() -> dict[str, Any]:
    """Return one sound thing of each kind."""
    topology = alltoall.topology("ring:4")
    problem = alltoall.Problem.all_to_all(topology)
    return {
        "topology": topology,
        "problem": problem,
        "demand": problem.demand,
        "flow": alltoall.solve(problem),
        "routes": alltoall.route(problem),
        "schedule": alltoall.schedule(problem),
        "job": alltoall.Job("one", problem.demand),
        "target": TARGETS["msccl"],
    }


@cache
def sound_calls() -> dict[str, tuple[Callable[..., Any], Arguments]]:
    """Return a call of everything public whose arguments are sound; it takes little time."""
    have = nouns()
    ring, jobs = have["topology"], [have["job"]]
    arrays = {"tail": ring.tail, "head": ring.head, "capacity": ring.capacity}
    given = {"given": ring, "gap": 1e-3}
    calls: dict[str, Arguments] = {
        "topology": {"given": "torus:3x3", "drop_links": 1, "remove_links": ["0-1"]},
        "problem": {"given": ring, "groups": ["0,1"], "link_bandwidth": "100G"},
        "compare": {"given": ring, "methods": "ecmp", "threads": 1},
        "describe": {"given": ring},
        "design": {"nodes": 6, "degree": 2, "time_limit": 0.2},
        "failures": {"file": have["routes"], "only": "0-1"},
        "fair_rates": {"given": ring, "jobs": jobs},
        "fft3d": {"grid": (4, 4, 4), "schedule": have["schedule"], "mpi": "nothing/mpiexec"},
        "load": {"path": "nothing.json"},
        "lower": {"subject": have["schedule"], "to": "msccl"},
        "moe": {"tokens": 4, "on": "nowhere"},
        "register_family": {"name": "wrong", "builder": alltoall.topology},
        "register_method": {"name": "wrong", "method": alltoall.solve},
        "register_target": {"name": "wrong", "target": have["target"]},
        "report": {"subjects": have["flow"]},
        "reproduce": {"figure": "nothing"},
        "route": {**given, "method": "ecmp"},
        "run": {"subject": have["schedule"], "bytes": 8, "iterations": 1, "warmup": 0},
        "schedule": given,
        "simulate": {"subject": have["routes"], "link_bandwidth": "100G"},
        "solve": given,
        "verify": {"subject": have["flow"]},
        "wrap": {"files": [have["schedule"]], "mpicc": "nothing/mpicc"},
        "Demand": {"terminals": 2, "matrix": [[0, 1], [1, 0]]},
        "Demand.of_groups": {"terminals": 4, "groups": [[0, 1]]},
        "Job": {"name": "one", "demand": have["demand"]},
        "Problem": {"topology": ring, "demand": have["demand"]},
        "Solver": {"given": ring},
        "Topology": {"name": "t", "nodes": 4, "terminals": [0, 1, 2, 3], **arrays},
        "Topology.from_edges": {"name": "t", "nodes": 3, "edges": [(0, 1), (1, 2)]},
        "Topology.from_links": {"name": "t", "nodes": 2, "links": [(0, 1), (1, 0)]},
    }
    return {name: (_public(name), arguments) for name, arguments in calls.items()}


def _public(name: str) -> Callable[..., Any]:
    first, *rest = name.split(".")
    found = getattr(alltoall, first)
    for part in rest:
        found = getattr(found, part)
    return found  # type: ignore[no-any-return]


def spoiled(call: str, argument: str, wrong: str) -> Arguments:
    """Return the arguments of a sound call with one of them replaced."""
    return {**sound_calls()[call][1], argument: WRONG[wrong]()}


def every_argument() -> Iterator[tuple[str, str]]:
    """Yield every public function with each of its arguments."""
    for name, (function, _) in sound_calls().items():
        for argument in inspect.signature(function).parameters:
            yield name, argument


def draw(rng: Random) -> tuple[str, str, str]:
    """Return a call, an argument of it, and what takes its place, at random."""
    return *rng.choice(list(every_argument())), rng.choice(list(WRONG))


CALLBACKS = ("progress", "stop", "late", "report", "stopped")
"""Arguments that are called: what a function of the caller raises is the caller's."""


def attempt(call: str, argument: str, wrong: str) -> str:
    """Make a call with a wrong value; return what came of it, `ok` or the error of ours."""
    function, arguments = sound_calls()[call][0], spoiled(call, argument, wrong)
    if argument in CALLBACKS and callable(arguments[argument]):
        return "ok"
    try:
        function(**arguments)
    except alltoall.AlltoallError as error:
        return type(error).__name__
    return "ok"
