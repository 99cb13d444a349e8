"""pMCF under symmetry: the paths of one source per orbit and their images, the same optimum."""

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings

from alltoall.check.routes import check_routes
from alltoall.flows import solve
from alltoall.flows.symmetry.translations import Translations, find_translations
from alltoall.ir.arrays import Floats
from alltoall.ir.demand import Demand
from alltoall.ir.paths import Paths
from alltoall.ir.problem import Problem
from alltoall.ir.routes import Routes
from alltoall.ir.topology import Topology
from alltoall.lp.program import LinearProgram, LPResult
from alltoall.lp.settings import LPSettings, LPStatus
from alltoall.lp.solve import solve_program
from alltoall.paths.candidates import candidate_paths
from alltoall.routes import pmcf as path_mcf
from alltoall.routes.pmcf import path_program, route_pmcf
from alltoall.settings import PATH_SETS, RouteSettings, SolveSettings
from alltoall.topologies.operators import with_host_bandwidth
from alltoall.topologies.spec import build
from strategies import symmetric_problems

ALONE = SolveSettings(symmetry=False)


def by_distance(terminals: int) -> Floats:
    """Return a demand that a turn of a ring keeps: more to the next than to the others."""
    ahead = (np.arange(terminals) - np.arange(terminals)[:, None]) % terminals
    return np.where(ahead == 0, 0.0, np.where(ahead == 1, 3.0, 1.0))


def lopsided(terminals: int) -> Floats:
    """Return a demand that nothing keeps."""
    matrix = 1 + np.arange(terminals**2, dtype=np.float64).reshape(terminals, terminals) % 7
    np.fill_diagonal(matrix, 0.0)
    return matrix


def around_a_hub() -> Topology:
    """Return a ring of five with a switch in the middle and one wide cable from it to another.

    Turns of the ring leave the cable between the switches where it is.
    """
    edges = [(node, (node + 1) % 5, 1.0) for node in range(5)]
    edges += [(node, 5, 1.0) for node in range(5)] + [(6, node, 1.0) for node in range(5)]
    links = [link for u, v, width in edges[:5] for link in ((u, v, width), (v, u, width))]
    return Topology.from_links("hub", 7, [*links, *edges[5:], (5, 6, 1.5)], list(range(5)))


PROBLEMS = {
    "torus": Problem.all_to_all(build("torus:4x4")),
    "hypercube": Problem.all_to_all(build("hypercube:3")),
    "generalized Kautz": Problem.all_to_all(build("genkautz:n=20,d=4")),
    "few translations": Problem.all_to_all(build("genkautz:n=14,d=3")),
    "hosted torus": Problem.all_to_all(with_host_bandwidth(build("torus:3x3"), 2.0)),
    "a link that stays": Problem.all_to_all(around_a_hub()),
    "symmetric demand": Problem(build("ring:8"), Demand(8, by_distance(8))),
    "unsymmetric demand": Problem(build("torus:3x3"), Demand(9, lopsided(9))),
}


@pytest.fixture
def sizes(monkeypatch: pytest.MonkeyPatch) -> list[tuple[int, int]]:
    """Make use of symmetry at any size, and collect rows and columns of all programs solved."""
    found: list[tuple[int, int]] = []

    def solve_and_tell(program: LinearProgram, solver: str, asked: LPSettings) -> LPResult:
        rows, columns = program.matrix.shape
        found.append((rows, columns))
        return solve_program(program, solver, asked)

    monkeypatch.setattr("alltoall.flows.sizes.WHOLE_PATHS", 0)
    monkeypatch.setattr(path_mcf, "solve_program", solve_and_tell)
    return found


@pytest.mark.usefixtures("sizes")
@pytest.mark.parametrize("paths", ["shortest", "bounded", "columns"])
@pytest.mark.parametrize("name", PROBLEMS)
def test_symmetry_leaves_the_optimum_as_it_is(name: str, paths: str) -> None:
    """Where images of candidates are candidates: the same time, by the independent checker."""
    problem = PROBLEMS[name]
    reduced = check_routes(route_pmcf(problem, RouteSettings(paths=paths)))
    whole = check_routes(route_pmcf(problem, RouteSettings(paths=paths, solve=ALONE)))
    assert reduced.time == pytest.approx(whole.time, rel=1e-6)
    if paths == "columns":
        assert reduced.gap <= 1e-6
        assert reduced.time == pytest.approx(solve(problem, "grouped").time, rel=1e-6)


