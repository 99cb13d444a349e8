"""A fabric as text: what is made of a topology, before any of it is."""

import numpy as np
import pytest

import alltoall
from alltoall.errors import LimitError, UsageError
from alltoall.ir.topology import Topology
from alltoall.testbed.loads import device_bytes, path_of
from alltoall.testbed.plan import Plan, merged
from alltoall.topologies.operators import with_host_bandwidth

RING = Plan("x", alltoall.topology("ring:3"), 1e6)


def test_the_text_of_a_ring() -> None:
    """A cable for each pair of links; both addresses of a node are on devices that lead nowhere."""
    assert RING.creation().splitlines() == [
        "netns add a2a-x-0",
        "netns add a2a-x-1",
        "netns add a2a-x-2",
        "link add p0 netns a2a-x-0 mtu 9000 address 02:00:00:00:00:00 type veth "
        "peer name p0 netns a2a-x-1 mtu 9000 address 02:00:00:01:00:00",
        "link add p1 netns a2a-x-0 mtu 9000 address 02:00:00:00:00:01 type veth "
        "peer name p0 netns a2a-x-2 mtu 9000 address 02:00:00:02:00:00",
        "link add p1 netns a2a-x-1 mtu 9000 address 02:00:00:01:00:01 type veth "
        "peer name p1 netns a2a-x-2 mtu 9000 address 02:00:00:02:00:01",
    ]
    assert RING.inside(0).splitlines() == [
        "link set lo up",
        "link add id type veth peer name net",
        "link set id up",
        "link set net up",
        "address add 10.77.0.0/32 dev id",
        "address add 10.78.0.0/32 dev net",
        "link set p0 gso_max_size 30000 up",
        "neigh add 10.77.0.1 lladdr 02:00:00:01:00:00 dev p0 nud permanent",
        "neigh add 10.78.0.1 lladdr 02:00:00:01:00:00 dev p0 nud permanent",
        "link set p1 gso_max_size 30000 up",
        "neigh add 10.77.0.2 lladdr 02:00:00:02:00:00 dev p1 nud permanent",
        "neigh add 10.78.0.2 lladdr 02:00:00:02:00:00 dev p1 nud permanent",
        "route replace 10.77.0.1/32 via 10.77.0.1 dev p0 onlink src 10.77.0.0 "
        "initcwnd 2 congctl cubic",
        "route replace 10.78.0.1/32 via 10.78.0.1 dev p0 onlink src 10.78.0.0 "
        "initcwnd 2 congctl cubic",
        "route replace 10.77.0.2/32 via 10.77.0.2 dev p1 onlink src 10.77.0.0 "
        "initcwnd 2 congctl cubic",
        "route replace 10.78.0.2/32 via 10.78.0.2 dev p1 onlink src 10.78.0.0 "
        "initcwnd 2 congctl cubic",
    ]
    assert RING.limits(0).splitlines() == [
        "qdisc add dev p0 root tbf rate 8000000bit burst 32768 limit 8000000",
        "qdisc add dev p1 root tbf rate 8000000bit burst 32768 limit 8000000",
    ]


def test_send_buffers_are_short_where_connections_share_a_nic() -> None:
    """By the slowest link and at least 64 KiB; where each has a link of its own, as they are."""
    hosted = with_host_bandwidth(alltoall.topology("torus:3x3"), 2.0)
    assert Plan("x", hosted, 1e6).settings == {"ipv4/tcp_wmem": "4096 16384 65536"}
    assert Plan("x", hosted, 4e6).settings == {"ipv4/tcp_wmem": "4096 16384 210000"}
    assert RING.settings == {}


