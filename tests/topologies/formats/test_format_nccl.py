"""NCCL topology XML."""

import contextlib

import pytest
from hypothesis import given
from hypothesis import strategies as st

from alltoall.errors import AlltoallError, FormatError, TopologyError
from alltoall.ir.topology import Topology
from alltoall.topologies.formats import nccl_xml
from alltoall.topologies.spec import build

GPU = "0x030200"
NVSWITCH = "0x068000"


def gpu(rank: int, links: list[tuple[str, int, str]]) -> str:
    """Return the `pci` element of a GPU at bus id 0000:<rank>7:00.0."""
    nvlinks = "".join(
        f'\n          <nvlink target="{target}" count="{count}" tclass="{kind}"/>'
        for target, count, kind in links
    )
    return f"""
      <pci busid="0000:{rank}7:00.0" class="0x030200" vendor="0x10de" device="0x20b0"
           link_speed="16.0 GT/s PCIe" link_width="16">
        <gpu dev="{rank}" sm="80" rank="{rank}" gdr="1">{nvlinks}
        </gpu>
      </pci>"""


def system(gpus: list[str]) -> str:
    """Return a machine with a PCIe switch and a NIC, GPUs in reverse order."""
    return f"""<system version="1">
  <cpu numaid="0" affinity="ffff" arch="x86_64" vendor="AuthenticAMD" familyid="143" modelid="49">
    <pci busid="0000:40:00.0" class="0x060400" link_speed="16.0 GT/s PCIe" link_width="16">
      {"".join(reversed(gpus))}
      <pci busid="0000:99:00.0" class="0x020000" link_speed="16.0 GT/s PCIe" link_width="16">
        <nic>
          <net name="mlx5_0" dev="0" speed="200000" port="1" guid="0x1" maxconn="131072" gdr="1"/>
        </nic>
      </pci>
    </pci>
  </cpu>
</system>
"""


def read(text: str) -> Topology:
    """Read the text of a made-up file."""
    return nccl_xml.read(text, "topo.xml", "topo")


def quad() -> list[str]:
    """Return four GPUs in a full mesh with four NVLinks a pair."""
    return [gpu(u, [(f"0000:{v}7:00.0", 4, GPU) for v in range(4) if v != u]) for u in range(4)]


def test_four_gpus_in_a_mesh() -> None:
    """Bus ids lead to GPUs, counts are capacities, ranks are ids, NICs are noted."""
    found = read(system(quad()))
    mesh = [(u, v, 4) for u in range(4) for v in range(u)]
    assert found == Topology.from_edges("t", 4, mesh)
    assert found.notes == ("ignored 1 network interfaces",)


def test_nvswitches_are_one_switch() -> None:
    """Like NCCL, all links to switches lead to one node, whatever their target."""
    ways = [("0000:f5:00.0", 5, NVSWITCH), ("0000:f3:00.0", 4, NVSWITCH)]
    found = read(system([gpu(u, ways) for u in range(3)]))
    assert found == Topology.from_edges("t", 4, [(u, 3, 9) for u in range(3)], range(3))
    assert "all NVSwitches are one switch, NVSwitch, as in NCCL" in found.notes


def test_hidden_fabric_address() -> None:
    """Blackwell machines show the switch fabric as an address of all ones."""
    ways = [("fffffff:ff:ff.0", 18, NVSWITCH)]
    assert read(system([gpu(u, ways) for u in range(2)])).capacity.tolist() == [18.0] * 4