@pytest.mark.usefixtures("sizes")
@given(problem=symmetric_problems())
@settings(suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_columns_stay_exact_on_random_symmetric_problems(problem: Problem) -> None:
    """Parallel links, hubs, any widths and demands by difference."""
    report = check_routes(route_pmcf(problem, RouteSettings(paths="columns")))
    assert report.gap <= 1e-6


def images(paths: Paths, under: Translations) -> Paths:
    """Return the images of paths under all translations, node by node, without parallel links."""
    topology = under.symmetry.problem.topology
    named = {ends: at for at, ends in enumerate(zip(topology.tail, topology.head, strict=True))}
    where = {node: at for at, node in enumerate(topology.terminals)}
    moved = []
    for nodes in under.members:
        ends = zip(nodes[topology.tail[paths.link]], nodes[topology.head[paths.link]], strict=True)
        source, destination = (
            np.array([where[node] for node in nodes[topology.terminals[each]]])
            for each in (paths.source, paths.destination)
        )
        link = np.array([named[each] for each in ends])
        moved.append(Paths(source, destination, paths.start, link))
    return distinct(moved)


def distinct(parts: list[Paths]) -> Paths:
    """Return all paths of some sets, each once."""
    joined = Paths.join(parts)
    return joined.select(joined.equal()[0])


@pytest.mark.parametrize("paths", ["disjoint", "k-shortest"])
@pytest.mark.parametrize("name", ["torus", "generalized Kautz", "few translations", "hosted torus"])
def test_the_path_set_is_that_of_the_representatives_and_its_images(
    name: str, paths: str, sizes: list[tuple[int, int]]
) -> None:
    """The program over all images has the time of the lifted routes, which are among them."""
    problem, asked = PROBLEMS[name], RouteSettings(paths=paths, k=2)
    routes = route_pmcf(problem, asked)
    under = find_translations(problem)
    sources, _ = under.symmetry.representatives()
    every = candidate_paths(problem, asked)
    own = np.isin(every.source, sources)
    assert sizes[-1][1] == own.sum() + 1 < every.count + 1
    part = every.select(np.flatnonzero(own))
    whole = images(part, under)
    program, _ = path_program(problem, whole)
    best = solve_program(program, "auto", LPSettings())
    assert best.x is not None
    assert check_routes(routes).time == pytest.approx(best.x[-1], rel=1e-6)
    assert distinct([whole, routes]).count == whole.count


def weights_by_source(routes: Routes) -> set[tuple[float, ...]]:
    """Return the different sorted lists of weights that sources have."""
    sources = np.unique(routes.source)
    return {tuple(np.sort(routes.weight[routes.source == each]).round(9)) for each in sources}


@pytest.mark.usefixtures("sizes")
@pytest.mark.parametrize("paths", PATH_SETS)
def test_lifted_routes_weigh_the_same_for_all_sources_of_an_orbit(paths: str) -> None:
    """All links of an orbit carry the same, and routes come ordered by pair."""
    problem = PROBLEMS["symmetric demand"]
    routes = route_pmcf(problem, RouteSettings(paths=paths))
    assert len(weights_by_source(routes)) == 1
    orbit = find_translations(problem).symmetry.link_orbit
    load = routes.load()
    assert load == pytest.approx((np.bincount(orbit, load) / np.bincount(orbit))[orbit])
    pair = routes.source * 8 + routes.destination
    assert (np.diff(pair) >= 0).all()


def test_rows_are_pairs_of_representatives_and_orbits_of_links(
    sizes: list[tuple[int, int]],
) -> None:
    """A torus of 16 nodes has one source, so 15 pairs, and its 64 links are four orbits."""
    route_pmcf(PROBLEMS["torus"], RouteSettings())
    route_pmcf(PROBLEMS["torus"], RouteSettings(solve=ALONE))
    route_pmcf(PROBLEMS["unsymmetric demand"], RouteSettings())
    assert sizes == [(15 + 4, 15 * 4 + 1), (240 + 64, 240 * 4 + 1), (72 + 36, 72 * 4 + 1)]


def test_small_problems_are_solved_as_a_whole(
    sizes: list[tuple[int, int]], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Symmetry is used from a number of candidate paths on: 960 for the torus."""
    for least, rows in ((960, 15 + 4), (961, 240 + 64)):
        monkeypatch.setattr("alltoall.flows.sizes.WHOLE_PATHS", least)
        for paths in ("disjoint", "columns"):
            route_pmcf(PROBLEMS["torus"], RouteSettings(paths=paths))
            assert sizes[-1][0] == rows


@pytest.mark.usefixtures("sizes")
def test_without_an_answer_of_the_solver_the_routes_are_still_feasible(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Equal weights, lifted, with the bound of unit lengths."""
    nothing = LPResult(LPStatus.TIME_LIMIT, None, None)
    monkeypatch.setattr(path_mcf, "solve_program", lambda *_: nothing)
    asked = RouteSettings(paths="columns")
    report = check_routes(route_pmcf(PROBLEMS["generalized Kautz"], asked))
    assert 0 < report.bound <= report.time
