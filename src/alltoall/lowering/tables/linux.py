"""Scripts that make Linux hosts forward along routes, so that any program over TCP takes them.

Every host has one address, `10.77.x.y` by its node number unless a file names others, and forwards
for the others. With `steering=plain` a host looks up the next hop by destination alone where
all sources agree, and else in a table of the source, which `ip rule` selects. With
`steering=encap` the source writes the segments of the path into the packet (SRv6), and addresses
are those of the target srv6. The connections of a pair are spread over its routes by their weights.

Scripts contain no untrusted text as code: host names appear in one-line comments, file names have
safe letters only, and addresses and devices are parsed before. Acknowledgements need a route for
every pair that sends one way only.
"""

from collections import deque
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from graphlib import CycleError, TopologicalSorter
from math import gcd

import numpy as np

from alltoall.errors import FormatError, InputError
from alltoall.ir.arrays import Ints, rows, run_starts, starts_of
from alltoall.ir.names import file_stem
from alltoall.ir.routes import Routes
from alltoall.ir.topology import Topology
from alltoall.ir.words import one_line
from alltoall.lowering.options import Options
from alltoall.lowering.tables.hashes import parse_dotted
from alltoall.lowering.tables.routed_file import (
    check_room,
    in_file_order,
    pair_name,
    pair_sizes,
    ports_of,
)
from alltoall.lowering.tables.srv6 import (
    MOST,
    check_segments,
    check_sizes,
    link_addresses,
    neighbour_routes,
    segments,
)
from alltoall.lowering.tables.srv6_places import Srv6Places, check_devices, require_distinct

PROTOCOL = 177
"""The `proto` of our routes and rules, which identifies them for removal."""

SETTINGS = {
    "-4": ("ipv4/ip_forward 1", "ipv4/conf/all/rp_filter 0"),
    "-6": ("ipv6/conf/all/forwarding 1", "ipv6/conf/all/seg6_enabled 1"),
}
DEVICE_SETTING = {"-4": "ipv4/conf/{}/rp_filter 0", "-6": "ipv6/conf/{}/seg6_enabled 1"}
"""Settings below /proc/sys/net: hosts forward, return paths may differ, segments are accepted."""

SHARED_SETTING = {
    "-4": "ipv4/fib_multipath_hash_policy 1",
    "-6": "ipv6/fib_multipath_hash_policy 1",
}
"""Setting that balances next hops by connection, not by host."""

PRELUDE = """\
#!/bin/sh
# alltoall linux/1, steering={steering}: {deed} the routes of host {host} on {network}.
# As root: sh {own}, as often as you like; with --dry-run it prints its commands.
set -eu
kept=/run/alltoall-linux.{stem}
case "$*" in
"") dry= ;;
--dry-run) dry=1 ;;
*) echo "usage: sh $0 [--dry-run]" >&2; exit 2 ;;
esac
run() {{ if [ "$dry" ]; then echo "$*"; else "$@"; fi; }}
put() {{ if [ "$dry" ]; then echo "echo $2 > $1"; else echo "$2" > "$1"; fi; }}
has() {{ [ -z "$dry" ] && [ -n "$(ip "$@" 2> /dev/null)" ]; }}
batch() {{ if [ "$dry" ]; then sed 's/^/ip {family} /'; else ip {family} -batch -; fi; }}
"""

INSTALL = """\
setting() {{
    file=/proc/sys/net/$1
    if [ -z "$dry" ]; then
        old=$(cat "$file")
        [ "$old" != "$2" ] || return 0
        echo "$file $old" >> "$kept"
    fi
    put "$file" "$2"
}}
for device in {devices}; do
    [ "$dry" ] || has link show dev "$device" up || {{
        echo "$0: no device $device that is up; name those of this host with addresses=FILE" >&2
        exit 1
    }}
done
{settings}
if ! has {family} address show to {address}; then
    has link show dev a2a0 || run ip link add a2a0 type veth peer name a2a1
    run ip link set a2a0 up
    run ip link set a2a1 up
    run ip {family} address flush dev a2a0
    run ip {family} address add {address} dev a2a0{more}
fi
batch << 'END' || {{ echo "$0: not all is installed; run {other}" >&2; exit 1; }}
{lines}
END
"""

UNDO = """\
batch << 'END'
{lines}
END
{links}
if [ "$dry" ] || has link show dev a2a0; then run ip link delete a2a0; fi
if [ -e "$kept" ]; then
    tac "$kept" | while read -r file old; do put "$file" "$old"; done
    run rm "$kept"
fi
"""

FLUSH = [f"rule flush protocol {PROTOCOL}", f"route flush table all proto {PROTOCOL}"]


