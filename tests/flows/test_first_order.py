"""Primal-dual steps: certified, in agreement with linear programs, and safe to stop."""

from collections.abc import Callable
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given

from alltoall.check.flow import check_flow
from alltoall.errors import InputError
from alltoall.flows import SolveSettings, first_order, first_order_search, methods, sizes, solve
from alltoall.flows import by_lp as concurrent
from alltoall.flows import program as flow_program
from alltoall.flows.exact import by_source
from alltoall.flows.first_order import answer_by_steps, solve_by_steps
from alltoall.flows.first_order_search import Search, StepParams
from alltoall.flows.guess import Guess
from alltoall.flows.methods import solve_master
from alltoall.flows.program import FlowProgram, program_bound, whole_program
from alltoall.ir.arrays import Floats
from alltoall.ir.demand import Demand
from alltoall.ir.flow import Flow, Status
from alltoall.ir.problem import Problem
from alltoall.ir.topology import Topology
from alltoall.schedules.timestepped import Expansion, solve_timestepped
from alltoall.topologies.operators import with_host_bandwidth
from alltoall.topologies.spec import build
from strategies import problems

ALONE = SolveSettings(symmetry=False)
COARSE = SolveSettings(gap=1e-3, symmetry=False, workers=1)


def by_steps(problem: Problem, settings: SolveSettings) -> Flow:
    """Solve by steps even where shortest paths would do."""
    program = whole_program(problem, by_source(problem))
    return solve_by_steps(problem, program, settings, "first-order")


def jellyfish(nodes: int = 20) -> Topology:
    """Return a graph without symmetry, on which shortest paths are not optimal."""
    return build(f"jellyfish:n={nodes},d=4,seed=1")


HARD = Problem.all_to_all(jellyfish())

GRAPHS = {
    "torus": build("torus:3x4"),
    "mesh": build("mesh:4x5"),
    "ring": build("ring:12"),
    "generalized Kautz": build("genkautz:n=24,d=4"),
    "Kautz": build("kautz:d=2,k=3"),
    "de Bruijn": build("debruijn:d=2,k=4"),
    "jellyfish": jellyfish(24),
    "bipartite": build("bipartite:3x5"),
    "fat tree": build("fattree:k=4"),
    "dragonfly": build("dragonfly:a=3,h=1"),
    "DGX-1": build("dgx1"),
    "hosted torus": with_host_bandwidth(build("torus:3x3"), 2.0),
}


@pytest.mark.parametrize("symmetry", [False, True])
@pytest.mark.parametrize("name", GRAPHS)
def test_steps_agree_with_the_linear_program(name: str, symmetry: bool) -> None:
    """Within the gap asked for, proven by the checker, with and without symmetry."""
    problem = Problem.all_to_all(GRAPHS[name])
    flow = solve(problem, "first-order", replace(COARSE, symmetry=symmetry))
    optimum = solve(problem, "grouped", ALONE).time
    assert flow.status.done
    assert check_flow(flow).gap <= 1e-3
    assert optimum * (1 - 1e-6) <= flow.time <= optimum * (1 + 1.1e-3)
    assert flow.bound <= optimum * (1 + 1e-9)


@given(problem=problems())
def test_steps_agree_on_random_problems(problem: Problem) -> None:
    """Any capacities, switches and demand: certified to the gap."""
    flow = solve(problem, "first-order", COARSE)
    assert check_flow(flow).gap <= 1e-3
    assert flow.time == pytest.approx(solve(problem, "grouped", ALONE).time, rel=1.1e-3)


def spread(topology: Topology, orders: float) -> Topology:
    """Return the topology with capacities over so many orders of magnitude."""
    exponent = np.random.default_rng(1).uniform(-orders / 2, orders / 2, topology.links)
    return replace(topology, capacity=10**exponent)


