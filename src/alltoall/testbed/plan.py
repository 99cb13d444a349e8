"""The plan of an emulated fabric: namespaces, devices, addresses, routes and rates as text.

A node is a network namespace, a link a pair of virtual Ethernet devices with a token bucket at its
tail. Two links that join the same nodes in opposite directions share a pair; a link without such a
partner has a channel back at `ACK_SHARE` of its rate, which carries acknowledgements and nothing
else. Parallel links are one device of their summed rate: a connection between two ranks has one
path, and could not fill both.

A terminal has two addresses on a dummy device. Routes to `10.77.x.y` serve schedules: neighbours
over their link, and acknowledgements back over the same cable. Routes to `10.78.x.y` form a network
of shortest paths, equal ones weighted by capacity. This file only writes text; `namespaces.py`
calls the tools.
"""

import re
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from alltoall.errors import LimitError, UsageError
from alltoall.ir.arrays import Floats, Ints, inner_index, rows
from alltoall.ir.topology import Topology
from alltoall.lowering.tables.linux import direct_address, next_hop_weights

PREFIX = "a2a"
"""Prefix of the names of our namespaces."""

NAME = re.compile(r"[a-z0-9]{1,16}")
"""Allowed names of fabrics, which become part of names and paths."""

MOST_NODES = 1024
"""Most namespaces of a fabric, a limit of small machines rather than the kernel."""

MTU = 9000
GSO_BYTES = 30_000
"""The largest packet that TCP hands to a device, which must fit into the burst."""

LEAST_BURST = 32 * 1024
BURST_SECONDS = 0.0125
"""Refill time of a token bucket: longer tolerates longer stalls, but lets larger free bursts
pass."""

QUEUE_BYTES = 8_000_000
"""Deep, so that many flows share a link fairly: shallow queues drop at random."""

LEAST_RATE = 1_000.0
"""Bytes per second of the slowest link: below it a packet takes seconds."""

ACK_SHARE = 0.5
"""The rate of a one-way link's return channel, as a share of the link's."""

IDENTITY, NETWORK = "id", "net"
"""The devices with the two addresses of a terminal: the two ends of one pair, in one namespace."""

ROUTE_OPTIONS = "initcwnd 2 congctl cubic"
"""Route options for jumbo frames in deep queues: larger initial windows cause retransmissions."""

SEND_SECONDS = 0.0525
LEAST_SEND_BUFFER = 64 * 1024
"""Send buffer of a connection, in seconds of the
slowest link and at least in bytes, if several connections of a host share one NIC: queued bytes
delay others, and larger queues get larger shares. 64 KiB at 10 Mbit/s; on the hosted torus 48 KiB
reached 0.933 of the bound, 64 KiB 0.945, 128 KiB 0.907, and no limit 0.885."""


@dataclass(frozen=True)
class Device:
    """One end of a cable: its node, name and rate.

    `link` is the link that leaves through it; None if it carries acknowledgements only.
    """

    node: int
    name: str
    mac: str
    rate: float
    link: int | None
    peer: int


