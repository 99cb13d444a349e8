"""Routes as configuration of the nodes of a fabric: addresses, neighbours, and a path per route.

Every route of a pair has its own address, and so have the routes of acknowledgements: a sender
along route k from S to D binds the address of a route from D to S, which acknowledgements take.
Pairs that send one way only get a shortest route back, which carries no data.

The commands are those of `lower --to srv6`, plus the setup of the fabric and TCP settings for deep
queues.
"""

from dataclasses import dataclass, replace

import numpy as np

from alltoall.errors import UsageError
from alltoall.ir.answer import Certificate
from alltoall.ir.arrays import Ints, inner_index, rows, starts_of
from alltoall.ir.problem import Problem
from alltoall.ir.routes import Routes
from alltoall.lowering.options import Options
from alltoall.lowering.tables.linux import with_ways_back
from alltoall.lowering.tables.routed_file import in_file_order, pair_sizes
from alltoall.lowering.tables.srv6 import (
    emit_srv6,
    link_addresses,
    node_batches,
    route_addresses,
)
from alltoall.testbed.namespaces import Bed, install
from alltoall.testbed.plan import ROUTE_OPTIONS, Plan, merged
from alltoall.testbed.ports import PORTS, by_hash, ways_of

LINKS, ENDS = "fc01::/16", "fc02::/16"
"""Address prefixes of links and of routes."""


@dataclass(frozen=True)
class Steered:
    """Routes on a fabric, in the order of their addresses, and the return route of each.

    Route r goes from address `own[r]` to `address[r]`; its acknowledgements take route `back[r]`.
    Return routes without demand have weight 0. `bound` is the certified bound of the original
    routes.
    """

    routes: Routes
    own: list[str]
    address: list[str]
    back: Ints
    bound: float


def steered(plan: Plan, routes: Routes) -> Steered:
    """Return routes as a fabric of the same topology is to carry them."""
    whole = with_ways_back(_on_fabric(plan, routes))
    ordered, _ = in_file_order(whole)
    address, back = route_addresses(ordered), _backs(ordered)
    return Steered(ordered, [address[each] for each in back], address, back, routes.bound)


def batches(plan: Plan, found: Steered, steering: str) -> dict[int, str]:
    """Return the commands of each node: remove the installed routes, then set up the new ones."""
    commands = _commands(found, steering)
    links = _link_lines(plan)
    gone = (f"address flush dev lo to {ENDS}", *(f"route flush root {x}" for x in (ENDS, LINKS)))
    lines: dict[int, str] = {}
    for node, text in commands.items():
        ways = (
            f"{line} {ROUTE_OPTIONS}" if line.startswith("route add fc02:") else line
            for line in text.splitlines()
        )
        more = by_hash(text) if steering == PORTS else ()
        lines[node] = "".join(f"{line}\n" for line in (*gone, *links[node], *ways, *more))
    return lines


def segments(found: Steered) -> list[str]:
    """Return the segments of each route, for steering by source ports."""
    ways: dict[str, str] = {}
    for text in _commands(found, PORTS).values():
        ways |= ways_of(text)
    return [ways[address] for address in found.address]


def _commands(found: Steered, steering: str) -> dict[int, str]:
    """Return the commands of `lower --to srv6` for each node."""
    usual = "encap" if steering == PORTS else steering
    return node_batches(emit_srv6(found.routes, Options(steering=usual)))


def steer(bed: Bed, found: Steered, steering: str) -> None:
    """Install routes on a fabric, replacing the installed ones."""
    install(bed, batches(bed.plan, found, steering))


def _link_lines(plan: Plan) -> list[list[str]]:
    """Return for each node the addresses of incoming links and its neighbour entries.

    Neighbours are configured: a request for them would wait in the queue behind all data.
    """
    segment = link_addresses(plan.topology)
    lines: list[list[str]] = [[] for _ in range(plan.topology.nodes)]
    for cable in plan.cables:
        for there, here in (cable, cable[::-1]):
            if there.link is not None:
                own = segment[there.link]
                lines[here.node].append(
                    f"address replace {own}/128 dev {here.name} nodad noprefixroute"
                )
                lines[there.node].append(
                    f"neigh replace {own} lladdr {here.mac} dev {there.name} nud permanent"
                )
    return lines


def _on_fabric(plan: Plan, routes: Routes) -> Routes:
    """Return routes over the links of the fabric, where parallel links are merged.

    The routes may be for a fabric with failed links.
    """
    fabric = plan.topology
    topology, link = merged(routes.problem.topology)
    ends = rows(topology.tail, topology.head)
    place = np.array([plan.link_of.get(pair, -1) for pair in ends], dtype=np.int64)
    fits = topology.nodes == fabric.nodes and np.array_equal(topology.terminals, fabric.terminals)
    if not fits or np.any(place < 0) or np.any(topology.capacity != fabric.capacity[place]):
        raise UsageError(
            f"routes on {topology.name} ({topology.nodes} nodes, {topology.links} links) for a "
            f"fabric of {fabric.name} ({fabric.nodes} nodes, {fabric.links} links); expected the "
            "topology that the fabric was made from, or what is left of it"
        )
    return replace(
        routes,
        problem=Problem(fabric, routes.problem.demand),
        link=place[link[routes.link]],
        # Lengths belong to the links that the routes were made for.
        certificate=Certificate(np.ones(fabric.links), 0.0),
    )


def _backs(routes: Routes) -> Ints:
    """Return the return route of each: the one of equal index, if it exists."""
    sizes = pair_sizes(routes.source, routes.destination)
    start = starts_of(sizes)
    terminals = len(routes.problem.topology.terminals)
    keys = routes.pair(terminals)[start[:-1]]
    other = np.searchsorted(keys, routes.destination * terminals + routes.source)
    return np.asarray(start[other] + inner_index(sizes) % sizes[other])
