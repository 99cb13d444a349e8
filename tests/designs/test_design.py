"""Designs: certified, compared with every family, and chosen by what was asked for."""

import csv
import io

import numpy as np
import pytest

import alltoall
from alltoall.check.flow import check_flow
from alltoall.designs.candidate import certify_candidate, with_failures
from alltoall.designs.design import demand_bound
from alltoall.designs.wiring import regular_wiring
from alltoall.errors import UsageError
from alltoall.flows.bounds import cable_bound, distance_bound, regular_bound
from alltoall.ir.demand import Demand
from alltoall.ir.problem import Problem
from alltoall.settings import SolveSettings
from alltoall.topologies.operators import remove_links

FOUND = alltoall.design(16, degree=3, seed=1)
CABLES = alltoall.design(14, degree=3, bidirectional=True)


def test_the_bound_holds_and_the_best_is_certified() -> None:
    """By a solver of its own: the flow of the best is checked, and no candidate is below."""
    for found in (FOUND, CABLES):
        assert found.bound <= found.best.flow.bound <= found.best.time * (1 + 1e-9)
        assert found.best is min(found.candidates, key=lambda each: each.time)
        check_flow(found.best.flow)
        again = alltoall.solve(found.topology, gap=1e-4)
        assert again.time == pytest.approx(found.best.time, rel=2e-3)
        names = [each.name for each in found.candidates]
        assert any(each.searched for each in found.candidates)
        assert "jellyfish:n=16,d=3,seed=1" in names or found is CABLES


def test_the_search_beats_the_families() -> None:
    """Here by more than the gaps of both; of 14 nodes with 3 cables Heawood's graph is the best."""
    kautz = next(each for each in FOUND.candidates if each.name.startswith("genkautz"))
    found = min(each.time for each in FOUND.candidates if each.searched)
    assert FOUND.best.time <= found < 0.9 * kautz.time
    assert CABLES.best.time == pytest.approx(CABLES.bound) == pytest.approx(9.0)
    assert CABLES.best.diameter == 3
    assert CABLES.topology.bidirectional


def test_the_bound_of_cables_is_that_of_their_trees() -> None:
    """On Moore graphs it is reached; of one-way links it is never above."""
    for spec, degree in (("complete:6", 5), ("slimfly:q=5", 7), ("ring:9", 2)):
        topology = alltoall.topology(spec)
        bound = float(cable_bound(topology.nodes, degree))
        assert distance_bound(Problem.all_to_all(topology)) == pytest.approx(bound)
    assert cable_bound(2, 1) == 1
    for nodes in range(3, 60):
        for degree in range(2, 8):
            assert regular_bound(nodes, degree) <= cable_bound(nodes, degree)
            wiring = regular_wiring(64, degree, True)
            assert demand_bound(wiring, Demand(64)) == pytest.approx(
                float(regular_bound(64, degree))
            )
    with pytest.raises(UsageError, match="one cable each"):
        cable_bound(3, 1)


def test_families_that_do_not_fit_say_where_they_do() -> None:
    """Nearest sizes, in the summary too."""
    assert FOUND.absent["hypercube"] == (8,)
    assert FOUND.to_json()["absent"]["kautz"] == [12, 36]


def test_a_patch_list_is_the_network() -> None:
    """Every port of every node is used once."""
    for found in (FOUND, CABLES):
        rows = list(csv.DictReader(io.StringIO(found.patch_list())))
        both = not found.directed
        assert len(rows) == found.topology.links // (2 if both else 1)
        sent = [(row["from"], row["from_port"]) for row in rows]
        received = [(row["to"], row["to_port"]) for row in rows]
        if both:
            sent, received = sent + received, received + sent
        expected = {(str(v), str(p)) for v in range(found.nodes) for p in (1, 2, 3)}
        assert set(sent) == set(received) == expected
        assert len(sent) == len(received) == len(expected)
        links = {(int(row["from"]), int(row["to"])) for row in rows}
        topology = found.topology
        assert links <= set(zip(topology.tail.tolist(), topology.head.tolist(), strict=True))


def test_equal_seeds_give_equal_designs() -> None:
    """And time is not part of it."""
    assert alltoall.design(16, degree=3, seed=1).topology == FOUND.topology