@dataclass
class HostScript:
    """The configuration of a host: address family, address, devices and commands."""

    family: str
    address: str
    devices: list[str]
    ends: list[str] = field(default_factory=list)
    """Addresses of links that arrive, each with its device: `ADDRESS dev DEVICE`."""
    lines: list[str] = field(default_factory=list)
    shared: bool = False

    def route(self, to: str, ways: list[tuple[int, str]], more: str) -> None:
        """Add a route by one next hop, or by several with their weights."""
        line = f"route add {to} {more} proto {PROTOCOL}"
        if len(ways) > 1:
            self.shared = True
            hops = " ".join(f"nexthop {way} weight {weight} onlink" for weight, way in ways)
        else:
            hops = f"{ways[0][1]} onlink"
        self.lines.append(f"{line} {hops}")

    def rule(self, text: str, preference: int) -> None:
        """Add a rule."""
        self.lines.append(f"rule add {text} pref {preference} protocol {PROTOCOL}")


def scripts(hosts: list[HostScript], topology: Topology, steering: str) -> dict[str, bytes]:
    """Return the two scripts of every host by their names."""
    found: dict[str, bytes] = {}
    for node, host in enumerate(hosts):
        name = topology.node_name(node)
        stem = _stem(name)
        files = [f"{stem}.sh", f"{stem}.undo.sh"]
        taken = next((file for file in files if file in found), None)
        if taken:
            raise FormatError(f"two hosts would have the file {taken}; rename host {name!r}")
        about = {
            "steering": steering,
            "host": one_line(name),
            "network": one_line(topology.name),
            "stem": stem,
            "family": host.family,
        }
        deeds = ((files, "installs", _install), (files[::-1], "removes", _undo))
        for (own, other), deed, body in deeds:
            text = PRELUDE.format(**about, own=own, deed=deed) + body(host, other)
            found[own] = text.encode()
    return found


def _stem(name: str) -> str:
    """Return a safe file name for a host: no option, not hidden."""
    stem = file_stem(name)
    return f"%{ord(stem[0]):02X}{stem[1:]}" if stem[0] in "-." else stem


def _install(host: HostScript, other: str) -> str:
    settings = [*SETTINGS[host.family], *map(DEVICE_SETTING[host.family].format, host.devices)]
    settings += [SHARED_SETTING[host.family]] if host.shared else []
    ends = [f"address replace {each} nodad noprefixroute" for each in host.ends]
    return INSTALL.format(
        devices=" ".join(host.devices),
        settings="\n".join(f"setting {each}" for each in settings),
        family=host.family,
        address=host.address,
        more=" nodad" if host.family == "-6" else "",
        other=other,
        lines="\n".join([*FLUSH, *ends, *host.lines]),
    )


def _undo(host: HostScript, other: str) -> str:
    ends = [each.partition(" dev ")[::2] for each in host.ends]
    links = [
        f'if [ "$dry" ] || has -6 address show dev {device} to {end}; then\n'
        f"    run ip -6 address delete {end} dev {device}\nfi"
        for end, device in ends
    ]
    lines = FLUSH if host.family == "-4" else FLUSH[1:]
    return UNDO.format(
        lines="\n".join(lines), links="\n".join([f"# {other} installs again", *links])
    )


def with_ways_back(routes: Routes) -> Routes:
    """Add a shortest route of weight 0 for each pair that only receives, and drop layers."""
    terminals = len(routes.problem.topology.terminals)
    forth = np.unique(routes.pair(terminals))
    back = np.unique(routes.destination * terminals + routes.source)
    missing = np.setdiff1d(back, forth)
    routes = replace(routes, layer=None, hop_layer=None)
    if not len(missing):
        return routes
    source, destination = missing // terminals, missing % terminals
    topology = routes.problem.topology
    paths = [
        _shortest(topology, int(topology.terminals[a]), int(topology.terminals[b]))
        for a, b in zip(source, destination, strict=True)
    ]
    hops = starts_of(np.array([len(path) for path in paths], dtype=np.int64))
    return replace(
        routes,
        source=np.concatenate((routes.source, source)),
        destination=np.concatenate((routes.destination, destination)),
        start=np.concatenate((routes.start, routes.start[-1] + hops[1:])),
        link=np.concatenate((routes.link, *paths)),
        weight=np.concatenate((routes.weight, np.zeros(len(missing)))),
        # The weights of ways back are no shares of anything.
        denominator=None,
    )


