"""Sweeps: exact flows at any moment, in agreement with linear programs, and safe to stop."""

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from alltoall.check.flow import check_flow
from alltoall.flows import SolveSettings, best_so_far, first_order, sizes, solve, sweeps
from alltoall.flows.exact import by_source, exact_flows
from alltoall.flows.first_order import answer_by_steps, solve_by_steps
from alltoall.flows.guess import Guess
from alltoall.flows.program import FlowProgram, reduced_program, whole_program
from alltoall.flows.sweeps import SweepParams, Sweeps, suits_sweeps
from alltoall.flows.symmetry.orbits import find_symmetry
from alltoall.ir.demand import Demand
from alltoall.ir.flow import Flow, Status
from alltoall.ir.problem import Problem
from alltoall.settings import ALONE
from alltoall.topologies.operators import with_host_bandwidth
from alltoall.topologies.spec import build

COARSE = SolveSettings(gap=1e-3, symmetry=False, workers=1)
LARGE = Problem.all_to_all(build("jellyfish:n=80,d=4,seed=1"))
"""So many flows that sweeps are the way."""

GRAPHS = {
    "torus": build("torus:3x4"),
    "mesh": build("mesh:4x5"),
    "ring": build("ring:12"),
    "generalized Kautz": build("genkautz:n=24,d=4"),
    "de Bruijn": build("debruijn:d=2,k=4"),
    "bipartite": build("bipartite:3x5"),
    "fat tree": build("fattree:k=4"),
    "DGX-1": build("dgx1"),
    "hosted torus": with_host_bandwidth(build("torus:3x3"), 2.0),
}


def whole(problem: Problem) -> FlowProgram:
    """Return the program of all sources."""
    return whole_program(problem, by_source(problem))


def by_sweeps(problem: Problem, settings: SolveSettings) -> Flow:
    """Solve the program of all sources, which is large enough."""
    assert suits_sweeps(whole(problem), ALONE)
    return solve_by_steps(problem, whole(problem), settings, "first-order")


