"""Files of routes: what is written is read back, and what was changed is refused."""

import json
import re
from dataclasses import replace
from pathlib import Path
from xml.etree import ElementTree

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from routed_cases import METHODS, SPECS, layered, topology_of, weighted

import alltoall.lowering
from alltoall.errors import (
    AlltoallError,
    FormatError,
    InputError,
    LimitError,
    UsageError,
    VerificationError,
)
from alltoall.ir.demand import Demand
from alltoall.ir.problem import Problem
from alltoall.ir.topology import Topology
from alltoall.lowering import TARGETS, kind_of, parse_lowered
from alltoall.lowering.options import Options
from alltoall.lowering.tables.ompi import ATTRIBUTES, OPTIONAL
from alltoall.lowering.tables.srv6 import node_batches
from alltoall.routes.phases import split_phases
from alltoall.routes.weights import route_extp
from alltoall.routes.whole_chunks import bounded_chunks
from alltoall.settings import RouteSettings
from alltoall.verification import verify, verify_text

KINDS = {
    "routes": ("routes", Options()),
    "ompi": ("ompi", Options()),
    "ompi per route": ("ompi", Options(queue_pairs="route", hash="xor-fold")),
    "srv6": ("srv6", Options()),
    "srv6 plain": ("srv6", Options(steering="plain", device="eth")),
}
SMALL = layered("bipartite:4x4")
TEXTS = {kind: TARGETS[target].emit(SMALL, o) for kind, (target, o) in KINDS.items()}
XSD = "{http://www.w3.org/2001/XMLSchema}"


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize("spec", SPECS)
def test_round_trip(spec: str, method: str, kind: str) -> None:
    """What is written verifies against the routes, and against the topology alone."""
    routes = layered(spec, method)
    target, options = KINDS[kind]
    text = TARGETS[target].emit(routes, options)
    assert kind_of(text) == target
    found = verify_text(text, "text", routes)
    assert found["time"] == pytest.approx(routes.time)
    assert found["routes"] == routes.count
    assert found["layers"] == routes.layers
    assert verify_text(text, "text", topology_of(spec))["time"] == found["time"]


def test_the_table_is_checked_alone_and_the_others_ask_for_a_topology(tmp_path: Path) -> None:
    """Only the table holds its topology."""
    for kind, text in TEXTS.items():
        path = tmp_path / "file"
        path.write_text(text)
        if kind == "routes":
            assert verify(path).facts["bound"] == pytest.approx(SMALL.bound)
        else:
            with pytest.raises(UsageError, match="no topology in it"):
                verify(path)


@pytest.mark.parametrize("kind", KINDS)
def test_another_topology_is_refused(kind: str) -> None:
    """A file for one network does not verify on another."""
    with pytest.raises(VerificationError):
        verify_text(TEXTS[kind], "text", topology_of("hypercube:3"))


@pytest.mark.parametrize("kind", KINDS)
def test_other_routes_are_refused(kind: str) -> None:
    """A file is held against the very routes it was made from."""
    single = layered("bipartite:4x4", "single")
    with pytest.raises(VerificationError, match="routes"):
        verify_text(TEXTS[kind], "text", single)


