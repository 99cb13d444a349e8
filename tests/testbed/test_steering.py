"""What nodes are told so that routes stay on their paths: text, and nothing that runs it."""

from dataclasses import replace

import numpy as np
import pytest

import alltoall
from alltoall.errors import UsageError
from alltoall.ir.demand import Demand
from alltoall.ir.topology import Topology
from alltoall.testbed.plan import Plan, merged
from alltoall.testbed.ports import per_chunk
from alltoall.testbed.steering import batches, steered

LINES = """\
address flush dev lo to fc02::/16
route flush root fc02::/16
route flush root fc01::/16
neigh replace fc01:2:0::1 lladdr 02:00:00:02:00:00 dev p0 nud permanent
address replace fc01:0:2::1/128 dev p0 nodad noprefixroute
neigh replace fc01:3:0::2 lladdr 02:00:00:03:00:00 dev p1 nud permanent
address replace fc01:0:3::1/128 dev p1 nodad noprefixroute
address add fc02:0:1::1/128 dev lo nodad
address add fc02:0:2::1/128 dev lo nodad
address add fc02:0:3::1/128 dev lo nodad
"""
"""What node 0 of bipartite:2x2 is told first, whatever the steering."""

WAYS = {
    "plain": """\
route add fc02:1:0::1/128 via fc01:3:0::2 dev p1 onlink initcwnd 2 congctl cubic
route add fc02:2:0::1/128 via fc01:2:0::1 dev p0 onlink initcwnd 2 congctl cubic
route add fc02:3:0::1/128 via fc01:3:0::2 dev p1 onlink initcwnd 2 congctl cubic
route add fc02:2:3::1/128 via fc01:2:0::1 dev p0 onlink initcwnd 2 congctl cubic
""",
    "encap": """\
route add fc01:2:0::1/128 dev p0
route add fc01:3:0::2/128 dev p1
route add fc02:1:0::1/128 encap seg6 mode encap segs fc01:3:0::2,fc01:1:3::2 dev p1 initcwnd 2 \
congctl cubic
route add fc02:2:0::1/128 encap seg6 mode encap segs fc01:2:0::1 dev p0 initcwnd 2 congctl cubic
route add fc02:3:0::1/128 encap seg6 mode encap segs fc01:3:0::2 dev p1 initcwnd 2 congctl cubic
""",
}


@pytest.mark.parametrize("steering", WAYS)
def test_what_a_node_is_told(steering: str) -> None:
    """What was there before goes; then links, neighbours, addresses, and a way per route."""
    routes = alltoall.route("bipartite:2x2")
    plan = Plan("golden", routes.problem.topology, 1e6)
    found = batches(plan, steered(plan, routes), steering)
    assert sorted(found) == [0, 1, 2, 3]
    assert found[0] == LINES + WAYS[steering]


def test_a_pair_has_an_address_whose_next_hops_are_its_routes() -> None:
    """Besides what SRv6 needs: the kernel's hash picks one of them."""
    routes = alltoall.route("bipartite:2x2")
    plan = Plan("golden", routes.problem.topology, 1e6)
    found = steered(plan, routes)
    before, text = (batches(plan, found, way)[0] for way in ("encap", "ports"))
    assert text.startswith(before)
    addresses = [line for line in text[len(before) :].splitlines() if "address" in line]
    assert addresses == [f"address add fc02:0:{n}::ffff/128 dev lo nodad" for n in (1, 2, 3)]
    hops = (
        "nexthop encap seg6 mode encap segs fc01:3:0::2,fc01:1:3::2 via fc01:3:0::2 dev p1 onlink"
    )
    assert f"route add fc02:1:0::ffff/128 initcwnd 2 congctl cubic {hops}\n" in text


