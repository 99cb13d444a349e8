"""What an option limits is checked on what is returned: every option, every method, any demand."""

import re
from collections import Counter
from dataclasses import fields, replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from alltoall.check.limits import ROUTE_LIMITS, SCHEDULE_LIMITS, check_limits, missed_goals
from alltoall.errors import InputError, UsageError, VerificationError
from alltoall.ir.demand import Demand
from alltoall.ir.problem import Problem
from alltoall.ir.routes import Routes
from alltoall.ir.topology import Topology
from alltoall.routes import ROUTERS, USED_BY
from alltoall.routes.search import find_routes
from alltoall.schedules.methods import BASELINES, METHODS, find_schedule
from alltoall.settings import PATH_SETS, RouteSettings, ScheduleSettings
from alltoall.topologies.spec import build
from strategies import topologies

NO_LIMITS = {
    "loss", "epsilon",  # goals: `missed_goals` tells
    "slack", "k",  # of `paths`
    "seed", "shape", "layers", "robust", "latency", "step_tolerance",  # how to search
    "operation_cost", "raw", "published",
    "solve",  # told by the status
}  # fmt: skip
"""Settings that promise nothing about the answer itself."""

SMALL_NETWORKS = ["triangle", "hypercube:3", "ring:6", "mesh:2x3", "genkautz:n=6,d=2"]


def test_every_setting_is_a_limit_or_is_known_to_be_none() -> None:
    """A new option has to say which."""
    for kind, limits in ((RouteSettings, ROUTE_LIMITS), (ScheduleSettings, SCHEDULE_LIMITS)):
        names = {each.name for each in fields(kind)}
        assert set(limits) <= names
        assert names - set(limits) <= NO_LIMITS, names - set(limits) - NO_LIMITS


def triangle(double: float = 2.0) -> Problem:
    """Return three nodes, of which one sends more to one other."""
    matrix = np.array([[0.0, double, 1.0], [1.0, 0.0, 1.0], [1.0, 1.0, 0.0]])
    return Problem(build("complete:3"), Demand(3, matrix))


@st.composite
def any_demands(draw: st.DrawFn) -> Problem:
    """Draw a network and a demand with zeros and integers above 1, or a uniform one."""
    spec = draw(st.sampled_from(SMALL_NETWORKS))
    topology = build("complete:3") if spec == "triangle" else build(spec)
    topology = draw(topologies(max_nodes=5) | st.just(topology))
    count = len(topology.terminals)
    amounts = draw(st.lists(st.sampled_from([0.0, 1.0, 2.0, 3.0, 100.0]), min_size=1, max_size=3))
    cells = draw(st.lists(st.sampled_from(amounts), min_size=count**2, max_size=count**2))
    matrix = np.array(cells).reshape(count, count)
    np.fill_diagonal(matrix, 0.0)
    matrix[0, 1] = matrix[0, 1] or 2.0
    return Problem(topology, Demand(count, matrix if draw(st.booleans()) else None))


@st.composite
def route_requests(draw: st.DrawFn) -> tuple[str, RouteSettings]:
    """Draw a routing method and limits that it takes."""
    method = draw(st.sampled_from([name for name in ROUTERS.known if "ilp" not in name]))
    tables = method in USED_BY["destination_based"] and draw(st.booleans())
    asked = {
        "max_routes": draw(st.none() | st.integers(1, 3)),
        "chunks": draw(st.none() | st.integers(1, 4)),
        "layer_change": not tables and draw(st.booleans()),
        "paths": draw(st.sampled_from(PATH_SETS)),
    }
    used = {name: each for name, each in asked.items() if method in USED_BY[name]}
    layers = draw(st.none() | st.integers(1, 3))
    slack, k = draw(st.integers(0, 1)), draw(st.integers(1, 3))
    given = {"destination_based": tables, "max_layers": layers, "slack": slack, "k": k}
    return method, RouteSettings(**given, **used)  # type: ignore[arg-type]


def require_reason(error: InputError, words: str) -> None:
    """Require that a refusal is one that a limit may lead to."""
    assert re.search(words, str(error)), error


@given(problem=any_demands(), asked=route_requests())
def test_routes_keep_every_limit(problem: Problem, asked: tuple[str, RouteSettings]) -> None:
    """Or are refused, with a reason that is the input; a broken limit would be an error."""
    method, limits = asked
    try:
        routes = find_routes(problem, method, limits).routes
    except InputError as error:
        require_reason(error, "virtual layer|of a grid")
        return
    pairs = Counter(zip(routes.source.tolist(), routes.destination.tolist(), strict=True))
    assert max(pairs.values()) <= (limits.max_routes or max(pairs.values()))
    assert (routes.layers or 1) <= (limits.max_layers or routes.layers or 1)


@given(
    problem=any_demands(),
    method=st.sampled_from([name for name in METHODS if name not in BASELINES]),
    steps=st.none() | st.integers(1, 6),
    chunks=st.none() | st.integers(1, 2),
    max_chunks=st.none() | st.integers(1, 4),
)
def test_schedules_keep_every_limit(
    problem: Problem, method: str, steps: int | None, chunks: int | None, max_chunks: int | None
) -> None:
    """Too few steps are refused; a shard of mean size has no more chunks than are allowed."""
    most = None if chunks is not None else max_chunks
    try:
        asked = ScheduleSettings(steps=steps, chunks=chunks, max_chunks=most)
        schedule = find_schedule(problem, method, asked).schedule
    except InputError as error:
        require_reason(error, "steps; |chunks in all")
        return
    assert schedule.steps <= (steps or schedule.steps)
    demand, counts = problem.demand.table(), schedule.chunk_counts()
    mean = demand[demand > 0].mean()
    if most is not None:
        assert (counts[demand == mean] <= most).all()
        assert counts.max() <= max(1, np.rint(most * demand.max() / mean))


