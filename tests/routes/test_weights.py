"""Routing methods of our own: exact where they should be, near-optimal with few routes."""

import math

import numpy as np
import pytest
from hypothesis import given

from alltoall.check.routes import check_routes
from alltoall.errors import InputError, UsageError
from alltoall.flows import sizes, solve
from alltoall.ir.files.json.saved_answers import answer_from_json, answer_to_json
from alltoall.ir.problem import Problem
from alltoall.paths.candidates import candidate_paths
from alltoall.routes.pmcf import route_pmcf
from alltoall.routes.single import route_few, route_single
from alltoall.routes.weights import route_extp
from alltoall.settings import RouteSettings
from alltoall.topologies.operators import drop_links, drop_nodes, with_host_bandwidth
from alltoall.topologies.spec import build
from strategies import problems

COLUMNS = RouteSettings(paths="columns")
FABRICS = {
    "3-cube": build("hypercube:3"),
    "twisted 3-cube": build("twisted-hypercube:3"),
    "K4,4": build("bipartite:4x4"),
    "torus": build("torus:3x3x3"),
    "links removed": drop_links(build("torus:3x3x3"), 3, seed=1),
    "nodes removed": drop_nodes(build("torus:3x3x3"), 3, seed=1),
    "hosted torus": with_host_bandwidth(build("torus:3x3"), 2.0),
    "genkautz": build("genkautz:n=27,d=4"),
    "fat tree": build("fattree:k=4"),
    "DGX-1": build("dgx1"),
}


@pytest.mark.parametrize("name", FABRICS)
def test_columns_and_extraction_reach_the_link_based_optimum(name: str) -> None:
    """Path weights over all paths, and the paths of the flow itself, are optimal and prove it."""
    problem = Problem.all_to_all(FABRICS[name])
    time = solve(problem, "grouped").time
    for routes in (route_pmcf(problem, COLUMNS), route_extp(problem, RouteSettings())):
        report = check_routes(routes)
        assert report.time == pytest.approx(time, rel=1e-6)
        assert report.gap <= 1e-6


@given(problem=problems())
def test_columns_and_extraction_are_exact_on_random_problems(problem: Problem) -> None:
    """Any demand, capacities and switches."""
    time = solve(problem).time
    for routes in (route_pmcf(problem, COLUMNS), route_extp(problem, RouteSettings())):
        assert check_routes(routes).time == pytest.approx(time, rel=1e-6)


@pytest.mark.parametrize("paths", ["disjoint", "shortest", "bounded", "k-shortest"])
@pytest.mark.parametrize("name", ["3-cube", "K4,4", "genkautz", "links removed", "DGX-1"])
def test_path_sets_never_beat_the_bound(name: str, paths: str) -> None:
    """A restricted path set is feasible, and at best optimal."""
    routes = route_pmcf(Problem.all_to_all(FABRICS[name]), RouteSettings(paths=paths, k=4))
    assert check_routes(routes).gap >= -1e-9


def test_disjoint_paths_share_no_link_and_are_as_many_as_the_degree() -> None:
    """On the 3-cube every pair has three link-disjoint paths."""
    paths = candidate_paths(Problem.all_to_all(FABRICS["3-cube"]), RouteSettings(paths="disjoint"))
    pair = paths.source * 8 + paths.destination
    assert (np.unique(pair, return_counts=True)[1] == 3).all()
    entry_pair = np.repeat(pair, np.diff(paths.start))
    assert len(np.unique(entry_pair * 24 + paths.link)) == len(paths.link)


def test_shortest_paths_are_all_there() -> None:
    """Antipodes of the 3-cube have six shortest paths, k hops apart have k factorial."""
    paths = candidate_paths(Problem.all_to_all(FABRICS["3-cube"]), RouteSettings(paths="shortest"))
    counts = np.unique(paths.source * 8 + paths.destination, return_counts=True)[1]
    assert sorted(counts.tolist()) == sorted([1] * 24 + [2] * 24 + [6] * 8)


def test_k_shortest_are_the_shortest() -> None:
    """On a ring there are two simple paths per pair, the short way round first."""
    ring = Problem.all_to_all(build("ring:5"))
    paths = candidate_paths(ring, RouteSettings(paths="k-shortest", k=3))
    assert paths.count == 2 * 20
    assert np.diff(paths.start)[:2].tolist() == [1, 4]


@pytest.mark.parametrize("name", FABRICS)
def test_single_has_one_route_per_pair_and_few_stays_within_its_loss(name: str) -> None:
    """One route per pair near the bound; a few reach it within the loss."""
    problem = Problem.all_to_all(FABRICS[name])
    single = check_routes(route_single(problem, RouteSettings()))
    assert single.max_routes_per_pair == 1
    few = check_routes(route_few(problem, RouteSettings(loss=0.05, max_routes=8)))
    assert few.max_routes_per_pair <= 8
    assert few.gap <= 0.05


@pytest.mark.parametrize("spec", ["torus:3x3x3", "genkautz:n=50,d=4", "hypercube:4"])
def test_single_reaches_the_bound_rounded_up_to_a_whole_load(spec: str) -> None:
    """No single-route scheme with unit links can do better than a whole number."""
    routes = route_single(Problem.all_to_all(build(spec)), RouteSettings())
    assert routes.time <= 1.01 * math.ceil(routes.bound - 1e-6)


@given(problem=problems())
def test_single_is_feasible_on_random_problems_and_survives_json(problem: Problem) -> None:
    """Checked, written, read back, and equal."""
    routes = route_few(problem, RouteSettings(loss=0.5, max_routes=3))
    report = check_routes(routes)
    value = answer_to_json(routes)
    again = answer_from_json(value, "file")
    assert check_routes(again) == report
    assert answer_to_json(again) == value


def test_too_many_paths_are_refused() -> None:
    """All shortest paths of a large torus are not enumerated."""
    problem = Problem.all_to_all(build("hypercube:9"))
    with pytest.raises(InputError, match="too many such paths"):
        candidate_paths(problem, RouteSettings(paths="bounded", slack=4))


@pytest.mark.parametrize(
    "wrong", [{"paths": "magic"}, {"k": 0}, {"max_routes": 0}, {"loss": 1.0}, {"epsilon": 0.0}]
)
def test_bad_settings_are_refused(wrong: dict[str, object]) -> None:
    """Each with what is expected."""
    with pytest.raises(UsageError, match="expected"):
        RouteSettings(**wrong)  # type: ignore[arg-type]


def test_very_many_pairs_take_the_bound_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    """Without negotiation, and with a flow that stands for its orbits, routes are still near it."""
    monkeypatch.setattr(sizes, "NEGOTIATED_CHUNKS", 10)
    routes = route_single(Problem.all_to_all(build("genkautz:n=50,d=4")), RouteSettings())
    report = check_routes(routes)
    assert report.max_routes_per_pair == 1
    assert report.time <= 35
