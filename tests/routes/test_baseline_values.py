"""Times of the baselines that are known in closed form, from the paper, or by counting."""

from dataclasses import replace

import numpy as np
import pytest
from baseline_cases import CASES, case, optimum, settings

from alltoall.check.routes import check_routes
from alltoall.flows import sizes
from alltoall.ir.problem import Problem
from alltoall.ir.topology import Topology
from alltoall.routes import ROUTERS
from alltoall.routes.baselines.ewsp import equal_loads
from alltoall.topologies.operators import set_capacities
from alltoall.topologies.spec import build

KNOWN = (
    ("dor", "torus:3x3x3", 9.0),
    ("dor", "torus:4x4", 8.0),
    ("dor", "torus:4x4x4", 32.0),
    ("dor", "torus:6x6", 27.0),  # half-way ties split: 36 * 3 hops / 4 links
    ("dor", "torus:2x2x2", 4.0),  # a line of two nodes has one link, not two ways round
    ("dor", "torus:5", 3.0),
    ("dor", "torus:1x5", 3.0),
    ("dor", "mesh:4", 4.0),  # two nodes on either side of the middle link
    ("dor", "mesh:4x4", 16.0),
    ("dor", "hypercube:4", 8.0),
    ("dor", "hyperx:4x4", 4.0),  # every link of a dimension carries what goes to one row
    ("dor", "complete:5", 1.0),
    ("ilp-disjoint", "hypercube:3", 4.0),
    ("ilp-disjoint", "torus:3x3x3", 9.0),
    ("ilp-shortest", "torus:3x3x3", 9.0),
    ("ilp-disjoint", "bipartite:4x4", 3.0),  # 2.5 by many paths, not by one each
    ("ilp-shortest", "fattree:k=4", 15.0),  # a host's own link
    ("ilp-shortest", "dgx1", 3.0),
    ("ewsp", "hypercube:3", 4.0),
    ("ewsp", "torus:3x3x3", 9.0),
    ("ewsp", "bipartite:4x4", 2.5),
    ("ewsp", "torus:4x4x4", 32.0),
    ("ecmp", "ring:5", 3.0),
    ("sssp", "ring:5", 3.0),
)


@pytest.mark.parametrize(("method", "spec", "time"), KNOWN)
def test_known_time(method: str, spec: str, time: float) -> None:
    """The checker's time is the known one."""
    problem = Problem.all_to_all(build(spec))
    routes = ROUTERS[method](problem, settings(seconds=60.0, gap=1e-6))
    assert check_routes(routes).time == pytest.approx(time, rel=1e-9)


def test_dor_corrects_one_dimension_after_the_other() -> None:
    """From (0, 0) to (1, 2) on a 3x4 torus: down one row, then both ways round the columns."""
    routes = ROUTERS["dor"](Problem.all_to_all(build("torus:3x4")), settings())
    mine = np.flatnonzero((routes.source == 0) & (routes.destination == 6))
    heads = [
        routes.problem.topology.head[routes.link[routes.start[r] : routes.start[r + 1]]].tolist()
        for r in mine
    ]
    assert heads == [[4, 5, 6], [4, 7, 6]]
    assert routes.weight[mine].tolist() == [0.5, 0.5]


def test_dor_takes_the_links_of_the_grid_among_others() -> None:
    """Wider and additional links do not disturb a grid whose shape is told."""
    grid = build("mesh:2x3")
    links = [*zip(grid.tail, grid.head, strict=True), (0, 5), (1, 0)]
    more = Topology.from_links("mesh:2x3", 6, links)
    wide = set_capacities(more, {(0, 1): 3.0})
    routes = ROUTERS["dor"](Problem.all_to_all(wide), replace(settings(), shape=(2, 3)))
    assert check_routes(routes).max_routes_per_pair == 1
    assert routes.link.max() < grid.links


@pytest.mark.parametrize("name", [*CASES, "torus:6x6"])
def test_ewsp_loads_are_those_of_counting(name: str) -> None:
    """Listed or peeled, the paths put on every link what counting paths says."""
    problem = case(name) if name in CASES else Problem.all_to_all(build(name))
    routes = ROUTERS["ewsp"](problem, settings())
    assert routes.load() == pytest.approx(equal_loads(problem), rel=1e-9)