def bridged(width: float, other: float | None = None) -> Topology:
    """Return two graphs of ten nodes that a bridge of this width joins, and perhaps another."""
    half = jellyfish(10)
    ends = list(zip(half.tail.tolist(), half.head.tolist(), strict=True))
    links = [(u + base, v + base, 1.0) for base in (0, 10) for u, v in ends]
    links += [(0, 10, width), (10, 0, width)]
    if other is not None:
        links += [(5, 15, other), (15, 5, other)]
    return Topology.from_links("bridge", 20, links)


def demand(fill: Callable[[Floats], None]) -> Problem:
    """Return a problem on the jellyfish with a demand that `fill` writes into zeros."""
    matrix = np.zeros((20, 20))
    fill(matrix)
    np.fill_diagonal(matrix, 0.0)
    return Problem(jellyfish(), Demand(20, matrix))


def sparse(matrix: Floats) -> None:
    """Ask for a shard between thirty random pairs."""
    some = np.random.default_rng(2).integers(0, 20, (2, 30))
    matrix[some[0], some[1]] = 1.0


def skewed(matrix: Floats) -> None:
    """Ask for amounts over six orders of magnitude."""
    matrix[:] = 10 ** np.random.default_rng(3).uniform(-3, 3, matrix.shape)


def skewed_sources(matrix: Floats) -> None:
    """Let sources send amounts over eight orders of magnitude."""
    matrix[:] = 10 ** np.linspace(-4, 4, 20)[:, None]


def incast(matrix: Floats) -> None:
    """Ask for a thousand times as much at one node."""
    matrix[:] = 1.0
    matrix[:, 0] = 1000.0


def one_pair(matrix: Floats) -> None:
    """Ask for one shard in all."""
    matrix[3, 7] = 1.0


ADVERSARIAL = {
    "capacities over three orders": Problem.all_to_all(spread(jellyfish(), 3)),
    "capacities over six orders": Problem.all_to_all(spread(jellyfish(), 6)),
    "directed, over six orders": Problem.all_to_all(spread(build("genkautz:n=20,d=4"), 6)),
    "tiny capacities": Problem.all_to_all(replace(jellyfish(), capacity=np.full(80, 1e-9))),
    "huge capacities": Problem.all_to_all(replace(jellyfish(), capacity=np.full(80, 1e9))),
    "thin bridge": Problem.all_to_all(bridged(1e-3)),
    "thin bridge beside a wide one": Problem.all_to_all(bridged(1.0, 1e-3)),
    "sparse demand": demand(sparse),
    "skewed demand": demand(skewed),
    "skewed sources": demand(skewed_sources),
    "incast": demand(incast),
    "one pair": demand(one_pair),
}


@pytest.mark.parametrize("name", ADVERSARIAL)
def test_adversarial_cases_are_certified(name: str) -> None:
    """Badly scaled or nearly disconnected: the gap is reached, and the checker agrees."""
    flow = by_steps(ADVERSARIAL[name], COARSE)
    assert flow.status.done
    assert check_flow(flow).gap <= 1e-3


def hubs_and_spokes() -> Topology:
    """Return a ring of six with a narrow and a wide switch between all, five orders apart."""
    links = [(node, (node + 1) % 6, 1.0) for node in range(6)]
    for hub, width in ((6, 3e-3), (7, 3e2)):
        links += [pair for node in range(6) for pair in ((node, hub, width), (hub, node, width))]
    return Topology.from_links("hubs", 8, links, list(range(6)))