@pytest.mark.parametrize(
    ("weights", "chunks"),
    [((0.5, 0.5), [2, 2]), ((0.9, 0.1), [4]), ((0.6, 0.4), [2, 2]), ((0.7, 0.3), [3, 1])],
)
def test_chunks_are_as_many_for_every_pair(weights: tuple[float, float], chunks: list[int]) -> None:
    """Each a route of its own, as near to the weights as whole chunks are."""
    routes = alltoall.route("ring:4", "ewsp:layering=none")
    two = routes.select(np.flatnonzero((routes.source == 0) & (routes.destination == 2)))
    many = per_chunk(replace(two, weight=np.array(weights), denominator=None))
    assert many.weight.tolist() == [0.25] * 4
    _, counts = np.unique(many.link[many.start[:-1]], return_counts=True)
    assert sorted(counts.tolist(), reverse=True) == chunks


def test_one_way_links_arrive_where_acknowledgements_would_leave() -> None:
    """The end of a link without a partner is the device of the channel back."""
    routes = alltoall.route("genkautz:n=8,d=2", method="sssp")
    plan = Plan("golden", routes.problem.topology, 1e6)
    text = batches(plan, steered(plan, routes), "plain")
    for cable in plan.cables:
        there, here = cable
        if here.link is None:
            known = f"lladdr {here.mac} dev {there.name} "
            assert any(known in line for line in text[there.node].splitlines())
            assert f"::{int(there.name[1:]) + 1:x}/128 dev {here.name} nodad" in text[here.node]
    assert "via" in text[0]
    assert not any(" dev q" in line for line in text[0].splitlines() if "route add" in line)


def test_a_sender_binds_the_way_back() -> None:
    """Acknowledgements take a route of the same pair, of the same number as far as there is one."""
    routes = alltoall.route("hypercube:3", "ewsp:layering=none")
    found = steered(Plan("backs", routes.problem.topology, 1e6), routes)
    back = found.back
    assert np.array_equal(found.routes.source[back], found.routes.destination)
    assert np.array_equal(found.routes.destination[back], found.routes.source)
    # The six ways between opposite corners answer each other one by one.
    opposite = np.flatnonzero((found.routes.source == 0) & (found.routes.destination == 7))
    assert len(set(back[opposite].tolist())) == len(opposite) == 6


def test_pairs_that_send_one_way_get_a_way_back_without_data() -> None:
    """Acknowledgements need one; it is a shortest path, and has no weight."""
    matrix = np.zeros((8, 8))
    matrix[0, 7] = matrix[2, 3] = 1.0
    routes = alltoall.route("hypercube:3", demand=Demand(8, matrix), method="sssp")
    found = steered(Plan("oneway", routes.problem.topology, 1e6), routes)
    idle = found.routes.weight == 0
    ends = np.stack((found.routes.source[idle], found.routes.destination[idle]), axis=1)
    assert sorted(ends.tolist()) == [[3, 2], [7, 0]]
    assert sorted(found.routes.hops[idle].tolist()) == [1, 3]
    topology = found.routes.problem.topology
    for route in np.flatnonzero(idle):
        path = found.routes.link[slice(*found.routes.start[route : route + 2])]
        assert topology.tail[path[0]] == found.routes.source[route]
        assert topology.head[path[-1]] == found.routes.destination[route]
        assert np.array_equal(topology.head[path[:-1]], topology.tail[path[1:]])


def test_parallel_links_are_one_on_the_fabric() -> None:
    """Routes over either of two links take the one device that both became."""
    topology = Topology.from_links("twins", 2, [(0, 1), (0, 1), (1, 0), (1, 0)])
    routes = alltoall.route(topology, "extp:layering=none")
    plan = Plan("twins", merged(topology)[0], 1e6)
    found = steered(plan, routes)
    assert plan.topology.links == 2
    assert set(found.routes.link.tolist()) == {0, 1}
    assert found.routes.time == pytest.approx(0.5)
    assert found.bound == routes.bound


def test_routes_of_another_topology_are_refused() -> None:
    """The fabric has other links."""
    routes = alltoall.route("hypercube:3", method="sssp")
    plan = Plan("other", alltoall.route("ring:8", method="sssp").problem.topology, 1e6)
    with pytest.raises(UsageError, match="expected the topology that the fabric was"):
        steered(plan, routes)
    faster = replace(plan.topology, capacity=2 * plan.topology.capacity)
    with pytest.raises(UsageError, match="8 nodes, 16 links"):
        steered(Plan("other", faster, 1e6), alltoall.route("ring:8", method="sssp"))
