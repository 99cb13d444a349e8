"""Linux commands that keep packets on named paths: segment routing, or a route at every hop.

Each route of a pair has its own address on the receiver: `fc02:D:S::k` for route k - 1 from node S
to node D, in hexadecimal. The end of a link at its head has the address `fc01:H:T::p` for port
p - 1 of node T that leads to node H; it is the link's segment identifier. The format is described
in docs/integrations/srv6-linux.md: lines for `ip -6 -batch`, a section per node.
"""

from collections.abc import Iterator

import numpy as np

from alltoall.errors import FormatError, LimitError, UsageError
from alltoall.ir.arrays import Ints, inner_index
from alltoall.ir.files.json.routes import layers_as_fields, weights_as_text
from alltoall.ir.routes import Routes
from alltoall.ir.topology import Topology
from alltoall.ir.words import one_line
from alltoall.lowering.options import Options
from alltoall.lowering.tables.routed_file import check_room, in_file_order, pair_sizes, ports_of
from alltoall.lowering.tables.srv6_places import Srv6Places

VERSION = 1
MOST = 0xFFFF
"""Nodes, ports and routes have 16 bits in an address; 0 is not used for ports and routes."""

DEVICE_LETTERS = "abcdefghijklmnopqrstuvwxyz"
LONGEST_DEVICE = 9
"""With a port of up to 5 digits behind it, a name still has fewer than 16 characters."""

LONGEST_SEGMENTS = 1023
"""Characters that `ip` reads as a list of segments; what is longer it cuts off."""

Sections = list[list[str]]
"""The lines of every node."""


def emit_srv6(routes: Routes, options: Options) -> str:
    """Return the commands of all nodes; `node_batches` cuts them into one text per node."""
    topology = routes.problem.topology
    _check(topology, options)
    ordered, _ = in_file_order(routes)
    check_room(ordered, min(MOST, options.max_routes or MOST))
    sections: Sections = [
        [f"# node {node}{_called(topology, node)}"] for node in range(topology.nodes)
    ]
    address = route_addresses(ordered)
    _add_routes(sections, ordered, address)
    _MODES[options.steering](sections, ordered, address, options)
    if options.places is not None:
        ports = topology.out_degree.tolist()
        places = Srv6Places.of(options.places, ports, topology.node_name)
        sections = [_placed(places, node, section) for node, section in enumerate(sections)]
    _check_segments(sections, topology)
    head = (
        f"# alltoall srv6/{VERSION} steering={options.steering} device={options.device} "
        f"nodes={topology.nodes} routes={routes.count}\n# name {one_line(topology.name)}\n"
    )
    body = "\n".join(line for section in sections for line in section)
    return f"{head}{body}\n# end\n"


def _called(topology: Topology, node: int) -> str:
    return "" if topology.names is None else f" {topology.names[node]}"


def _placed(places: Srv6Places, node: int, section: list[str]) -> list[str]:
    """Return the lines of a node with its real addresses and devices."""
    real = (places.real(node, line) for line in section[1:])
    return [section[0], places.line(node), *real]


def _check_segments(sections: Sections, topology: Topology) -> None:
    """Refuse lists of segments that `ip` would cut off."""
    for node, section in enumerate(sections):
        for line in section:
            segments = line.partition(" segs ")[2].partition(" ")[0]
            if len(segments) > LONGEST_SEGMENTS:
                raise LimitError(
                    f"{segments.count(',') + 1} hops from node {topology.node_name(node)}, but "
                    f"`ip` takes at most "
                    f"{LONGEST_SEGMENTS} characters of segments; use --steering plain"
                )


def link_addresses(topology: Topology) -> list[str]:
    """Return the segment identifier of every link: the address of its end at its head."""
    port = (ports_of(topology) + 1).tolist()
    ends = zip(topology.head.tolist(), topology.tail.tolist(), port, strict=True)
    return [f"fc01:{head:x}:{tail:x}::{each:x}" for head, tail, each in ends]


