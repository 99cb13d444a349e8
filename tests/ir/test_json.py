"""Files: exact round trips, and a clear error for everything that is not an artefact."""

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given

from alltoall.errors import DemandError, FormatError, InputError, UsageError, VerificationError
from alltoall.flows import solve
from alltoall.ir.files.json.demand import DEMAND_FORMAT, demand_from_json
from alltoall.ir.files.json.problem import TOPOLOGY_FORMAT, topology_from_json, topology_to_json
from alltoall.ir.files.json.saved_answers import (
    FLOW_FORMAT,
    ROUTES_FORMAT,
    SCHEDULE_FORMAT,
    answer_from_json,
    answer_to_json,
)
from alltoall.ir.files.json.values import parse_json
from alltoall.ir.files.text import read_text, write_text
from alltoall.ir.problem import Problem
from alltoall.ir.topology import Topology
from alltoall.topologies.operators import with_host_bandwidth
from alltoall.topologies.spec import build
from strategies import topologies

SMALL: dict[str, Any] = topology_to_json(Topology.from_edges("path", 3, [(0, 1), (1, 2, 2.5)]))


@given(topology=topologies())
def test_topologies_survive_json_exactly(topology: Topology) -> None:
    """Nodes, link order, capacities and terminals come back as they were."""
    text = json.dumps(topology_to_json(topology))
    assert topology_from_json(parse_json(text, "text"), "text") == topology


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"format": "alltoall.topology/2"}, "expected 'alltoall.topology/1'"),
        ({"nodes": "3"}, 'nodes is "3"; expected an integer'),
        ({"nodes": True}, "expected an integer"),
        ({"links": None}, "links is missing; expected an array"),
        ({"links": [[0, 1]]}, r"links\[0\] is \[0, 1\]"),
        ({"links": [[0, 1, "1"]]}, r"links\[0\]"),
        ({"links": [[0, 1.5, 1]]}, r"links\[0\]"),
        ({"links": [[0, 9, 1]]}, "outside the nodes"),
        ({"links": [[0, 10**30, 1]]}, r"links\[0\]"),
        ({"links": [[0, 1, 10**400]]}, r"links\[0\]"),
        ({"links": [[0, 1, 1e999]]}, "capacity inf"),
        ({"nodes": 10**12}, "1000000000000 nodes"),
        ({"links": [[0, 1, 0]]}, "capacity 0"),
        ({"terminals": [0, "1"]}, "terminals"),
        ({"notes": "none"}, "notes"),
    ],
)
def test_malformed_topologies_are_named(changes: dict[str, Any], words: str) -> None:
    """The message names the key and what was found there."""
    with pytest.raises(InputError, match=words):
        topology_from_json(SMALL | changes, "file")


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("", "line 1"),
        ('{"format": "alltoall', "truncated"),
        ("[" * 100_000, "nested too deeply"),
        ('{"a": NaN}', "NaN"),
        ('{"a": -Infinity}', "-Infinity"),
        ('{"a": ' + "9" * 5000 + "}", "digit"),
    ],
)
def test_what_is_not_json(text: str, words: str) -> None:
    """Syntax, truncation, nesting and numbers that JSON does not have."""
    with pytest.raises(FormatError, match=words):
        parse_json(text, "file")


@pytest.mark.parametrize("value", [[], {}, 3, None, {"format": 4}])
def test_what_has_no_format(value: object) -> None:
    """Other JSON is told what an artefact looks like."""
    with pytest.raises(FormatError, match="format"):
        topology_from_json(value, "file")


def test_demand_by_matrix_or_entries() -> None:
    """The same demand in its three forms, on a topology with switches."""
    hosted = with_host_bandwidth(build("ring:3"), 1.0)
    over_terminals = [[0, 1, 0], [0, 0, 2], [0, 0, 0]]
    over_nodes = np.zeros((9, 9))
    over_nodes[:3, :3] = over_terminals
    entries = {"format": "alltoall.demand/1", "entries": [[0, 1, 1], [1, 2, 2]]}
    forms = [over_terminals, over_nodes.tolist(), entries]
    first, *others = (demand_from_json(form, hosted, "file") for form in forms)
    assert all(first == other for other in others)


