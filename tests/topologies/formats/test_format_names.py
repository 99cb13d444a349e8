"""Names of nodes in every format, and the forms of edge lists that have them."""

import itertools
from pathlib import Path

import networkx as nx
import pytest

from alltoall.errors import FormatError, TopologyError
from alltoall.ir.files.drawing import draw_svg
from alltoall.ir.topology import Topology
from alltoall.topologies.formats import FORMATS, edgelist, read_topology, write_topology
from alltoall.topologies.formats.networkx_graph import from_networkx

EDGES = [(0, 1), (1, 2), (2, 3), (3, 0)]
NAMED = Topology.from_edges("lab", 4, EDGES, names=["spine 1", "b<&>", "0", "ö,x"])
GPUS = Topology.from_edges("box", 4, EDGES, names=["GPU0", "GPU2", "GPU5", "GPU7"])


def read(text: str, directed: bool = False, capacity: str | None = None) -> Topology:
    """Read an edge list from a made-up file."""
    return edgelist.read(text, "net.edges", "net", directed, capacity)


@pytest.mark.parametrize(
    "key", [key for key, entry in FORMATS.items() if entry.reads and entry.writes]
)
def test_names_survive_every_format_that_is_read(tmp_path: Path, key: str) -> None:
    """What is written is read back with its names; NVLink machines have GPUs and numbers."""
    sample = GPUS if key in ("nccl", "nvidia-smi") else NAMED
    write_topology(sample, tmp_path / "file", key)
    found = read_topology(tmp_path / "file", key)
    assert found.names == sample.names
    assert found == sample


@pytest.mark.parametrize("key", [key for key, entry in FORMATS.items() if not entry.reads])
def test_formats_that_are_only_written_have_the_names(tmp_path: Path, key: str) -> None:
    """SimGrid calls its hosts so; a netlist says whom its ids mean."""
    write_topology(GPUS, tmp_path / "file", key)
    assert all(name in (tmp_path / "file").read_text() for name in GPUS.names or ())


def test_a_drawing_has_the_names() -> None:
    """Discs are labelled, and the whole name is their title."""
    picture = draw_svg(NAMED)
    assert ">spine 1</text>" in picture
    assert "<title>b&lt;&amp;&gt;</title></circle>" in picture
    long = Topology.from_edges("long", 2, [(0, 1)], names=["a" * 20, "b"])
    assert f">{'a' * 7}…</text>" in draw_svg(long)


def test_any_token_is_a_name() -> None:
    """If one node is not a number, all are names, numbered as they appear."""
    found = read("leaf-1 10.0.0.1\n10.0.0.1 7 2.5\n")
    assert found.names == ("leaf-1", "10.0.0.1", "7")
    assert found == Topology.from_edges("net", 3, [(0, 1), (1, 2, 2.5)])


def test_coordinates_of_graph_golf_are_names() -> None:
    """Without blanks a comma is part of a name."""
    assert read("0,0 0,1\n0,1 1,1\n").names == ("0,0", "0,1", "1,1")


@pytest.mark.parametrize("text", ["0,1\n1,2,3\n", "0, 1\n1, 2, 3\n"])
def test_commas_may_stand_between(text: str) -> None:
    """With nothing but commas, or with blanks behind them, they are separators."""
    assert read(text) == Topology.from_edges("net", 3, [(0, 1), (1, 2, 3)])


def test_marked_nodes_are_not_terminals() -> None:
    """An exclamation mark at any mention of a node is enough."""
    assert read("a !s\ns b\n").terminals.tolist() == [0, 2]
    assert read("0 !2\n2 1\n").terminals.tolist() == [0, 1]
    assert read("# terminals: a b\na s\ns b\n").terminals.tolist() == [0, 2]


def test_units_make_the_smallest_capacity_one() -> None:
    """A note says what it is."""
    found = read("a b 400Gbps\nb c 100Gbps\nc a 25GB/s\n", directed=True)
    assert found.capacity.tolist() == [4.0, 1.0, 2.0]
    assert found.notes == ("capacity 1 is 100Gbps",)


