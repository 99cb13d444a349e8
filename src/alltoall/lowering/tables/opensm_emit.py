"""The forwarding tables that OpenSM loads, `opensm -R file -U FILE`, for an InfiniBand fabric.

For each switch a header with its GUID, then a line per destination with its LID, the port to leave
through, and the GUID by which OpenSM finds the destination's actual LID. GUIDs and ports are those
of the ibsim netlist of the same topology; see docs/integrations/opensm.md.

A switch forwards by destination alone, and the file engine has one service level. So all routes to
a destination that meet at a switch must go on together, and be free of deadlocks in one layer.
"""

from collections.abc import Iterator

import numpy as np

from alltoall.errors import LimitError
from alltoall.ir.arrays import Ints
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
"""How the first line of our own files begins; it states the number of switches and adapters."""
ONE_LAYER = "# free of deadlocks in one layer"
ADAPTER, SWITCH = "Channel Adapter", "Switch"
LARGEST_LID = 0xBFFF
"""Unicast LIDs go up to here."""

NO_LINK = NO_PORT = -1
"""In place of a link or port where a switch has no entry for a destination."""

ADVICE = (
    "route again with --method deadlock-free --destination-based, which gives one port per "
    "destination in one layer on any connected network of cables"
)
"""The command that always leads to a file."""


def emit_opensm(routes: Routes, _: Options) -> str:
    """Return the tables of routes that go by their destination, in one layer if they have any."""
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
    """Return the comment that our files begin with."""
    return f"{SIGN} switches={switches} adapters={adapters}"


def next_links(routes: Routes) -> Ints:
    """Return the link by which each node sends on to each terminal, or `NO_LINK`.

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
    other = np.flatnonzero(table[node, destination] != ordered.link)
    if len(other):
        hop = int(other[0])
        here, *heads = (
            topology.node_name(int(each))
            for each in (
                node[hop],
                topology.head[ordered.link[hop]],
                topology.head[table[node[hop], destination[hop]]],
            )
        )
        raise LimitError(
            f"the route {pair_name(ordered, int(route[hop]))} goes from node {here} on to "
            f"{heads[0]}, and another one to the same node there to {heads[1]}, but a switch "
            f"forwards by destination alone; {ADVICE}"
        )
    return table


def _switches(topology: Topology, table: Ints) -> Iterator[str]:
    """Yield the lines of every switch; what leads to an adapter leads to its switch too."""
    port = switch_ports(topology)
    lids = topology.nodes + len(topology.terminals)
    for node in range(topology.nodes):
        out = np.where(table[node] == NO_LINK, NO_PORT, port[table[node]])
        out[topology.position[node] if topology.position[node] >= 0 else []] = ADAPTER_PORT
        known = np.flatnonzero(out != NO_PORT).tolist()
        yield (
            f"Unicast lids [0-{lids}] of switch Lid {_switch_lid(topology, node)} "
            f"guid 0x{switch_guid(node):016x} ('S{node}'):"
        )
        for each in known:
            guid, name = adapter_guid(each), f"H{topology.terminals[each]}"
            yield _row(each + 1, int(out[each]), ADAPTER, guid, name)
        through = {int(topology.terminals[each]): int(out[each]) for each in known} | {node: 0}
        for other in sorted(through):
            lid = _switch_lid(topology, other)
            yield _row(lid, through[other], SWITCH, switch_guid(other), f"S{other}")
        yield f"{lids} lids dumped"


def _row(lid: int, port: int, kind: str, guid: int, name: str) -> str:
    return f"0x{lid:04x} {port:03} # {kind} portguid 0x{guid:016x}: '{name}'"


def _switch_lid(topology: Topology, node: int) -> int:
    """Return the LID that a switch is given here: adapters have the first ones."""
    return len(topology.terminals) + 1 + node