@dataclass(frozen=True)
class Plan:
    """A fabric by its name, its topology without parallel links, and the rate of capacity 1."""

    name: str
    topology: Topology
    bytes_per_second: float

    def __post_init__(self) -> None:
        if not NAME.fullmatch(self.name):
            raise UsageError(
                f"a fabric called {self.name[:40]!r}; expected 1 to 16 small letters and digits"
            )
        if self.topology.nodes > MOST_NODES:
            raise LimitError(
                f"{self.topology.name}: {self.topology.nodes:,} nodes; a fabric of namespaces has "
                f"at most {MOST_NODES:,}; use alltoall simulate"
            )
        slowest = float(self.rates.min())
        if slowest < LEAST_RATE:
            raise UsageError(
                f"a link of {8 * slowest:.6g} bit/s; expected at least {8 * LEAST_RATE:g}: give a "
                "higher --rate, which is that of a link of capacity 1"
            )

    @cached_property
    def rates(self) -> Floats:
        """The rate of each link, in bytes per second."""
        return self.topology.capacity * self.bytes_per_second

    @cached_property
    def bursts(self) -> Ints:
        """The burst of each link in bytes."""
        return _bursts(self.rates)

    @cached_property
    def settings(self) -> dict[str, str]:
        """Further settings of the namespaces: short send buffers behind switches."""
        if len(self.topology.terminals) == self.topology.nodes:
            return {}
        most = max(LEAST_SEND_BUFFER, round(SEND_SECONDS * float(self.rates.min())))
        return {"ipv4/tcp_wmem": f"4096 16384 {most}"}

    def namespace(self, node: int) -> str:
        """Name the namespace of a node."""
        return f"{PREFIX}-{self.name}-{node}"

    @cached_property
    def link_of(self) -> dict[tuple[int, int], int]:
        """The link between two nodes."""
        ends = rows(self.topology.tail, self.topology.head)
        return {pair: link for link, pair in enumerate(ends)}

    @cached_property
    def cables(self) -> list[tuple[Device, Device]]:
        """The two ends of each cable; the first is at the tail of the link of lower index."""
        number = self.link_of
        arriving = [0] * self.topology.nodes
        found: list[tuple[Device, Device]] = []
        for (tail, head), link in number.items():
            back = number.get((head, tail))
            if back is not None and back < link:
                continue
            there = self._port(link)
            if back is None:
                index = arriving[head]
                arriving[head] += 1
                rate = max(float(self.rates[link]) * ACK_SHARE, LEAST_RATE)
                mac = _mac(1, head, index)
                here = Device(head, f"q{index}", mac, rate, None, tail)
            else:
                here = self._port(back)
            found.append((there, here))
        return found

    def _port(self, link: int) -> Device:
        tail, head = int(self.topology.tail[link]), int(self.topology.head[link])
        port = int(self._ports[link])
        return Device(tail, f"p{port}", _mac(0, tail, port), float(self.rates[link]), link, head)

    @cached_property
    def _ports(self) -> Ints:
        """The index of each link among the links of its tail."""
        ports = np.empty(self.topology.links, dtype=np.int64)
        ports[np.argsort(self.topology.tail, kind="stable")] = inner_index(self.topology.out_degree)
        return ports

    @cached_property
    def devices(self) -> list[list[Device]]:
        """The cable ends of each node."""
        found: list[list[Device]] = [[] for _ in range(self.topology.nodes)]
        for cable in self.cables:
            for end in cable:
                found[end.node].append(end)
        return found

    @cached_property
    def device_of(self) -> dict[int, Device]:
        """The device through which each link leaves."""
        ends = (end for cable in self.cables for end in cable)
        return {end.link: end for end in ends if end.link is not None}

    def creation(self) -> str:
        """Return the batch that makes all namespaces and cables, run from outside."""
        lines = [f"netns add {self.namespace(node)}" for node in range(self.topology.nodes)]
        for there, here in self.cables:
            lines.append(
                f"link add {there.name} netns {self.namespace(there.node)} mtu {MTU} address "
                f"{there.mac} type veth peer name {here.name} netns {self.namespace(here.node)} "
                f"mtu {MTU} address {here.mac}"
            )
        return _text(lines)

    def inside(self, node: int) -> str:
        """Return the batch for `ip` inside the namespace of a node: devices, addresses, routes."""
        lines = [
            "link set lo up",
            f"link add {IDENTITY} type veth peer name {NETWORK}",
            f"link set {IDENTITY} up",
            f"link set {NETWORK} up",
        ]
        if self.topology.position[node] >= 0:
            lines.append(f"address add {direct_address(node)}/32 dev {IDENTITY}")
            lines.append(f"address add {network_address(node)}/32 dev {NETWORK}")
        for device in self.devices[node]:
            lines.append(f"link set {device.name} gso_max_size {GSO_BYTES} up")
            # Known from the start: a question would wait in the queue behind all data.
            lines += [
                f"neigh add {address(device.peer)} lladdr {self._macs[node, device.peer]} "
                f"dev {device.name} nud permanent"
                for address in (direct_address, network_address)
            ]
        return _text([*lines, *self.routes(node)])

    def limits(self, node: int) -> str:
        """Return the batch for `tc` inside the namespace of a node: the rate of each device."""
        return _text(
            f"qdisc add dev {each.name} root {bucket(each)}" for each in self.devices[node]
        )

    def routes(self, node: int, without: frozenset[int] = frozenset()) -> list[str]:
        """Return the route commands of a node to every terminal, in both address ranges.

        Links `without` and their reverse links are not used.
        """
        lines: list[str] = []
        distance = self.distances(without)
        for position, to in enumerate(self.topology.terminals.tolist()):
            if to == node:
                continue
            first = self.next_device(node, position, distance, without)
            if first is not None:
                lines.append(self._route(direct_address, node, to, [_via(direct_address, first)]))
            hops = self._next_links(node, distance[position], without)
            ways = [_via(network_address, self.device_of[link]) for link in hops]
            if len(hops) > 1:
                shares = next_hop_weights(self.topology.capacity[hops].tolist())
                ways = [
                    f"nexthop {w} weight {share}" for w, share in zip(ways, shares, strict=True)
                ]
            if hops:
                lines.append(self._route(network_address, node, to, ways))
        return lines

    def next_device(
        self, node: int, position: int, distance: Ints, without: frozenset[int] = frozenset()
    ) -> Device | None:
        """Return the device through which a node reaches the direct address of a terminal."""
        to = int(self.topology.terminals[position])
        for device in self.devices[node]:
            # A channel back exists only as long as its one-way link does.
            if device.link is None and device.peer == to and self.link_of[to, node] not in without:
                return device
        hops = self._next_links(node, distance[position], without)
        return self.device_of[hops[0]] if hops else None

    @cached_property
    def _known(self) -> dict[frozenset[int], Ints]:
        return {}

    def distances(self, without: frozenset[int] = frozenset()) -> Ints:
        """Return the hops from every node to each terminal, -1 if unreachable; terminals first.

        Terminals forward, as switches do.
        """
        if without in self._known:
            return self._known[without]
        topology = self.topology
        kept = np.setdiff1d(np.arange(topology.links), np.array(sorted(without), dtype=np.int64))
        tail, head = topology.tail[kept], topology.head[kept]
        found = np.full((len(topology.terminals), topology.nodes), -1, dtype=np.int64)
        rows = np.arange(len(topology.terminals))
        found[rows, topology.terminals] = 0
        for hops in range(1, topology.nodes):
            row, link = np.nonzero((found[:, head] == hops - 1) & (found[:, tail] < 0))
            if not len(row):
                break
            found[row, tail[link]] = hops
        self._known[without] = found
        return found

    def _next_links(self, node: int, distance: Ints, without: frozenset[int]) -> list[int]:
        topology = self.topology
        nearer = (topology.tail == node) & (distance[topology.head] == distance[node] - 1)
        nearer &= distance[topology.head] >= 0
        return [link for link in np.flatnonzero(nearer).tolist() if link not in without]

    def _route(self, address: "Addressing", node: int, to: int, ways: list[str]) -> str:
        own = f" src {address(node)}" if self.topology.position[node] >= 0 else ""
        options = f"{own} {ROUTE_OPTIONS}"
        if len(ways) == 1:
            return f"route replace {address(to)}/32 {ways[0]}{options}"
        return f"route replace {address(to)}/32{options} {' '.join(ways)}"

    @cached_property
    def _macs(self) -> dict[tuple[int, int], str]:
        """The MAC address at the other end of a cable, by its two nodes."""
        there = {(far.node, near.node): near.mac for far, near in self.cables}
        return there | {(near.node, far.node): far.mac for far, near in self.cables}


