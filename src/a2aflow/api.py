"""What `import a2aflow` offers."""

from a2aflow.check.flow import check_flow, check_topology
from a2aflow.errors import A2AFlowError
from a2aflow.flows import SolveSettings
from a2aflow.flows import solve as solve_flow
from a2aflow.flows.bounds import cut_bound, distance_bound, regular_bound
from a2aflow.ir.certificate import Certificate
from a2aflow.ir.demand import Demand
from a2aflow.ir.flow import Flow, Status
from a2aflow.ir.problem import Problem
from a2aflow.ir.topology import Topology
from a2aflow.topologies.formats import from_networkx, read_topology, to_networkx, write_topology
from a2aflow.topologies.operators import drop_links, drop_nodes, with_host_bandwidth
from a2aflow.topologies.spec import build

__all__ = [
    "A2AFlowError",
    "Certificate",
    "Demand",
    "Flow",
    "Problem",
    "SolveSettings",
    "Status",
    "Topology",
    "build",
    "check_flow",
    "check_topology",
    "cut_bound",
    "distance_bound",
    "drop_links",
    "drop_nodes",
    "from_networkx",
    "read_topology",
    "regular_bound",
    "solve_flow",
    "to_networkx",
    "with_host_bandwidth",
    "write_topology",
]
