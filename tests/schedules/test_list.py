"""List scheduling: routes plus an order are a correct schedule, of little loss to the routes."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from alltoall.check.schedule import check_schedule
from alltoall.errors import InputError
from alltoall.flows import sizes
from alltoall.ir.demand import Demand
from alltoall.ir.paths import Paths
from alltoall.ir.problem import Problem
from alltoall.ir.topology import Topology
from alltoall.schedules import chunks as whole_chunks
from alltoall.schedules.methods import find_schedule
from alltoall.schedules.orders import legs_of, serve
from alltoall.settings import ScheduleSettings
from alltoall.topologies.operators import drop_links, with_host_bandwidth
from alltoall.topologies.spec import build
from strategies import fabrics
from uneven_cases import lopsided, uneven_problems

FABRICS = {
    "3-cube": build("hypercube:3"),
    "ring": build("ring:6"),
    "mesh": build("mesh:3x4"),
    "torus": build("torus:3x3x3"),
    "hosted torus": with_host_bandwidth(build("torus:3x3"), 2.0),
    "punctured torus": drop_links(build("torus:3x3x3"), 3, seed=2),
    "generalized Kautz": build("genkautz:n=16,d=4"),
    "fat tree": build("fattree:k=4"),
    "jellyfish": build("jellyfish:n=20,d=3,seed=1"),
}


@pytest.mark.parametrize("name", FABRICS)
def test_within_a_few_percent_of_the_bound(name: str) -> None:
    """On direct networks, on switches and with narrow hosts: correct, and near the bound."""
    found = find_schedule(Problem.all_to_all(FABRICS[name]), "list", ScheduleSettings(max_chunks=4))
    assert found.schedule.method == "list"
    assert check_schedule(found.schedule).gap <= 0.04


@given(problem=uneven_problems(), chunks=st.none() | st.integers(1, 3))
@settings(max_examples=15)
def test_every_demand_has_a_list(problem: Problem, chunks: int | None) -> None:
    """Whatever pairs have nothing to send and whatever stores nothing: a correct schedule."""
    wanted = ScheduleSettings(chunks=chunks, max_chunks=None if chunks else 4)
    schedule = find_schedule(problem, "list", wanted).schedule
    assert check_schedule(schedule).time == pytest.approx(schedule.time)


@given(topology=fabrics(), wide=st.integers(0, 10**6))
@settings(max_examples=10)
def test_links_of_any_width(topology: Topology, wide: int) -> None:
    """Narrow links make steps long, and break nothing."""
    width = 10.0 ** np.random.default_rng(wide).uniform(-3, 3, topology.links)
    links = zip(topology.tail.tolist(), topology.head.tolist(), width.tolist(), strict=True)
    graph = Topology.from_links("any", topology.nodes, list(links), topology.terminals.tolist())
    schedule = find_schedule(
        Problem.all_to_all(graph), "list", ScheduleSettings(max_chunks=2)
    ).schedule
    assert check_schedule(schedule).time == pytest.approx(schedule.time)


def test_a_real_demand() -> None:
    """Shards of all sizes, with terminals that are silent: within 5 % of the bound."""
    problem = lopsided(build("genkautz:n=20,d=3"))
    found = find_schedule(problem, "list", ScheduleSettings(chunks=48))
    assert check_schedule(found.schedule).gap <= 0.05


def test_a_link_never_runs_dry_where_it_need_not() -> None:
    """A busy link that is far from most sources has short steps first, and no loss at all."""
    star = build("mesh:7")
    matrix = np.zeros((7, 7))
    matrix[:6, 6] = 1.0
    problem = Problem(star, Demand(7, matrix))
    schedule = find_schedule(problem, "list", ScheduleSettings(chunks=1)).schedule
    assert schedule.time == pytest.approx(6.0)
    assert schedule.gap == pytest.approx(0.0, abs=1e-9)


def test_what_waits_for_the_same_link_goes_by_its_further_way() -> None:
    """Of two chunks, the one with the longer way is sent first; the short one can wait."""
    line = Topology.from_links("line", 3, [(0, 1, 1.0), (1, 2, 1.0), (2, 0, 1.0)])
    paths = Paths(np.array([0, 0]), np.array([1, 2]), np.array([0, 1, 3]), np.array([0, 0, 1]))
    served = serve(line, paths, np.ones(2), 1.0, 1.0)
    assert served is not None
    assert served.step_of_leg.tolist() == [1, 0, 1]
    assert (served.steps, served.time) == (2, 2.0)


def test_a_switch_stores_nothing() -> None:
    """Two links that meet in a switch are one leg, in one step."""
    hub = Topology.from_links("hub", 3, [(0, 2, 1.0), (2, 1, 0.5), (1, 0, 1.0)], [0, 1])
    paths = Paths(np.array([0, 0]), np.array([1, 1]), np.array([0, 2, 4]), np.array([0, 1, 0, 1]))
    assert legs_of(hub, paths).most == 1
    served = serve(hub, paths, np.ones(2), 2.0, 1.0)
    assert served is not None
    assert (served.steps, served.time) == (2, 4.0)


def test_fewer_steps_cost_time() -> None:
    """A latency, or a number of steps, buys fewer of them; what cannot be is refused."""
    problem = Problem.all_to_all(FABRICS["jellyfish"])
    free = find_schedule(problem, "list", ScheduleSettings(chunks=2)).schedule
    dear = find_schedule(problem, "list", ScheduleSettings(chunks=2, latency=2.0)).schedule
    least = int(dear.steps)
    assert dear.time + 2 * dear.steps <= free.time + 2 * free.steps + 1e-9
    few = find_schedule(problem, "list", ScheduleSettings(chunks=2, steps=least)).schedule
    assert few.steps <= least
    with pytest.raises(InputError, match=r"2 steps; expected at least .* longest path"):
        find_schedule(problem, "list", ScheduleSettings(chunks=2, steps=2))


def test_the_size_chooses_the_method(monkeypatch: pytest.MonkeyPatch) -> None:
    """What is large and irregular is served by a list; what is small or symmetric is not."""
    irregular = Problem.all_to_all(FABRICS["jellyfish"])
    assert find_schedule(irregular).schedule.method == "tsmcf"
    monkeypatch.setattr(sizes, "LISTED_VARIABLES", 10)
    assert find_schedule(irregular).schedule.method == "list"
    symmetric = Problem.all_to_all(build("hypercube:3"))
    assert find_schedule(symmetric).schedule.method == "tsmcf"


def test_too_many_chunks_are_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    """The number of all chunks is known before there is room for them."""
    monkeypatch.setattr(whole_chunks, "MOST_SCHEDULE_CHUNKS", 100)
    with pytest.raises(InputError, match="240 chunks in all; expected at most 100"):
        find_schedule(Problem.all_to_all(build("torus:4x4")), "list", ScheduleSettings(chunks=1))


def test_same_answer_every_time() -> None:
    """The same problem has the same list."""
    problem = lopsided(build("torus:3x3"))
    once, again = (
        find_schedule(problem, "list", ScheduleSettings(chunks=2)).schedule for _ in range(2)
    )
    assert np.array_equal(once.step, again.step)
    assert np.array_equal(once.link, again.link)
