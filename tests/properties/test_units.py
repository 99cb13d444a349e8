"""The unit of capacities and demands is a name: answers change by it, and by nothing else."""

import importlib.util
from collections.abc import Callable
from dataclasses import replace
from functools import cache, partial

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from alltoall.check.flow import check_flow
from alltoall.check.routes import check_routes
from alltoall.check.schedule import check_schedule
from alltoall.flows import METHODS, SolveSettings, solve
from alltoall.ir.demand import Demand
from alltoall.ir.flow import Flow
from alltoall.ir.problem import Problem
from alltoall.ir.routes import Routes
from alltoall.ir.schedule import Schedule
from alltoall.ir.topology import Topology
from alltoall.ir.units import normal_units
from alltoall.routes import ROUTERS, route
from alltoall.routes.deadlock_free.best import solve_deadlock_free
from alltoall.schedules.methods import find_schedule
from alltoall.schedules.sccl import synthesise
from alltoall.settings import RouteSettings, ScheduleSettings
from alltoall.topologies.operators import scale_capacities
from alltoall.topologies.spec import build
from strategies import problems

SCALES = [1e-9, 7e-4, 3e6, 2.5e10, 1e12]
"""Units of capacity: in shards, Gbit/s, byte/s, bit/s and beyond."""

QUIET = SolveSettings(workers=1)
ROUTED = RouteSettings(solve=QUIET)
TIMED = ScheduleSettings(solve=QUIET)


def scaled(problem: Problem, capacity: float, demand: float = 1.0) -> Problem:
    """Return the problem with all capacities and demands multiplied."""
    topology = scale_capacities(problem.topology, capacity)
    matrix = problem.demand.matrix
    if matrix is None or demand == 1.0:
        return Problem(topology, problem.demand)
    return Problem(topology, Demand(problem.demand.terminals, matrix * demand))


def mixed() -> Problem:
    """Return a graph of links of several widths, with an uneven demand."""
    topology = build("genkautz:n=6,d=2")
    capacity = np.resize([1.0, 2.0, 1.0, 4.0, 0.5], topology.links)
    rows = np.arange(36, dtype=np.float64).reshape(6, 6) % 5
    np.fill_diagonal(rows, 0.0)
    return Problem(replace(topology, capacity=capacity), Demand(6, rows))


def bipartite() -> Problem:
    """Return the graph on which large capacities once made schedules wrong."""
    return Problem.all_to_all(build("bipartite:2x3"))


def torus() -> Problem:
    """Return a graph that every routing method takes."""
    return Problem.all_to_all(build("torus:3x3"))


def timed(problem: Problem) -> Schedule:
    """Return a schedule of whole chunks."""
    found = find_schedule(problem, "tsmcf", TIMED)
    assert found.fractional_bound <= found.schedule.fractional_time * (1 + 1e-9)
    assert found.status.done == (found.schedule.gap <= QUIET.gap)
    return found.schedule


Answer = Flow | Routes | Schedule
PRODUCERS: dict[str, tuple[Callable[[], Problem], Callable[[Problem], Answer]]] = {
    **{f"solve {name}": (mixed, partial(solve, method=name, settings=QUIET)) for name in METHODS},
    **{f"route {name}": (torus, partial(route, method=name, settings=ROUTED)) for name in ROUTERS},
    "route extp, mixed": (mixed, lambda p: route(p, "extp", ROUTED)),
    "route few, mixed": (mixed, lambda p: route(p, "few", ROUTED)),
    "route --deadlock-free": (torus, lambda p: solve_deadlock_free(p, 2, ROUTED)),
    "schedule": (bipartite, timed),
    "schedule 3x4": (lambda: Problem.all_to_all(build("bipartite:3x4")), timed),
    "schedule Kautz": (lambda: Problem.all_to_all(build("genkautz:n=8,d=2")), timed),
    "schedule, mixed": (mixed, timed),
}
"""Every way to an answer, with a problem for it."""

