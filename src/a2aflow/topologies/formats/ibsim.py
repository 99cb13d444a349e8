"""ibsim netlists, for handing a topology to OpenSM.

A record is a line `Switch <ports> "id"` or `Hca <ports> "id"`, then a line
`[port] "remote"[port]` per cable, then a blank line. Here node v is the switch `S<v>`, and a
terminal also has the adapter `H<v>` on port 1 of its switch. Names of nodes are
in comments at the top: ids are short in ibsim.
"""

from collections import defaultdict

from a2aflow.errors import TopologyError
from a2aflow.ir.topology import Topology
from a2aflow.ir.words import one_line
from a2aflow.topologies.cables import cable_links

MAX_PORTS = 254


def write(topology: Topology) -> str:
    """Return the netlist; cables have no capacity in it, and every node needs few enough."""
    if not topology.bidirectional:
        raise TopologyError(
            f"{topology.name}: some link has no partner of the same capacity in the other "
            "direction, but InfiniBand cables are full-duplex; add the missing links"
        )
    hosts = topology.terminals.tolist()
    ports = _ports(topology, hosts)
    lines = [f"# {one_line(topology.name)}: {topology.nodes} switches, {len(hosts)} adapters", ""]
    lines[1:1] = [f"# S{node}: {name}" for node, name in enumerate(topology.names or ())]
    for node in range(topology.nodes):
        # ibsim stops reading at a switch without ports, so an isolated one gets an unused port.
        lines.append(f'Switch {max(1, len(ports[node]))} "S{node}"')
        lines.extend(f"[{port}] {far}" for port, far in enumerate(ports[node], start=1))
        lines.append("")
    for host in hosts:
        lines.extend([f'Hca 1 "H{host}"', f'[1] "S{host}"[1]', ""])
    return "\n".join(lines)


def _ports(topology: Topology, hosts: list[int]) -> dict[int, list[str]]:
    """Return what every node's ports lead to: its adapter first, then its cables in order."""
    ports: dict[int, list[str]] = defaultdict(list)
    for host in hosts:
        ports[host].append(f'"H{host}"[1]')
    for link in cable_links(topology):
        u, v = int(topology.tail[link]), int(topology.head[link])
        far_u, far_v = f'"S{v}"[{len(ports[v]) + 1}]', f'"S{u}"[{len(ports[u]) + 1}]'
        ports[u].append(far_u)
        ports[v].append(far_v)
    for node, used in ports.items():
        if len(used) > MAX_PORTS:
            raise TopologyError(
                f"{topology.name}: node {topology.node_name(node)} needs {len(used)} ports; "
                f"an InfiniBand switch has at most {MAX_PORTS}"
            )
    return ports
