"""A time limit starts with the call, is heard at every stage, and still gives a checked answer.

No test here looks at the wall clock: the clock of all time limits is replaced by one that advances
by a second whenever it is read, so a limit of 20 strikes at the twentieth look at it, wherever that
is, and what is done after it shows in the number of further looks.
"""

from collections.abc import Callable
from contextlib import suppress
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

import alltoall
from alltoall.check.flow import check_flow
from alltoall.check.routes import check_routes
from alltoall.errors import AlltoallError, FormatError, InputError, TopologyError
from alltoall.flows import METHODS, solve
from alltoall.ir.answer import Answer
from alltoall.ir.flow import Status
from alltoall.ir.problem import Problem
from alltoall.lp.program import LinearProgram
from alltoall.lp.settings import LPSettings, LPStatus
from alltoall.lp.solve import solve_program
from alltoall.routes import ROUTERS, route
from alltoall.routes.baselines.ewsp import route_ewsp
from alltoall.routes.layers.assign import LAYERINGS, assign_layers, layers_in_time
from alltoall.routes.search import find_routes
from alltoall.schedules.methods import find_schedule
from alltoall.settings import RouteSettings, ScheduleSettings, SolveSettings
from alltoall.topologies.formats import read_topology
from alltoall.topologies.spec import build
from command_line import Run

SPEC = "genkautz:n=16,d=3"
"""Large enough that methods look at the clock many times, small enough for any linear program."""

TINY = "ring:4"
"""For branch and bound, which has a clock of its own, and for annealing, which takes seconds."""

ON_TINY = ("ilp-disjoint", "ilp-shortest", "updown")
"""Methods by branch and bound, and one that needs cables."""

LIMITS = (1, 12)
"""Looks at the clock after which time is up: at once, and on the way."""

ANYWHERE = sorted(ROUTERS.keys() - {"dor", "deadlock-free"})
"""Routing methods for any topology and any number of layers."""

MOST_LATE = 60
"""Looks at the clock that a call may take after its time limit: a few for each stage that ends."""


class Clock:
    """A clock that advances by one second whenever it is read."""

    def __init__(self) -> None:
        self.now = 1e6

    def __call__(self) -> float:
        """Return the time, later than ever before."""
        self.now += 1.0
        return self.now


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> Clock:
    """Put a clock that counts in the place of the real one."""
    mine = Clock()
    monkeypatch.setattr("alltoall.settings.clock", mine)
    return mine


def problem(method: str = "") -> Problem:
    """Return the problem of these tests."""
    return tiny() if method in ON_TINY else Problem.all_to_all(build(SPEC))


def tiny() -> Problem:
    """Return the problem for methods that take long."""
    return Problem.all_to_all(build(TINY))


def limited(seconds: float) -> SolveSettings:
    """Return settings with a time limit, on one thread."""
    return SolveSettings(gap=1e-9, workers=1, time_limit=seconds)


def solving(method: str) -> Callable[[SolveSettings], object]:
    """Return a call of `solve` by a method."""
    return lambda each: solve(problem(), method, each)


def routing(method: str) -> Callable[[SolveSettings], object]:
    """Return a call of `route` by a method."""
    return lambda each: route(problem(method), method, RouteSettings(solve=each))


CALLS: dict[str, Callable[[SolveSettings], object]] = {
    **{f"solve {name}": solving(name) for name in ("auto", *METHODS)},
    **{f"route {name}": routing(name) for name in ANYWHERE},
    "schedule": lambda each: find_schedule(problem(), "tsmcf", ScheduleSettings(solve=each)),
    "deadlock-free": lambda each: route(
        tiny(), "deadlock-free", RouteSettings(max_layers=3, solve=each)
    ),
    "route after a failure": lambda each: find_routes(
        problem(), settings=RouteSettings(layers=None, solve=each), last=route(problem(), "ecmp")
    ),
}


@pytest.mark.parametrize("verb", [alltoall.solve, alltoall.route, alltoall.schedule])
def test_the_clock_starts_with_the_call(verb: Callable[..., Answer], clock: Clock) -> None:
    """However long ago the last call was, the next one has all its time."""
    for _ in range(2):
        clock.now += 1e6
        found = verb(TINY, time_limit=1e4, threads=1)
        assert found.seconds is not None
        assert 0 < found.seconds < 1e4


@pytest.mark.parametrize("name", CALLS)
def test_a_stop_is_heard_without_a_time_limit(name: str) -> None:
    """Who is told to stop, and has no time limit, ends with an answer or says what is missing."""
    with suppress(AlltoallError):
        CALLS[name](SolveSettings(workers=1, stopped=lambda: True))
    layered, notes = layers_in_time(
        route(tiny(), "ecmp"), "lash", None, SolveSettings(stopped=lambda: True)
    )
    assert layered.layer is None
    assert "a signal to stop came before" in notes[0]


