"""Weights as exact fractions: the fewest chunks, at no loss, and never by force."""

from dataclasses import replace
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from alltoall import Demand, Problem, Topology
from alltoall.check.routes import check_routes
from alltoall.ir.files.json.saved_answers import answer_from_json, answer_to_json
from alltoall.ir.routes import Routes
from alltoall.paths.candidates import candidate_paths
from alltoall.routes import route
from alltoall.routes import whole_chunks as module
from alltoall.routes.deadlock_free.best import solve_deadlock_free
from alltoall.routes.pmcf import route_pmcf
from alltoall.routes.weights import route_extp
from alltoall.routes.whole_chunks import common_factor_chunks, exact_weights, fewest_chunks
from alltoall.settings import RouteSettings, SolveSettings
from alltoall.topologies.operators import drop_links, with_host_bandwidth
from alltoall.topologies.spec import build
from strategies import problems

SETTINGS = RouteSettings()
FEWEST = {
    "K4,4": (build("bipartite:4x4"), 2),
    "3-cube": (build("hypercube:3"), 1),
    "twisted 3-cube": (build("twisted-hypercube:3"), 1),
    "torus": (build("torus:3x3x3"), 1),
    "hosted torus": (with_host_bandwidth(build("torus:3x3x3"), 4.0), 1),
    "genkautz 8": (build("genkautz:n=8,d=4"), 2),
    "genkautz 16": (build("genkautz:n=16,d=4"), 7),
    "genkautz 32": (build("genkautz:n=32,d=4"), 4),
    "punctured torus": (drop_links(build("torus:3x3x3"), 3, seed=6), 17),
    "jellyfish": (build("jellyfish:n=20,d=4,seed=1"), 16),
}


def exact_time(routes: Routes) -> Fraction:
    """Return the time in rational numbers; capacities are halves at the finest."""
    assert routes.denominator is not None
    units = np.rint(routes.weight * routes.denominator).astype(np.int64)
    load = np.zeros(routes.problem.topology.links, dtype=np.int64)
    np.add.at(load, routes.link, units[routes.path_of_link])
    capacity = map(Fraction, routes.problem.topology.capacity.tolist())
    whole = zip(load.tolist(), capacity, strict=True)
    return max(Fraction(each, routes.denominator) / room for each, room in whole)


@pytest.mark.parametrize("method", ["extp", "pmcf"])
@pytest.mark.parametrize("name", FEWEST)
def test_the_denominator_is_the_least_that_the_time_allows(name: str, method: str) -> None:
    """Exact in rational numbers, as fast as the solver's weights, and so in the file."""
    topology, chunks = FEWEST[name]
    problem = Problem.all_to_all(topology)
    rough = (route_extp if method == "extp" else route_pmcf)(problem, SETTINGS)
    routes = route(problem, method)
    check_routes(routes)
    assert routes.denominator is not None
    assert float(exact_time(routes)) <= rough.time * (1 + 1e-12)
    if method == "extp":
        assert routes.denominator == chunks
        assert float(exact_time(routes)) == pytest.approx(routes.bound, rel=1e-12)
    again = answer_from_json(answer_to_json(routes), "file")
    assert again.denominator == routes.denominator
    assert exact_time(again) == exact_time(routes)


@given(problem=problems())
def test_nothing_is_lost_on_random_problems(problem: Problem) -> None:
    """Any demand, capacities and switches: as fast as before, and exact if it says so."""
    rough = route_extp(problem, SETTINGS)
    routes = fewest_chunks(rough, SETTINGS, anywhere=True)
    check_routes(routes)
    assert routes.time <= max(rough.time, rough.bound * (1 + 1e-6)) * (1 + 1e-8)
    if routes.denominator is not None:
        units = routes.weight * routes.denominator
        assert np.abs(units - np.rint(units)).max() <= 1e-9 * units.max()


@given(common=st.integers(1, 40), cuts=st.lists(st.integers(1, 39), max_size=3), seed=st.integers())
def test_noise_is_taken_off(common: int, cuts: list[int], seed: int) -> None:
    """Weights that stand for fractions become them, whatever the solver left on them."""
    ends = sorted({0, common, *(cut for cut in cuts if cut < common)})
    units = np.diff(ends)
    twins = Topology.from_links("twins", 2, [*[(0, 1)] * len(units), (1, 0)])
    noise = np.random.default_rng(abs(seed)).uniform(-1e-12, 1e-12, len(units) + 1)
    routes = bundle(twins, np.append(units / common, 1.0) + noise)
    exact = exact_weights(routes)
    assert exact.denominator == common // np.gcd.reduce(np.append(units, common))
    assert exact.weight.tolist() == pytest.approx([*(units / common), 1.0], abs=1e-15)