def route_addresses(routes: Routes) -> list[str]:
    """Return the address of every route, of routes in file order."""
    node = routes.problem.topology.terminals
    number = 1 + inner_index(pair_sizes(routes.source, routes.destination))
    columns = (node[routes.destination].tolist(), node[routes.source].tolist(), number.tolist())
    return [f"fc02:{to:x}:{by:x}::{each:x}" for to, by, each in zip(*columns, strict=True)]


def node_batches(text: str) -> dict[int, str]:
    """Return what each node is to run by `ip -6 -batch`, without comments."""
    batches: dict[int, list[str]] = {}
    lines: list[str] = []
    for line in text.splitlines():
        if line.startswith("# node "):
            number = line[7:].partition(" ")[0]
            if not number.isdecimal():
                raise FormatError(f"{line[:60]!r}; expected the number of a node")
            lines = batches.setdefault(int(number), [])
        elif line and not line.startswith("#"):
            lines.append(f"{line}\n")
    return {node: "".join(lines) for node, lines in batches.items()}


def _check(topology: Topology, options: Options) -> None:
    if topology.nodes > MOST or int(topology.out_degree.max()) > MOST:
        raise LimitError(
            f"{topology.name}: {topology.nodes} nodes of up to {topology.out_degree.max()} ports; "
            f"an address holds at most {MOST} of each; use --to routes"
        )
    device = options.device
    if not device or len(device) > LONGEST_DEVICE or set(device) - set(DEVICE_LETTERS):
        raise UsageError(
            f"device {device!r}; expected 1 to {LONGEST_DEVICE} small letters, such as p"
        )


def _add_routes(sections: Sections, routes: Routes, address: list[str]) -> None:
    """Add what a route carries at its source, as a comment, and its address at its destination."""
    node = routes.problem.topology.terminals
    layers = _layers(routes)
    ends = (node[routes.source].tolist(), node[routes.destination].tolist())
    rows = zip(*ends, address, weights_as_text(routes), layers, strict=True)
    for source, destination, own, weight, layer in rows:
        sections[source].append(f"# route {own} weight {weight} layer {layer}")
        sections[destination].append(f"address add {own}/128 dev lo nodad")


def _layers(routes: Routes) -> list[str]:
    """Return the layer of each route, the layers of its hops if they differ, or "-" for none."""
    if routes.layers is None:
        return ["-"] * routes.count
    fields = layers_as_fields(routes)
    return [",".join(map(str, each.get("layers") or [each["layer"]])) for each in fields]


def _add_encap(sections: Sections, routes: Routes, address: list[str], options: Options) -> None:
    """Add a route to every neighbour's end of a link, and the segments of every route."""
    topology = routes.problem.topology
    segment = link_addresses(topology)
    port = ports_of(topology)
    for link, tail in enumerate(topology.tail.tolist()):
        sections[tail].append(f"route add {segment[link]}/128 dev {options.device}{port[link]}")
    first = port[routes.link[routes.start[:-1]]].tolist()
    begin = topology.terminals[routes.source].tolist()
    names = [segment[link] for link in routes.link.tolist()]
    ends = routes.start.tolist()
    for route, node in enumerate(begin):
        segments = ",".join(names[ends[route] : ends[route + 1]])
        sections[node].append(
            f"route add {address[route]}/128 encap seg6 mode encap segs {segments} "
            f"dev {options.device}{first[route]}"
        )


def _add_plain(sections: Sections, routes: Routes, address: list[str], options: Options) -> None:
    """Add a route at every node that a route leaves."""
    topology = routes.problem.topology
    segment = link_addresses(topology)
    for node, port, link, route in _hops(routes):
        sections[node].append(
            f"route add {address[route]}/128 via {segment[link]} dev {options.device}{port} onlink"
        )


def _hops(routes: Routes) -> Iterator[tuple[int, int, int, int]]:
    """Yield node, port, link and route of every hop."""
    topology = routes.problem.topology
    columns: tuple[Ints, ...] = (
        topology.tail[routes.link],
        ports_of(topology)[routes.link],
        routes.link,
        np.asarray(routes.path_of_link, dtype=np.int64),
    )
    yield from zip(*(column.tolist() for column in columns), strict=True)


_MODES = {"encap": _add_encap, "plain": _add_plain}