Addressing = Callable[[int], str]


def merged(topology: Topology) -> tuple[Topology, Ints]:
    """Return a topology with parallel links as one, and which link of it each link became."""
    keys = topology.tail * topology.nodes + topology.head
    _, first, place = np.unique(keys, return_index=True, return_inverse=True)
    if len(first) == topology.links:
        return topology, np.arange(topology.links)
    # In the order of the first link of each, so that most keep their places.
    order = np.argsort(first)
    number = np.empty(len(first), dtype=np.int64)
    number[order] = np.arange(len(first))
    link = number[place]
    kept = first[order]
    capacity = np.bincount(link, weights=topology.capacity)
    ends = {"tail": topology.tail[kept], "head": topology.head[kept], "capacity": capacity}
    return topology.changed("parallel links are one", **ends), link


def network_address(node: int) -> str:
    """Return a terminal's address on the shortest-path network."""
    return f"10.78.{node >> 8}.{node & 255}"


def bucket(device: Device) -> str:
    """Return the token bucket of a device."""
    burst = _bursts(np.array(device.rate))
    return f"tbf rate {round(8 * device.rate)}bit burst {burst} limit {QUEUE_BYTES}"


def _bursts(rates: Floats) -> Ints:
    return np.maximum(LEAST_BURST, np.rint(rates * BURST_SECONDS)).astype(np.int64)


def _via(address: Addressing, device: Device) -> str:
    return f"via {address(device.peer)} dev {device.name} onlink"


def _mac(kind: int, node: int, index: int) -> str:
    """Return a unique, locally administered MAC address."""
    parts = (2, kind, node >> 8, node & 255, index >> 8, index & 255)
    return ":".join(f"{part:02x}" for part in parts)


def _text(lines: Iterable[str]) -> str:
    return "".join(f"{line}\n" for line in lines)
