"""TACCL: routes on shortest paths, a greedy order, and chunks that are sent as one."""

from itertools import product

import numpy as np
import pytest

from alltoall.check.schedule import check_schedule
from alltoall.errors import InputError, TimeLimitError, UsageError
from alltoall.ir.demand import Demand
from alltoall.ir.problem import Problem
from alltoall.ir.schedule import Schedule
from alltoall.paths.shortest import shortest_distances
from alltoall.schedules import taccl
from alltoall.schedules.methods import find_schedule
from alltoall.schedules.taccl import Hops, order_hops, synthesise
from alltoall.settings import ScheduleSettings, SolveSettings
from alltoall.topologies.operators import set_capacities, with_host_bandwidth
from alltoall.topologies.spec import build


def problem_of(spec: str) -> Problem:
    """Return the all-to-all on a topology."""
    return Problem.all_to_all(build(spec))


def paths_of(schedule: Schedule) -> dict[tuple[int, int, int], list[tuple[int, int]]]:
    """Return step and link of the sends of every chunk, in order."""
    found: dict[tuple[int, int, int], list[tuple[int, int]]] = {}
    sends = (schedule.source, schedule.destination, schedule.chunk, schedule.step, schedule.link)
    for s, d, c, step, link in zip(*(each.tolist() for each in sends), strict=True):
        found.setdefault((s, d, c), []).append((step, link))
    return found


@pytest.mark.parametrize(
    ("spec", "time"),
    [
        ("complete:4", 1.0),
        ("ring:4", 2.0),
        ("bipartite:2x2", 2.0),
        ("bipartite:4x4", 3.0),
        ("hypercube:3", 4.0),
        ("torus:3x3", 3.0),
    ],
)
def test_chunks_take_shortest_paths_and_are_delivered(spec: str, time: float) -> None:
    """The schedule verifies; whole shards on K4,4 take 3 where halves take 2.5."""
    problem = problem_of(spec)
    schedule = synthesise(problem)
    assert check_schedule(schedule).time == pytest.approx(time)
    distance = shortest_distances(
        problem.topology, np.ones(problem.topology.links), np.arange(problem.topology.nodes)
    )
    for (source, destination, _), hops in paths_of(schedule).items():
        assert len(hops) == distance[source, destination]


def test_routing_finds_the_least_load_of_all_choices() -> None:
    """As every choice of shortest paths on a ring of six without some pairs, one by one."""
    matrix = np.ones((6, 6)) - np.eye(6)
    matrix[0, 1] = matrix[0, 2] = matrix[4, 3] = matrix[5, 4] = 0
    problem = Problem(build("ring:6"), Demand(6, matrix))
    least = np.inf
    for turns in product((1, -1), repeat=6):
        load: dict[tuple[int, int], int] = {}
        for s, d in np.argwhere(matrix).tolist():
            away = (d - s) % 6
            turn = turns[s] if away == 3 else 1 if away < 3 else -1
            here = s
            while here != d:
                there = (here + turn) % 6
                load[here, there] = load.get((here, there), 0) + 1
                here = there
        least = min(least, max(load.values()))
    assert synthesise(problem).loads().sum(axis=0).max() == pytest.approx(least)


def test_the_longest_way_to_go_comes_first() -> None:
    """Two chunks wait for link 0: the one with three hops to go is sent before that with one."""
    hops = Hops(
        chunk=np.array([0, 1, 1, 1]),
        link=np.array([0, 0, 1, 2]),
        takes=np.array([1.0, 1.0, 1.0, 1.0]),
        alpha=0.0,
    )
    order, makespan = order_hops(hops)
    assert order.tolist() == [1, 2, 0, 3]
    assert makespan == 3.0


@pytest.mark.parametrize(("chunks", "steps"), [(3, 1), (6, 1), (8, 2), (13, 3)])
def test_waiting_chunks_are_sent_as_one(chunks: int, steps: int) -> None:
    """Over one link a latency is paid once for six chunks; without latency nothing is joined."""
    problem = problem_of("mesh:1x2")
    joined = synthesise(problem, chunks, alpha=1.0)
    assert joined.steps == steps
    assert check_schedule(joined).time < 1.5
    assert synthesise(problem, chunks).steps == chunks


def test_joining_never_delays_the_end() -> None:
    """As told by replaying all sends: a join starts when its last chunk has come."""
    problem, alpha = problem_of("ring:5"), 0.5
    schedule = synthesise(problem, alpha=alpha)
    hops = sorted(
        (step, link, key) for key, sends in paths_of(schedule).items() for step, link in sends
    )
    at: dict[tuple[int, int, int], float] = {}
    free: dict[int, float] = {}
    for step, link in dict.fromkeys((step, link) for step, link, _ in hops):
        keys = [key for a, b, key in hops if (a, b) == (step, link)]
        begin = max(free.get(link, 0.0), *(at.get(key, 0.0) for key in keys))
        free[link] = begin + alpha + len(keys)
        at.update(dict.fromkeys(keys, free[link]))
    settings = SolveSettings()
    source, destination = np.argwhere(~np.eye(5, dtype=np.bool_)).T
    routes = taccl._route(problem, source, destination, np.ones(20), alpha, settings)
    greedy = order_hops(routes)[1]
    assert max(at.values()) <= greedy + 1e-9
    assert max(at.values()) < 0.95 * greedy


def test_uneven_demand_and_capacities() -> None:
    """Chunks of different sizes over links of different widths."""
    ring = set_capacities(build("ring:4"), {(0, 1): 2.0, (1, 2): 0.5})
    matrix = np.array([[0, 2, 1, 0], [0, 0, 1, 0], [0.5, 0, 0, 1], [0, 0, 0, 0]], dtype=float)
    problem = Problem(ring, Demand(4, matrix))
    for chunks in (1, 2):
        found = find_schedule(problem, "taccl", ScheduleSettings(chunks=chunks)).schedule
        assert check_schedule(found).bound == pytest.approx(find_schedule(problem).schedule.bound)


def test_what_it_cannot_take_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    """Switches, too many pairs, settings that it lacks, and no time at all."""
    hosted = with_host_bandwidth(build("ring:4"), 1.0)
    with pytest.raises(InputError, match="not terminals"):
        synthesise(Problem.all_to_all(hosted))
    with pytest.raises(TimeLimitError, match="came before any routes of 56 chunks"):
        synthesise(problem_of("hypercube:3"), settings=SolveSettings(time_limit=1e-6))
    for settings in (
        ScheduleSettings(max_chunks=2),
        ScheduleSettings(steps=3),
        ScheduleSettings(operation_cost=1.0),
    ):
        with pytest.raises(UsageError, match="with method taccl"):
            find_schedule(problem_of("ring:3"), "taccl", settings)
    monkeypatch.setattr(taccl, "MOST_ENTRIES", 90)
    with pytest.raises(InputError, match="12 pairs on 8 links; expected at most 90 pairs times"):
        synthesise(problem_of("ring:4"))
