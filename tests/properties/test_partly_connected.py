"""Networks on which only pairs with a demand are connected: every verb and method takes them."""

from pathlib import Path
from typing import NamedTuple

import numpy as np
import pytest

import alltoall
from alltoall.check.flow import check_flow
from alltoall.check.routes import check_routes
from alltoall.check.schedule import check_schedule
from alltoall.errors import InputError, TopologyError
from alltoall.flows import METHODS
from alltoall.ir.arrays import connected_pairs
from alltoall.routes import ROUTERS
from alltoall.routes.baselines.tables import sssp_tables
from alltoall.topologies.formats import write_topology
from command_line import Run

TRIANGLE = [(u, v) for u in range(3) for v in range(3) if u != v]
RINGS = [(at + side, (at + 1) % 3 + side) for side in (0, 3) for at in range(3)]


class Case(NamedTuple):
    """Links between terminals, the groups that send or else the matrix, and the least time."""

    links: list[tuple[int, int]]
    groups: list[list[int]]
    matrix: list[list[int]]
    time: float


CASES = {
    "a sink": Case([*TRIANGLE, (0, 3)], [[0, 1, 2]], [], 1.0),
    "a source": Case([*TRIANGLE, (3, 0)], [[0, 1, 2]], [], 1.0),
    "a node without links": Case(TRIANGLE, [[0, 1, 2]], [], 1.0),
    "two islands": Case(RINGS, [[0, 1, 2], [3, 4, 5]], [], 3.0),
    "islands and a bridge": Case([*RINGS, (0, 3)], [[0, 1, 2], [3, 4, 5]], [], 3.0),
    "no way back": Case([(0, 1), (1, 2), (0, 2)], [], [[0, 1, 2], [0, 0, 1], [0, 0, 0]], 1.5),
}


def problem_of(case: Case) -> alltoall.Problem:
    """Return the problem of a case; nodes without links are those that groups or rows name."""
    nodes = 3 if case.matrix else max(4, 1 + max(map(max, case.links)))
    topology = alltoall.Topology.from_links("partly", nodes, case.links)
    if case.matrix:
        return alltoall.Problem(topology, alltoall.Demand(nodes, np.array(case.matrix, float)))
    return alltoall.Problem(topology, alltoall.Demand.of_groups(nodes, case.groups))


PROBLEMS = {name: (problem_of(case), case.time) for name, case in CASES.items()}


@pytest.mark.parametrize(("problem", "time"), PROBLEMS.values(), ids=PROBLEMS)
def test_every_method_of_solve_is_optimal(problem: alltoall.Problem, time: float) -> None:
    """At the time known by hand, and the checker agrees."""
    for method in METHODS:
        flow = alltoall.solve(problem, method=method)
        assert check_flow(flow).bound == pytest.approx(time, rel=2e-6), method
        assert flow.time == pytest.approx(time, rel=2e-6), method


@pytest.mark.filterwarnings("error")
@pytest.mark.parametrize(("problem", "time"), PROBLEMS.values(), ids=PROBLEMS)
def test_every_method_of_route_is_certified(problem: alltoall.Problem, time: float) -> None:
    """Against the same bound; `dor` needs a grid, and `updown` links in both directions."""
    one_way = problem.topology.nodes == len(RINGS)
    if one_way:
        with pytest.raises(InputError, match="updown: no table by which 1 climbs first"):
            alltoall.route(problem, "updown")
    for method in (each for each in ROUTERS if each not in ("dor", "updown" if one_way else "")):
        routes = alltoall.route(problem, method=method)
        assert check_routes(routes).bound == pytest.approx(time, rel=2e-6), method
    for routes in (
        alltoall.route(problem, "single:destination-based"),
        alltoall.route(problem, "robust:demands=hose"),
        alltoall.route(problem, "deadlock-free:layers=2"),
        alltoall.Solver(problem.topology).route(problem.demand),
    ):
        assert check_routes(routes).time >= time * (1 - 1e-9)