def _shortest(topology: Topology, begin: int, end: int) -> Ints:
    """Return the links of a path with fewest hops."""
    leaving: list[list[int]] = [[] for _ in range(topology.nodes)]
    for link, tail in enumerate(topology.tail.tolist()):
        leaving[tail].append(link)
    by: dict[int, int] = {begin: -1}
    waiting = deque([begin])
    while end not in by:
        if not waiting:
            ends = f"from node {topology.node_name(begin)} to node {topology.node_name(end)}"
            raise InputError(
                f"{topology.name}: no path {ends} for what acknowledges the way there; expected "
                "links that lead back"
            )
        node = waiting.popleft()
        for link in leaving[node]:
            head = int(topology.head[link])
            if head not in by:
                by[head] = link
                waiting.append(head)
    path: list[int] = []
    while end != begin:
        path.append(by[end])
        end = int(topology.tail[path[-1]])
    return np.array(path[::-1], dtype=np.int64)


TABLE = 7_700_000
"""The table of routes by destination; that of source S is S + 1 further."""

OWN_RULE, SOURCE_RULE, REST_RULE = 7700, 7701, 7702
"""Preferences of rules: for a host's own packets, by source, and for the rest."""

MOST_WEIGHT = 240
"""The largest weight of a next hop: Linux takes 256, and 240 has many divisors."""

TINY = 1e-12
"""The weight of a route that no demand needs."""

Shares = tuple[tuple[int, float], ...]
"""The next links, and the share of a pair on each."""


def direct_address(node: int) -> str:
    """Return the default address of a host."""
    return f"10.77.{node >> 8}.{node & 255}"


