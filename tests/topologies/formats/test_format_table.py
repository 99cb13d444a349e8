"""The table of formats: choosing one, reading and writing files."""

import contextlib
import json
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from alltoall.errors import AlltoallError, FormatError, TopologyError, UsageError
from alltoall.ir.topology import Topology
from alltoall.topologies.formats import FORMATS, read_topology, write_topology

RING = Topology.from_edges("ring", 4, [(0, 1), (1, 2), (2, 3), (3, 0, 2.5)])
WHOLE = Topology.from_edges("whole", 4, [(0, 1), (1, 2), (2, 3), (3, 0, 2)])
MATRIX = "\tGPU0\tGPU1\tCPU Affinity\nGPU0\t X \tNV2\t0-3\nGPU1\tNV2\t X \t0-3\n"
NCCL = """<system version="1"><cpu>
<pci busid="1"><gpu dev="0"><nvlink target="2" count="2" tclass="0x030200"/></gpu></pci>
<pci busid="2"><gpu dev="1"><nvlink target="1" count="2" tclass="0x030200"/></gpu></pci>
</cpu></system>"""
MSCCL = '{"name": "m", "switches": [], "links": [[0, 2], [2, 0]], "msccl_type": "topology"}'
PAIR = Topology.from_edges("pair", 2, [(0, 1, 2.0)])


def save(folder: Path, name: str, text: str) -> Path:
    """Write a sample file."""
    path = folder / name
    path.write_text(text, encoding="utf-8")
    return path


@pytest.mark.parametrize("name", ["t.json", "t.edges", "t.edgelist", "t.txt", "t.graphml"])
def test_formats_by_suffix_round_trip(tmp_path: Path, name: str) -> None:
    """The suffix alone chooses the format, in both directions."""
    write_topology(RING, tmp_path / name)
    assert read_topology(tmp_path / name) == RING


def test_formats_by_name_round_trip(tmp_path: Path) -> None:
    """Every format that reads and writes gives back what it was given."""
    for key, entry in FORMATS.items():
        if entry.reads and entry.writes:
            sample = WHOLE if key in ("nccl", "nvidia-smi") else RING
            path = tmp_path / f"file-{key}"
            write_topology(sample, path, key)
            assert read_topology(path, key) == sample
            if key != "edgelist":
                assert read_topology(path) == sample


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("a.txt", MATRIX),
        ("a.out", MATRIX),
        ("a.xml", NCCL),
        ("a.xml", "<?xml version='1.0'?>\n<!-- dumped -->\n" + NCCL),
        ("a.json", MSCCL),
        ("a.dat", MSCCL),
        ("a.TXT", "0 1 2\n"),
        ("a.json", '{"format":"alltoall.topology/1","nodes":2,"links":[[0,1,2],[1,0,2]]}'),
    ],
)
def test_content_decides_between_formats(tmp_path: Path, name: str, text: str) -> None:
    """Files of a shared suffix, or of none that is known, are told apart by what they hold."""
    found = read_topology(save(tmp_path, name, text))
    assert found == PAIR
    assert found.name in ("a", "m")


def test_xml_is_written_for_simgrid_and_net_for_ibsim(tmp_path: Path) -> None:
    """The formats that are only written have suffixes too."""
    write_topology(RING, tmp_path / "r.xml")
    write_topology(RING, tmp_path / "r.net")
    assert "<platform" in (tmp_path / "r.xml").read_text()
    assert 'Switch 3 "S0"' in (tmp_path / "r.net").read_text()
    with pytest.raises(UsageError, match="simgrid is only written; read one of json, edgelist"):
        read_topology(tmp_path / "r.xml")


def test_directed_and_parallel_apply_to_edge_lists(tmp_path: Path) -> None:
    """The options reach the reader, and are refused for other formats."""
    path = save(tmp_path, "a.edges", "0 1\n1 0\n")
    assert read_topology(path, directed=True).links == 2
    assert read_topology(path, parallel=True).links == 4
    for mode in ("directed", "parallel"):
        with pytest.raises(UsageError, match=f"only edge lists can be read as {mode}"):
            read_topology(
                save(tmp_path, "a.json", MSCCL),
                directed=mode == "directed",
                parallel=mode == "parallel",
            )


def test_wrong_words_list_the_valid_ones(tmp_path: Path) -> None:
    """Unknown formats, one-way formats and unknown suffixes are usage errors."""
    path = save(tmp_path, "a.edges", "0 1\n")
    with pytest.raises(UsageError, match="unknown topology format 'dot'; expected one of json"):
        read_topology(path, "dot")
    with pytest.raises(UsageError, match="ibsim is only written"):
        read_topology(path, "ibsim")
    with pytest.raises(UsageError, match="no format has this suffix"):
        write_topology(RING, tmp_path / "a.dot")
    with pytest.raises(UsageError, match="cannot tell its format; say it: alltoall topology FILE"):
        read_topology(save(tmp_path, "a.dot", "graph {}"))


def test_files_are_limited_and_named(tmp_path: Path) -> None:
    """Missing, oversized and binary files, and unsound topologies, name the file."""
    with pytest.raises(FormatError, match=r"none\.edges: no such file"):
        read_topology(tmp_path / "none.edges")
    large = save(tmp_path, "large.txt", MATRIX + " " * (1 << 20))
    for key in (None, "nvidia-smi"):
        with pytest.raises(FormatError, match="larger than the limit"):
            read_topology(large, key)
    (tmp_path / "b.edges").write_bytes(b"\xff\xfe0 1")
    with pytest.raises(FormatError, match="not UTF-8"):
        read_topology(tmp_path / "b.edges")
    with pytest.raises(TopologyError, match=r"c\.edges: c: .*an end outside the nodes"):
        read_topology(save(tmp_path, "c.edges", "# nodes: 2\n0 5\n"))


@pytest.mark.parametrize(
    "text",
    [
        '{"format": "alltoall.topology/1", "nodes": 1000000000000, "links": []}',
        '{"format": "alltoall.topology/1", "nodes": 2, "links": [[0, 1' + "0" * 30 + ", 1]]}",
        '{"format": "alltoall.topology/1", "nodes": 2, "links": [[0, 1, 1' + "0" * 400 + "]]}",
        '{"a":' * 50_000,
        json.dumps({"format": "other"}),
        "{}",
    ],
)
def test_hostile_json_is_refused(tmp_path: Path, text: str) -> None:
    """Huge numbers and deep nesting end in an error that names the file."""
    with pytest.raises(AlltoallError, match=r"a\.json"):
        read_topology(save(tmp_path, "a.json", text))


@given(st.sampled_from([*FORMATS]), st.text(max_size=80) | st.sampled_from([MATRIX, NCCL, MSCCL]))
def test_any_text_in_any_format_is_read_or_refused(
    tmp_path_factory: pytest.TempPathFactory, key: str, text: str
) -> None:
    """Nothing but our own errors leaves a reader."""
    path = save(tmp_path_factory.getbasetemp(), "any", text.encode("utf-8", "replace").decode())
    for format_name in (key, None):
        with contextlib.suppress(AlltoallError):
            read_topology(path, format_name)