@pytest.mark.filterwarnings("error")
@pytest.mark.parametrize(("problem", "time"), PROBLEMS.values(), ids=PROBLEMS)
def test_every_method_of_schedule_is_certified(problem: alltoall.Problem, time: float) -> None:
    """The program in steps is optimal, too."""
    for method in ("tsmcf", "tsmcf-decomposed", "list", "sccl", "taccl"):
        schedule = alltoall.schedule(problem, method=method)
        assert check_schedule(schedule).bound == pytest.approx(time, rel=2e-6), method
    assert alltoall.schedule(problem).time == pytest.approx(time)
    solved = alltoall.Solver(problem).schedule(problem.demand)
    assert check_schedule(solved).time >= time * (1 - 1e-9)


@pytest.mark.parametrize(("problem", "time"), PROBLEMS.values(), ids=PROBLEMS)
def test_bounds_and_fair_rates(problem: alltoall.Problem, time: float) -> None:
    """No bound is above the optimum, and one job alone gets all of the rate."""
    found = alltoall.describe(problem)
    assert found.diameter is None
    assert found.mean_distance is None
    assert all(0 < bound <= time * (1 + 1e-9) for bound in found.bounds.values())
    rates = alltoall.fair_rates(problem.topology, [alltoall.Job("all", problem.demand)])
    assert rates.rate[0] == pytest.approx(1 / time, rel=2e-6)


def test_verbs_take_a_group_beside_a_terminal_that_only_receives(run: Run, tmp_path: Path) -> None:
    """From the file to a simulation, and every saved answer is verified."""
    path = tmp_path / "sink.json"
    write_topology(PROBLEMS["a sink"][0].topology, path)
    for verb in ("solve", "route", "schedule"):
        saved = tmp_path / f"{verb}.json"
        found = run(verb, path, "--group", "0,1,2", "-o", saved, "--json")
        assert (found.code, found.json["time"]) == (0, pytest.approx(1.0))
        assert run("verify", saved).code == 0
    assert run("simulate", tmp_path / "schedule.json", "--link-bandwidth", "1Gbps").code == 0
    assert run("lower", tmp_path / "schedule.json", "--to", "mscclpp").code == 0
    assert run("report", tmp_path / "route.json", "-o", tmp_path / "page.html").code == 0
    assert run("solve", path).code == 3


def test_a_pair_with_a_demand_and_no_path_is_named() -> None:
    """With how many there are."""
    topology = PROBLEMS["islands and a bridge"][0].topology
    across = alltoall.Demand.of_groups(6, [[0, 1], [2, 3], [1, 4]])
    with pytest.raises(TopologyError, match=r"terminal 3 cannot reach terminal 2 \(2 such pairs\)"):
        alltoall.Problem(topology, across)


def test_dropped_links_keep_the_paths_that_there_were() -> None:
    """A cable of either island may go, but no node of it."""
    cables = [(u + side, v + side) for side in (0, 3) for u, v in ((0, 1), (1, 2), (2, 0))]
    islands = alltoall.Topology.from_edges("islands", 6, cables)
    for seed in range(5):
        left = alltoall.topology(islands, drop_links=2, seed=seed)
        joined = connected_pairs(left.nodes, left.tail, left.head, left.terminals)
        assert joined.sum() == 18
        assert alltoall.topology(islands, drop_nodes=2, seed=seed).nodes == 4
    with pytest.raises(TopologyError, match="none of 1000 random draws"):
        alltoall.topology(islands, drop_links=3, seed=0)


def test_tables_have_no_link_where_there_is_no_path() -> None:
    """Reading on from what was never written crashed destination-based routes."""
    table, _ = sssp_tables(PROBLEMS["a source"][0])
    assert (table[3] == [-1, -1, -1, -1]).all()
    assert (table[:3, 3] >= 0).all()
