"""Linux commands that keep packets on their routes: segment routing, or a route at every hop.

Each route of a pair has its own address on the receiver: `fc02:D:S::k` for route k - 1 from node S
to node D, in hexadecimal. The end of a link at its head has the address `fc01:H:T::p` for port
p - 1 of node T that leads to node H; it is the link's segment identifier. The format is described
in docs/integrations/srv6-linux.md: lines for `ip -6 -batch`, a section per node.
"""

import re

from alltoall.errors import FormatError, LimitError, UsageError
from alltoall.ir.arrays import inner_index, rows
from alltoall.ir.files.json.saved_answers import layers_as_fields, weights_as_text
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
"""Longest prefix of a device name, which has up to 5 more digits and fewer than 16 characters."""

LONGEST_SEGMENTS = 1023
"""Most characters of a list of segments: `ip` truncates longer ones."""

SEGMENTS = re.compile(r" segs (\S+)")

Sections = list[list[str]]
"""The lines of every node."""


def emit_srv6(routes: Routes, options: Options) -> str:
    """Return the commands of all nodes; `node_batches` cuts them into one text per node."""
    topology = routes.problem.topology
    check_sizes(topology, options)
    ordered, _ = in_file_order(routes)
    check_room(ordered, min(MOST, options.max_routes or MOST))
    sections: Sections = [[f"# node {node}"] for node in range(topology.nodes)]
    for section, name in zip(sections, topology.names or (), strict=False):
        section[0] += f" {name}"
    address = route_addresses(ordered)
    _add_routes(sections, ordered, address)
    steering = options.steering or "encap"
    _MODES[steering](sections, ordered, address, options)
    if options.places is not None:
        ports = topology.out_degree.tolist()
        places = Srv6Places.of(options.places, ports, topology.node_name)
        sections = [
            [title, places.line(node), *(places.real(node, line) for line in lines)]
            for node, (title, *lines) in enumerate(sections)
        ]
    for node, section in enumerate(sections):
        check_segments(section, topology.node_name(node))
    head = (
        f"# alltoall srv6/{VERSION} steering={steering} device={options.device} "
        f"nodes={topology.nodes} routes={routes.count}\n# name {one_line(topology.name)}\n"
    )
    body = "\n".join(line for section in sections for line in section)
    return f"{head}{body}\n# end\n"


def check_segments(lines: list[str], node: str) -> None:
    """Refuse lists of segments that `ip` would truncate."""
    for found in (found for line in lines for found in SEGMENTS.findall(line)):
        if len(found) > LONGEST_SEGMENTS:
            raise LimitError(
                f"{found.count(',') + 1} hops from node {node}, but `ip` takes at most "
                f"{LONGEST_SEGMENTS} characters of segments; lower with --to srv6:steering=plain"
            )


def segments(names: list[str]) -> str:
    """Return the part of a command that writes segments into a packet."""
    return f"encap seg6 mode encap segs {','.join(names)}"


def neighbour_routes(topology: Topology, device: str) -> Sections:
    """Return for each node its routes to the neighbours' ends of links."""
    found: Sections = [[] for _ in range(topology.nodes)]
    columns = (topology.tail.tolist(), ports_of(topology).tolist(), link_addresses(topology))
    for tail, port, name in zip(*columns, strict=True):
        found[tail].append(f"route add {name}/128 dev {device}{port}")
    return found


def link_addresses(topology: Topology) -> list[str]:
    """Return the segment identifier of every link: the address of its end at its head."""
    ends = rows(topology.head, topology.tail, ports_of(topology) + 1)
    return [f"fc01:{head:x}:{tail:x}::{port:x}" for head, tail, port in ends]


def route_addresses(routes: Routes) -> list[str]:
    """Return the address of every route, of routes in file order."""
    node = routes.problem.topology.terminals
    number = 1 + inner_index(pair_sizes(routes.source, routes.destination))
    ends = rows(node[routes.destination], node[routes.source], number)
    return [f"fc02:{to:x}:{source:x}::{each:x}" for to, source, each in ends]


def node_batches(text: str) -> dict[int, str]:
    """Return the commands of each node for `ip -6 -batch`, without comments."""
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


def check_sizes(topology: Topology, options: Options) -> None:
    """Refuse a network whose numbers exceed the addresses, and invalid device names."""
    if topology.nodes > MOST or int(topology.out_degree.max()) > MOST:
        raise LimitError(
            f"{topology.name}: {topology.nodes} nodes of up to {topology.out_degree.max()} ports; "
            f"an address holds at most {MOST} of each; use --to routes"
        )
    device = options.device
    if not device or len(device) > LONGEST_DEVICE or set(device) - set(DEVICE_LETTERS):
        expected = f"expected 1 to {LONGEST_DEVICE} small letters, such as p"
        raise UsageError(f"device {device!r}; {expected}")


def _add_routes(sections: Sections, routes: Routes, address: list[str]) -> None:
    """Add the weight of a route at its source, in a comment, and its address at its destination."""
    node = routes.problem.topology.terminals
    ends = rows(node[routes.source], node[routes.destination])
    layers = ["-"] * routes.count
    if routes.layers is not None:
        fields = layers_as_fields(routes)
        layers = [",".join(map(str, each.get("layers") or [each["layer"]])) for each in fields]
    labels = zip(address, weights_as_text(routes), layers, strict=True)
    for (source, destination), (own, weight, layer) in zip(ends, labels, strict=True):
        sections[source].append(f"# route {own} weight {weight} layer {layer}")
        sections[destination].append(f"address add {own}/128 dev lo nodad")


def _add_encap(sections: Sections, routes: Routes, address: list[str], options: Options) -> None:
    """Add a route to every neighbour's end of a link, and the segments of every route."""
    topology = routes.problem.topology
    segment, port = link_addresses(topology), ports_of(topology)
    for node, lines in enumerate(neighbour_routes(topology, options.device)):
        sections[node] += lines
    first = port[routes.link[routes.start[:-1]]]
    ends = (topology.terminals[routes.source], first, routes.start[:-1], routes.start[1:])
    names = [segment[link] for link in routes.link.tolist()]
    for route, (node, own, low, high) in enumerate(rows(*ends)):
        line = f"route add {address[route]}/128 {segments(names[low:high])}"
        sections[node].append(f"{line} dev {options.device}{own}")


def _add_plain(sections: Sections, routes: Routes, address: list[str], options: Options) -> None:
    topology = routes.problem.topology
    segment = link_addresses(topology)
    ends = (topology.tail[routes.link], ports_of(topology)[routes.link])
    for node, port, link, route in rows(*ends, routes.link, routes.path_of_link):
        way = f"via {segment[link]} dev {options.device}{port} onlink"
        sections[node].append(f"route add {address[route]}/128 {way}")


_MODES = {"encap": _add_encap, "plain": _add_plain}
