"""Linux commands that keep packets on their routes: segment routing, or a route at every hop.

Each route of a pair has its own address on the receiver: `fc02:D:S::k` for route k - 1 from node S
to node D, in hexadecimal. The end of a link at its head has the address `fc01:H:T::p` for port
p - 1 of node T that leads to node H; it is the link's segment identifier. The format is described
in docs/integrations/srv6-linux.md: lines for `ip -6 -batch`, a section per node.

The reader is as strict as the writer.
"""

import re
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from alltoall.errors import FormatError, LimitError, UsageError, VerificationError
from alltoall.ir.arrays import inner_index, rows, starts_of
from alltoall.ir.files.json.saved_answers import (
    WEIGHT,
    layers_as_fields,
    layers_from_rows,
    weights_as_text,
    weights_from_text,
)
from alltoall.ir.files.json.values import Rows
from alltoall.ir.routes import Routes
from alltoall.ir.topology import Topology
from alltoall.ir.words import one_line
from alltoall.lowering.options import STEERING, Options
from alltoall.lowering.tables.routed_file import (
    RoutedFile,
    check_room,
    in_file_order,
    pair_sizes,
    ports_of,
    require_order,
)
from alltoall.lowering.tables.srv6_places import Srv6Places, plain_lines

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


HEAD = re.compile(
    rf"# alltoall srv6/{VERSION} steering=({'|'.join(STEERING)}) device=([a-z]{{1,9}}) "
    r"nodes=([1-9][0-9]{0,4}) routes=([1-9][0-9]{0,8})"
)
_HEX = r"(0|[1-9a-f][0-9a-f]{0,3})"
_ROUTE = rf"fc02:{_HEX}:{_HEX}::([1-9a-f][0-9a-f]{{0,3}})"
_LINK = rf"fc01:{_HEX}:{_HEX}::([1-9a-f][0-9a-f]{{0,3}})"
_ANY_LINK = r"fc01:[0-9a-f]{1,4}:[0-9a-f]{1,4}::[0-9a-f]{1,4}"
_DEVICE = r"([a-z]{1,9})(0|[1-9][0-9]{0,4})"
_LAYERS = r"[0-9]{1,9}(?:,[0-9]{1,9}){0,9999}"
LINK = re.compile(_LINK)

Key = tuple[str, str, str]
"""Destination, source and number of a route, as in its address."""
Hop = tuple[str, str, str]
"""Head, tail and port of a link, as in its address."""


@dataclass
class _Lines:
    """The commands read so far, by route; `node` is that of the current section."""

    device: str
    node: int = 0
    claims: dict[Key, tuple[str, str]] = field(default_factory=dict)
    paths: dict[Key, list[Hop]] = field(default_factory=dict)
    hops: dict[Key, dict[int, Hop]] = field(default_factory=dict)
    received: Counter[tuple[Key, int]] = field(default_factory=Counter)
    segments: set[tuple[int, Hop]] = field(default_factory=set)


def read_srv6(text: str, where: str) -> RoutedFile:
    """Read the commands of all nodes; `rebuild` resolves their routes."""
    lines = text.splitlines()
    head = HEAD.fullmatch(lines[0]) if lines else None
    if head is None or not lines[1:2] or not lines[1].startswith("# name "):
        expected = "expected '# alltoall srv6/1'"
        raise FormatError(f"{where}: line 1 is no header of an srv6 file; {expected}")
    if lines[-1] != "# end" or not text.endswith("\n"):
        raise FormatError(f"{where}: does not end with '# end'; the file may be truncated")
    read = _Lines(head[2])
    nodes = int(head[3])
    for number, line in plain_lines(lines[2:-1], head[2], nodes, where):
        here = f"{where}: line {number}"
        for pattern, take in _LINES:
            if match := pattern.fullmatch(line):
                take(match, here, read)
                break
        else:
            problem = f"{line[:80]!r} is no line of an srv6 file; see its description"
            raise FormatError(f"{here}: {problem}")
        if read.node >= nodes:
            raise FormatError(f"{here}: node {read.node}; the header says {nodes} nodes")
    if len(read.claims) != int(head[4]):
        raise FormatError(f"{where}: {len(read.claims)} routes; its header says {head[4]}")
    paths = read.paths if head[1] == "encap" else _walk(read, where)
    _check_all(read, paths, head[1], where)
    return _file(read, paths, head[1], where)


def _take_node(found: re.Match[str], here: str, read: _Lines) -> None:
    read.node = int(found[1])


def _take_claim(found: re.Match[str], here: str, read: _Lines) -> None:
    key = (found[1], found[2], found[3])
    if key in read.claims or int(found[2], 16) != read.node:
        problem = "a route twice, or in the section of a node that is not its source"
        raise FormatError(f"{here}: {problem}")
    read.claims[key] = (found[4], found[5])


def _take_address(found: re.Match[str], here: str, read: _Lines) -> None:
    read.received[(found[1], found[2], found[3]), read.node] += 1


def _take_segment(found: re.Match[str], here: str, read: _Lines) -> None:
    hop = (found[1], found[2], found[3])
    _require_device(found[4], int(found[5]), hop, here, read)
    read.segments.add((read.node, hop))


def _take_encap(found: re.Match[str], here: str, read: _Lines) -> None:
    key = (found[1], found[2], found[3])
    path: list[Hop] = LINK.findall(found[4])
    if key in read.paths or len(path) != found[4].count(",") + 1:
        raise FormatError(f"{here}: a route twice, or a segment that is no address of a link")
    _require_device(found[5], int(found[6]), path[0], here, read)
    read.paths[key] = path