def next_hop_weights(shares: Sequence[float]) -> list[int]:
    """Return small whole numbers in the approximate ratio of positive shares."""
    most = max(shares)
    found = [max(1, round(MOST_WEIGHT * share / most)) for share in shares]
    return [each // gcd(*found) for each in found]


def emit_linux(routes: Routes, options: Options) -> dict[str, bytes]:
    """Return an install script and an undo script for every host."""
    topology = routes.problem.topology
    check_sizes(topology, options)
    ordered, _ = in_file_order(with_ways_back(routes))
    check_room(ordered, min(MOST, options.max_routes or MOST))
    steering = options.steering or "plain"
    return scripts(_MODES[steering](ordered, options), topology, steering)


def _plain(routes: Routes, options: Options) -> list[HostScript]:
    """Return the configuration of hosts with routing tables."""
    topology = routes.problem.topology
    address, devices = _places(topology, options)
    links = rows(topology.tail, topology.head, ports_of(topology))
    way = [f"via {address[head]} dev {devices[tail][port]}" for tail, head, port in links]
    hosts = [
        HostScript("-4", f"{own}/32", names) for own, names in zip(address, devices, strict=True)
    ]
    for node, hops in enumerate(_next_hops(routes)):
        host, own, sources = hosts[node], TABLE + 1 + node, set[int]()
        for to, by_source in hops.items():
            mine = by_source.pop(node, None)
            if mine is not None:
                host.route(
                    f"{address[to]}/32", _ways(mine, way), f"table {own} src {address[node]}"
                )
            agreed = len(set(by_source.values())) == 1
            for source in list(by_source)[: 1 if agreed else None]:
                table = TABLE if agreed else TABLE + 1 + source
                host.route(f"{address[to]}/32", _ways(by_source[source], way), f"table {table}")
            sources |= set() if agreed else by_source.keys()
        host.rule(f"iif lo lookup {own}", OWN_RULE)
        for source in sorted(sources):
            host.rule(f"from {address[source]}/32 lookup {TABLE + 1 + source}", SOURCE_RULE)
        host.rule(f"lookup {TABLE}", REST_RULE)
    return hosts


def _places(topology: Topology, options: Options) -> tuple[list[str], list[list[str]]]:
    """Return the IPv4 address of each host, and its devices by port."""
    ports = topology.out_degree.tolist()
    pattern = [[f"{options.device}{port}" for port in range(count)] for count in ports]
    if options.places is None:
        return [direct_address(node) for node in range(topology.nodes)], pattern
    for text in (row[0] for row in options.places):
        if parse_dotted(text) is None:
            raise FormatError(
                f"address {text[:60]!r}; expected an IPv4 one such as 10.77.0.1, and IPv6 "
                "prefixes with steering=encap only"
            )
    address = [row[0] for row in options.places]
    require_distinct("address", address)
    devices = [list(row[1:]) for row in options.places]
    if not any(devices):
        return address, pattern
    for node, (own, count) in enumerate(zip(devices, ports, strict=True)):
        check_devices(topology.node_name(node), own, count)
    return address, devices


def _next_hops(routes: Routes) -> list[dict[int, dict[int, Shares]]]:
    """Return the links that follow at each node, by the destination and the source of a packet."""
    _require_no_circles(routes)
    topology = routes.problem.topology
    route = routes.path_of_link
    source, to = (topology.terminals[end[route]] for end in (routes.source, routes.destination))
    keys = (routes.link, source, to, topology.tail[routes.link])
    order = np.lexsort(keys)
    link, source, to, node = (key[order] for key in keys)
    first = np.flatnonzero(run_starts(link, source, to, node))
    # Ways back have no weight, and one way each.
    weight = np.maximum(np.add.reduceat(routes.weight[route[order]], first), TINY)
    found: list[dict[int, dict[int, Shares]]] = [{} for _ in range(topology.nodes)]
    columns = (node[first], to[first], source[first], link[first], weight)
    for at, goal, begin, way, share in rows(*columns):
        by_source = found[at].setdefault(goal, {})
        by_source[begin] = (*by_source.get(begin, ()), (way, share))
    return found


def _require_no_circles(routes: Routes) -> None:
    """Refuse routes of a pair that form a cycle, since every hop may switch between them."""
    topology = routes.problem.topology
    sizes = pair_sizes(routes.source, routes.destination)
    first = starts_of(sizes)
    for pair in np.flatnonzero(sizes > 1).tolist():
        low, high = first[pair : pair + 2]
        graph: dict[int, set[int]] = {}
        links = routes.link[routes.start[low] : routes.start[high]]
        for tail, head in rows(topology.tail[links], topology.head[links]):
            graph.setdefault(tail, set()).add(head)
        try:
            TopologicalSorter(graph).prepare()
        except CycleError:
            raise InputError(
                f"the routes {pair_name(routes, int(low))} pass nodes in opposite orders, so "
                "packets that choose at every hop could go in circles; lower with --to "
                "linux:steering=encap, or route with --method single"
            ) from None


def _ways(shares: Shares, way: list[str]) -> list[tuple[int, str]]:
    """Return next hops with their whole weights."""
    weights = next_hop_weights([share for _, share in shares])
    return [(weight, way[link]) for weight, (link, _) in zip(weights, shares, strict=True)]


def _encap(routes: Routes, options: Options) -> list[HostScript]:
    """Return the configuration of hosts that write segments into their packets."""
    topology = routes.problem.topology
    segment, port = link_addresses(topology), ports_of(topology)
    back = _opposite(topology)
    own = [f"fc02:{node:x}:{node:x}::1/128" for node in range(topology.nodes)]
    devices = [
        [f"{options.device}{each}" for each in range(count)] for count in topology.out_degree
    ]
    hosts = [HostScript("-6", *each) for each in zip(own, devices, strict=True)]
    for host, lines in zip(hosts, neighbour_routes(topology, options.device), strict=True):
        host.lines += [f"{line} proto {PROTOCOL}" for line in lines]
    for link, (head, there) in enumerate(rows(topology.head, port[back])):
        hosts[head].ends.append(f"{segment[link]}/128 dev {options.device}{there}")
    ends = rows(*(topology.terminals[end] for end in (routes.source, routes.destination)))
    ways: dict[tuple[int, int], list[tuple[float, str]]] = {}
    for route, pair in enumerate(ends):
        path = routes.link[slice(*routes.start[route : route + 2])].tolist()
        names = [segment[link] for link in path]
        way = f"{segments(names)} via {names[0]} dev {options.device}{port[path[0]]}"
        ways.setdefault(pair, []).append((max(routes.weight[route], TINY), way))
    for (source, to), found in ways.items():
        weights = next_hop_weights([share for share, _ in found])
        both = [(weight, way) for weight, (_, way) in zip(weights, found, strict=True)]
        hosts[source].route(own[to], both, f"src {own[source][:-4]}")
    if options.places is not None:
        hosts = _placed(hosts, topology, options.places)
    for node, host in enumerate(hosts):
        check_segments(host.lines, topology.node_name(node))
    return hosts


def _opposite(topology: Topology) -> list[int]:
    """Return the reverse link of each link; parallel links are matched in order."""
    between: dict[tuple[int, int], list[int]] = {}
    for link, ends in enumerate(rows(topology.tail, topology.head)):
        between.setdefault(ends, []).append(link)
    found = [-1] * topology.links
    for (tail, head), links in between.items():
        for one, other in zip(links, between.get((head, tail), []), strict=False):
            found[one] = other
    if -1 in found:
        raise InputError(
            f"{topology.link_name(found.index(-1))} has no way back, and a segment is an address "
            "at the device behind it; expected full-duplex cables, or lower with --to linux"
        )
    return found


def _placed(
    hosts: list[HostScript], topology: Topology, places: Sequence[Sequence[str]]
) -> list[HostScript]:
    """Return hosts with prefixes and devices of their own."""
    known = Srv6Places.of(places, topology.out_degree.tolist(), topology.node_name)
    return [
        replace(
            host,
            address=known.real(node, host.address),
            devices=list(known.devices[node]) or host.devices,
            ends=[known.real(node, each) for each in host.ends],
            lines=[known.real(node, each) for each in host.lines],
        )
        for node, host in enumerate(hosts)
    ]


_MODES = {"plain": _plain, "encap": _encap}
