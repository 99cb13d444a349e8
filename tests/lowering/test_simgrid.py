"""SimGrid platforms with routes: what is written and read back, and what has no place there."""

import re
from dataclasses import replace
from functools import cache
from xml.etree.ElementTree import Element, fromstring

import numpy as np
import pytest
from routed_cases import SPECS, layered, topology_of

from a2aflow.errors import FormatError, LimitError, UsageError, VerificationError
from a2aflow.ir.demand import Demand
from a2aflow.ir.problem import Problem
from a2aflow.ir.routes import Routes
from a2aflow.lowering import kind_of
from a2aflow.lowering.options import Options
from a2aflow.lowering.tables.simgrid.emit import emit_simgrid
from a2aflow.lowering.tables.simgrid.read import read_simgrid
from a2aflow.routes.baselines.native import route_native
from a2aflow.settings import RouteSettings
from a2aflow.topologies.formats import simgrid
from a2aflow.topologies.operators import scale_capacities
from a2aflow.topologies.spec import build
from a2aflow.verification import verify_text


@cache
def native(spec: str) -> Routes:
    """Return routes of one path for each pair."""
    return route_native(Problem.all_to_all(topology_of(spec)), RouteSettings())


SMALL = native("hypercube:3")
TEXT = emit_simgrid(SMALL, Options())


def zone_of(text: str) -> Element:
    """Return the zone of a platform."""
    (zone,) = fromstring(text)
    return zone


@pytest.mark.parametrize("spec", [*SPECS, "dgx2", "mesh:3x4"])
def test_round_trip(spec: str) -> None:
    """What is written verifies against the routes, and against the topology alone."""
    routes = native(spec)
    text = emit_simgrid(routes, Options())
    assert kind_of(text) == "simgrid"
    found = verify_text(text, "text", routes)
    assert (found["format"], found["routes"], found["layers"]) == ("simgrid", routes.count, None)
    assert found["time"] == pytest.approx(routes.time)
    assert verify_text(text, "text", topology_of(spec))["time"] == found["time"]


def test_every_pair_has_the_links_of_its_route_in_order() -> None:
    """One-way, by the ids of hosts, in a zone that looks for no other ways."""
    zone = zone_of(TEXT)
    assert zone.get("routing") == "Full"
    found = {
        (route.get("src"), route.get("dst")): [each.get("id") for each in route]
        for route in zone.findall("route")
    }
    assert {route.get("symmetrical") for route in zone.findall("route")} == {"NO"}
    terminals = SMALL.problem.topology.terminals
    assert found == {
        (
            f"node-{terminals[SMALL.source[each]]}",
            f"node-{terminals[SMALL.destination[each]]}",
        ): [f"link-{link}" for link in SMALL.link[SMALL.start[each] : SMALL.start[each + 1]]]
        for each in range(SMALL.count)
    }
    ends = {each.get("id") for tag in ("host", "router") for each in zone.findall(tag)}
    assert len(ends) == 8


def test_nodes_and_links_are_those_of_the_topology_that_is_written() -> None:
    """The same platform as `topology --to simgrid` writes, but for the routing."""
    topology = topology_of("ring:5 host")
    ours = emit_simgrid(native("ring:5 host"), Options())
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
    routes = route_native(problem, RouteSettings())
    text = emit_simgrid(routes, Options())
    assert len(zone_of(text).findall("route")) == 1
    assert verify_text(text, "text", routes)["routes"] == 1
    with pytest.raises(VerificationError, match="demand"):
        verify_text(text, "text", topology_of("hypercube:3"))


def test_names_are_ids() -> None:
    """Whatever they have in them; a topology with other names is another one."""
    names = ('a"b', "<c>", "d & e", "f\u00f6", "g", "h", "i", "j")
    topology = replace(topology_of("hypercube:3"), names=names)
    routes = replace(SMALL, problem=Problem.all_to_all(topology))
    text = emit_simgrid(routes, Options())
    assert [each.get("id") for each in zone_of(text).findall("host")] == list(names)
    assert verify_text(text, "text", routes)["routes"] == 56
    with pytest.raises(VerificationError, match=r'node 0 is called .*calls it "node-0"'):
        verify_text(text, "text", SMALL)


