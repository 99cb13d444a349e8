"""tsMCF by master and child programs: the time of one program per pair, and chunks within it."""

import numpy as np
import pytest
from scipy.optimize import linprog

from alltoall.check.schedule import check_schedule
from alltoall.flows import SolveSettings
from alltoall.flows.exact import by_commodity
from alltoall.ir.demand import Demand
from alltoall.ir.problem import Problem
from alltoall.schedules.methods import find_schedule
from alltoall.schedules.search import least_steps, split_by_children
from alltoall.schedules.timestepped import solve_timestepped
from alltoall.settings import ScheduleSettings
from alltoall.topologies.operators import drop_links
from alltoall.topologies.spec import build

FABRICS = {
    "3-cube": build("hypercube:3"),
    "K3,3": build("bipartite:3x3"),
    "ring": build("ring:5"),
    "mesh": build("mesh:2x3"),
    "generalized Kautz": build("genkautz:n=7,d=2"),
    "punctured torus": drop_links(build("torus:3x3"), 2, seed=1),
}


def published_time(problem: Problem, steps: int) -> float:
    """Solve the paper's program per pair, link and step, as it is printed."""
    topology = problem.topology
    pairs = [(s, d) for s in range(topology.nodes) for d in range(topology.nodes) if s != d]
    links = list(zip(topology.tail.tolist(), topology.head.tolist(), strict=True))
    size = len(pairs) * len(links) * steps

    def place(pair: int, link: int, step: int) -> int:
        return (pair * len(links) + link) * steps + step

    most, least, equal, sums = ([np.zeros(0)][:0] for _ in range(4))
    for link in range(len(links)):
        for step in range(steps):
            row = np.zeros(size + steps)
            row[[place(pair, link, step) for pair in range(len(pairs))]] = 1
            row[size + step] = -topology.capacity[link]
            most.append(row)
    for pair, (s, d) in enumerate(pairs):
        for node in range(topology.nodes):
            if node in (s, d):
                continue
            for until in range(steps + 1):  # Sent in steps < until + 1, received in steps < until.
                row = np.zeros(size + steps)
                for link, (u, v) in enumerate(links):
                    row[
                        [place(pair, link, t) for t in range(min(until + 1, steps)) if u == node]
                    ] = 1
                    row[[place(pair, link, t) for t in range(until) if v == node]] = -1
                (least if until < steps else equal).append(row)
        for end, other in ((s, 0), (d, 1)):
            row = np.zeros(size + steps)
            for link, ends in enumerate(links):
                row[[place(pair, link, t) for t in range(steps) if ends[other] == end]] += 1
                row[[place(pair, link, t) for t in range(steps) if ends[1 - other] == end]] -= 1
            sums.append(row)
    found = linprog(
        np.append(np.zeros(size), np.ones(steps)),
        A_ub=np.array(most + least),
        b_ub=np.zeros(len(most) + len(least)),
        A_eq=np.array(equal + sums),
        b_eq=np.append(np.zeros(len(equal)), np.ones(len(sums))),
    )
    assert found.status == 0
    return float(found.fun or 0.0)


@pytest.mark.parametrize("name", FABRICS)
@pytest.mark.parametrize("waits", [0, 1])
def test_master_and_children_take_the_time_of_one_program_per_pair(name: str, waits: int) -> None:
    """Each pair has its own flow, which conserves and stays within that of its source."""
    problem = Problem.all_to_all(FABRICS[name])
    steps, settings = least_steps(problem) + waits, SolveSettings()
    master = solve_timestepped(problem, steps, settings)
    split = split_by_children(master, settings)
    assert split.time == pytest.approx(published_time(problem, steps), rel=1e-6)
    assert master.time == pytest.approx(split.time, rel=1e-9)
    pairs, graph = by_commodity(problem), split.program.graph
    assert len(split.volumes) == len(pairs.source) == problem.demand.pairs()[0].size
    balance = np.zeros((len(split.volumes), graph.nodes))
    np.add.at(balance.T, graph.head, split.volumes.T)
    np.add.at(balance.T, graph.tail, -split.volumes.T)
    wanted = split.groups.wanted.copy()
    wanted[np.arange(len(wanted)), split.groups.start] -= wanted.sum(axis=1)
    assert np.abs(balance - wanted).max() < 1e-9
    for source, volume in zip(master.groups.source, master.volumes, strict=True):
        assert np.all(split.volumes[pairs.source == source].sum(axis=0) <= volume + 1e-8)


@pytest.mark.parametrize("name", ["3-cube", "K3,3", "mesh", "punctured torus"])
def test_its_schedules_take_as_long_as_ours(name: str) -> None:
    """Whole chunks within the same time, checked, under a name of their own."""
    problem = Problem.all_to_all(FABRICS[name])
    published = find_schedule(problem, "tsmcf-decomposed").schedule
    ours = find_schedule(problem, "tsmcf").schedule
    assert published.method == "tsmcf-decomposed"
    assert check_schedule(published).time == pytest.approx(ours.time, rel=1e-6)
    assert published.fractional_time == pytest.approx(ours.fractional_time, rel=1e-6)


def test_uneven_demand_is_split_too() -> None:
    """A pair's chunks follow the pair's flow, whatever its demand."""
    demand = np.arange(36.0).reshape(6, 6) % 5 * (1 - np.eye(6))
    problem = Problem(FABRICS["mesh"], Demand(6, demand))
    published = find_schedule(problem, "tsmcf-decomposed", ScheduleSettings(chunks=3)).schedule
    assert check_schedule(published).gap < 0.2


def test_when_time_is_up_the_flow_of_the_sources_is_taken() -> None:
    """A limit that children miss leaves the master's flow, which has the same time."""
    problem = Problem.all_to_all(FABRICS["3-cube"])
    master = solve_timestepped(problem, 3, SolveSettings())
    late = SolveSettings(time_limit=1e-9)
    assert split_by_children(master, late) is master
