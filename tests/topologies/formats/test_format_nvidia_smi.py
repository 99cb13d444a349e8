"""The output of `nvidia-smi topo -m`."""

import contextlib

import pytest
from hypothesis import given
from hypothesis import strategies as st

from alltoall.errors import AlltoallError, FormatError, TopologyError
from alltoall.ir.topology import Topology
from alltoall.topologies.formats import nvidia_smi
from alltoall.topologies.spec import build

LEGEND = """
Legend:

  X    = Self
  SYS  = Path over PCIe and between NUMA nodes
  PHB  = Path over PCIe and a host bridge
  PIX  = Path over at most one PCIe bridge
  NV#  = Path over a bonded set of # NVLinks
"""

DGX1 = [
    (0, 1, 1), (0, 2, 1), (0, 3, 2), (0, 4, 2), (1, 2, 2), (1, 3, 1), (1, 5, 2), (2, 3, 2),
    (2, 6, 1), (3, 7, 1), (4, 5, 1), (4, 6, 1), (4, 7, 2), (5, 6, 2), (5, 7, 1), (6, 7, 2),
]  # fmt: skip


def dgx1_text() -> str:
    """Print a DGX-1 as nvidia-smi does: tabs, an underlined header, NICs and CPU affinities."""
    cells = {(u, v): f"NV{k}" for u, v, k in DGX1} | {(v, u): f"NV{k}" for u, v, k in DGX1}
    gpus, nics = [f"GPU{v}" for v in range(8)], ["mlx5_0", "mlx5_1"]
    lines = ["\x1b[4m\t" + "\t".join([*gpus, *nics, "CPU Affinity", "NUMA Affinity"]) + "\x1b[0m"]
    for u in range(8):
        row = [" X " if u == v else cells.get((u, v), "SYS") for v in range(8)]
        lines.append("\t".join([f"GPU{u}", *row, "PIX", "SYS", "0-19,40-59", "0"]))
    lines += ["\t".join([nic, *["SYS"] * 8, " X ", "PHB", "", ""]) for nic in nics]
    return "\n".join(lines) + "\n" + LEGEND


A100 = """\
        GPU0    GPU1    GPU2    GPU3    NIC0    CPU Affinity    NUMA Affinity   GPU NUMA ID
GPU0     X      NV12    NV12    NV12    PXB     48-63,176-191   3               N/A
GPU1    NV12     X      NV12    NV12    PXB     48-63,176-191   3               N/A
GPU2    NV12    NV12     X      NV12    SYS     16-31,144-159   1               N/A
GPU3    NV12    NV12    NV12     X      SYS     16-31,144-159   1               N/A
NIC0    PXB     PXB     SYS     SYS      X
"""


def read(text: str) -> Topology:
    """Read the text of a made-up file."""
    return nvidia_smi.read(text, "topo.txt", "topo")


def test_dgx1() -> None:
    """The hybrid cube mesh has six NVLinks at each GPU."""
    found = read(dgx1_text())
    assert found == Topology.from_edges("topo", 8, DGX1)
    assert found.notes == ()


def test_dgx_a100_has_a_switch() -> None:
    """NV12 to everyone stands for one switch, and the notes say so."""
    found = read(A100 + LEGEND)
    assert found == Topology.from_edges("t", 5, [(v, 4, 12) for v in range(4)], range(4))
    assert "NVSwitch: a GPU shows 36 NVLinks" in found.notes[0]


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (
            A100.replace("GPU1    NV12 ", "GPU1    NV8  "),
            "GPU0 shows 12 NVLinks to GPU1, which sho",
        ),
        (A100.replace("NV12", "GNS"), "line 2: GPU0 has a cell 'GNS'; expected PIX, PXB, PHB"),
        (A100.replace("NV12", "NVx"), "line 2: GPU0 has a cell 'NVx'"),
        (A100[: A100.index("GPU3    NV12")], "no row for GPU3; check that the file is complete"),
        (A100[: A100.index("GPU3    NV12") + 12], "line 5: GPU3 has 1 cells"),
        (A100.replace(" X ", "NV1"), "has 'NV1' in its own column; expected X"),
        (A100.replace("GPU1", "GPU0"), "names a GPU twice"),
        ("No devices were found\n", "no header line with GPU0 and GPU1"),
        ("", "no header line"),
    ],
)
def test_bad_matrices_are_refused(text: str, message: str) -> None:
    """Asymmetric, truncated and foreign text ends in a FormatError with the file's name."""
    with pytest.raises(FormatError, match=message) as caught:
        read(text)
    assert str(caught.value).startswith("topo.txt: ")


