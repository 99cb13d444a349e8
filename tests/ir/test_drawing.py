"""Pictures: well-formed, a mark for everything, within their frame, and loads that show."""

import re
import struct
import xml.etree.ElementTree as ET
import zlib
from base64 import b64decode
from collections import Counter

import numpy as np
import pytest

from alltoall.ir.files.drawing import draw_svg, ramp
from alltoall.ir.topology import Topology
from alltoall.topologies.operators import with_host_bandwidth
from alltoall.topologies.spec import build


def _marks(picture: str) -> Counter[str]:
    return Counter(each.get("class") or "" for each in ET.fromstring(picture).iter())


@pytest.mark.parametrize(
    ("spec", "marks"),
    [
        ("torus:3x3x3", {"node": 27, "cable": 54, "around": 2 * 27}),
        ("hyperx:4x4", {"node": 16, "cable": 48}),
        ("genkautz:n=80,d=4", {"node": 80, "cable": 320 - 10}),
        ("dragonfly:a=4,h=2", {"node": 36, "cable": 90, "group": 9}),
        ("fattree:k=4", {"node": 36, "cable": 48}),
        ("boxes:n=2,ring=true", {"node": 2, "cable": 1}),
    ],
)
def test_everything_is_drawn_once(spec: str, marks: dict[str, int]) -> None:
    """A disc per node and a line per cable: two ways, or parallel links, are one.

    The ten pairs of genkautz n=80 that have links both ways are ten cables, not twenty.
    """
    found = _marks(draw_svg(build(spec)))
    assert {key: found[key] for key in ("node", "cable", "around", "group") if found[key]} == marks


@pytest.mark.parametrize("spec", ["hyperx:4x4", "dragonfly:a=4,h=2", "genkautz:n=20,d=2", "dgx2"])
def test_cables_are_straight(spec: str) -> None:
    """From one disc to another, without a bend."""
    marks = ET.fromstring(draw_svg(build(spec))).iter()
    paths = [each.attrib["d"] for each in marks if each.get("class") == "cable"]
    assert paths
    assert all(re.fullmatch(r"M[-\d.]+,[-\d.]+ L[-\d.]+,[-\d.]+", path) for path in paths)


@pytest.mark.parametrize("spec", ["torus:3x3x3", "dragonfly:a=4,h=2", "genkautz:n=64,d=4", "dgx2"])
def test_discs_are_within_the_frame(spec: str) -> None:
    """With their radius, whatever the layout; discs do not overlap."""
    root = ET.fromstring(draw_svg(build(spec)))
    width, height = float(root.attrib["width"]), float(root.attrib["height"])
    [moved] = [each.attrib["transform"] for each in root if "transform" in each.attrib][:1]
    x, y = map(float, moved.removeprefix("translate(").removesuffix(")").split())
    discs = np.array(
        [
            [float(each.attrib[key]) for key in ("cx", "cy", "r")]
            for each in root.iter()
            if each.get("class") == "node"
        ]
    )
    assert np.all(discs[:, 0] + x - discs[:, 2] > 0)
    assert np.all(discs[:, 0] + x + discs[:, 2] < width)
    assert np.all(discs[:, 1] + y + discs[:, 2] < height)
    apart = np.linalg.norm(discs[:, None, :2] - discs[:, :2], axis=2) + 1e9 * np.eye(len(discs))
    assert apart.min() > 2 * discs[:, 2].max()


def test_titles_and_legends() -> None:
    """A picture says what it shows and what its marks mean, and only those that are there."""
    said = draw_svg(build("torus:3x3"))
    for words in (
        ">torus:3x3<",
        "9 nodes, 36 links both ways, degree 4",
        "terminal",
        "goes around",
    ):
        assert words in said
    assert "switch" not in said
    assert "load over capacity" not in said
    assert ">link, one way<" in draw_svg(build("kautz:d=2,k=2"))
    assert ">switch<" in draw_svg(build("fattree:k=4"))


def test_loads_are_colours_and_widths() -> None:
    """The fuller direction of a cable decides; the greatest load is in the legend."""
    path = Topology.from_edges("path", 3, [(0, 1), (1, 2)])
    load = np.array([4.0, 1.0, 0.0, 2.0])
    lines = [each for each in ET.fromstring(draw_svg(path, load)).iter() if each.get("class")]
    cables = [each for each in lines if each.get("class") == "cable"]
    assert [each.get("stroke") for each in cables] == [ramp(1.0), ramp(0.5)]
    widths = [float(each.attrib["stroke-width"]) for each in cables]
    assert widths[0] > widths[1] > 0
    assert ">4</text>" in draw_svg(path, load)


def test_no_load_at_all() -> None:
    """A flow that carries nothing is drawn as idle."""
    path = Topology.from_edges("path", 3, [(0, 1), (1, 2)])
    assert draw_svg(path, np.zeros(4)).count(f'stroke="{ramp(0.0)}"') == 2


def test_host_bandwidth_is_a_halo() -> None:
    """NIC halves are no discs of their own, and links to them no cables."""
    plain, split = build("torus:3x3x3"), with_host_bandwidth(build("torus:3x3x3"), 4)
    found = _marks(draw_svg(split))
    assert (found["node"], found["cable"], found["around"], found["host"]) == (27, 54, 54, 27)
    assert "host bandwidth" not in draw_svg(plain)
    assert ">switch<" not in draw_svg(split)


def test_names_are_escaped() -> None:
    """A name that looks like markup stays text, in discs, groups and titles."""
    names = [f"<b>{host}:<i>{gpu}" for host in range(3) for gpu in range(3)]
    edges = [(u, v) for u in range(9) for v in range(u)]
    said = draw_svg(Topology.from_edges("</svg>", 9, edges, names=names))
    ET.fromstring(said)
    assert "<b>" not in said
    assert "&lt;i&gt;0" in said


@pytest.mark.parametrize("loaded", [False, True])
def test_a_large_topology_is_a_matrix(loaded: bool) -> None:
    """A pixel for each linked pair, or range of nodes; rows send."""
    topology = build("genkautz:n=300,d=4")
    load = np.ones(topology.links) if loaded else None
    said = draw_svg(topology, load)
    assert "link from row to column" in said
    data = b64decode(said.partition("base64,")[2].partition('"')[0])
    width, height = struct.unpack(">II", data[16:24])
    assert (width, height) == (300, 300)
    size = int.from_bytes(data[33:37], "big")
    rows = np.frombuffer(zlib.decompress(data[41 : 41 + size]), dtype=np.uint8)
    pixels = rows.reshape(300, 901)[:, 1:].reshape(300, 300, 3)
    dark = np.argwhere((pixels != 255).any(axis=2))
    arcs = np.unique(np.stack([topology.tail, topology.head], axis=1), axis=0)
    assert np.array_equal(dark, arcs)
    assert ("load over capacity" in said) == loaded


def test_the_size_of_a_matrix_is_bounded() -> None:
    """A hundred thousand nodes are a picture of some hundred kilobytes."""
    large = Topology.from_links(
        "large",
        100_000,
        [(v, (v * 7) % 100_000) for v in range(1, 100_000) if v * 7 % 100_000 != v],
    )
    assert len(draw_svg(large)) < 500_000