def test_links_that_lead_elsewhere_are_noted() -> None:
    """Links to a CPU, or to a GPU that was trimmed from the file, are left out."""
    gpus = quad()[:2]
    gpus[0] = gpus[0].replace("</gpu>", '<nvlink target="0" count="3" tclass="0x068001"/></gpu>')
    found = read(system(gpus))
    assert found == Topology.from_edges("t", 2, [(0, 1, 4)])
    assert "ignored 3 NVLinks to a CPU" in found.notes
    assert "ignored 16 NVLinks to a GPU that is not in the file" in found.notes


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (system([gpu(u, []) for u in range(4)]), "no <nvlink> between the 4 GPUs"),
        (system(quad()[:1]), "1 <gpu> elements; expected at least 2"),
        (system(quad())[:700], "not well-formed XML"),
        (system(quad()).replace('count="4"', 'count="four"'), "has count='four'"),
        (system(quad()).replace('count="4"', 'count="0"'), "nvlink of count 0"),
        (system(quad()).replace('rank="1"', 'rank="0"'), "the same rank"),
        (system(quad()).replace("0000:17:00.0", "0000:07:00.0"), "share pci '0000:07:00.0'"),
        (system([gpu(u, [(f"0000:{u}7:00.0", 1, GPU)]) for u in range(2)]), "nvlink to itself"),
        ("<system><gpu/><gpu/></system>", "has no busid"),
        ("<graphml/>", "the root is <graphml>; expected <system>"),
        ('<!DOCTYPE system [<!ENTITY a "b">]>' + system(quad()), "document type or entities"),
        ("<system>" + "<pci>" * 200, "nested deeper than 100"),
    ],
)
def test_bad_files_are_refused(text: str, message: str) -> None:
    """A message names the file and the element."""
    with pytest.raises(FormatError, match=message) as caught:
        read(text)
    assert str(caught.value).startswith("topo.xml: ")


@given(st.integers(0, 2500), st.integers(0, 40), st.text(max_size=5))
def test_damaged_files_are_read_or_refused(start: int, length: int, patch: str) -> None:
    """No damage makes the reader fail in another way than by its own errors."""
    text = system(quad())
    with contextlib.suppress(AlltoallError):
        read(text[:start] + patch + text[start + length :])


def star(gpus: int, more: list[tuple[int, ...]]) -> Topology:
    """Return a switch, the last node, with 6 links to every GPU, and links besides."""
    links = [(gpu, gpus, 6) for gpu in range(gpus)]
    return Topology.from_edges("star", gpus + 1, [*links, *more], range(gpus))


@pytest.mark.parametrize(
    "topology",
    [
        *map(build, ["dgx1", "ndv2", "complete:4", "genkautz:n=9,d=2", "ring:300"]),
        star(8, []),
        star(3, [(0, 1, 2)]),
    ],
)
def test_round_trip(topology: Topology) -> None:
    """What is written is read as the same network, also one-way links and a switch."""
    assert read(nccl_xml.write(topology)) == topology


def test_parallel_links_are_summed() -> None:
    """One `nvlink` stands for all links of a pair."""
    text = nccl_xml.write(Topology.from_edges("t", 2, [(0, 1), (0, 1, 2)]))
    assert text.count('<nvlink target="0000:01:00.0" count="3" tclass="0x030200"/>') == 1
    assert read(text) == Topology.from_edges("t", 2, [(0, 1, 3)])


@pytest.mark.parametrize(
    ("topology", "message"),
    [
        (Topology.from_links("t", 3, [(0, 2), (2, 1)], [0, 1]), "1 links 0 -> 2 and 0 back"),
        (Topology.from_edges("t", 2, [(0, 1, 0.5)]), "a capacity of 0.5; expected whole numbers"),
        (Topology.from_edges("t", 2, [(0, 1, 10_001)]), "10001 links .*; expected at most 10000"),
        (Topology.from_edges("t", 3, [(0, 1)], [0, 1]), "node 2 has no links"),
        (build("dgx2"), "12 nodes are not terminals"),
    ],
)
def test_what_the_xml_cannot_say_is_refused(topology: Topology, message: str) -> None:
    """The message says what there is, what was expected, and another format."""
    with pytest.raises(TopologyError, match=message) as caught:
        nccl_xml.write(topology)
    assert "write json" in str(caught.value)