@pytest.mark.parametrize("kind", KINDS)
def test_every_truncation_is_refused(kind: str) -> None:
    """No part of a file from its beginning is taken for the whole."""
    text = TEXTS[kind].rstrip()
    for end in range(0, len(text), max(1, len(text) // 60)):
        with pytest.raises(FormatError):
            parse_lowered(text[:end], "cut")


@pytest.mark.parametrize("kind", KINDS)
@given(data=st.data())
def test_damaged_files_never_surprise(kind: str, data: st.DataObject) -> None:
    """Cut, overwritten or repeated text gives an error of ours, or still says the same."""
    text = TEXTS[kind]
    begin = data.draw(st.integers(0, len(text)))
    end = data.draw(st.integers(begin, min(len(text), begin + 30)))
    middle = data.draw(st.one_of(st.text(max_size=4), st.sampled_from(["0", "1", "-1", "9", ""])))
    try:
        verify_text(text[:begin] + middle + text[end:], "damaged", SMALL)
    except AlltoallError as error:
        assert error.exit_code in (3, 4)  # noqa: PT017


def changed(text: str, old: str, new: str) -> str:
    """Replace the first match of a pattern, which must be there."""
    result, count = re.subn(old, new, text, count=1)
    assert count == 1
    return result


BAD = {
    "a wrong port": (
        "routes",
        r'"nodes":\[0,4\],"ports":\[0,(\d)\]',
        '"nodes":[0,4],"ports":[3,1]',
        VerificationError,
        r"hop 0: port 3 of node 0 leads to node 7; expected the next node, 4",
    ),
    "a port that is not there": (
        "routes", r'"ports":\[0\]', '"ports":[9]', VerificationError, "port 9 of node 0 does not",
    ),
    "a broken path": (
        "routes", r'"nodes":\[0,4\]', '"nodes":[0,5]', VerificationError, "hop 0: port",
    ),
    "a hop too few": ("routes", r'"nodes":\[0,4\]', '"nodes":[0]', FormatError, "has 1 nodes"),
    "a negative node": ("routes", r'"nodes":\[0,4\]', '"nodes":[-1,4]', FormatError, r"nodes is"),
    "a wrong id": ("routes", r'"id":0', '"id":1', FormatError, "has id 1"),
    "a wrong weight": (
        "routes", r'"weight":"4/4"', '"weight":"3/4"', VerificationError, "carry 0.75",
    ),
    "a weight of nothing": ("routes", r'"weight":"4/4"', '"weight":0', FormatError, "weight is 0"),
    "an unknown key": ("routes", r'"id":0', '"id":0,"x":1', FormatError, "'x' is unknown"),
    "a stated limit": (
        "routes", r'destination":8', 'destination":1', FormatError, "states at most 1",
    ),
    "a wrong source port": (
        "ompi", r'source-port="\d+" route="1"', 'source-port="50000" route="1"',
        VerificationError, "lands on route 0; expected route 1",
    ),
    "a source port out of range": (
        "ompi", r'source-port="\d+"', 'source-port="80"', VerificationError, "outside 49152",
    ),
    "a missing chunk": (
        "ompi", r'first="3" count="1"', 'first="2" count="1"', VerificationError, "of its 4 chunks",
    ),
    "a route without queue pairs": (
        "ompi", r'(<route id="0" [^\n]*\n)( *<qp)',
        r'\1<route id="1" layer="9" nodes="0" ports="0"/>\2', VerificationError, "no queue pair",
    ),
    "a wrong node": ("ompi", r'nodes="0 4"', 'nodes="0 5"', VerificationError, "hop 0: port"),
    "an unknown hash": ("ompi", "crc32", "md5", FormatError, 'hash is "md5"'),
    "a wrong address": ("ompi", r"10\.0\.0\.1", "10.0.0.256", FormatError, "address is"),
    "a document type": (
        "ompi", r"<alltoall", "<!DOCTYPE x><alltoall", FormatError, "document type",
    ),
    "other layers": ("ompi", r' layers="\d+"', ' layers="1"', FormatError, "layers is 1"),
    "a wrong device": (
        "srv6", r"(segs \S+) dev p0", r"\1 dev p1", VerificationError, "device p1 of node 0",
    ),
    "a wrong segment": (
        "srv6", r"segs (fc01:\w+:0::\w+),fc01:1:", r"segs \1,fc01:2:",
        VerificationError, "goes to node 2 and on from node 1|has no route to",
    ),
    "a missing segment": (
        "srv6", r"route add fc01:4:0::1/128 dev p0\n", "",
        VerificationError, "no route to fc01:4:0",
    ),
    "a missing address": (
        "srv6", r"address add \S+/128 dev lo nodad\n", "", VerificationError, "not at all",
    ),
    "a missing hop": (
        "srv6 plain", r"route add fc02:1:0::1/128 via fc01:1:\S+ dev eth\d onlink\n", "",
        VerificationError, "does not end|goes to node",
    ),
    "a shell command": ("srv6", r"\n# end", "\nroute add $(id)\n# end", FormatError, "is no line"),
}  # fmt: skip


@pytest.mark.parametrize("what", BAD)
def test_tampering_is_named(what: str) -> None:
    """What was changed is refused, and the message says where."""
    kind, old, new, error, message = BAD[what]
    with pytest.raises(error, match=message):
        verify_text(changed(TEXTS[kind], old, new), "file", SMALL.problem)


@pytest.mark.parametrize("kind", KINDS)
def test_layers_that_can_deadlock_are_refused(kind: str) -> None:
    """All routes of a ring in one layer wait for each other in a circle."""
    routes = layered("torus:3x3x3", "single")
    target, options = KINDS[kind]
    text = TARGETS[target].emit(
        replace(routes, layer=np.zeros(routes.count, dtype=np.int64)), options
    )
    with pytest.raises(VerificationError, match="layer 0 can deadlock"):
        verify_text(text, "file", routes.problem)


@pytest.mark.parametrize("target", ["routes", "ompi", "srv6"])
def test_a_limit_on_routes_is_kept(target: str) -> None:
    """Every fabric that takes several routes refuses more than it is said to hold."""
    with pytest.raises(LimitError, match="at most 1 routes per destination; route again"):
        TARGETS[target].emit(SMALL, Options(max_routes=1))


@pytest.mark.parametrize("target", ["routes", "ompi"])
def test_what_the_fabric_cannot_take_is_refused(target: str) -> None:
    """Missing layers are named with a way out."""
    with pytest.raises(InputError, match="have no layers; route again with"):
        TARGETS[target].emit(weighted("bipartite:4x4"), Options())


def test_weights_that_are_no_chunks_are_refused() -> None:
    """Queue pairs carry whole chunks; the message says what to do."""
    routes = weighted("torus:3x3x3")
    loose = replace(routes, layer=np.arange(routes.count))
    with pytest.raises(InputError, match="route again with --chunks 8"):
        TARGETS["ompi"].emit(loose, Options())


def test_phases_0_are_as_many_as_fit() -> None:
    """As for `simulate --phases 0`."""
    routes = alltoall.route("torus:3x3", "single")
    fit = 1 + int(split_phases(routes, None, 0.05).max())
    assert alltoall.lower(routes, "ompi:phases=0").facts["phases"] == fit
    assert alltoall.lower(routes, "ompi:phases=1").facts["phases"] == 1


def test_phases_and_uneven_demand_go_into_the_file() -> None:
    """Each queue pair has the phase of its route, whatever the demand."""
    topology = topology_of("hypercube:3")
    matrix = np.random.default_rng(1).integers(0, 5, (8, 8)) / 3.0
    np.fill_diagonal(matrix, 0.0)
    problem = Problem(topology, Demand(8, matrix))
    routes = bounded_chunks(route_extp(problem, RouteSettings()), 3, RouteSettings())
    routes = replace(routes, layer=np.arange(routes.count))
    phase = np.arange(routes.count) % 3
    for target, options in KINDS.values():
        text = TARGETS[target].emit(routes, replace(options, phase=phase))
        found = verify_text(text, "file", routes)
        assert found.get("phases", 3) == 3
        with pytest.raises(VerificationError):
            verify_text(text, "file", topology)
    with pytest.raises(InputError, match="3 phases for"):
        TARGETS["ompi"].emit(routes, Options(phase=phase[:3]))


def test_parallel_links_are_different_ports() -> None:
    """Two links between the same nodes have two ports, devices and segments."""
    links = [(0, 1), (0, 1), (1, 0), (1, 0)]
    topology = Topology.from_links("twin", 2, links)
    routes = bounded_chunks(
        route_extp(Problem.all_to_all(topology), RouteSettings()), 2, RouteSettings()
    )
    routes = replace(routes, layer=np.zeros(routes.count, dtype=np.int64))
    for target, options in KINDS.values():
        found = verify_text(TARGETS[target].emit(routes, options), "twin", routes)
        assert found["time"] == pytest.approx(0.5)


def test_batches_per_node_hold_all_commands() -> None:
    """Cutting the file by node loses nothing but comments."""
    batches = node_batches(TEXTS["srv6"])
    assert sorted(batches) == list(range(8))
    commands = [line for line in TEXTS["srv6"].splitlines() if not line.startswith("#")]
    assert sorted("".join(batches.values()).splitlines()) == sorted(commands)
    assert all(re.fullmatch(r"[a-z0-9:/,. ]+", line) for line in commands)


def test_unknown_options_are_refused() -> None:
    """Words of the call are checked."""
    for options in (Options(hash="md5"), Options(addresses="10.0.0.9")):
        with pytest.raises(UsageError):
            TARGETS["ompi"].emit(SMALL, options)
    with pytest.raises(UsageError, match="device"):
        TARGETS["srv6"].emit(SMALL, Options(device="p; reboot"))
    for wrong in ({"steering": "inline"}, {"queue_pairs": "all"}):
        with pytest.raises(UsageError, match="expected one of"):
            Options(**wrong)  # type: ignore[arg-type]


def test_schema_and_reader_agree() -> None:
    """The XSD has the elements and attributes that the reader takes."""
    path = Path(alltoall.lowering.__file__).parent / "tables/ompi.xsd"
    root = ElementTree.parse(path).getroot()
    for name, attributes in ATTRIBUTES.items():
        holder = root.find(f"{XSD}complexType[@name='{name}']")
        if holder is None:
            holder = root.find(f"{XSD}element[@name='{name}']")
        assert holder is not None
        found = {each.attrib["name"] for each in holder.iter(f"{XSD}attribute")}
        assert found == {*attributes, *OPTIONAL.get(name, ())}


def test_a_table_with_a_false_bound_is_refused() -> None:
    """The lengths must prove what is claimed."""
    table = json.loads(TEXTS["routes"])
    table["bound"] *= 1.1
    with pytest.raises(VerificationError, match="claims the bound"):
        verify_text(json.dumps(table), "table")
