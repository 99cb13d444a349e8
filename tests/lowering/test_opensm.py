"""Forwarding tables of OpenSM: the routes that they can say, and what a topology makes of them."""

import re
from dataclasses import replace
from functools import cache

import numpy as np
import pytest
from routed_cases import layered, topology_of

from alltoall.errors import FormatError, LimitError, TopologyError, VerificationError
from alltoall.ir.demand import Demand
from alltoall.ir.problem import Problem
from alltoall.ir.routes import Routes
from alltoall.ir.topology import Topology
from alltoall.lowering.options import Options
from alltoall.lowering.tables.opensm import LARGEST_LID, emit_opensm, read_opensm
from alltoall.routes.baselines.tables import route_ecmp, route_sssp
from alltoall.routes.dimension_order import route_dor
from alltoall.settings import RouteSettings
from alltoall.topologies.formats.ibsim import write
from alltoall.topologies.spec import build
from alltoall.verification import verify_text

METHODS = {"ecmp": route_ecmp, "sssp": route_sssp, "dor": route_dor}
CASES = [
    ("hypercube:3", "dor"), ("mesh:3x4", "dor"), ("torus:4x4", "ecmp"), ("torus:3x3x3", "sssp"),
    ("dgx2", "ecmp"), ("bipartite:4x4", "sssp"), ("ring:5", "ecmp"),
]  # fmt: skip


@cache
def by_destination(spec: str, method: str) -> Routes:
    """Return routes without layers, whose nodes look at the destination only."""
    return METHODS[method](Problem.all_to_all(topology_of(spec)), RouteSettings())


SMALL = replace(by_destination("hypercube:3", "dor"), layer=np.zeros(56, dtype=np.int64))
TEXT = emit_opensm(SMALL, Options())


@pytest.mark.parametrize(("spec", "method"), CASES)
def test_round_trip(spec: str, method: str) -> None:
    """The ways through the tables are the routes that they were made of."""
    routes = by_destination(spec, method)
    text = emit_opensm(routes, Options())
    found = verify_text(text, "text", routes)
    assert (found["routes"], found["layers"]) == (routes.count, None)
    assert found["time"] == pytest.approx(routes.time)
    assert verify_text(text, "text", topology_of(spec))["time"] == found["time"]


def test_what_is_free_of_deadlocks_says_so() -> None:
    """Routes in one layer are checked as such when they are read back."""
    assert verify_text(TEXT, "text", SMALL)["layers"] == 1
    circle = replace(by_destination("ring:5", "ecmp"), layer=None)
    text = emit_opensm(circle, Options())
    lines = text.splitlines(keepends=True)
    claimed = "".join([*lines[:2], "# free of deadlocks in one layer\n", *lines[2:]])
    with pytest.raises(VerificationError, match="layer 0 can deadlock"):
        verify_text(claimed, "text", circle)


def test_ports_and_switches_are_those_of_the_netlist() -> None:
    """Every row of a table leads where the netlist of the same topology has the cable."""
    topology = topology_of("hypercube:3")
    cables: dict[tuple[str, int], str] = {}
    for line in write(topology).splitlines():
        if found := re.match(r'\w+ \d+ "(\w+)"', line):
            switch = found[1]
        elif found := re.match(r'\[(\d+)\] "(\w+)"', line):
            cables[switch, int(found[1])] = found[2]
    switch = ""
    for line in TEXT.splitlines():
        if found := re.search(r"guid 0x0*20000(\d) \('(S\d)'\)", line):
            switch = found[2]
            assert switch == f"S{found[1]}"
        elif found := re.match(r"0x\w+ (\d+) # Channel Adapter portguid \w+: 'H(\d)'", line):
            far = cables[switch, int(found[1])]
            assert far == f"H{found[2]}" if switch == f"S{found[2]}" else far[0] == "S"


def test_routes_that_do_not_go_by_destination_are_refused() -> None:
    """The pair is named, what is wrong with it, and the command that leads to a file."""
    several = (layered("bipartite:4x4"), r"routes from node 0 to node \d")
    parted = (layered("torus:3x3x3", "single"), r"the route from node \d+ to .* by destination")
    two = replace(SMALL, layer=np.arange(SMALL.count) % 2)
    for routes, found in (several, parted, (two, "in 2 layers, but OpenSM's file engine has one")):
        advice = r".*route again with --method deadlock-free:destination-based"
        with pytest.raises(LimitError, match=found + advice):
            emit_opensm(routes, Options())