def test_the_objective_decides() -> None:
    """The diameter first, or the time after the worst failure."""
    near = alltoall.design(18, degree=3, bidirectional=True, objective="alltoall+diameter")
    assert near.best.diameter == min(each.diameter for each in near.candidates)
    robust = alltoall.design(10, degree=3, objective="alltoall+failures", failures=40)
    known = [each for each in robust.candidates if each.failures is not None]
    assert known
    assert robust.best.failures is not None
    assert robust.best.failures.worst == min(each.failures.worst for each in known if each.failures)
    assert robust.best.failures.all_known
    assert robust.best.failures.worst >= robust.best.time * (1 - 1e-3)


def test_failures_of_one_orbit_are_solved_once() -> None:
    """All cables of a torus fail alike; without one, a ring of one-way links is cut."""
    settings = SolveSettings(gap=1e-3)
    torus_graph = alltoall.topology("torus:4x4")
    torus = certify_candidate(Problem.all_to_all(torus_graph), 1.0, False, settings)
    failures = with_failures(torus, 5, 0, settings).failures
    assert failures is not None
    assert (failures.tried, failures.all_known) == (1, True)
    broken = alltoall.solve(remove_links(torus.topology, [(0, 1)]), gap=1e-3).time
    assert failures.worst == failures.mean == pytest.approx(broken, rel=2e-3)
    circle = alltoall.topology("circulant:n=4,jumps=1,directed=true")
    cut = certify_candidate(Problem.all_to_all(circle), 1.0, False, settings)
    found = with_failures(cut, 2, 0, settings)
    assert found.failures is not None
    assert found.failures.worst == np.inf
    assert found.summary()["worst_failure"] is None


def test_a_workload_is_what_the_time_is_for() -> None:
    """Two groups that keep to themselves are joined within, and the bound is that of the demand."""
    matrix = np.kron(np.eye(2), np.ones((6, 6))) + 0.01
    np.fill_diagonal(matrix, 0.0)
    found = alltoall.design(12, degree=3, workload=matrix)
    assert found.best.flow.problem.demand.matrix is not None
    assert found.bound <= found.best.time
    same = found.topology.tail // 6 == found.topology.head // 6
    assert same.mean() > 0.8
    uniform = alltoall.solve(alltoall.design(12, degree=3).topology, demand=matrix)
    assert found.best.time < uniform.time


def test_layers_limit_the_choice() -> None:
    """Every candidate says how many it needs; what none can do is refused."""
    found = alltoall.design(8, degree=3, layers=3)
    assert all(each.layers is not None for each in found.candidates)
    assert found.best.layers is not None
    assert found.best.layers <= 3
    with pytest.raises(UsageError, match="no candidate gets by with 1 virtual layer"):
        alltoall.design(11, degree=3, layers=1)


def test_layers_that_no_time_was_left_to_count() -> None:
    """That is said, where nothing is known to be allowed."""
    with pytest.raises(UsageError, match="time was up before it was known how many virtual"):
        alltoall.design(12, degree=3, layers=1, stop=lambda: True)


def test_a_stopped_search_has_an_answer() -> None:
    """The best so far, certified, and the design says that it is not complete."""
    found = alltoall.design(42, degree=4, stop=lambda: True)
    assert not found.complete
    assert found.best.time >= found.bound * (1 - 1e-9)
    short = alltoall.design(20, degree=3, time_limit=1.0)
    assert short.best.time >= short.bound * (1 - 1e-9)


@pytest.mark.parametrize("bidirectional", [True, False])
def test_a_design_is_never_worse_than_the_catalogue(bidirectional: bool) -> None:
    """Not even if there is no time to search, nor to look at families."""
    found = alltoall.design(90, degree=4, bidirectional=bidirectional, stop=lambda: True)
    spec = "best:n=90,d=4" + (",bidirectional=true" if bidirectional else "")
    known = alltoall.solve(spec, method="first-order", gap=1e-3)
    assert spec in [each.name for each in found.candidates]
    assert found.best.time <= known.time * (1 + 1e-9)


@pytest.mark.parametrize(
    ("asked", "expected"),
    [
        ({"objective": "speed"}, "unknown objective 'speed'"),
        ({"layers": 0}, "0 virtual layers"),
        ({"failures": -1}, "-1 failures"),
        ({"seed": -1}, "seed -1"),
    ],
)
def test_what_cannot_be_is_refused(asked: dict[str, object], expected: str) -> None:
    """Before any work."""
    with pytest.raises(UsageError, match=expected):
        alltoall.design(8, degree=3, **asked)  # type: ignore[arg-type]
    with pytest.raises(UsageError, match="expected at most 4096"):
        alltoall.design(5000, degree=3)
