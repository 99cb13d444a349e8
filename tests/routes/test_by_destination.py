"""Routes by tables of destinations: where two to one terminal meet, they go on together."""

from collections import defaultdict
from dataclasses import replace

import numpy as np
import pytest

from alltoall.check import routes as verify_routes
from alltoall.check.routes import check_destinations, check_routes
from alltoall.errors import VerificationError
from alltoall.ir.demand import Demand
from alltoall.ir.problem import Problem
from alltoall.ir.routes import Routes
from alltoall.ir.words import ProgressMessage
from alltoall.lowering import TARGETS
from alltoall.lowering.options import Options
from alltoall.routes.baselines.tables import route_sssp
from alltoall.routes.public import route
from alltoall.routes.single import route_single
from alltoall.settings import RouteSettings, SolveSettings
from alltoall.topologies.operators import with_host_bandwidth
from alltoall.topologies.spec import build
from alltoall.verification import verify_text

SETTINGS = RouteSettings(destination_based=True)
SPECS = ("genkautz:n=20,d=3", "jellyfish:n=16,d=3,seed=1", "torus:3x4", "hypercube:3", "mesh:3x3")


def next_links(routes: Routes) -> dict[tuple[int, int], set[int]]:
    """Return all links by which each node sends on to each terminal."""
    found: dict[tuple[int, int], set[int]] = defaultdict(set)
    for hop, path in enumerate(routes.path_of_link.tolist()):
        link = int(routes.link[hop])
        node = int(routes.problem.topology.tail[link])
        found[node, int(routes.destination[path])].add(link)
    return found


@pytest.mark.parametrize("spec", SPECS)
def test_a_node_has_one_next_link(spec: str) -> None:
    """For every terminal; and it is never worse than the trees that it began with."""
    problem = Problem.all_to_all(build(spec))
    routes = route_single(problem, SETTINGS)
    check_routes(routes)
    check_destinations(routes)
    assert all(len(links) == 1 for links in next_links(routes).values())
    assert routes.time <= route_sssp(problem, SETTINGS).time
    assert routes == route_single(problem, SETTINGS)


def test_tables_reach_what_single_routes_do() -> None:
    """On a network of one-way links, where the trees of sssp are 40 % slower."""
    problem = Problem.all_to_all(build("genkautz:n=32,d=4"))
    assert route_single(problem, SETTINGS).time == 22.0
    assert route_sssp(problem, SETTINGS).time > 28


def test_uneven_demand_hosts_and_no_time() -> None:
    """Pairs that send nothing have no route; switches pass on; without time it is sssp."""
    rng = np.random.default_rng(1)
    matrix = rng.uniform(0.1, 1.0, (12, 12)) * (rng.random((12, 12)) < 0.5)
    np.fill_diagonal(matrix, 0.0)
    for problem in (
        Problem(build("torus:3x4"), Demand(12, matrix)),
        Problem.all_to_all(with_host_bandwidth(build("ring:6"), 1.5)),
    ):
        routes = route_single(problem, SETTINGS)
        check_routes(routes)
        check_destinations(routes)
    late = replace(SETTINGS, solve=SolveSettings(time_limit=1e-9))
    problem = Problem.all_to_all(build("torus:3x4"))
    assert route_single(problem, late).time == route_sssp(problem, late).time


@pytest.mark.parametrize("block", [1, 7, 4_000_000])
def test_routes_that_part_are_found(block: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """The node, the terminal and the layer are named; in layers of their own they may part."""
    monkeypatch.setattr(verify_routes, "BLOCK", block)
    routes = route("genkautz:n=20,d=3", method="single:layering=none")
    parted = {key for key, links in next_links(routes).items() if len(links) > 1}
    assert parted
    with pytest.raises(VerificationError, match=r"over several links in layer 0") as caught:
        check_destinations(routes)
    words = str(caught.value).split()
    assert (int(words[words.index("node") + 1]), int(words[words.index("to") + 2])) in parted
    check_destinations(replace(routes, layer=np.arange(routes.count)))


def test_the_tables_go_to_switches() -> None:
    """OpenSM's file takes them where one layer is enough, and says the same."""
    routes = route("mesh:3x3", method="single:destination-based")
    assert routes.layers is not None
    single = replace(routes, layer=None)
    text = TARGETS["opensm"].emit(single, Options())
    assert verify_text(text, "text", single)["time"] == routes.time


def test_the_gap_is_told_on_the_way() -> None:
    """Every line has the certified gap of the best tables so far, which only shrinks."""
    told: list[str] = []
    found = route("genkautz:n=20,d=3", method="single:destination-based", progress=told.append)
    gaps = [each.gap for each in told if isinstance(each, ProgressMessage) and each.gap is not None]
    assert gaps
    assert gaps == sorted(gaps, reverse=True)
    assert gaps[-1] == pytest.approx(found.gap)