def test_what_infiniband_does_not_have_is_refused() -> None:
    """One-way links and more LIDs than there are."""
    with pytest.raises(TopologyError, match="full-duplex"):
        emit_opensm(by_destination("genkautz:n=6,d=2", "ecmp"), Options())
    many = Topology.from_edges("star", LARGEST_LID, [(0, 1)], terminals=[0, 1])
    routes = route_ecmp(Problem.all_to_all(many), RouteSettings())
    with pytest.raises(LimitError, match="at most 49151 LIDs"):
        emit_opensm(routes, Options())


def test_uneven_demand_uses_the_entries_it_needs() -> None:
    """Switches have no entry for what never comes; what they have is enough."""
    matrix = np.zeros((8, 8))
    matrix[0, 7] = 2.0
    problem = Problem(topology_of("hypercube:3"), Demand(8, matrix))
    routes = route_ecmp(problem, RouteSettings())
    text = emit_opensm(routes, Options())
    assert verify_text(text, "text", routes)["routes"] == 1
    with pytest.raises(VerificationError, match=r"from node 0 to node 1 ends at a switch.*more"):
        verify_text(text, "text", topology_of("hypercube:3"))


def test_a_dump_of_opensm_itself_is_read() -> None:
    """Without our comments, and with the LIDs that OpenSM chose."""
    lids = {f"0x{lid:04x} ": f"0x{20 - lid:04x} " for lid in range(1, 17)}
    lines = [line for line in TEXT.splitlines() if not line.startswith("#")]
    dump = "\n".join(lids.get(line[:7], line[:7]) + line[7:] for line in lines)
    dump = dump.replace("[0-16]", "[0-19]").replace("16 lids", "19 lids")
    assert verify_text(dump, "dump", SMALL.problem)["routes"] == 56


BAD = {
    "a port": (r"0x0002 002 # C", "0x0002 003 # C", VerificationError, "circle|routes differ|way"),
    "a port of nothing": (r"0x0002 002 # C", "0x0002 009 # C", VerificationError, "where no"),
    "an adapter's port": (r"0x0001 001", "0x0001 002", VerificationError, "where it is not"),
    "no entry": (r"0x0002 002 # C[^\n]*\n", "", VerificationError, "ends at a switch without it"),
    "no adapter": (r"0x0001 001 # C[^\n]*\n", "", VerificationError, "for its own adapter"),
    "a LID": (r"0x0002 002 # C", "0x0003 002 # C", FormatError, "has another GUID"),
    "LID 0": (r"0x0002 002 # C", "0x0000 002 # C", FormatError, "LID 0 and port 2; expected 1 to"),
    "a port number": (r"0x0002 002 # C", "0x0002 255 # C", FormatError, "port 255; expected"),
    "a GUID": (r"100003: 'H1'", "100004: 'H1'", FormatError, "GUID 0x100004 is none"),
    "a GUID of a switch": (r"000200000 \(", "000300000 (", FormatError, "gives to a switch"),
    "a row twice": (r"(0x0002 002 # C[^\n]*\n)", r"\1\1", FormatError, "is there twice"),
    "a switch twice": (r"200001 \('S1'\)", "200000 ('S1')", FormatError, "has a table already"),
    "a switch of none": (r"(?s)Unicast[^\n]*S6.*?dumped\n", "", FormatError, "S6 has no table"),
    "its own port": (r" 000 # Switch", " 001 # Switch", FormatError, "expected 0 for the switch"),
    "words": (r"0x0002 002 # C", "0x0002 002 C", FormatError, "line 6: is .* expected a row"),
    "no header": (r"dumped\nUnicast", "dumped\nUni", FormatError, "Uni lids.* expected `Unicast"),
    "too many LIDs": (r"\[0-16\]", "[0-65000]", FormatError, "LID 65000; expected at most"),
    "a count": (r"switches=8", "switches=9", FormatError, "line 1: is .*its tables make it"),
}  # fmt: skip


@pytest.mark.parametrize("what", BAD)
def test_tampering_is_named(what: str) -> None:
    """What was changed is refused, and the message says where."""
    old, new, error, message = BAD[what]
    text, count = re.subn(old, new, TEXT, count=1)
    assert count == 1
    with pytest.raises(error, match=message):
        verify_text(text, "file", SMALL)


def test_every_truncation_is_refused() -> None:
    """No part of a file from its beginning is taken for the whole."""
    text = TEXT.rstrip()
    for end in range(0, len(text), 97):
        with pytest.raises(FormatError):
            read_opensm(text[:end], "cut")


def test_other_topologies_are_refused() -> None:
    """Tables of another size, and of cables that InfiniBand has not."""
    with pytest.raises(VerificationError, match="8 switches with 8 adapters; ring:4 has 4 with 4"):
        verify_text(TEXT, "file", build("ring:4"))
    with pytest.raises(VerificationError, match="full-duplex"):
        verify_text(TEXT, "file", build("genkautz:n=8,d=2"))