def test_stages_share_the_clock(clock: Clock) -> None:
    """Copies of settings keep their clock; a share of the time ends before the whole."""
    settings = limited(100.0)
    assert replace(settings, gap=0.5).started == settings.started
    clock.now += 60.0
    part = settings.sharing(0.5)
    left = part.seconds_left()
    assert left is not None
    assert 15 <= left <= 20
    clock.now += 20.0
    assert part.out_of_time()
    assert not settings.out_of_time()
    clock.now += 20.0
    assert settings.out_of_time()
    with pytest.raises(TimeoutError):
        settings.check_time()


@pytest.mark.parametrize("limit", LIMITS)
@pytest.mark.parametrize("method", ["auto", *METHODS])
def test_solve_ends_in_time(method: str, limit: int, clock: Clock) -> None:
    """Wherever a time limit strikes, there is a flow that the checker passes."""
    began = clock.now
    flow = solve(problem(), method, limited(limit))
    assert clock.now <= began + limit + MOST_LATE
    check_flow(flow)
    assert not flow.status.done or flow.gap <= 1e-9


@pytest.mark.parametrize("limit", LIMITS)
@pytest.mark.parametrize("method", ANYWHERE)
def test_route_ends_in_time(method: str, limit: int, clock: Clock) -> None:
    """Wherever a time limit strikes, there are routes that the checker passes."""
    began = clock.now
    routes = route(problem(method), method, RouteSettings(solve=limited(limit)))
    assert clock.now <= began + limit + MOST_LATE
    assert check_routes(routes).time >= routes.bound * (1 - 1e-9)
    assert routes.method in (method, "sssp")


@pytest.mark.parametrize("paths", ["shortest", "bounded", "k-shortest", "columns"])
def test_candidates_end_in_time(paths: str, clock: Clock) -> None:
    """Path sets are searched source by source, and the search ends with the limit."""
    began = clock.now
    routes = route(problem(), "pmcf", RouteSettings(paths=paths, solve=limited(10)))
    assert clock.now <= began + 10 + MOST_LATE
    check_routes(routes)


