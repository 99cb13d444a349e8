"""The formats that are only written: SimGrid platforms and ibsim netlists."""

import re
from xml.etree.ElementTree import Element, fromstring

import pytest

from alltoall.errors import TopologyError, UsageError
from alltoall.ir.topology import Topology
from alltoall.topologies.formats import ibsim, simgrid

STAR = Topology.from_edges("a & <b>\n", 3, [(0, 2, 2.0), (1, 2, 0.5)], terminals=[0, 1])


def platform(topology: Topology, bandwidth: float = 1e9) -> Element:
    """Write a platform and parse it back."""
    return fromstring(simgrid.write(topology, bandwidth, 2e-6))


def test_simgrid_platform_has_hosts_routers_links_and_routes() -> None:
    """Terminals are hosts, other nodes routers, and each link is one-way."""
    root = platform(STAR)
    (zone,) = root
    assert (root.tag, root.get("version"), zone.get("routing")) == ("platform", "4.1", "Floyd")
    assert zone.get("id") == "a & <b>"
    assert [host.get("id") for host in zone.findall("host")] == ["node-0", "node-1"]
    assert [router.get("id") for router in zone.findall("router")] == ["node-2"]
    widths = [(one.get("bandwidth"), one.get("sharing_policy")) for one in zone.findall("link")]
    assert widths == [(f"{c * 1e9!r}Bps", "SHARED") for c in (2.0, 0.5, 2.0, 0.5)]
    routes = [(r.get("src"), r.get("dst"), r.get("symmetrical")) for r in zone.findall("route")]
    ends = [("node-0", "node-2"), ("node-1", "node-2"), ("node-2", "node-0"), ("node-2", "node-1")]
    assert routes == [(*pair, "NO") for pair in ends]


def test_simgrid_routes_over_the_widest_of_parallel_links() -> None:
    """SimGrid refuses a second route between two nodes."""
    double = Topology.from_links("d", 2, [(0, 1, 1), (1, 0, 1), (0, 1, 3), (0, 1, 2)])
    (zone,) = platform(double)
    assert len(zone.findall("link")) == 4
    used = [one.get("id") for one in zone.iter("link_ctn")]
    assert used == ["link-2", "link-1"]


def test_simgrid_starts_with_the_document_type() -> None:
    """SimGrid insists on it."""
    assert '<!DOCTYPE platform SYSTEM "https://simgrid.org/simgrid.dtd">' in simgrid.write(STAR)


def test_simgrid_options_are_checked() -> None:
    """Rates and latencies are physical."""
    with pytest.raises(UsageError, match="link bandwidth 0"):
        simgrid.write(STAR, link_bandwidth=0.0)
    with pytest.raises(UsageError, match="latency -1"):
        simgrid.write(STAR, latency=-1.0)


def netlist(topology: Topology) -> dict[str, tuple[int, dict[int, tuple[str, int]]]]:
    """Parse a netlist: for every node its number of ports, and what its ports lead to."""
    records: dict[str, tuple[int, dict[int, tuple[str, int]]]] = {}
    current = ""
    for line in ibsim.write(topology).splitlines():
        header = re.fullmatch(r'(Switch|Hca) (\d+) "(\w+)"', line)
        port = re.fullmatch(r'\[(\d+)\] "(\w+)"\[(\d+)\]', line)
        if header:
            current = header[3]
            records[current] = (int(header[2]), {})
        elif port:
            records[current][1][int(port[1])] = (port[2], int(port[3]))
        else:
            assert not line or line.startswith("#")
    return records


def test_ibsim_netlist_is_consistent() -> None:
    """Every port's remote port leads back to it, as ibsim checks."""
    cables = [(0, 1), (0, 1), (1, 2), (2, 3), (3, 0)]
    records = netlist(Topology.from_edges("n", 4, cables, terminals=[0, 1, 3]))
    assert sorted(records) == ["H0", "H1", "H3", "S0", "S1", "S2", "S3"]
    for name, (count, ports) in records.items():
        assert sorted(ports) == list(range(1, count + 1))
        for port, (remote, remote_port) in ports.items():
            assert records[remote][1][remote_port] == (name, port)
    assert records["S0"][0] == 4
    assert records["S2"][0] == 2
    assert records["S0"][1][1] == ("H0", 1)


def test_ibsim_gives_an_isolated_switch_a_port() -> None:
    """A switch of no ports would end ibsim's reading."""
    lone = Topology.from_edges("n", 3, [(0, 1)], terminals=[0, 1])
    assert netlist(lone)["S2"] == (1, {})


def test_ibsim_refuses_what_cables_cannot_be() -> None:
    """One-way links and switches of too many ports are refused."""
    with pytest.raises(TopologyError, match="full-duplex; add the missing links"):
        ibsim.write(Topology.from_links("one-way", 2, [(0, 1)]))
    with pytest.raises(TopologyError, match="node 0 needs 301 ports"):
        ibsim.write(Topology.from_edges("wide", 301, [(0, v) for v in range(1, 301)]))
