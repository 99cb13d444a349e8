"""SimGrid platforms with routes: what is written and read back, and what has no place there."""

from dataclasses import replace
from functools import cache
from pathlib import Path
from xml.etree.ElementTree import Element, fromstring

import numpy as np
import pytest
from routed_cases import SPECS, layered, topology_of

from alltoall.check.routes import check_routes
from alltoall.errors import FormatError, LimitError, UsageError, VerificationError
from alltoall.ir.answer import Certificate
from alltoall.ir.arrays import starts_of
from alltoall.ir.demand import Demand
from alltoall.ir.problem import Problem
from alltoall.ir.routes import Routes
from alltoall.lowering.options import Options
from alltoall.lowering.public import lower
from alltoall.lowering.tables.routed_file import differences
from alltoall.lowering.tables.simgrid import emit_simgrid
from alltoall.routes.baselines.tables import route_ecmp
from alltoall.settings import RouteSettings
from alltoall.topologies.formats import simgrid
from alltoall.verification import verify


@cache
def ecmp(spec: str) -> Routes:
    """Return routes of one path for each pair."""
    return route_ecmp(Problem.all_to_all(topology_of(spec)), RouteSettings())


SMALL = ecmp("hypercube:3")
TEXT = emit_simgrid(SMALL, Options())


def zone_of(text: str) -> Element:
    """Return the zone of a platform."""
    (zone,) = fromstring(text)
    return zone


def read_back(text: str, problem: Problem) -> Routes:
    """Return the routes that a platform has, by the numbers of its nodes and links."""
    zone, topology = zone_of(text), problem.topology
    assert zone.get("routing") == "Full"
    nodes = [each.get("id") for each in zone if each.tag in ("host", "router")]
    hosts = [nodes.index(each.get("id")) for each in zone.findall("host")]
    assert (len(nodes), hosts) == (topology.nodes, topology.terminals.tolist())
    links = [each.get("id") for each in zone.findall("link")]
    rate = [float(str(each.get("bandwidth"))[:-3]) for each in zone.findall("link")]
    assert rate == pytest.approx(topology.capacity * rate[0] / topology.capacity[0])
    routes = zone.findall("route")
    assert {route.get("symmetrical") for route in routes} == {"NO"}
    ends = np.array([[nodes.index(route.get(key)) for key in ("src", "dst")] for route in routes])
    source, destination = topology.position[ends.T]
    path = [[links.index(each.get("id")) for each in route] for route in routes]
    return Routes(
        problem=problem,
        source=source,
        destination=destination,
        start=starts_of([len(each) for each in path]),
        link=np.concatenate(path),
        weight=problem.demand.of(source, destination),
        certificate=Certificate(np.ones(topology.links), 0.0),
        method="simgrid",
    )


@pytest.mark.parametrize("spec", [*SPECS, "dgx2", "mesh:3x4"])
def test_round_trip(spec: str) -> None:
    """What is written reads back as the same routes, which load links as they should."""
    routes = ecmp(spec)
    found = read_back(emit_simgrid(routes, Options()), routes.problem)
    assert list(differences(found, routes)) == []
    report = check_routes(found)
    assert (report.routes, report.layers) == (routes.count, None)
    assert report.time == pytest.approx(routes.time)


def test_nodes_and_links_are_those_of_the_topology_that_is_written() -> None:
    """The same platform as `topology --to simgrid` writes, but for the routing."""
    topology = topology_of("ring:5 host")
    ours = emit_simgrid(ecmp("ring:5 host"), Options())
    theirs = simgrid.write(topology)
    kept = [[line for line in text.splitlines() if "route " not in line] for text in (ours, theirs)]
    assert kept[0] == [line.replace('"Floyd"', '"Full"') for line in kept[1]]


def test_rates_and_latencies_are_options() -> None:
    """A link carries its capacity times the rate that is asked for."""
    options = Options(link_bandwidth="8Gbps", link_latency=2e-6)
    link = zone_of(emit_simgrid(SMALL, options)).findall("link")[0]
    assert (link.get("bandwidth"), link.get("latency")) == ("1000000000.0Bps", "2e-06s")
    with pytest.raises(UsageError, match="bandwidth '8'"):
        emit_simgrid(SMALL, Options(link_bandwidth="8"))
    with pytest.raises(UsageError, match="latency -1"):
        emit_simgrid(SMALL, Options(link_latency=-1.0))


def test_several_routes_of_a_pair_are_refused() -> None:
    """The pair is named, and a method that makes one route of each."""
    with pytest.raises(LimitError, match=r"2 routes from node 0 to node \d.*--method single"):
        emit_simgrid(layered("bipartite:4x4", chunks=2), Options())


def test_pairs_without_demand_have_no_route() -> None:
    """Only what is sent needs a way."""
    matrix = np.zeros((8, 8))
    matrix[0, 7] = 2.0
    problem = Problem(topology_of("hypercube:3"), Demand(8, matrix))
    routes = route_ecmp(problem, RouteSettings())
    text = emit_simgrid(routes, Options())
    assert len(zone_of(text).findall("route")) == 1
    assert check_routes(read_back(text, problem)).routes == 1


def test_names_are_ids() -> None:
    """Whatever they have in them."""
    names = ('a"b', "<c>", "d & e", "f\u00f6", "g", "h", "i", "j")
    topology = replace(topology_of("hypercube:3"), names=names)
    routes = replace(SMALL, problem=Problem.all_to_all(topology))
    text = emit_simgrid(routes, Options())
    assert [each.get("id") for each in zone_of(text).findall("host")] == list(names)
    assert check_routes(read_back(text, routes.problem)).routes == 56


def test_platforms_are_only_written(tmp_path: Path) -> None:
    """The message says what to use instead; wrong routes are refused before they are lowered."""
    path = tmp_path / "file"
    lower(SMALL, to="simgrid").save(path)
    with pytest.raises(FormatError, match="writes and does not read; use the saved routes"):
        verify(path, topology="hypercube:3")
    with pytest.raises(VerificationError, match="carry 2 of the demand 1"):
        lower(replace(SMALL, weight=2 * SMALL.weight), to="simgrid")
