"""ibsim netlists, which give a topology to OpenSM.

A record is a line `Switch <ports> "id"` or `Hca <ports> "id"`, then a line
`[port] "remote"[port]` per cable, then a blank line. Here node v is the switch `S<v>`, and a
terminal also has the adapter `H<v>` on port 1 of its switch. Comments at the top have the names of
nodes: ids are short in ibsim.
"""

import numpy as np

from alltoall.errors import TopologyError
from alltoall.ir.arrays import Ints, inner_index, rows
from alltoall.ir.topology import Topology
from alltoall.ir.words import one_line
from alltoall.topologies.operators import cable_links, partner_links

MAX_PORTS = 254
"""Ports of an InfiniBand switch, without its own port 0."""

ADAPTER_PORT = 1
"""The port of a terminal's switch that its adapter is on."""

SWITCH_GUID, ADAPTER_GUID = 0x200000, 0x100000
"""The GUIDs from which ibsim numbers switches and adapters, in the order of the netlist."""


def write(topology: Topology) -> str:
    """Return the netlist, without capacities and with at most `MAX_PORTS` cables per node."""
    port = switch_ports(topology)
    hosts = topology.terminals.tolist()
    cables: list[dict[int, str]] = [{} for _ in range(topology.nodes)]
    for host in hosts:
        cables[host][ADAPTER_PORT] = f'"H{host}"[1]'
    order = np.lexsort((port, topology.tail))
    columns = (topology.tail, topology.head, port, port[partner_links(topology)])
    for tail, head, here, there in rows(*(column[order] for column in columns)):
        cables[tail][here] = f'"S{head}"[{there}]'
    lines = [f"# {one_line(topology.name)}: {topology.nodes} switches, {len(hosts)} adapters", ""]
    lines[1:1] = [f"# S{node}: {name}" for node, name in enumerate(topology.names or ())]
    for node, used in enumerate(cables):
        # ibsim stops reading at a switch without ports, so an isolated one gets an unused port.
        lines.append(f'Switch {max(1, len(used))} "S{node}"')
        lines.extend(f"[{number}] {far}" for number, far in used.items())
        lines.append("")
    for host in hosts:
        lines.extend([f'Hca 1 "H{host}"', f'[1] "S{host}"[{ADAPTER_PORT}]', ""])
    return "\n".join(lines)


def switch_ports(topology: Topology) -> Ints:
    """Return the egress port of every link.

    Ports are numbered from 1, the adapter of a terminal first, then its cables in the order of
    their links from the lower node.
    """
    if not topology.bidirectional:
        raise TopologyError(
            f"{topology.name}: some link has no partner of the same capacity in the other "
            "direction, but InfiniBand cables are full-duplex; add the missing links"
        )
    cables = cable_links(topology)
    links = np.concatenate((cables, partner_links(topology)[cables]))
    ends = topology.tail[links]
    links = links[np.lexsort((np.tile(np.arange(len(cables)), 2), ends))]
    used = np.zeros(topology.nodes, dtype=np.int64)
    used[topology.terminals] = ADAPTER_PORT
    port = np.empty(topology.links, dtype=np.int64)
    port[links] = 1 + used[topology.tail[links]] + inner_index(topology.out_degree)
    used += topology.out_degree
    if used.max() > MAX_PORTS:
        node = int(np.argmax(used))
        raise TopologyError(
            f"{topology.name}: node {topology.node_name(node)} needs {used[node]} ports; "
            f"an InfiniBand switch has at most {MAX_PORTS}"
        )
    return port


def switch_guid(node: int) -> int:
    """Return ibsim's GUID of the switch of a node, and of its port 0."""
    return SWITCH_GUID + node


def adapter_guid(terminal: int) -> int:
    """Return ibsim's GUID of the port of a terminal's adapter, by its position."""
    # An adapter takes a GUID for itself, then one for each port.
    return ADAPTER_GUID + 2 * terminal + 1
