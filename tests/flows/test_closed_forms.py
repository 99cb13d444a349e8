"""Optima that are known in closed form."""

import numpy as np
import pytest

from alltoall.check.flow import check_flow
from alltoall.flows import METHODS, SolveSettings, solve
from alltoall.flows.bounds import distance_bound
from alltoall.ir.demand import Demand
from alltoall.ir.problem import Problem
from alltoall.ir.topology import Topology
from alltoall.topologies.operators import with_host_bandwidth
from alltoall.topologies.spec import build

KNOWN = {
    "hypercube:3": 4.0,
    "hypercube:4": 8.0,
    "bipartite:4x4": 2.5,
    "torus:3x3x3": 9.0,
    "torus:4x4": 8.0,
    "torus:4x8": 32.0,  # half the nodes to the other half over the 8 links that cut the long side
    "ring:5": 3.0,
    "ring:6": 4.5,
    "complete:8": 1.0,
    "fattree:k=4": 15.0,  # a host's own link
}


@pytest.mark.parametrize("method", ["decomposed", "decomposed-lp", "grouped"])
@pytest.mark.parametrize(("spec", "time"), KNOWN.items())
def test_known_optimum(spec: str, time: float, method: str) -> None:
    """The solved time is the known one, and the checker agrees."""
    flow = solve(Problem.all_to_all(build(spec)), method)
    assert flow.time == pytest.approx(time, rel=1e-8)
    assert check_flow(flow).gap <= 1e-8


@pytest.mark.parametrize("spec", ["hypercube:3", "bipartite:4x4", "ring:6", "torus:3x3"])
def test_link_reaches_the_known_optimum(spec: str) -> None:
    """The per-commodity program has the same optimum."""
    problem = Problem.all_to_all(build(spec))
    assert solve(problem, "link").time == pytest.approx(solve(problem).time, rel=1e-8)


@pytest.mark.parametrize(
    "spec", ["ring:7", "complete:5", "bipartite:3x3", "hypercube:3", "torus:3x3", "torus:4x4x4"]
)
def test_edge_transitive_graphs_equal_the_distance_bound(spec: str) -> None:
    """If all links are alike, all can be used alike, and hops are the only cost."""
    problem = Problem.all_to_all(build(spec))
    assert solve(problem).time == pytest.approx(distance_bound(problem), rel=1e-8)


def test_host_bottleneck_of_the_paper() -> None:
    """The 27-node torus with host bandwidth 4 has flow 2/27; without, 1/9."""
    torus = build("torus:3x3x3")
    hosted = solve(Problem.all_to_all(with_host_bandwidth(torus, 4.0)))
    assert hosted.rate == pytest.approx(2 / 27, rel=1e-9)
    assert solve(Problem.all_to_all(torus)).rate == pytest.approx(1 / 9, rel=1e-9)
    assert 26 * hosted.rate * 3.125 == pytest.approx(6.0185, abs=1e-3)


def test_wide_hosts_cost_nothing() -> None:
    """Hosts as fast as all their links do not slow the all-to-all down."""
    hosted = with_host_bandwidth(build("hypercube:3"), 3.0)
    assert solve(Problem.all_to_all(hosted)).time == pytest.approx(4.0, rel=1e-9)


def test_star_of_a_switch_is_limited_by_the_ports() -> None:
    """Four terminals around a switch: each sends three shards over its one link."""
    links = [(t, 4) for t in range(4)] + [(4, t) for t in range(4)]
    topology = Topology.from_links("star", 5, links, terminals=range(4))
    assert solve(Problem.all_to_all(topology)).time == pytest.approx(3.0)


def test_single_pair_is_a_maximum_flow() -> None:
    """With one pair the rate is its maximum flow: two disjoint paths, capacities 1 and 2."""
    links = [(0, 1, 1.0), (1, 3, 1.0), (0, 2, 2.0), (2, 3, 5.0), (3, 0, 1.0)]
    topology = Topology.from_links("pair", 4, links)
    matrix = np.zeros((4, 4))
    matrix[0, 3] = 1.0
    flow = solve(Problem(topology, Demand(4, matrix)))
    assert flow.rate == pytest.approx(3.0)
    assert flow.groups == 1


@pytest.mark.parametrize("solver", ["simplex", "ipm", "hipo", "pdlp"])
def test_every_solver_closes_the_gap(solver: str) -> None:
    """All HiGHS solvers give a certified optimum of the same program."""
    settings = SolveSettings(solver=solver, gap=1e-5)
    flow = solve(Problem.all_to_all(build("genkautz:n=12,d=3")), "grouped", settings)
    assert flow.status.done
    assert check_flow(flow).gap <= 1e-5


@pytest.mark.parametrize("method", METHODS)
def test_capacities_over_six_orders_of_magnitude(method: str) -> None:
    """A ring with one hair-thin and one very wide link is still solved and proven."""
    ring = [(i, (i + 1) % 6, 1.0) for i in range(6)] + [((i + 1) % 6, i, 1.0) for i in range(6)]
    ring[0] = (0, 1, 1e-3)
    ring[3] = (3, 4, 1e3)
    flow = solve(Problem.all_to_all(Topology.from_links("uneven", 6, ring)), method)
    assert check_flow(flow).gap <= 1e-5
