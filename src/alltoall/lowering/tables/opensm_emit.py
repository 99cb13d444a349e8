"""The forwarding tables that OpenSM loads, `opensm -R file -U FILE`, for an InfiniBand fabric.

For each switch a header with its GUID, then a line per destination with its LID, the port to leave
through, and the GUID by which OpenSM finds the destination's actual LID. GUIDs and ports are those
of the ibsim netlist of the same topology; see docs/integrations/opensm.md.

A switch forwards by destination alone, and the file engine has one service level. So all routes to
a destination that meet at a switch must continue together, and be free of deadlocks in one layer.
"""

from collections.abc import Iterator

import numpy as np

from alltoall.errors import LimitError
from alltoall.ir.arrays import Ints, rows
from alltoall.ir.routes import Routes
from alltoall.ir.topology import Topology
from alltoall.ir.words import one_line
from alltoall.lowering.options import Options
from alltoall.lowering.tables.routed_file import in_file_order, most_routes, pair_name
from alltoall.topologies.formats.ibsim import (
    ADAPTER_PORT,
    adapter_guid,
    switch_guid,
    switch_ports,
)

SIGN = "# alltoall opensm/1"
"""Beginning of the first line of our own files, with the number of switches and adapters."""
ONE_LAYER = "# free of deadlocks in one layer"
ADAPTER, SWITCH = "Channel Adapter", "Switch"
LARGEST_LID = 0xBFFF
"""The largest unicast LID."""

NO_LINK = NO_PORT = -1
"""Placeholders of a link or port without an entry for a destination."""

ADVICE = (
    "route again with --method deadlock-free:destination-based, which gives one port per "
    "destination in one layer on any connected network of cables"
)
"""The command that always leads to a file."""


def emit_opensm(routes: Routes, _: Options) -> str:
    """Return the tables of destination-based routes in at most one layer."""
    topology = routes.problem.topology
    if topology.nodes + len(topology.terminals) > LARGEST_LID:
        raise LimitError(
            f"{topology.name}: {topology.nodes} switches and {len(topology.terminals)} adapters, "
            f"but a subnet has at most {LARGEST_LID} LIDs; use a smaller fabric"
        )
    table = next_links(routes)
    if routes.layers not in (None, 1):
        raise LimitError(
            f"these routes are free of deadlocks in {routes.layers} layers, but OpenSM's file "
            f"engine has one service level; {ADVICE}"
        )
    header = [
        first_line(topology.nodes, len(topology.terminals)),
        f"# name {one_line(topology.name)}",
        *([ONE_LAYER] if routes.layers == 1 else []),
    ]
    return "".join(f"{line}\n" for line in (*header, *_switches(topology, table)))


def first_line(switches: int, adapters: int) -> str:
    """Return the first comment of our files."""
    return f"{SIGN} switches={switches} adapters={adapters}"


def next_links(routes: Routes) -> Ints:
    """Return the next link from each node to each terminal, or `NO_LINK`.

    Raise if a pair has several routes, or a node several links towards one terminal.
    """
    topology = routes.problem.topology
    ordered, _ = in_file_order(routes)
    found, ends = most_routes(ordered)
    if found > 1:
        raise LimitError(f"{found} routes {ends}, but a switch has one port to send on; {ADVICE}")
    route = ordered.path_of_link
    node, destination = topology.tail[ordered.link], ordered.destination[route]
    table = np.full((topology.nodes, len(topology.terminals)), NO_LINK, dtype=np.int64)
    table[node, destination] = ordered.link
    for hop in np.flatnonzero(table[node, destination] != ordered.link)[:1]:
        heads = topology.head[[ordered.link[hop], table[node[hop], destination[hop]]]]
        here, mine, other = map(topology.node_name, (int(node[hop]), *heads.tolist()))
        raise LimitError(
            f"the route {pair_name(ordered, int(route[hop]))} goes from node {here} on to {mine}, "
            f"and another one to the same node there to {other}, but a switch forwards by "
            f"destination alone; {ADVICE}"
        )
    return table


def _switches(topology: Topology, table: Ints) -> Iterator[str]:
    """Yield the lines of every switch; a route to an adapter is one to its switch too."""
    port = switch_ports(topology)
    terminals = len(topology.terminals)
    lids = topology.nodes + terminals
    for node in range(topology.nodes):
        out = np.where(table[node] == NO_LINK, NO_PORT, port[table[node]])
        out[topology.position[node] if topology.position[node] >= 0 else []] = ADAPTER_PORT
        known = np.flatnonzero(out != NO_PORT)
        # Adapters have the first LIDs, switches the next.
        guid = f"guid 0x{switch_guid(node):016x} ('S{node}'):"
        yield f"Unicast lids [0-{lids}] of switch Lid {terminals + 1 + node} {guid}"
        adapters = list(rows(known, topology.terminals[known], out[known]))
        for each, host, way in adapters:
            yield _row(each + 1, way, ADAPTER, adapter_guid(each), f"H{host}")
        ports = {host: way for _, host, way in adapters} | {node: 0}
        for other, way in sorted(ports.items()):
            yield _row(terminals + 1 + other, way, SWITCH, switch_guid(other), f"S{other}")
        yield f"{lids} lids dumped"


def _row(lid: int, port: int, kind: str, guid: int, name: str) -> str:
    return f"0x{lid:04x} {port:03} # {kind} portguid 0x{guid:016x}: '{name}'"
