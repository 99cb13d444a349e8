"""Time-stepped flows: the two forms agree, and enough steps reach the plain optimum."""

from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given

from alltoall.flows import SolveSettings, sizes, solve
from alltoall.flows.symmetry.translations import find_translations
from alltoall.ir.arrays import Floats
from alltoall.ir.flow import Status
from alltoall.ir.problem import Problem
from alltoall.schedules import timestepped
from alltoall.schedules.search import best_flow, least_steps, timed_flows
from alltoall.schedules.timestepped import Expansion, solve_timestepped, without_translations
from alltoall.topologies.operators import drop_links, with_host_bandwidth
from alltoall.topologies.spec import build
from strategies import problems

QUIET = SolveSettings()

FABRICS = {
    "3-cube": build("hypercube:3"),
    "twisted 3-cube": build("twisted-hypercube:3"),
    "K4,4": build("bipartite:4x4"),
    "ring": build("ring:7"),
    "mesh": build("mesh:3x3"),
    "torus": build("torus:3x3x3"),
    "hosted torus": with_host_bandwidth(build("torus:3x3"), 2.0),
    "punctured torus": drop_links(build("torus:3x3x3"), 3, seed=2),
    "generalized Kautz": build("genkautz:n=16,d=4"),
    "fat tree": build("fattree:k=4"),
    "DGX-1": build("dgx1"),
    "dragonfly": build("dragonfly:a=3,h=1"),
}


@pytest.mark.parametrize("name", FABRICS)
def test_enough_steps_reach_the_plain_optimum(name: str) -> None:
    """The sum of the durations falls with every step, down to 1/F of the plain flow."""
    problem = Problem.all_to_all(FABRICS[name])
    master = solve(problem, "grouped")
    times = [flow.time for flow in timed_flows(master, QUIET, 1e-7)]
    assert all(later <= earlier * (1 + 1e-9) for earlier, later in pairwise(times))
    assert times[-1] == pytest.approx(master.bound, rel=1e-6)


@pytest.mark.parametrize("name", ["3-cube", "K4,4", "ring", "mesh", "DGX-1", "hosted torus"])
def test_the_forms_per_source_and_per_commodity_agree(name: str) -> None:
    """Grouping by source does not change the optimum of any number of steps."""
    problem = Problem.all_to_all(FABRICS[name])
    steps = least_steps(problem)
    grouped = solve_timestepped(problem, steps, QUIET)
    single = solve_timestepped(problem, steps, QUIET, per_commodity=True)
    assert grouped.time == pytest.approx(single.time, rel=1e-6)


@given(problem=problems(max_nodes=5))
def test_forms_agree_on_random_problems_with_any_demand(problem: Problem) -> None:
    """Uneven demand, uneven capacities, switches: one optimum, never below the plain one."""
    steps = least_steps(problem) + 1
    grouped = solve_timestepped(problem, steps, QUIET)
    single = solve_timestepped(problem, steps, QUIET, per_commodity=True)
    assert grouped.time == pytest.approx(single.time, rel=1e-6)
    assert grouped.time >= solve(problem).bound * (1 - 1e-9)


def test_switches_take_no_step() -> None:
    """Through a fat tree everything arrives in one step; hosts' NICs add none to a torus."""
    assert least_steps(Problem.all_to_all(FABRICS["fat tree"])) == 1
    assert least_steps(Problem.all_to_all(FABRICS["hosted torus"])) == 2
    assert least_steps(Problem.all_to_all(FABRICS["torus"])) == 3


def test_the_expanded_graph_has_the_stated_copies() -> None:
    """T+1 copies of terminals, T of switches and links, and storage between moments."""
    problem = Problem.all_to_all(FABRICS["hosted torus"])
    graph = Expansion(problem, 3).graph
    assert graph.nodes == 4 * 9 + 3 * 18
    assert graph.links == 3 * problem.topology.links + 3 * 9
    assert np.all(graph.tail[-27:] + 9 == graph.head[-27:])


