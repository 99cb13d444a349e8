"""Flows steered by hash: a flow for each chunk, whose source port makes the kernel pick its route.

As in the paper, a pair has one destination address, and all its routes are next hops of it, each
with its segments. The kernel picks one by its hash of the 5-tuple. Which one a source port leads to
is what `ip route get` says in the namespace of the sender.
"""

import random
import re
import subprocess
from collections import defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import replace
from ipaddress import IPv6Address

import numpy as np

from alltoall.ir.arrays import starts_of
from alltoall.ir.routes import Routes
from alltoall.testbed.plan import ROUTE_OPTIONS
from alltoall.testbed.shares import divided

PORTS = "ports"
"""The name of this steering."""

MOST_CHUNKS = 4
"""Flows of a pair: more fill the queues of small hosts."""

FIRST_PORTS, MOST_PORTS, PORTS_AT_ONCE = (10_000, 60_000), 4_096, 16

WAY = re.compile(r"route add (\S+)/128 encap seg6 mode encap segs (\S+) dev (\S+)")
FOUND = re.compile(r"encap seg6 mode encap segs \d+ \[ ([^]]*) \]")


def per_chunk(routes: Routes) -> Routes:
    """Return a route for each of equally many chunks of a pair, by the largest remainders."""
    count = min(routes.denominator or MOST_CHUNKS, MOST_CHUNKS)
    routes = routes.select(np.lexsort((routes.destination, routes.source)))
    sizes = routes.routes_per_pair()
    demand = np.repeat(np.add.reduceat(routes.weight, starts_of(sizes)[:-1]), sizes)
    chunks = divided(routes.weight, sizes, np.full(routes.count, count))
    chosen = np.repeat(np.arange(routes.count), chunks)
    return replace(routes.select(chosen), weight=demand[chosen] / count, denominator=None)


def shared(address: str) -> str:
    """Return the address that all routes of a pair share."""
    return f"{address.partition('::')[0]}::ffff"


def by_hash(text: str) -> Iterator[str]:
    """Yield what a node is told besides `encap`: for each pair an address, or all ways at once."""
    ways: defaultdict[str, dict[str, None]] = defaultdict(dict)
    addresses: dict[str, None] = {}
    for line in text.splitlines():
        words = line.split()
        if way := WAY.match(line):
            first = way[2].partition(",")[0]
            hop = f"nexthop encap seg6 mode encap segs {way[2]} via {first} dev {way[3]} onlink"
            ways[shared(way[1])][hop] = None
        elif words[:2] == ["address", "add"]:
            addresses[shared(words[2])] = None
    yield from (f"address add {address}/128 dev lo nodad" for address in addresses)
    for address, hops in ways.items():
        yield f"route add {address}/128 {ROUTE_OPTIONS} {' '.join(hops)}"


def ways_of(text: str) -> dict[str, str]:
    """Return the segments of each address that a node sends to."""
    return {way[1]: way[2] for line in text.splitlines() if (way := WAY.match(line))}


def find_ports(flows: Sequence[tuple[str, str, str]], to: int) -> list[int]:
    """Return a source port for each flow: own address, destination, and wanted segments."""
    found = [0] * len(flows)
    wanted = [_segments(way.replace(",", " ")) for _, _, way in flows]
    left = list(range(len(flows)))
    # Ports of a run before may be in use for a minute.
    begin = random.randrange(*FIRST_PORTS)
    for first in range(begin, begin + MOST_PORTS, PORTS_AT_ONCE):
        asked = [(flow, first + k) for flow in left for k in range(PORTS_AT_ONCE)]
        for (flow, port), answer in zip(asked, _answers(flows, asked, to), strict=True):
            if not found[flow] and answer == wanted[flow]:
                found[flow] = port
        left = [flow for flow in left if not found[flow]]
        if not left:
            return found
    own, address, way = flows[left[0]]
    raise OSError(f"no source port of {own} leads to {address} by {way}")


def _answers(
    flows: Sequence[tuple[str, str, str]], asked: Sequence[tuple[int, int]], to: int
) -> list[tuple[IPv6Address, ...]]:
    """Return the segments that the kernel picks for flows and source ports."""
    lines = (
        f"route get {flows[flow][1]} from {flows[flow][0]} ipproto tcp sport {port} dport {to}\n"
        for flow, port in asked
    )
    words = ["ip", "-6", "-oneline", "-batch", "-"]
    told = subprocess.run(words, input="".join(lines), capture_output=True, text=True, check=True)
    return [_segments(way[1]) for way in FOUND.finditer(told.stdout)]


def _segments(text: str) -> tuple[IPv6Address, ...]:
    return tuple(map(IPv6Address, text.split()))