@pytest.mark.parametrize(
    ("value", "words"),
    [
        (
            {"format": "alltoall.demand/1", "entries": [[0, 5, 1]]},
            "node 5, which is not a terminal",
        ),
        ({"format": "alltoall.demand/1", "entries": [[0, 1]]}, r"entries\[0\]"),
        ({"format": "alltoall.demand/1"}, "uniform"),
        ([[0, 1], [1]], "row 1 has 1 cells"),
        ([[0, "x"], [1, 0]], "row 0 is not an array of numbers"),
        ([[0, 1], [1, 0]], "shape 2x2; expected 3x3"),
        ((np.eye(9)[:, ::-1]).tolist(), "not a terminal"),
        ([], "expected an array of rows"),
    ],
)
def test_bad_demand_files(value: object, words: str) -> None:
    """Demand between non-terminals and ragged matrices are refused by name."""
    with pytest.raises((DemandError, FormatError), match=words):
        demand_from_json(value, with_host_bandwidth(build("ring:3"), 1.0), "file")


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"flows": [3]}, r"flows\[0\] is 3"),
        ({"flows": [{"src": 99, "links": [], "amounts": []}]}, r"flows\[0\].src is 99"),
        ({"flows": [{"src": 0, "links": ["a"], "amounts": [1]}]}, r"flows\[0\].links"),
        ({"flows": [{"src": 0, "links": [0, 1], "amounts": [1]}]}, "2 links and 1 amounts"),
        ({"flows": [{"src": 0, "links": [999], "amounts": [1]}]}, "link 999"),
        ({"lengths": [1.0]}, "do not fit together"),
        ({"rate": 0}, "rate is 0"),
        ({"status": "great"}, "status"),
        ({"topology": 3}, "topology"),
    ],
)
def test_malformed_flows_are_named(changes: dict[str, Any], words: str) -> None:
    """A flow file with a part replaced by nonsense is refused by the name of the part."""
    value = answer_to_json(solve(Problem.all_to_all(build("ring:4"))))
    with pytest.raises(InputError, match=words):
        answer_from_json(value | changes, "file")


def test_a_time_that_contradicts_the_rate_is_found() -> None:
    """The summary at the head of the file cannot be edited alone."""
    value = answer_to_json(solve(Problem.all_to_all(build("ring:4"))))
    with pytest.raises(VerificationError, match=r"time is 1\.0, but"):
        answer_from_json(value | {"time": 1.0}, "file")


def test_files_have_limits(tmp_path: Path) -> None:
    """Missing, oversized and binary files are refused before anything is parsed."""
    path = tmp_path / "file"
    with pytest.raises(FormatError, match="no such file"):
        read_text(path)
    with pytest.raises(FormatError, match="cannot be read"):
        read_text(tmp_path)
    path.write_bytes(b"12345")
    with pytest.raises(FormatError, match="larger than the limit of 4 bytes"):
        read_text(path, limit=4)
    path.write_bytes(b"ok\xff\xfe")
    with pytest.raises(FormatError, match="byte 2 is not UTF-8"):
        read_text(path)


def test_a_failed_write_leaves_the_old_file(tmp_path: Path) -> None:
    """What was there stays there, and no temporary file is left behind."""
    path = tmp_path / "deep" / "file"
    write_text(path, "old")
    with pytest.raises(UnicodeEncodeError):
        write_text(path, "new \ud800")
    assert path.read_text() == "old"
    assert [each.name for each in path.parent.iterdir()] == ["file"]
    with pytest.raises(UsageError, match="cannot be written"):
        write_text(path / "below a file", "text")


def test_an_edited_gap_is_found() -> None:
    """A gap of nothing over a bound of little does not pass."""
    value = answer_to_json(solve(Problem.all_to_all(build("ring:4"))))
    with pytest.raises(VerificationError, match="gap is"):
        answer_from_json(value | {"bound": 0.001}, "file")


def test_an_edited_time_is_found_in_any_unit() -> None:
    """In bit/s times are tiny, and still have to be right."""
    fast = replace(build("ring:4"), capacity=np.full(8, 2.5e10))
    value = answer_to_json(solve(Problem.all_to_all(fast)))
    with pytest.raises(VerificationError, match="time is"):
        answer_from_json(value | {"time": 2 * value["time"]}, "file")


def test_links_and_devices_are_written_through(tmp_path: Path) -> None:
    """A symbolic link is followed, and a device stays one."""
    target, link = tmp_path / "target", tmp_path / "link"
    target.write_text("old")
    link.symlink_to(target)
    write_text(link, "new")
    assert link.is_symlink()
    assert target.read_text() == "new"
    null = tmp_path / "null"
    null.symlink_to("/dev/null")
    write_text(null, "gone")
    assert Path("/dev/null").is_char_device()
    with pytest.raises(UsageError, match="it is a directory"):
        write_text(tmp_path, "text")


def test_the_formats_are_named_as_they_always_were() -> None:
    """Files of other days and of other programs carry these names; none of them may change."""
    assert {
        TOPOLOGY_FORMAT,
        DEMAND_FORMAT,
        FLOW_FORMAT,
        ROUTES_FORMAT,
        SCHEDULE_FORMAT,
    } == {f"alltoall.{noun}/1" for noun in ("topology", "demand", "flow", "routes", "schedule")}