def test_latency_trades_steps_for_bandwidth() -> None:
    """Free steps are taken, dear ones are not."""
    problem = Problem.all_to_all(FABRICS["generalized Kautz"])
    master = solve(problem, "grouped")
    flows = list(timed_flows(master, QUIET))
    assert best_flow(flows, master.bound, latency=0.0).expansion.steps == 3
    assert best_flow(flows, master.bound, latency=1.0).expansion.steps == 2


@pytest.mark.parametrize("name", FABRICS)
def test_translations_do_not_change_the_optimum(name: str) -> None:
    """One source per orbit gives the time of all, and its flow written out takes as long."""
    problem = Problem.all_to_all(FABRICS[name])
    steps = least_steps(problem)
    translations = find_translations(problem)
    whole = solve_timestepped(problem, steps, QUIET)
    reduced = solve_timestepped(problem, steps, QUIET, translations=translations)
    assert len(reduced.groups.start) * translations.order == len(whole.groups.start)
    assert reduced.time == pytest.approx(whole.time, rel=1e-6)
    again = without_translations(reduced)
    assert again.durations == pytest.approx(reduced.durations, abs=1e-9)
    assert _delivered(again) == pytest.approx(again.groups.wanted, abs=1e-9)


def _delivered(flow: timestepped.TimedFlow) -> Floats:
    """Return what stays at each node, by group, but for the start of the group."""
    graph = flow.expansion.graph
    stays = np.zeros((len(flow.groups.start), graph.nodes))
    np.add.at(stays.T, graph.head, flow.volumes.T)
    np.subtract.at(stays.T, graph.tail, flow.volumes.T)
    stays[np.arange(len(stays)), flow.groups.start] = 0.0
    return stays


@pytest.mark.parametrize("name", ["torus", "generalized Kautz", "hosted torus", "mesh", "DGX-1"])
def test_primal_dual_steps_reach_the_optimum_of_the_program(
    name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """With and without translations, within the gap, and the status says what is proven."""
    problem = Problem.all_to_all(FABRICS[name])
    steps = least_steps(problem) + 1
    best = solve_timestepped(problem, steps, QUIET).time
    monkeypatch.setattr(sizes, "TIMED_FIRST_ORDER_VARIABLES", 0)
    for translations in (None, find_translations(problem)):
        flow = solve_timestepped(problem, steps, SolveSettings(gap=1e-3), translations=translations)
        assert best * (1 - 1e-6) <= flow.time <= best * (1 + 1e-3)
        assert flow.status.done
        assert _delivered(flow) == pytest.approx(flow.groups.wanted, abs=1e-9)


def test_a_coarse_answer_does_not_claim_to_be_optimal(monkeypatch: pytest.MonkeyPatch) -> None:
    """Steps go to a coarse gap only; asked for a finer one, they say that it is not proven."""
    problem = Problem.all_to_all(FABRICS["generalized Kautz"])
    monkeypatch.setattr(sizes, "TIMED_FIRST_ORDER_VARIABLES", 0)
    monkeypatch.setattr(timestepped, "COARSE_GAP", 0.3)
    flow = solve_timestepped(problem, 3, SolveSettings(gap=1e-9))
    assert flow.status is Status.GAP_NOT_REACHED
    assert flow.exact == 0.3


def test_out_of_time_steps_still_give_a_flow(monkeypatch: pytest.MonkeyPatch) -> None:
    """A time limit of nothing gives exact volumes and says that time ran out."""
    problem = Problem.all_to_all(FABRICS["generalized Kautz"])
    monkeypatch.setattr(sizes, "TIMED_FIRST_ORDER_VARIABLES", 0)
    flow = solve_timestepped(problem, 3, SolveSettings(time_limit=1e-9))
    assert flow.status is Status.TIME_LIMIT
    assert _delivered(flow) == pytest.approx(flow.groups.wanted, abs=1e-9)