@given(st.integers(0, len(A100)), st.integers(0, 40), st.text(max_size=5))
def test_damaged_matrices_are_read_or_refused(start: int, length: int, patch: str) -> None:
    """No damage makes the reader fail in another way than by its own errors."""
    with contextlib.suppress(AlltoallError):
        read(A100[:start] + patch + A100[start + length :])


def star(spokes: list[int]) -> Topology:
    """Return a switch, the last node, with links to as many GPUs."""
    switch = len(spokes)
    links = [(gpu, switch, count) for gpu, count in enumerate(spokes)]
    return Topology.from_edges("star", switch + 1, links, range(switch))


@pytest.mark.parametrize("spec", ["dgx1", "ndv2", "complete:4", "ring:5"])
def test_direct_links_round_trip(spec: str) -> None:
    """What is written is read as the same network."""
    assert read(nvidia_smi.write(build(spec))) == build(spec)


@pytest.mark.parametrize("spokes", [[12] * 4, [18] * 8, [6, 18, 18, 12]])
def test_a_switch_round_trips(spokes: list[int]) -> None:
    """Two GPUs see the NVLinks of the one with fewer, and each row shows its own."""
    assert read(nvidia_smi.write(star(spokes))) == star(spokes)


def test_the_text_is_a_matrix() -> None:
    """Parallel links are summed; GPUs without a link between them say SYS."""
    double = Topology.from_edges("t", 3, [(0, 1), (0, 1, 2), (1, 2)])
    assert nvidia_smi.write(double) == (
        "\tGPU0\tGPU1\tGPU2\nGPU0\t X \tNV3\tSYS\nGPU1\tNV3\t X \tNV1\nGPU2\tSYS\tNV1\t X \n"
    )


@pytest.mark.parametrize(
    ("topology", "message"),
    [
        (Topology.from_links("t", 2, [(0, 1, 2), (1, 0, 1)]), "2 links 0 -> 1 and 1 back"),
        (Topology.from_links("t", 2, [(0, 1)]), "1 links 0 -> 1 and 0 back"),
        (Topology.from_links("t", 2, []), "no links"),
        (Topology.from_edges("t", 4, [(0, 1), (2, 3)]), "GPUs that no NVLinks join"),
        (Topology.from_edges("t", 2, [(0, 1, 1.5)]), "a capacity of 1.5; expected whole numbers"),
        (Topology.from_edges("t", 3, [(0, 1), (1, 2)], [0, 2]), "expected the switch last"),
        (Topology.from_edges("t", 3, [(0, 1)], [0, 1]), "node 2 has no links"),
        (build("dgx2"), "12 nodes are not terminals; expected at most one switch"),
        (Topology.from_edges("t", 2, [(0, 1, 19)]), "show up to 19 NVLinks, .* read as one switch"),
        (star([9, 9, 9]), "show up to 18 NVLinks, .* read as links without a switch"),
        (star([12, 12, 18]), "show up to 24 NVLinks, .* not as this network"),
        (star([10_000, 10_000]), "10000 links between two nodes"),
        (build("complete:600"), "600 GPUs; expected a matrix of less than"),
    ],
)
def test_what_a_matrix_cannot_say_is_refused(topology: Topology, message: str) -> None:
    """The message says what there is, what was expected, and another format."""
    with pytest.raises(TopologyError, match=message) as caught:
        nvidia_smi.write(topology)
    assert "write json" in str(caught.value)