def test_a_one_way_link_has_a_channel_back_for_acknowledgements_only() -> None:
    """The direct address comes back along the cable, that of the network never does."""
    plan = Plan("x", alltoall.topology("genkautz:n=8,d=2"), 1e6)
    ends = {
        (int(tail), int(head))
        for tail, head in zip(plan.topology.tail, plan.topology.head, strict=True)
    }
    one_way = next(pair for pair in sorted(ends) if pair[::-1] not in ends)
    tail, head = one_way
    back = [each for each in plan.devices[head] if each.link is None and each.peer == tail]
    assert [each.rate for each in back] == [0.5e6]
    lines = plan.routes(head)
    direct = next(line for line in lines if f" 10.77.0.{tail}/32 " in line)
    network = next(line for line in lines if f" 10.78.0.{tail}/32 " in line)
    assert f"dev {back[0].name} " in direct
    assert "dev q" not in network


def test_equal_ways_are_shared_by_their_capacities() -> None:
    """Two ways of two hops, one of twice the capacity: a next hop each, weights 1 and 2."""
    edges = [(0, 1, 1.0), (1, 3, 1.0), (0, 2, 2.0), (2, 3, 2.0)]
    plan = Plan("x", Topology.from_edges("diamond", 4, edges), 1e6)
    line = next(line for line in plan.routes(0) if "10.78.0.3/32" in line)
    assert "nexthop via 10.78.0.1 dev p0 onlink weight 1" in line
    assert "nexthop via 10.78.0.2 dev p1 onlink weight 2" in line


def test_what_is_cut_is_led_around() -> None:
    """Without the cable between 0 and 1 of a ring, what is for 1 leaves through the other one."""
    without = frozenset((0, 2))
    assert {(int(RING.topology.tail[x]), int(RING.topology.head[x])) for x in without} == {
        (0, 1),
        (1, 0),
    }
    line = next(line for line in RING.routes(0, without) if "10.77.0.1/32" in line)
    assert "via 10.77.0.2 dev p1" in line
    hops = [each.peer for each in path_of(RING, 0, 1, RING.distances(without), without)]
    assert hops == [2, 1]


def test_switches_have_no_address_and_pass_everything_on() -> None:
    """Two hosts behind a switch: the switch only forwards, and both its devices are limited."""
    star = Topology.from_edges("star", 3, [(0, 2), (1, 2)], terminals=[0, 1])
    plan = Plan("x", star, 1e6)
    assert "address add" not in plan.inside(2)
    assert plan.limits(2).count("tbf rate") == 2
    loads = device_bytes(plan, np.array([[0, 7], [5, 0]]))
    assert loads == {(0, "p0"): 7, (2, "p1"): 7, (1, "p0"): 5, (2, "p0"): 5}


def test_parallel_links_are_one_of_their_sum() -> None:
    """A connection has one path: two links of 1 and 2 between two nodes are one of 3."""
    links = [(0, 1, 1.0), (1, 0, 1.0), (0, 1, 2.0)]
    found, place = merged(Topology.from_links("twice", 2, links))
    assert found.links == 2
    assert found.capacity.tolist() == [3.0, 1.0]
    assert place.tolist() == [0, 1, 0]


def test_names_never_reach_a_command() -> None:
    """Nodes are numbers in every line, whatever a file calls them."""
    named = Topology.from_edges("evil", 2, [(0, 1)], names=("$(reboot)", "; touch x"))
    plan = Plan("x", named, 1e6)
    text = plan.creation() + plan.inside(0) + plan.limits(0)
    assert "reboot" not in text
    assert "touch" not in text


@pytest.mark.parametrize("name", ["", "UPPER", "a b", "x;y", "../x", "a" * 17])
def test_a_fabric_has_a_plain_name(name: str) -> None:
    """It becomes part of names and paths."""
    with pytest.raises(UsageError, match="small letters"):
        Plan(name, RING.topology, 1e6)


def test_limits_come_before_anything_is_made() -> None:
    """Thousands of namespaces, or links of some bits per second, are refused."""
    with pytest.raises(LimitError, match="at most 1,024"):
        Plan("x", alltoall.topology("ring:1025"), 1e6)
    with pytest.raises(UsageError, match="higher --rate"):
        Plan("x", RING.topology, 10.0)