BAD = {
    "a link": (r'<link_ctn id="link-0"/>', '<link_ctn id="link-1"/>', VerificationError, "route"),
    "no link": (r'<link_ctn id="link-0"/>', "", FormatError, "route 0: has no links"),
    "a link of none": (r'_ctn id="link-0"', '_ctn id="link-99"', FormatError, 'id is "link-99"'),
    "a host of none": (r'dst="node-1"', 'dst="node-9"', FormatError, 'dst is "node-9"; .*host'),
    "a route twice": (r"(    <route.*\n)", r"\1\1", FormatError, "out of order, or there twice"),
    "no route": (r"    <route.*\n", "", VerificationError, "demand|routes"),
    "both ways": (r'symmetrical="NO"', 'symmetrical="YES"', FormatError, "symmetrical"),
    "another policy": (r"SHARED", "FATPIPE", FormatError, "sharing_policy"),
    "another rate": (r"3125000000.0Bps", "1.0Bps", VerificationError, "link-1 has 3.* expected 1"),
    "no rate": (r"3125000000.0Bps", "0.0Bps", FormatError, "link 0: has no bandwidth"),
    "a unit": (r"3125000000.0Bps", "25Gbps", FormatError, "bandwidth .*a number and Bps"),
    "another latency": (r"1e-06s", "2e-06s", FormatError, "latency is .*expected 2e-06s"),
    "an endless latency": (r"1e-06s", "infs", FormatError, "latency"),
    "links out of order": (r'<link id="link-0"', '<link id="link-1"', FormatError, "link-0"),
    "a node twice": (r'host id="node-1"', 'host id="node-0"', FormatError, "have the same id"),
    "a router": (r'<host id="node-1" speed="1Gf"/>', '<router id="node-1"/>', FormatError, "host"),
    "another speed": (r"1Gf", "2Gf", FormatError, "speed"),
    "a version": (r'version="4.1"', 'version="4"', FormatError, "version"),
    "another document": (r"simgrid\.dtd", "other.dtd", FormatError, "does not begin with"),
    "an attribute": (r'<host id', '<host core="2" id', FormatError, "other attributes"),
    "an element": (r"    <route", "    <disk/><route", FormatError, "has no route|found <disk>"),
    "a late link": (r"  </zone>", '<link id="link-24"/></zone>', FormatError, "found <link> among"),
    "two zones": (r"(?s)(  <zone.*</zone>)", r"\1\1", FormatError, "2 zones; expected one"),
}  # fmt: skip


@pytest.mark.parametrize("what", BAD)
def test_tampering_is_named(what: str) -> None:
    """What was changed is refused, and the message says where."""
    old, new, error, message = BAD[what]
    text, count = re.subn(old, new, TEXT, count=1)
    assert count == 1
    with pytest.raises(error, match=message):
        verify_text(text, "file", SMALL)


def test_platforms_that_have_other_routes_are_not_read() -> None:
    """SimGrid finds those of a Floyd zone by itself; nothing in the file says which."""
    with pytest.raises(FormatError, match='routing is "Floyd"; expected Full'):
        read_simgrid(simgrid.write(topology_of("hypercube:3")), "file")


def test_every_truncation_is_refused() -> None:
    """No part of a file from its beginning is taken for the whole."""
    text = TEXT.rstrip()
    for end in range(0, len(text), 97):
        with pytest.raises(FormatError):
            read_simgrid(text[:end], "cut")


def test_other_topologies_are_refused() -> None:
    """Of another size, with other switches, or with capacities in another proportion."""
    with pytest.raises(VerificationError, match="8 nodes and 24 links; ring:4 has 4 and 8"):
        verify_text(TEXT, "file", build("ring:4"))
    fewer = replace(topology_of("hypercube:3"), terminals=np.arange(7))
    with pytest.raises(VerificationError, match="its hosts are not the terminals"):
        verify_text(TEXT, "file", fewer)
    doubled = scale_capacities(topology_of("hypercube:3"), 2.0)
    assert verify_text(TEXT, "file", doubled)["time"] == pytest.approx(SMALL.time / 2)