@pytest.mark.parametrize("symmetry", [False, True])
def test_where_steps_are_slow_the_status_says_so(
    symmetry: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A gap that is not reached is no wrong number, and `auto` has the linear program."""
    monkeypatch.setattr(first_order_search, "STEP_DEFAULTS", StepParams(most_steps=20))
    monkeypatch.setattr(concurrent, "SMALL_SIZE", 0)
    problem = Problem.all_to_all(hubs_and_spokes())
    flow = solve(problem, "first-order", replace(COARSE, symmetry=symmetry))
    optimum = solve(problem, "auto", ALONE)
    assert flow.status is Status.GAP_NOT_REACHED
    assert check_flow(flow).gap > 1e-3
    assert flow.bound <= optimum.time <= flow.time * (1 + 1e-9)
    assert check_flow(optimum).gap <= 1e-6


@pytest.mark.parametrize("gap", [1e-2, 1e-4, 1e-6])
def test_gaps_are_reached(gap: float) -> None:
    """Coarse and fine ones."""
    flow = by_steps(HARD, SolveSettings(gap=gap, workers=1))
    assert flow.status.done
    assert check_flow(flow).gap <= gap
    assert flow.time == pytest.approx(solve(HARD, "grouped", ALONE).time, rel=1.1 * gap)


@pytest.mark.parametrize("gap", [1e-3, 1e-6])
def test_the_number_of_threads_changes_nothing(gap: float, monkeypatch: pytest.MonkeyPatch) -> None:
    """After some steps one thread and two have the same flow to the last bit."""
    monkeypatch.setattr(first_order, "THREAD_VARIABLES", 1)
    monkeypatch.setattr(first_order_search, "STEP_DEFAULTS", StepParams(most_steps=100))
    one, two = (by_steps(HARD, SolveSettings(gap=gap, workers=count)) for count in (1, 2))
    assert (one.rate, one.bound) == (two.rate, two.bound)
    for key in ("start", "link", "amount"):
        assert np.array_equal(getattr(one, key), getattr(two, key))
    assert np.array_equal(one.certificate.lengths, two.certificate.lengths)


def test_a_time_limit_gives_the_best_so_far() -> None:
    """Out of time at once, there is a flow that the checker accepts, and a bound."""
    flow = by_steps(HARD, SolveSettings(gap=1e-9, workers=1, time_limit=1e-9))
    assert flow.status is Status.TIME_LIMIT
    assert flow.gap > 1e-9
    assert check_flow(flow).bound == pytest.approx(flow.bound)


def test_too_many_steps_give_the_best_so_far(monkeypatch: pytest.MonkeyPatch) -> None:
    """Before or after the first check, giving up leaves a flow and a bound."""
    for steps in (10, 150):
        monkeypatch.setattr(first_order_search, "STEP_DEFAULTS", StepParams(most_steps=steps))
        flow = by_steps(HARD, SolveSettings(gap=1e-9, workers=1))
        assert flow.status is Status.GAP_NOT_REACHED
        assert check_flow(flow).bound == pytest.approx(flow.bound)


def stop(_: object = None, *__: object) -> float:
    """Do as Ctrl-C does."""
    raise KeyboardInterrupt


@pytest.mark.parametrize("checks", [1, 3])
def test_ctrl_c_gives_the_best_so_far(checks: int) -> None:
    """Stopped after some checks, the flow is that of the best of them."""
    seen: list[str] = []

    def report(words: str) -> None:
        seen.append(words)
        if len(seen) == checks:
            raise KeyboardInterrupt

    flow = by_steps(HARD, SolveSettings(gap=1e-9, workers=1, report=report))
    assert flow.status is Status.INTERRUPTED
    assert "certified gap" in seen[0]
    assert check_flow(flow).bound == pytest.approx(flow.bound)


def test_ctrl_c_before_the_first_check_gives_an_answer_too(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Nothing is certified yet, so that is done then."""
    monkeypatch.setattr(Search, "_run_steps", stop)
    flow = by_steps(HARD, SolveSettings(gap=1e-9, workers=1))
    assert flow.status is Status.INTERRUPTED
    assert check_flow(flow).bound == pytest.approx(flow.bound)


def test_a_guess_near_the_optimum_saves_steps() -> None:
    """Started from an answer, the gap is reached by the first check."""
    program = whole_program(HARD, by_source(HARD))
    best = solve(HARD, "grouped", ALONE)
    volumes = np.zeros((best.groups, HARD.topology.links))
    volumes[np.repeat(np.arange(best.groups), np.diff(best.start)), best.link] = best.amount
    guess = Guess(volumes * best.time, best.certificate.lengths)
    reports: dict[bool, list[str]] = {False: [], True: []}
    for warm, seen in reports.items():
        asked = SolveSettings(gap=1e-5, workers=1, report=seen.append)
        answer = answer_by_steps(program, asked, guess if warm else None)
        assert answer.status.done
        assert answer.bound == pytest.approx(best.time, rel=1.1e-5)
    assert len(reports[True]) < len(reports[False])


def test_too_large_a_program_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    """The message says how large it is and what would fit."""
    monkeypatch.setattr(flow_program, "MOST_FLOWS", 100)
    with pytest.raises(InputError, match=r"1,600 flows, 20 groups times 80 links, .* at most 100"):
        answer_by_steps(whole_program(HARD, by_source(HARD)), COARSE)


TIMED = {
    "3-cube": (build("hypercube:3"), 3),
    "mesh": (build("mesh:2x3"), 4),
    "generalized Kautz": (build("genkautz:n=12,d=3"), 3),
    "fat tree": (build("fattree:k=4"), 2),
    "hosted torus": (with_host_bandwidth(build("torus:3x3"), 2.0), 3),
}


def timed_program(problem: Problem, steps: int) -> FlowProgram:
    """Return the time-stepped program of all sources."""
    expansion = Expansion(problem, steps)
    return expansion.program(expansion.groups(by_source(problem)))


@pytest.mark.parametrize("name", TIMED)
def test_time_stepped_programs_agree_with_the_linear_program(name: str) -> None:
    """Several budgets: volumes that fit their durations, and lengths that bound them."""
    topology, steps = TIMED[name]
    problem = Problem.all_to_all(topology)
    program = timed_program(problem, steps)
    answer = answer_by_steps(program, COARSE)
    optimum = solve_timestepped(problem, steps, ALONE).time
    start, link, volume = answer.entries
    volumes = np.zeros((len(program.weight), program.graph.links))
    volumes[np.repeat(np.arange(len(volumes)), np.diff(start)), link] = volume
    assert answer.status.done
    assert optimum * (1 - 1e-6) <= program.time(volumes) <= optimum * (1 + 1.1e-3)
    assert answer.bound <= optimum * (1 + 1e-6)
    assert program_bound(program, answer.lengths) == pytest.approx(answer.bound)


def test_auto_takes_steps_above_a_size(monkeypatch: pytest.MonkeyPatch) -> None:
    """Small programs go to a solver, large ones do not, unless a solver was asked for."""
    monkeypatch.setattr(sizes, "SPLIT_PAIRS", 10)
    assert solve(HARD).method == "grouped"
    monkeypatch.setattr(sizes, "FIRST_ORDER_VARIABLES", 100)
    stepped = solve(HARD, "auto", COARSE)
    assert stepped.method == "first-order"
    assert check_flow(stepped).gap <= 1e-3
    assert solve(HARD, "auto", replace(COARSE, solver="simplex")).method == "grouped"


def lost_its_way(
    problem: Problem, program: FlowProgram, settings: SolveSettings, method: str
) -> Flow:
    """Return what a solver of linear programs leaves when it fails: plain shortest paths."""
    plain = solve_by_steps(problem, program, replace(settings, gap=0.99), method)
    return replace(plain, status=Status.GAP_NOT_REACHED)


def test_steps_are_taken_where_a_solver_fails(monkeypatch: pytest.MonkeyPatch) -> None:
    """A solver that does not reach its gap is not the last word."""
    monkeypatch.setattr(methods, "solve_by_lp", lost_its_way)
    flow = solve_master(HARD, COARSE)
    assert flow.method == "first-order"
    assert flow.status.done
    assert check_flow(flow).gap <= 1e-3


def test_the_better_of_two_answers_is_kept(monkeypatch: pytest.MonkeyPatch) -> None:
    """Where steps fail too, the answer with the smaller gap is returned."""
    monkeypatch.setattr(first_order_search, "STEP_DEFAULTS", StepParams(most_steps=10))
    best = solve(HARD, "grouped", ALONE)
    nearly = replace(best, status=Status.GAP_NOT_REACHED)
    monkeypatch.setattr(methods, "solve_by_lp", lambda *_: nearly)
    assert solve_master(HARD, SolveSettings(gap=1e-9, workers=1)) is nearly