def test_the_triangle_of_the_report() -> None:
    """A pair with twice the demand has one route as well, where that is the limit."""
    routes = find_routes(triangle(), "extp", RouteSettings(max_routes=1)).routes
    assert routes.count == 6
    for spec in SMALL_NETWORKS[1:]:
        topology = build(spec)
        matrix = np.random.default_rng(0).integers(0, 4, (topology.nodes, topology.nodes))
        np.fill_diagonal(matrix, 0)
        problem = Problem(topology, Demand(topology.nodes, matrix.astype(float)))
        found = find_routes(problem, "extp", RouteSettings(max_routes=1, chunks=2)).routes
        assert found.count == np.count_nonzero(matrix)


SQUARE = Topology.from_edges("square", 4, [(0, 1), (1, 2), (2, 3), (3, 0)])
TWO_WAYS = find_routes(Problem.all_to_all(SQUARE), "ewsp", RouteSettings(layers=None)).routes


def broken(**asked: object) -> str:
    """Return what a check of routes, half of which go two ways round a square, says."""
    with pytest.raises(VerificationError) as caught:
        check_limits(replace(TWO_WAYS, method="pmcf"), asked)
    return str(caught.value)


def test_broken_limits_of_routes_are_named() -> None:
    """What was found, what was expected, and the option."""
    assert "2 routes from node 0 to node 2 (and 3 more pairs); expected at most 1" in broken(
        max_routes=1
    )
    assert "carries 0.5 chunks; expected whole ones (--chunks 1)" in broken(chunks=1)
    assert "over several links" in broken(destination_based=True)
    assert "at most 1 (k=)" in broken(paths="k-shortest", k=1)
    kept = {"max_routes": 2, "chunks": 2, "destination_based": False, "paths": "shortest"}
    check_limits(replace(TWO_WAYS, method="pmcf"), kept)
    layered = replace(TWO_WAYS, layer=np.arange(TWO_WAYS.count) % 3)
    with pytest.raises(VerificationError, match=r"3 virtual layers; expected at most 2"):
        check_limits(layered, {"max_layers": 2})
    changing = replace(TWO_WAYS, hop_layer=np.arange(len(TWO_WAYS.link)))
    with pytest.raises(VerificationError, match=r"routes change layer; expected none"):
        check_limits(changing, {"layer_change": False})


def test_long_and_shared_paths_are_found() -> None:
    """A way round the square is two hops longer; a path that is there twice shares its links."""
    ends = (np.array([0]), np.array([1]), np.array([0, 3]))
    links = [
        next(k for k in range(8) if (SQUARE.tail[k], SQUARE.head[k]) == ends)
        for ends in ((0, 3), (3, 2), (2, 1))
    ]
    demand = np.zeros((4, 4))
    demand[0, 1] = 1.0
    problem = Problem(SQUARE, Demand(4, demand))
    proof = TWO_WAYS.certificate
    around = Routes(
        *ends, np.array(links), problem=problem, weight=np.ones(1), certificate=proof, method="pmcf"
    )
    with pytest.raises(VerificationError, match=r"2 hops longer .* expected at most 1"):
        check_limits(around, {"paths": "bounded", "slack": 1})
    check_limits(around, {"paths": "bounded", "slack": 2})
    check_limits(around, {"paths": "disjoint"})
    twice = replace(around.select(np.array([0, 0])), weight=np.array([0.5, 0.5]))
    with pytest.raises(VerificationError, match=r"two routes from node 0 to node 1 share link"):
        check_limits(twice, {"paths": "disjoint"})


def test_broken_limits_of_schedules_are_named() -> None:
    """Steps, chunks, and the most chunks of a shard of mean size."""
    schedule = find_schedule(triangle(), "tsmcf", ScheduleSettings(chunks=2)).schedule
    for asked, words in (
        ({"steps": schedule.steps - 1}, r"steps; expected at most"),
        ({"chunks": 1}, r"4 chunks from node 0 to node 1; expected 2 \(--chunks\)"),
        ({"max_chunks": 1}, r"4 chunks from node 0 to node 1; expected 2 \(max-chunks=\)"),
    ):
        with pytest.raises(VerificationError, match=words):
            check_limits(schedule, asked)
    check_limits(schedule, {"steps": schedule.steps, "chunks": 2, "max_chunks": 3})


def test_a_missed_goal_is_told() -> None:
    """What was reached, what was asked for, and what would help."""
    problem = Problem.all_to_all(build("bipartite:4x4"))
    found = find_schedule(problem, settings=ScheduleSettings(max_chunks=1))
    words = "20.00% above the fractional time, --loss is 0.01; allow more chunks (max-chunks=)"
    assert found.notes == (words,)
    assert words in found.learnt()["notes"]
    assert not find_schedule(problem, settings=ScheduleSettings(chunks=1)).notes
    few = find_routes(problem, "few", RouteSettings(max_routes=1)).notes
    assert any("above the proven bound, --loss is 0.01; allow more routes" in each for each in few)
    assert not missed_goals(find_routes(problem, "extp").routes, {"loss": 0.0})


def test_sccl_searches_no_numbers_of_chunks() -> None:
    """A limit that it would ignore is refused."""
    with pytest.raises(UsageError, match="most chunks with method sccl"):
        find_schedule(triangle(), "sccl", ScheduleSettings(max_chunks=2))