def bundle(topology: Topology, weight: np.ndarray) -> Routes:
    """Return a route per link, each of one hop."""
    rough = route_extp(Problem.all_to_all(topology), SETTINGS)
    return replace(
        rough,
        source=topology.tail,
        destination=topology.head,
        start=np.arange(topology.links + 1),
        link=np.arange(topology.links),
        weight=weight,
    )


TWINS = Topology.from_links("twins", 2, [(0, 1), (0, 1), (1, 0)])


def test_weights_that_stand_for_no_fractions_stay() -> None:
    """No common factor up to the limit; a snap that would not add up; one that would cost time."""
    root = 0.5**0.5
    assert exact_weights(bundle(TWINS, np.array([root, 1 - root, 1.0]))).denominator is None
    short = bundle(TWINS, np.array([0.5, 0.25, 1.0]))
    assert exact_weights(short) is short
    near = bundle(TWINS, np.array([0.5, 0.5, 1 - 5e-8]))
    assert exact_weights(near) is near


def test_what_is_exact_already_is_left_alone() -> None:
    """A denominator that is known is not looked for again, even if a smaller one would do."""
    known = replace(bundle(TWINS, np.array([0.5, 0.5, 1.0])), denominator=4)
    assert exact_weights(known) is known


def test_routes_too_light_for_a_chunk_are_dropped() -> None:
    """A billionth of a shard is the solver's, not the user's."""
    exact = exact_weights(bundle(TWINS, np.array([1 - 2e-9, 2e-9, 1.0])))
    assert exact.denominator == 1
    assert exact.link.tolist() == [0, 2]


def test_the_common_factor_has_a_limit() -> None:
    """At the limit it counts, one beyond it does not."""
    sevenths = bundle(TWINS, np.array([3 / 7, 4 / 7, 1.0]))
    assert common_factor_chunks(sevenths, most_chunks=7) == 7
    assert common_factor_chunks(sevenths, most_chunks=6) is None
    mixed = Topology.from_links("mixed", 2, [(0, 1)] * 3 + [(1, 0)] * 2)
    routes = bundle(mixed, np.array([1 / 3, 1 / 3, 1 / 3, 0.25, 0.75]))
    assert common_factor_chunks(routes, most_chunks=12) == 12
    assert common_factor_chunks(routes, most_chunks=11) is None


def test_path_sets_are_kept() -> None:
    """The chunks of pmcf take its candidates, and no other paths."""
    problem = Problem.all_to_all(build("torus:3x3x3"))
    routes = route(problem, "pmcf")
    allowed = candidate_paths(problem, SETTINGS)
    width = allowed.keys().shape[1]
    keys = {tuple(row) for row in allowed.keys().tolist()}
    for row in routes.keys().tolist():
        assert tuple(row + [-1] * (width - len(row))) in keys


def test_layers_are_kept() -> None:
    """Chunks of deadlock-free routes keep to layered paths, and the layers stay acyclic."""
    problem = Problem.all_to_all(build("ring:6"))
    rough = solve_deadlock_free(problem, 1, SETTINGS)
    exact = fewest_chunks(rough, SETTINGS)
    assert check_routes(exact).layers == 1
    assert exact.time <= rough.time * (1 + 1e-6)


def test_effort_is_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    """Where it would take too many chunks, or time is up, the weights stay as they were."""
    rough = route_extp(Problem.all_to_all(build("torus:3x3x3")), SETTINGS)
    hurry = RouteSettings(solve=SolveSettings(time_limit=1e-9))
    assert fewest_chunks(rough, hurry, anywhere=True).time == rough.time
    monkeypatch.setattr(module, "EXACT_CHUNKS_TRIED", 701)
    assert fewest_chunks(rough, SETTINGS, anywhere=True).denominator != 1
    monkeypatch.setattr(module, "EXACT_CHUNKS_TRIED", 702)
    assert fewest_chunks(rough, SETTINGS, anywhere=True).denominator == 1


def test_no_more_routes_than_allowed() -> None:
    """Chunks leave their paths only where that cannot make too many routes."""
    rough = route_extp(Problem.all_to_all(build("genkautz:n=32,d=4")), SETTINGS)
    most_chunks = int(rough.routes_per_pair().max())
    limited = fewest_chunks(rough, RouteSettings(max_routes=most_chunks), anywhere=True)
    assert int(limited.routes_per_pair().max()) <= most_chunks


def test_uneven_demand_gets_whole_chunks_where_it_can() -> None:
    """Demands of halves: two chunks per shard at least, even where one would keep the time."""
    matrix = np.array([[0.0, 0.5, 1.0], [1.5, 0.0, 1.0], [1.0, 2.0, 0.0]])
    problem = Problem(build("complete:3"), Demand(3, matrix))
    routes = route(problem)
    check_routes(routes)
    assert routes.denominator is not None
    assert routes.denominator % 2 == 0
    assert (routes.denominator * matrix % 1 == 0).all()