def _take_hop(found: re.Match[str], here: str, read: _Lines) -> None:
    hop = (found[4], found[5], found[6])
    _require_device(found[7], int(found[8]), hop, here, read)
    at = read.hops.setdefault((found[1], found[2], found[3]), {})
    if read.node in at:
        raise FormatError(f"{here}: a second hop of one route at node {read.node}")
    at[read.node] = hop


def _require_device(device: str, port: int, hop: Hop, here: str, read: _Lines) -> None:
    """Compare the device with the link's address."""
    if device != read.device or int(hop[1], 16) != read.node or int(hop[2], 16) != port + 1:
        address = f"fc01:{hop[0]}:{hop[1]}::{hop[2]}"
        violation = f"device {device}{port} of node {read.node} does not lead to {address}"
        raise VerificationError(here, [violation])


_LINES: tuple[tuple[re.Pattern[str], Callable[[re.Match[str], str, _Lines], None]], ...] = (
    (re.compile(rf"route add {_ROUTE}/128 via {_LINK} dev {_DEVICE} onlink"), _take_hop),
    (
        re.compile(
            rf"route add {_ROUTE}/128 encap seg6 mode encap segs "
            rf"({_ANY_LINK}(?:,{_ANY_LINK})*) dev {_DEVICE}"
        ),
        _take_encap,
    ),
    (
        re.compile(rf"# route {_ROUTE} weight ([0-9./e+-]{{1,40}}) layer (-|{_LAYERS})"),
        _take_claim,
    ),
    (re.compile(rf"address add {_ROUTE}/128 dev lo nodad"), _take_address),
    (re.compile(rf"route add {_LINK}/128 dev {_DEVICE}"), _take_segment),
    (re.compile(r"# node (0|[1-9][0-9]{0,4})( \S(.{0,198}\S)?)?"), _take_node),
)
"""Every line of a file is one of these; the most frequent first."""


def _walk(read: _Lines, where: str) -> dict[Key, list[Hop]]:
    """Follow the routes from hop to hop; each must use all its hops."""
    paths: dict[Key, list[Hop]] = {}
    for key, at in read.hops.items():
        node, path = int(key[1], 16), list[Hop]()
        while node in at and len(path) < len(at):
            path.append(at[node])
            node = int(at[node][0], 16)
        if len(path) != len(at):
            violation = f"{_name(key)} breaks off at node {node}, or has hops that it never takes"
            raise VerificationError(where, [violation])
        paths[key] = path
    return paths


def _check_all(read: _Lines, paths: dict[Key, list[Hop]], steering: str, where: str) -> None:
    """Check that each route is claimed, steered and received, and that segments are reachable."""
    violations = [
        f"{_name(key)} lacks its commands, or its line with weight and layer"
        for key in sorted(read.claims.keys() ^ paths.keys())[:1]
    ]
    wanted = Counter({(key, int(key[0], 16)): 1 for key in read.claims})
    if read.received != wanted:
        differ = (read.received - wanted) + (wanted - read.received)
        key, node = min(differ)
        violations.append(f"{_name(key)} has its address at the wrong node, twice or not at all")
    if steering == "encap":
        used = {(int(hop[1], 16), hop) for path in paths.values() for hop in path}
        for node, hop in sorted(used - read.segments)[:1]:
            violations.append(f"node {node} has no route to fc01:{hop[0]}:{hop[1]}::{hop[2]}")
    if read.paths and read.hops:
        violations.append("some routes are steered by segments and some hop by hop")
    if violations:
        raise VerificationError(where, violations)


def _name(key: Key) -> str:
    return f"the route to fc02:{key[0]}:{key[1]}::{key[2]}"


def _file(read: _Lines, paths: dict[Key, list[Hop]], steering: str, where: str) -> RoutedFile:
    keys = np.array([[int(part, 16) for part in key] for key in read.claims], dtype=np.int64)
    hops = np.array([len(paths[key]) for key in read.claims], dtype=np.int64)
    parts = [int(part, 16) for key in read.claims for hop in paths[key] for part in hop]
    links = np.array(parts, dtype=np.int64).reshape(-1, 3)
    rows = Rows([_fields(*read.claims[key]) for key in read.claims], f"{where}: routes")
    weight, _ = weights_from_text(rows.column("weight", WEIGHT), where)
    layer, hop_layer = layers_from_rows(rows, [paths[key] for key in read.claims])
    file = RoutedFile(
        kind="srv6",
        name=where,
        source=keys[:, 1],
        destination=keys[:, 0],
        start=starts_of(hops),
        node=links[:, 1],
        port=links[:, 2] - 1,
        weight=weight,
        layer=layer,
        hop_layer=hop_layer,
        facts={"steering": steering},
    )
    require_order(file, keys[:, 2] - 1, where)
    # Check that each link's address names the node at which the next hop begins.
    head = links[:, 0]
    follows = np.append(file.node[1:], 0)
    follows[file.start[1:] - 1] = file.destination
    for at in np.flatnonzero(head != follows)[:1]:
        name = file.route(int(np.searchsorted(file.start, at, side="right")) - 1)
        violation = f"{name} goes to node {head[at]} and on from node {follows[at]}"
        raise VerificationError(where, [violation])
    return file


def _fields(weight: str, layer: str) -> dict[str, Any]:
    """Return the weight and the layers of a route, as the fields of a route in JSON."""
    given = [] if layer == "-" else [int(each) for each in layer.split(",")]
    layers = {"layer": given[0]} if len(given) == 1 else {"layers": given} if given else {}
    try:
        return {"weight": weight if "/" in weight else float(weight), **layers}
    except ValueError:
        return {"weight": weight, **layers}