def test_edge_lists_of_networkx(tmp_path: Path) -> None:
    """What networkx writes is read, its attributes included."""
    graph: nx.Graph[int] = nx.cycle_graph(4)
    nx.write_edgelist(graph, tmp_path / "plain.edges")
    assert read_topology(tmp_path / "plain.edges") == from_networkx(graph)
    nx.set_edge_attributes(graph, {(0, 1): 2, (1, 2): 3}, "capacity")
    nx.write_edgelist(graph, tmp_path / "wide.edges")
    assert read_topology(tmp_path / "wide.edges") == from_networkx(graph)
    assert read("0 1 {'bw': 5, 'a': 'x'}\n", capacity="bw").capacity.tolist() == [5.0, 5.0]
    assert read("0 1 {'capacity': '10Gbps'}\n").notes == ("capacity 1 is 10Gbps",)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("a b 100Gbps\nb c\n", "line 2: no unit, but other lines have one, such as '100Gbps'"),
        ("a b 100Gbps\nb c 3\n", "line 2: no unit"),
        ("a b 100GB\n", "'100GB' is not a capacity"),
        ("0 1 {'weight': 2}\n", "weight '2' and no capacity"),
        ("0 1 {'capacity': [1]}\n", "is not a capacity"),
        ("0 1 {__import__('os').getcwd()}\n", "are no attributes"),
        ("0 1 {" + "(" * 900 + "\n", "are no attributes"),
        ("0 1 {'a': " + "1" * 2000 + "}\n", "characters of attributes"),
        ("0 1 2 {}\n", "is not an edge"),
        ("a a\n", "line 1: an edge from a to itself"),
        ("a -1\n", "line 1: '-1' is no node"),
        ("a,b c,\n", "'b c' is no node"),
        ("# terminals: a z\na b\n", "terminals: 'z' is none of the nodes"),
        ("# terminals: a s\na !s\ns b\n", "node 1 is listed, but marked"),
        ("# nodes: 3\na b\n", "3 nodes, but 2 names"),
        ('# names: ["a", "b"]\na c\n', "line 2: 'c' is none of the nodes"),
        ('# names: ["a", "a"]\na a\n', "line 2: an edge from a to itself"),
        ("# names: a b\na b\n", "line 1: not valid JSON"),
    ],
)
def test_malformed_lines_are_named(text: str, message: str) -> None:
    """A message says the line and what was expected."""
    with pytest.raises(FormatError, match=message) as caught:
        read(text)
    assert str(caught.value).startswith("net.edges: ")


def test_an_attribute_that_no_line_has() -> None:
    """Asking for it is a mistake."""
    with pytest.raises(FormatError, match="no line has the attribute 'bw'"):
        read("0 1\n", capacity="bw")


def test_names_that_cannot_stand_in_a_line() -> None:
    """Then the lines have numbers, and the header has the names."""
    text = edgelist.write(NAMED)
    assert '# names: ["spine 1", "b<&>", "0", "ö,x"]' in text
    assert "\n0 1 1.0\n" in text
    assert read(text).names == NAMED.names
    assert "\nGPU0 GPU2 1.0\n" in edgelist.write(GPUS)


def test_labels_of_networkx_are_names() -> None:
    """Any hashable label is called by its text; names in attributes go before it."""
    grid = nx.grid_2d_graph(2, 2)
    assert from_networkx(grid).names == ("(0, 0)", "(0, 1)", "(1, 0)", "(1, 1)")
    nx.set_node_attributes(grid, dict(zip(grid, "abcd", strict=True)), "name")
    assert from_networkx(grid).names == ("a", "b", "c", "d")
    path: nx.Graph[int] = nx.path_graph(3)
    nx.set_node_attributes(path, dict.fromkeys(path, "same"), "name")
    assert from_networkx(path).names is None


def test_hubs_of_msccl_are_called_like_their_switches(tmp_path: Path) -> None:
    """GPUs of such a file have no names but numbers; what cannot be a name is a switch."""
    matrix = [[2 * int(u != v) for u in range(3)] for v in range(3)]
    for label, called in (("nvswitch", "nvswitch"), ("\\u001b", "switch")):
        switches = f'[[[0,1,2],[0,1,2],2,"{label}"]]'
        path = tmp_path / "m.json"
        path.write_text(
            f'{{"msccl_type":"topology","name":"m","links":{matrix},"switches":{switches}}}'
        )
        names = ("0", "1", "2", f"{called}/in", f"{called}/out")
        assert read_topology(path).names == names


def test_nvidia_switch_has_a_name() -> None:
    """A fabric behind a switch gets it as a node."""
    cells = [["X" if u == v else "NV18" for u in range(3)] for v in range(3)]
    rows = [["", "GPU0", "GPU1", "GPU2"], *([f"GPU{v}", *row] for v, row in enumerate(cells))]
    text = "\n".join("\t".join(row) for row in rows)
    found = FORMATS["nvidia-smi"].read
    assert found is not None
    assert (found(text, "f", "n").names or ())[-1] == "NVSwitch"


def test_bad_names_in_attributes_are_left_alone() -> None:
    """Labels that cannot be names are numbered, and the notes say which."""
    graph: nx.Graph[str] = nx.Graph(itertools.pairwise(("a\n", "b", "c")))
    found = from_networkx(graph)
    assert found.names is None
    assert found.notes[0].startswith("nodes numbered in the order of the graph")


def test_too_many_names_for_a_topology() -> None:
    """The reader of JSON says what is wrong with them."""
    with pytest.raises(TopologyError, match="3 names for 2 nodes"):
        Topology.from_edges("t", 2, [(0, 1)], names=["a", "b", "c"])