if importlib.util.find_spec("z3"):
    PRODUCERS["schedule sccl"] = (
        lambda: Problem.all_to_all(build("ring:4")),
        lambda p: synthesise(p, 1, settings=QUIET),
    )


@cache
def plain(name: str) -> Answer:
    """Return the answer in the units of the problem as it stands."""
    problem, produce = PRODUCERS[name]
    return produce(problem())


def same_shape(one: Answer, other: Answer) -> bool:
    """Whether two answers say the same, apart from their units."""
    if isinstance(one, Schedule) and isinstance(other, Schedule):
        return (one.steps, one.chunks_per_shard) == (other.steps, other.chunks_per_shard)
    if isinstance(one, Routes) and isinstance(other, Routes):
        return (one.count, one.layers) == (other.count, other.layers)
    assert isinstance(one, Flow)
    assert isinstance(other, Flow)
    return (one.groups, one.status, one.method) == (other.groups, other.status, other.method)


def check(answer: Answer) -> None:
    """Have the independent checker judge an answer."""
    if isinstance(answer, Flow):
        check_flow(answer)
    elif isinstance(answer, Routes):
        check_routes(answer)
    else:
        check_schedule(answer)


@pytest.mark.parametrize("name", PRODUCERS)
def test_the_unit_of_capacity_changes_nothing_else(name: str) -> None:
    """Time is inverse to capacity, from 1e-9 to 1e12 of it, for every verb and method."""
    problem, produce = PRODUCERS[name]
    expected = plain(name)
    for scale in SCALES:
        found = produce(scaled(problem(), scale))
        check(found)
        assert found.time * scale == pytest.approx(expected.time, rel=1e-9), scale
        assert found.bound * scale == pytest.approx(expected.bound, rel=1e-9), scale
        assert same_shape(found, expected), scale


@pytest.mark.parametrize(
    "name", [name for name in PRODUCERS if PRODUCERS[name][0] is mixed and "schedule" not in name]
)
def test_the_unit_of_demand_changes_nothing_else(name: str) -> None:
    """Time is proportional to demand; a schedule's chunks are shares of a shard and take part."""
    problem, produce = PRODUCERS[name]
    expected = plain(name)
    for scale in (1e-9, 3.0, 1e12):
        found = produce(scaled(problem(), 1.0, scale))
        check(found)
        assert found.time / scale == pytest.approx(expected.time, rel=1e-9), scale
        assert same_shape(found, expected), scale


@given(problems(), st.sampled_from([1.0, *SCALES]), st.sampled_from([1.0, 1e-9, 1e12]))
def test_normal_units_are_near_1_and_restored(problem: Problem, wide: float, much: float) -> None:
    """The median link is 1, the largest demand below 2, and what is solved there holds here."""
    posed = scaled(problem, wide, much)
    units = normal_units(posed)
    assert np.quantile(units.problem.topology.capacity, 0.5, method="lower") == 1.0
    if units.problem.demand.matrix is not None:
        assert 1.0 <= units.problem.demand.matrix.max() < 2.0
    assert normal_units(units.problem).problem is units.problem
    restored = units.restored(solve(units.problem, "grouped", QUIET))
    assert restored.problem is posed
    check_flow(restored)


def test_extreme_spreads_stay_within_range() -> None:
    """Where scaling would leave what numbers can hold, the problem stays as it is."""
    links = [(0, 1, 1e-90), (1, 0, 1e90), (0, 1, 1e-90)]
    problem = Problem.all_to_all(Topology.from_links("spread", 2, links))
    assert normal_units(problem).problem is problem
    far = Problem(build("ring:3"), Demand(3, np.diag([1e99, 1e-99], 1)))
    matrix = normal_units(far).problem.demand.matrix
    assert matrix is not None
    assert matrix[0, 1] / matrix[1, 2] == pytest.approx(1e198)