@pytest.mark.parametrize("limit", [1, 30, 3000])
@pytest.mark.parametrize("algorithm", LAYERINGS)
def test_layers_end_in_time(
    algorithm: str, limit: int, clock: Clock, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Layers are valid, or there are none and a note says why."""
    monkeypatch.setattr("alltoall.routes.layers.dependencies.OFFERED_PER_CALL", 20)
    routes = route(problem(), "ecmp")
    began = clock.now
    layered, notes = layers_in_time(routes, algorithm, None, limited(limit))
    assert clock.now <= began + limit + MOST_LATE
    assert (layered.layer is None) == bool(notes)
    assert (limit, layered.layer is None) in ((1, True), (30, True), (30, False), (3000, False))
    check_routes(layered)


def test_late_layers_by_orders(clock: Clock, monkeypatch: pytest.MonkeyPatch) -> None:
    """Orders that had no time to improve only cost layers: what they miss is offered anyway."""
    monkeypatch.setattr("alltoall.flows.sizes.OFFERED_DEPENDENCIES", 0)
    routes = route(problem(), "ecmp")
    calm = assign_layers(routes)
    hurried = assign_layers(routes, settings=limited(60))
    check_routes(hurried)
    assert hurried.layers is not None
    assert calm.layers is not None
    assert hurried.layers >= calm.layers


VERBS = [
    *(("solve", "--method", method) for method in ("auto", *METHODS)),
    *(("route", "--method", method) for method in sorted(ROUTERS.keys() - {"dor"})),
    ("route", "--chunks", 3),
    ("route", "--max-routes", 2),
    ("route", "--method", "deadlock-free:layers=3"),
    ("schedule",),
    ("schedule", "--chunks", 2),
    ("schedule", "--method", "sccl"),
    ("schedule", "--method", "tsmcf-decomposed"),
    ("schedule", "--method", "taccl"),
]


@pytest.mark.parametrize("words", VERBS, ids=lambda words: " ".join(map(str, words)))
@pytest.mark.parametrize("limit", LIMITS)
def test_every_verb_ends_in_time(
    words: tuple[object, ...], limit: int, run: Run, clock: Clock, tmp_path: Path
) -> None:
    """Every verb and method saves what `verify` passes, or says clearly why it has nothing."""
    verb, *options = words
    saved = tmp_path / "answer.json"
    began = clock.now
    output = ("--output", saved)
    spec = TINY if words[-1] in ON_TINY else SPEC
    found = run(verb, spec, *options, "--time-limit", limit, "--json", *output)
    assert clock.now <= began + limit + 2 * MOST_LATE
    if found.code == 0:
        assert found.json["topology"] == spec
        assert run("verify", saved).code == 0
    else:
        assert found.code == 3
        assert "Traceback" not in found.err
        assert "time" in found.err + found.out


def test_building_an_encoding_ends_in_time(
    run: Run, clock: Clock, monkeypatch: pytest.MonkeyPatch
) -> None:
    """SCCL's takes far longer than any limit on a network beyond its reach; no solver is asked."""
    monkeypatch.setattr("alltoall.schedules.sccl._Encoding.solve", None)
    for limit in (3, 100, 270):  # 240 chunks, 48 links
        began = clock.now
        found = run("schedule", SPEC, "--method", "sccl", "--time-limit", limit)
        assert clock.now <= began + limit + 5
        assert found.code == 3
        assert f"the time limit of {limit} s came before any schedule of 3 steps" in found.err


def test_a_program_without_time_is_not_built() -> None:
    """With no time left no solver is asked."""
    program = LinearProgram(np.ones(1), None, np.ones(1), np.ones(1))  # type: ignore[arg-type]
    assert solve_program(program, "auto", LPSettings(time_limit=0.0)).status is LPStatus.TIME_LIMIT


@pytest.mark.parametrize("method", ["link", "grouped"])
def test_programs_that_would_come_too_late(
    method: str, monkeypatch: pytest.MonkeyPatch, clock: Clock
) -> None:
    """If building alone would exceed the limit, the flow on shortest paths is the answer."""
    monkeypatch.setattr("alltoall.flows.by_lp.VARIABLE_SECONDS", 1.0)
    monkeypatch.setattr("alltoall.flows.by_lp.linear_program", None)
    flow = solve(problem(), method, limited(50))
    assert flow.status is Status.TIME_LIMIT
    check_flow(flow)


def test_programs_beyond_memory_are_refused() -> None:
    """The message has the estimate, the limit and what to use instead; nothing is built."""
    large = Problem.all_to_all(build("jellyfish:n=150,d=4,seed=1"))
    with pytest.raises(InputError, match=r"13,410,000 variables.* 9\.4 GiB.*4 GiB.*first-order"):
        solve(large, "link", SolveSettings(time_limit=5))


def test_paths_beyond_memory_are_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    """Path programs too are estimated before they are built."""
    monkeypatch.setattr("alltoall.routes.pmcf.MOST_PROGRAM_BYTES", 1 << 10)
    with pytest.raises(InputError, match=r"paths of .* links needs about .* GiB"):
        route(problem(), "pmcf")


def test_routes_beyond_memory_are_refused() -> None:
    """Twenty thousand nodes have four hundred million routes."""
    with pytest.raises(InputError, match="routes of 400,000,000 pairs need about"):
        route(Problem.all_to_all(build("genkautz:n=20000,d=4")), "ecmp")


def test_equal_weights_are_counted_before_they_are_listed() -> None:
    """Where shortest paths are too many to list, their time is known all the same."""
    torus = Problem.all_to_all(build("torus:10x10x10"))
    with pytest.raises(InputError, match=r"404,826,000 links.* time 1250;.*sssp"):
        route_ewsp(torus, RouteSettings())


@pytest.mark.parametrize(
    "spec", ["complete:2237", "genkautz:n=1000000,d=5", "torus:100x100x100", "hyperx:1000x1000"]
)
def test_five_million_links_are_refused_at_once(spec: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Families are refused from their counts: not one array is made."""
    monkeypatch.setattr("alltoall.topologies.parts.np", None)
    with pytest.raises(TopologyError, match="at most 4,000,000"):
        build(spec)


@pytest.mark.parametrize("name", ["large.edges", "large.json"])
def test_files_of_five_million_links_are_refused_at_once(
    name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Files are refused from the number of their lines or brackets, before they are parsed."""
    formats = "alltoall.topologies.formats"
    for reader in ("edgelist", "alltoall_json"):
        monkeypatch.setattr(f"{formats}.{reader}.MAX_LINKS", 100)
    monkeypatch.setattr(f"{formats}.edgelist._read_edge", None)
    monkeypatch.setattr(f"{formats}.alltoall_json.parse_json", None)
    monkeypatch.setattr(f"{formats}.alltoall_json.OTHER_ARRAYS", 10)
    path = tmp_path / name
    path.write_text("{[0,1,1]" * 200 if name.endswith("json") else "0 1\n" * 200)
    with pytest.raises(FormatError, match="limit of 100"):
        read_topology(path)


def test_a_complete_graph_is_known_by_symmetry() -> None:
    """Of the complete graph on 500 nodes one source is solved, and few generators are kept."""
    flow = solve(Problem.all_to_all(build("complete:500")))
    assert flow.groups == 1
    assert flow.time == pytest.approx(1.0)
    assert flow.generators is not None
    assert len(flow.generators) <= 20
    check_flow(flow)