def test_ewsp_peels_where_paths_are_too_many_to_list() -> None:
    """On a 9x9 mesh corners have 12870 shortest paths; few routes carry the same loads."""
    problem = Problem.all_to_all(build("mesh:9x9"))
    routes = ROUTERS["ewsp"](problem, settings())
    report = check_routes(routes)
    load = equal_loads(problem)
    assert routes.load() == pytest.approx(load, rel=1e-9)
    assert report.time == pytest.approx(float(load.max()), rel=1e-9)
    assert report.max_routes_per_pair <= max(sizes.LISTED_PATHS, problem.topology.links)


def test_ewsp_gives_listed_paths_the_same_weight() -> None:
    """Opposite corners of the 3-cube have six shortest paths, a sixth each."""
    routes = ROUTERS["ewsp"](case("hypercube:3"), settings())
    mine = (routes.source == 0) & (routes.destination == 7)
    assert routes.weight[mine] == pytest.approx(np.full(6, 1 / 6))


@pytest.mark.parametrize("method", ["sssp", "ewsp"])
def test_shortest_paths_lose_clearly_on_genkautz(method: str) -> None:
    """The paper reports up to 1.6 times the optimum; at N = 50 it is well above 1.25."""
    problem = Problem.all_to_all(build("genkautz:n=50,d=4"))
    fptas = ROUTERS["fptas"](problem, settings(60.0, epsilon=0.05))
    time = check_routes(ROUTERS[method](problem, settings())).time
    assert time > 1.25 * fptas.time


def test_sssp_is_two_thirds_worse_on_the_torus() -> None:
    """The paper's torus: more than half again as slow as the optimum."""
    assert ROUTERS["sssp"](case("torus:3x3x3"), settings()).time > 1.5 * 9.0


@pytest.mark.parametrize("method", ["ecmp", "sssp", "ewsp"])
@pytest.mark.parametrize("name", CASES)
def test_shortest_path_methods_take_shortest_paths(name: str, method: str) -> None:
    """No route has more hops than another method's route of the same pair."""
    problem = case(name)
    fewest = ROUTERS["ecmp"](problem, settings())
    routes = ROUTERS[method](problem, settings())
    hops: dict[int, int] = {}
    for each in (fewest, routes):
        pair = each.source * len(problem.topology.terminals) + each.destination
        for key, count in zip(pair.tolist(), np.diff(each.start).tolist(), strict=True):
            assert hops.setdefault(key, count) == count


@pytest.mark.parametrize("epsilon", [0.2, 0.1, 0.05])
@pytest.mark.parametrize("name", CASES)
def test_fptas_proves_that_it_is_within_epsilon(name: str, epsilon: float) -> None:
    """The recomputed time is within 3 epsilon of the bound that its own lengths prove."""
    routes = ROUTERS["fptas"](case(name), settings(60.0, epsilon=epsilon))
    report = check_routes(routes)
    assert report.gap <= 3 * epsilon
    assert routes.bound <= optimum(name) * (1 + 1e-6)


def test_fptas_with_capacities_over_six_orders_of_magnitude() -> None:
    """A ring with one hair-thin and one very wide link."""
    ring = [(i, (i + 1) % 6, 1.0) for i in range(6)] + [((i + 1) % 6, i, 1.0) for i in range(6)]
    ring[0] = (0, 1, 1e-3)
    ring[3] = (3, 4, 1e3)
    problem = Problem.all_to_all(Topology.from_links("uneven", 6, ring))
    assert check_routes(ROUTERS["fptas"](problem, settings(60.0))).gap <= 0.3


def test_fptas_with_a_small_epsilon_does_not_run_out_of_numbers() -> None:
    """Lengths span more orders of magnitude than a float, but only ratios matter."""
    routes = ROUTERS["fptas"](case("hypercube:3"), settings(60.0, epsilon=0.002))
    assert check_routes(routes).gap <= 0.006
