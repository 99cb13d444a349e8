"""SimGrid platforms with our routes: a Full zone, in which every pair of hosts has its own route.

The platform is that of `topologies.formats.simgrid`, with the chosen routes in place of those that
SimGrid would find by itself; see docs/integrations/simulators.md. SimGrid shares links fairly
among flows and never deadlocks, so layers have no place in the file.
"""

from alltoall.errors import LimitError
from alltoall.ir.arrays import rows
from alltoall.ir.routes import Routes
from alltoall.lowering.options import Options
from alltoall.lowering.tables.routed_file import in_file_order, most_routes
from alltoall.topologies.formats.simgrid import platform, route_line

ROUTING = "Full"


def emit_simgrid(routes: Routes, options: Options) -> str:
    """Return the SimGrid platform with one route per pair."""
    ordered, _ = in_file_order(routes)
    found, ends = most_routes(ordered)
    if found > 1:
        raise LimitError(
            f"{found} routes {ends}, but SimGrid has one route of each pair; route again with "
            "--method single, or any other that makes one route of each pair"
        )
    topology, link = routes.problem.topology, ordered.link.tolist()
    pairs = (topology.terminals[each] for each in (ordered.source, ordered.destination))
    table = rows(*pairs, ordered.start[:-1], ordered.start[1:])
    lines = (route_line(topology, start, end, link[low:high]) for start, end, low, high in table)
    return platform(topology, ROUTING, lines, options.link_bandwidth, options.link_latency)
