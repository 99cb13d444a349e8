"""`verify` proves of a lowered file no less than the artefact that it was made of carries."""

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from alltoall import flows
from alltoall.cli.wording import lines_of
from alltoall.errors import UsageError, VerificationError
from alltoall.flows.bounds import distance_bound
from alltoall.flows.methods import solve_grouped
from alltoall.ir.answer import Certificate
from alltoall.ir.demand import Demand
from alltoall.ir.flow import Flow
from alltoall.ir.problem import Problem
from alltoall.ir.routes import Routes
from alltoall.ir.schedule import Schedule
from alltoall.lowering import targets_for
from alltoall.lowering.public import lower
from alltoall.routes.search import find_routes
from alltoall.schedules.methods import find_schedule
from alltoall.settings import RouteSettings, SolveSettings
from alltoall.topologies.spec import build
from alltoall.verification import verify

NETWORK = "mesh:2x3"
"""Hops over capacity prove 3.57 of it, and the best cut 4, which is reached."""

PROBLEM = Problem.all_to_all(build(NETWORK))
ROUTES = find_routes(PROBLEM, "deadlock-free", RouteSettings(destination_based=True)).routes
SCHEDULE = find_schedule(PROBLEM).schedule
ROUTED = [name for name, target in targets_for(Routes).items() if target.read is not None]
PROGRAMS = [name for name, target in targets_for(Schedule).items() if target.read is not None]
"""Targets whose files are read back."""


@pytest.mark.parametrize("target", [*ROUTED, *PROGRAMS])
def test_no_format_loses_the_proof(target: str, tmp_path: Path) -> None:
    """With the topology alone, every file is held against the bound of its artefact."""
    answer = ROUTES if target in ROUTED else SCHEDULE
    lower(answer, to=target).save(tmp_path / "file")
    facts = verify(tmp_path / "file", topology=NETWORK).facts
    assert distance_bound(PROBLEM) < answer.bound
    assert facts["bound"] == pytest.approx(answer.bound)
    assert facts["gap"] == pytest.approx(answer.gap, abs=1e-6)
    assert "bound_slack" not in facts


def test_a_coarse_proof_says_so(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """Where the bound may be far below the optimum, verify says how far."""
    weak = Certificate(np.ones(PROBLEM.topology.links), distance_bound(PROBLEM))
    coarse = replace(flows.solve(PROBLEM), certificate=weak)
    monkeypatch.setattr(flows, "prove", lambda _: coarse)
    lower(ROUTES, to="ompi").save(tmp_path / "file")
    facts = verify(tmp_path / "file", topology=NETWORK).facts
    assert facts["bound_slack"] == pytest.approx(4 / distance_bound(PROBLEM) - 1)
    assert lines_of(facts)["proof"] == "the optimum is at most 12.00% above the bound"


def test_only_large_problems_are_proven_coarsely(monkeypatch: pytest.MonkeyPatch) -> None:
    """Small ones to the usual gap, others to one that takes a fraction of the time."""
    gaps: list[float] = []

    def noting(problem: Problem, settings: SolveSettings) -> Flow:
        gaps.append(settings.gap)
        return solve_grouped(problem, settings)

    monkeypatch.setattr(flows, "METHODS", {"grouped": noting})
    flows.prove(PROBLEM)
    monkeypatch.setattr(flows.sizes, "FIRST_ORDER_VARIABLES", 10)
    flows.prove(PROBLEM)
    assert gaps == [SolveSettings().gap, flows.REFERENCE_GAP]


@pytest.mark.parametrize("target", [name for name in ROUTED if name != "opensm"])
def test_uneven_demand_is_told(target: str, tmp_path: Path) -> None:
    """Lowered routes for an uneven demand are checked under it; most files cannot say it."""
    matrix = np.array([[0, 2, 0, 1], [0, 0, 1, 0], [3, 0, 0, 0], [0, 0, 0, 0.0]])
    problem = Problem(build("ring:4"), Demand(4, matrix))
    routes = find_routes(problem, "extp", RouteSettings(chunks=4)).routes
    lower(routes, to=target).save(tmp_path / "file")
    facts = verify(tmp_path / "file", topology="ring:4", demand=matrix).facts
    assert (facts["time"], facts["bound"]) == pytest.approx((routes.time, routes.bound))
    with pytest.raises(VerificationError, match=r"of the demand 1|another demand"):
        verify(tmp_path / "file", topology="ring:4")


def test_a_demand_needs_something_to_hold_it_against(tmp_path: Path) -> None:
    """Lowered routes need their topology as well; a program has its own chunks."""
    demand = 1 - np.eye(6)
    for answer, target, topology in ((ROUTES, "ompi", None), (SCHEDULE, "messages", NETWORK)):
        lower(answer, to=target).save(tmp_path / target)
        with pytest.raises(UsageError, match="a demand without a template; expected routes or"):
            verify(tmp_path / target, topology=topology, demand=demand)
