"""The points of a comparison, each a network and a method or a saved answer, and their times."""

import hashlib
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from alltoall.check.answers import check_answer
from alltoall.errors import AlltoallError, UsageError
from alltoall.flows import METHODS as FLOWS
from alltoall.flows import solve
from alltoall.grammar import ROUTE, ROUTE_KEYS, SCHEDULE, SEARCH, SOLVE, read_words
from alltoall.ir.flow import Flow
from alltoall.ir.problem import Problem
from alltoall.ir.routes import Routes
from alltoall.ir.schedule import Schedule
from alltoall.routes import ROUTERS, route
from alltoall.schedules.methods import METHODS as SCHEDULES
from alltoall.schedules.methods import find_schedule
from alltoall.settings import RouteSettings, ScheduleSettings, SolveSettings
from alltoall.topologies.given import Answer

OURS, PROOF, BASELINE = "extp", "solve", "sssp"
"""The method that reaches the maximum, the one that proves it, and shortest paths."""

DEFAULT_METHODS = (BASELINE, "ewsp", "single", OURS)
"""The methods that one network is compared by."""

ACROSS = (PROOF, BASELINE)
"""The methods that several networks are compared by."""


@dataclass(frozen=True, eq=False)
class Point:
    """A network and a method, or a saved answer, or the reason for an error.

    `network` is the displayed name, and `given` the same with placeholders. A `proof` is there for
    its bound alone.
    """

    network: str
    given: str
    method: str
    over: Mapping[str, Any] = field(default_factory=dict)
    subject: Problem | Answer | None = None
    reason: str | None = None
    proof: bool = False

    @property
    def problem(self) -> Problem | None:
        """The problem that the answer is for."""
        return self.subject.problem if isinstance(self.subject, Answer) else self.subject

    def key(self, gap: float) -> str | None:
        """Return a content key of the point, or None if it is not computed."""
        if not isinstance(self.subject, Problem):
            return None
        return f"{digest(self.subject)} {self.method} {gap:g}"


def digest(problem: Problem) -> str:
    """Return a hash of a problem that ignores node names."""
    topology, matrix = problem.topology, problem.demand.matrix
    arrays = [topology.tail, topology.head, topology.capacity, topology.terminals]
    found = hashlib.sha256(repr((topology.nodes, matrix is None)).encode())
    for each in arrays if matrix is None else [*arrays, matrix]:
        found.update(np.ascontiguousarray(each).tobytes())
    return found.hexdigest()[:16]


@dataclass(frozen=True)
class Measured:
    """The time and proven bound of a point, or the reason for their absence.

    A reason beside a time says why the time might be improvable.
    """

    time: float | None = None
    bound: float | None = None
    seconds: float = 0.0
    reason: str | None = None


@dataclass(frozen=True, eq=False)
class PointTask:
    """A point to be sent to a worker."""

    subject: Problem | Answer
    method: str
    settings: SolveSettings


def measure(task: PointTask) -> Measured:
    """Return the time of a point, verified, and the bound that it proves."""
    settings = task.settings.limited(task.settings.time_limit)
    try:
        answer = task.subject
        if isinstance(answer, Problem):
            answer = finder(task.method)(answer, settings)
        report = check_answer(answer)
    except TimeoutError:
        return Measured(reason=f"{settings.why_late()} came before any answer", **_took(settings))
    except (AlltoallError, MemoryError, ArithmeticError, ValueError) as error:
        return Measured(reason=str(error) or type(error).__name__, **_took(settings))
    cut_short = isinstance(task.subject, Problem) and settings.out_of_time()
    reason = f"cut short by {settings.why_late()}" if cut_short else None
    return Measured(report.time, report.bound, reason=reason, **_took(settings))


def _took(settings: SolveSettings) -> dict[str, float]:
    return {"seconds": float(settings.known()["seconds"])}


Find = Callable[[Problem, SolveSettings], Flow | Routes | Schedule]


def finder(method: str) -> Find:
    """Return the search that a method names, with settings in its own words."""
    base = method.partition(":")[0]
    if base == PROOF or base in FLOWS:
        name, words = read_words("method", method, SOLVE, SEARCH)
        name = "auto" if name == PROOF else name
        return lambda problem, settings: solve(problem, name, _shared(settings, words))
    if base in ROUTERS:
        name, words = read_words("method", method, ROUTE, ROUTE_KEYS)
        return lambda problem, settings: route(
            problem, name, RouteSettings(solve=_shared(settings, words), **words), prove=False
        )
    if base == "schedule" or base in SCHEDULES:
        name, words = read_words("method", method, SCHEDULE, SEARCH)
        name = "auto" if name == "schedule" else name
        return lambda problem, settings: (
            find_schedule(
                problem, name, ScheduleSettings(solve=_shared(settings, words), **words)
            ).schedule
        )
    known = (PROOF, *FLOWS, *ROUTERS, "schedule", *(each for each in SCHEDULES if each != "auto"))
    raise UsageError(f"unknown method {method!r}; expected one of {', '.join(known)}")


def _shared(settings: SolveSettings, words: dict[str, Any]) -> SolveSettings:
    """Return settings with the shared keys, which are removed from `words`."""
    shared = {key: words.pop(key) for key in ("solver", "symmetry", "cluster") if key in words}
    return replace(settings, **shared)
