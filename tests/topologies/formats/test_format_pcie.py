"""Machines whose GPUs are joined by PCIe, as `nvidia-smi topo -m` shows them."""

from pathlib import Path

import networkx as nx
import pytest
from hypothesis import given
from hypothesis import strategies as st

from alltoall.errors import FormatError
from alltoall.ir.topology import Topology
from alltoall.topologies.formats import nvidia_smi
from alltoall.topologies.formats.networkx_graph import to_networkx
from alltoall.topologies.formats.pcie_tree import LEVELS
from command_line import Run

Cells = list[list[str]]
Place = tuple[int, int, int, int, int]
"""Below which socket, NUMA bridge, host bridge, PCIe switch and slot a GPU is."""


def text_of(cells: Cells) -> str:
    """Print a matrix as nvidia-smi does, with an affinity behind each row."""
    gpus = [f"GPU{index}" for index in range(len(cells))]
    rows = ["\t".join([gpu, *row, "0-31"]) for gpu, row in zip(gpus, cells, strict=True)]
    return "\n".join(["\t" + "\t".join([*gpus, "CPU Affinity"]), *rows, "", "Legend:", ""])


def cells_of(places: list[Place]) -> Cells:
    """Return the matrix of GPUs at these places."""

    def cell(u: int, v: int) -> str:
        shared = next((at for at in range(4) if places[u][at] != places[v][at]), 4)
        return " X " if u == v else LEVELS[4 - shared]

    return [[cell(u, v) for v in range(len(places))] for u in range(len(places))]


def read(text: str) -> Topology:
    """Read the text of a made-up file."""
    return nvidia_smi.read(text, "topo.txt", "topo")


SERVER: list[Place] = [
    (socket, bridge, 0, 0, slot) for socket in (0, 1) for bridge in (0, 1) for slot in (0, 1)
]
"""Eight GPUs, two below each PCIe switch, two of which are at each of two sockets."""

SERVER_TEXT = text_of(cells_of(SERVER))


def test_a_server_is_a_tree_of_switches() -> None:
    """A switch for each pair, each socket, and what joins the sockets; GPUs are terminals."""
    found = read(SERVER_TEXT)
    assert found.names is not None
    assert found.names[8:] == ("PIX0", "PIX1", "PIX2", "PIX3", "NODE0", "NODE1", "SYS0")
    edges = [(gpu, 8 + gpu // 2) for gpu in range(8)]
    edges += [(8, 12), (9, 12), (10, 13), (11, 13), (12, 14), (13, 14)]
    assert found == Topology.from_edges("topo", 15, edges, range(8))
    assert "NVLinks do not join all GPUs: read with PCIe as a tree of 7 switches" in found.notes[0]
    assert "# rate PCIe: 32GB/s" in found.notes[1]


def test_rates_are_set_by_lines(run: Run, tmp_path: Path) -> None:
    """The sockets' link decides: sixteen shards cross it either way, at 20 GB/s."""
    path = tmp_path / "topo.txt"
    rates = "# rate pcie: 32GB/s\n# rate NODE: 40GB/s\n# Rate SYS: 20GB/s\n"
    path.write_text(SERVER_TEXT + rates)
    found = read(path.read_text())
    assert found.bytes_per_second == 20e9
    assert sorted(set(found.capacity.tolist())) == [1.0, 1.6]
    summary = run("solve", path, "--bytes", "1MB", "--json").json
    assert summary["throughput_GBps"] == pytest.approx(20 * 7 / 16)
    assert summary["transfer_seconds"] == pytest.approx(16e6 / 20e9)


@given(st.lists(st.tuples(*[st.integers(0, 1)] * 5), min_size=2, max_size=10))
def test_the_tree_shows_the_matrix(places: list[Place]) -> None:
    """Between two GPUs the highest switch is of the level that their cell says."""
    cells = cells_of(places)
    found = read(text_of(cells))
    graph = to_networkx(found).to_undirected()
    assert nx.is_tree(nx.Graph(graph))
    assert found.names is not None
    for u, row in enumerate(cells):
        for v, cell in enumerate(row):
            switches = [found.names[node] for node in nx.shortest_path(graph, u, v)[1:-1]]
            if u != v:
                highest = max(switches, key=lambda name: LEVELS.index(name.rstrip("0123456789")))
                assert highest.startswith(cell)


def test_pairs_with_nvlink_bridges_have_both() -> None:
    """Four GPUs in two bridged pairs: NVLinks within them, PCIe between, SOC as of old."""
    cells = [[" X ", "NV4", "SOC", "SOC"], ["NV4", " X ", "SOC", "SOC"],
             ["SOC", "SOC", " X ", "NV4"], ["SOC", "SOC", "NV4", " X "]]  # fmt: skip
    expected = [(0, 1, 4), (2, 3, 4), *((gpu, 4) for gpu in range(4))]
    assert read(text_of(cells)) == Topology.from_edges("t", 5, expected, range(4))
    rated = read(text_of(cells) + "# rate NVLink: 25GB/s\n# rate SYS: 10GB/s\n")
    assert rated.bytes_per_second == 10e9
    assert rated.capacity.max() == 10.0


def test_nvlinks_may_have_a_rate() -> None:
    """Where they join all GPUs it is what capacity 1 is."""
    text = text_of([[" X ", "NV12"], ["NV12", " X "]]) + "# rate NVLink: 25GB/s\n"
    assert read(text).bytes_per_second == 25e9


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (
            text_of([[" X ", "PIX", "SYS"], ["PIX", " X ", "PIX"], ["SYS", "PIX", " X "]]),
            "GPU0 shows SYS to GPU2, but by way of others they are PIX",
        ),
        (text_of([[" X ", "PIX"], ["SYS", " X "]]), "GPU1 shows SYS to GPU0, but"),
        (SERVER_TEXT + "# rate PCIe: 32GB/s\n", "none for SYS; add a line such as `# rate SYS"),
        (SERVER_TEXT + "# rate SYS: 32GB/s\n", "none for PIX; add a line such as `# rate PCIe"),
        (SERVER_TEXT + "# rate QPI: 32GB/s\n", "a rate of 'QPI'; expected PCIe, NODE, SYS"),
        (SERVER_TEXT + "# rate SYS: fast\n", "line 12: bandwidth 'fast'"),
        (
            text_of([[" X ", "NV4", "SYS"], ["NV4", " X ", "SYS"], ["SYS", "SYS", " X "]])
            + "# rate SYS: 10GB/s\n",
            "none for NVLinks; add `# rate NVLink: 25GB/s`",
        ),
    ],
)
def test_what_is_no_tree_is_refused(text: str, message: str) -> None:
    """With what to add, or what is wrong."""
    with pytest.raises(FormatError, match=message):
        read(text)