@pytest.mark.parametrize("symmetry", [False, True])
@pytest.mark.parametrize("name", GRAPHS)
def test_sweeps_agree_with_the_linear_program(
    name: str, symmetry: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Within the gap asked for, proven by the checker, even where there are too few sources."""
    monkeypatch.setattr(sizes, "STEPPED_VARIABLES", 0)
    problem = Problem.all_to_all(GRAPHS[name])
    flow = solve(problem, "first-order", replace(COARSE, symmetry=symmetry))
    optimum = solve(problem, "grouped", COARSE).time
    assert flow.status.done
    assert check_flow(flow).gap <= 1e-3
    assert flow.time == pytest.approx(optimum, rel=1.1e-3)


@pytest.mark.parametrize("seed", [1, 2, 3])
def test_uneven_demands_are_certified(seed: int) -> None:
    """Amounts that differ a thousandfold, and sources that send nothing at all."""
    random = np.random.default_rng(seed)
    matrix = 10 ** random.uniform(-3, 0, (80, 80)) * random.integers(0, 2, (80, 1))
    np.fill_diagonal(matrix, 0.0)
    flow = solve(Problem(LARGE.topology, Demand(80, matrix)), "first-order", COARSE)
    assert flow.status.done
    assert check_flow(flow).gap <= 1e-3


@pytest.mark.parametrize("symmetry", [False, True])
def test_flows_stay_exact_and_times_are_theirs(symmetry: bool) -> None:
    """After every sweep nothing is missing, and no class is busier than it is said to be."""
    problem = Problem.all_to_all(build("genkautz:n=72,d=4"))
    program = reduced_program(find_symmetry(problem, symmetry))
    search = Sweeps(program, COARSE, None)
    graph = program.graph
    for _ in range(4):
        search._sweep()
        arrives = np.stack([np.bincount(graph.head, row, graph.nodes) for row in search.flows])
        leaves = np.stack([np.bincount(graph.tail, row, graph.nodes) for row in search.flows])
        surplus = arrives - leaves - program.groups.wanted
        surplus[np.arange(len(surplus)), program.groups.start] = 0.0
        assert abs(surplus).max() < 1e-9
        assert search.flows.min() >= 0.0
        assert search.busy == pytest.approx(program.busy(program.weight @ search.flows))
        assert search.share.sum() == pytest.approx(1.0)


def test_which_programs_are_swept() -> None:
    """Those with many flows, and links that are not too different."""
    assert suits_sweeps(whole(LARGE), ALONE)
    assert not suits_sweeps(whole(Problem.all_to_all(GRAPHS["mesh"])), ALONE)
    capacity = np.geomspace(1, 1000, LARGE.topology.links)
    uneven = replace(LARGE, topology=replace(LARGE.topology, capacity=capacity))
    assert not suits_sweeps(whole(uneven), ALONE)


def test_the_number_of_threads_changes_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    """Parts that answer at the same time do so on one thread or two."""
    monkeypatch.setattr(first_order, "THREAD_VARIABLES", 1)
    monkeypatch.setattr(sweeps, "SWEEP_DEFAULTS", SweepParams(shared_groups=0))
    one, two = (by_sweeps(LARGE, replace(COARSE, workers=count)) for count in (1, 2))
    assert (one.rate, one.bound, one.gap <= 1e-3) == (two.rate, two.bound, True)
    for key in ("start", "link", "amount"):
        assert np.array_equal(getattr(one, key), getattr(two, key))


def test_concurrent_parts_do_not_overshoot(monkeypatch: pytest.MonkeyPatch) -> None:
    """Two parts that respond at the same time need about as many sweeps as one part."""
    program = reduced_program(find_symmetry(Problem.all_to_all(build("genkautz:n=301,d=4"))))
    swept = []
    for shared in (1_000, 0):
        params = SweepParams(shared_groups=shared, stalled_sweeps=100)
        monkeypatch.setattr(sweeps, "SWEEP_DEFAULTS", params)
        search = Sweeps(program, COARSE, None)
        search.run()
        swept.append(search.steps)
        assert search.gap <= 1e-3
    assert swept[1] <= 1.2 * swept[0]


def test_where_sweeps_stall_steps_go_on(monkeypatch: pytest.MonkeyPatch) -> None:
    """To the gap that was asked for, from what the sweeps found."""
    said: list[str] = []
    stalling = SweepParams(stalled_sweeps=3, stalled_share=0.0)
    monkeypatch.setattr(sweeps, "SWEEP_DEFAULTS", stalling)
    flow = by_sweeps(LARGE, replace(COARSE, report=said.append))
    assert flow.status.done
    assert check_flow(flow).gap <= 1e-3
    assert "steps: certified gap" in said[-1]


def test_steps_that_find_nothing_better_lose_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    """Stopped among the steps, the answer is that of the sweeps."""
    said: list[str] = []

    def stop(words: str) -> None:
        said.append(words)
        if "steps" in words:
            raise KeyboardInterrupt

    monkeypatch.setattr(sweeps, "SWEEP_DEFAULTS", SweepParams(stalled_sweeps=20))
    flow = by_sweeps(LARGE, SolveSettings(gap=1e-9, workers=1, report=stop))
    assert flow.status is Status.INTERRUPTED
    assert "sweeps" in said[-2]
    assert check_flow(flow).gap < 0.02


def test_a_time_limit_gives_the_best_so_far() -> None:
    """Out of time at once, there is a flow that the checker accepts, and a bound."""
    flow = by_sweeps(LARGE, SolveSettings(gap=1e-9, workers=1, time_limit=1e-9))
    assert flow.status is Status.TIME_LIMIT
    assert check_flow(flow).bound == pytest.approx(flow.bound)
    assert 0 < flow.gap < 1


def test_ctrl_c_gives_the_best_so_far(monkeypatch: pytest.MonkeyPatch) -> None:
    """Before the first sweep is done, too."""

    def stop(*_: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(sweeps, "update_batch", stop)
    flow = by_sweeps(LARGE, COARSE)
    assert flow.status is Status.INTERRUPTED
    assert check_flow(flow).bound == pytest.approx(flow.bound)


def test_a_bound_alone_can_be_enough() -> None:
    """Where a bound is asked for, sweeps end with the first that is as good."""
    program = whole(LARGE)
    best = answer_by_steps(program, COARSE)
    enough = best.bound * 0.99
    search = Sweeps(program, replace(COARSE, gap=1e-9), None)
    search.enough = enough
    assert search.run().done
    assert enough <= search.bound <= best.bound * 1.001


def test_a_guess_is_where_sweeps_start() -> None:
    """Fewer of them lead from an answer to the gap than from nothing."""
    program = whole(LARGE)
    last = by_sweeps(LARGE, replace(COARSE, gap=1e-4))
    volumes = np.zeros((last.groups, LARGE.topology.links))
    volumes[np.repeat(np.arange(last.groups), np.diff(last.start)), last.link] = last.amount
    guess = Guess(volumes * last.time, last.certificate.lengths)
    said: dict[bool, list[str]] = {False: [], True: []}
    for warm, reports in said.items():
        asked = replace(COARSE, report=reports.append)
        assert answer_by_steps(program, asked, guess if warm else None).status.done
    assert len(said[True]) < len(said[False])


def test_sweeps_go_on_from_a_checkpoint(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """With the flows and the proof that they had."""
    said: list[str] = []
    file = tmp_path / "state.npz"
    short = SolveSettings(gap=1e-9, workers=1, checkpoint=file, time_limit=1e-9)
    monkeypatch.setattr(best_so_far, "CHECKPOINT_SECONDS", 0.0)
    early = by_sweeps(LARGE, short)
    later = by_sweeps(LARGE, replace(COARSE, checkpoint=file, report=said.append))
    assert said[0].startswith("from a checkpoint after 1 sweeps")
    assert later.bound >= early.bound
    assert check_flow(later).gap <= 1e-3


def test_what_sweeps_leave_is_exact_already() -> None:
    """Making the best flow exact changes no more than its last digits, and cancels circles."""
    search = Sweeps(whole(LARGE), COARSE, None)
    assert search.run().done
    exact = exact_flows(LARGE.topology, search.program.groups, search.best_flow)
    assert search.program.time(exact) <= search.time * (1 + 1e-9)
