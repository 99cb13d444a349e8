"""The child programs: from one source's flow to one flow per destination.

For source s with master flow f' (exact and acyclic after post-processing), over flows x[d, l]:

    minimise    sum over d, l of x[d, l]                                 (eq:Dmcmcf-s-f)
    subject to  sum over d of x[d, l]  <=  f'[l]         for every link  (ineq:Dmcmcf-s-capacity)
                B x[d]  =  wanted[d] at d, 0 elsewhere   for every d     (conservation and demand)
                x[d, l] >= 0

Only links that carry f' and lead towards d get a variable: a link with f' = 0 can carry nothing,
and on an acyclic flow a link that does not lead to d never helps d. A vertex of the master program
is nearly a tree per source, so this shrinks a child from (N-1) * links variables to about one per
pair and hop.
"""

from dataclasses import dataclass

import numpy as np
from scipy.sparse import vstack

from a2aflow.ir.arrays import Floats, Ints
from a2aflow.ir.topology import Topology
from a2aflow.lp import LinearProgram, LPSettings, solve_program
from a2aflow.solve.exact import exact_flows
from a2aflow.solve.groups import Groups
from a2aflow.solve.network import conservation, sharing


@dataclass(frozen=True, eq=False)
class Child:
    """One source's problem, on a topology of only the links that its master flow uses.

    `link[l]` is the index, in the whole topology, of the link l of `used`.
    """

    used: Topology
    link: Ints
    start: int
    wanted: Floats
    solver: str

    @property
    def destinations(self) -> Ints:
        """The nodes that receive anything from this source."""
        return np.flatnonzero(self.wanted).astype(np.int64)


def child_of(topology: Topology, start: int, wanted: Floats, volume: Floats, solver: str) -> Child:
    """Cut one source's child problem out of its exact master flow."""
    link = np.flatnonzero(volume).astype(np.int64)
    used = Topology(
        name=f"master flow of node {start}",
        nodes=topology.nodes,
        tail=topology.tail[link],
        head=topology.head[link],
        capacity=volume[link],
        terminals=topology.terminals,
    )
    return Child(used, link, start, wanted, solver)


def solve_child(child: Child) -> tuple[Ints, Ints, Floats]:
    """Solve one child program; return destination node, link and amount of every positive flow."""
    destinations = child.destinations
    groups = _groups(child)
    row, link = _variables(child)
    result = solve_program(_program(child, groups, row, link), child.solver, LPSettings(threads=1))
    approximate = np.zeros((len(destinations), child.used.links))
    if result.x is not None:
        approximate[row, link] = result.x
    flows = exact_flows(child.used, groups, approximate)
    row, link = np.nonzero(flows)
    return destinations[row], child.link[link], flows[row, link]


def _groups(child: Child) -> Groups:
    """Return one group per destination."""
    destinations = child.destinations
    rows = np.arange(len(destinations))
    wanted = np.zeros((len(destinations), child.used.nodes))
    wanted[rows, destinations] = child.wanted[destinations]
    start = np.full(len(destinations), child.start, dtype=np.int64)
    return Groups(source=start, destination=destinations, start=start, wanted=wanted)


def _variables(child: Child) -> tuple[Ints, Ints]:
    """Return, by destination, the row of `destinations` and the link of every variable."""
    leads = np.eye(child.used.nodes, dtype=np.bool_)  # leads[v, d]: used links lead from v to d
    while True:
        before = int(leads.sum())
        np.logical_or.at(leads, child.used.tail, leads[child.used.head])
        if int(leads.sum()) == before:
            break
    row, link = np.nonzero(leads[child.used.head][:, child.destinations].T)
    return row.astype(np.int64), link.astype(np.int64)


def _program(child: Child, groups: Groups, row: Ints, link: Ints) -> LinearProgram:
    """Build the program over the variables (row, link): capacity rows first, then conservation."""
    balance, wanted = conservation(child.used, groups, row, link)
    links = child.used.links
    return LinearProgram(
        cost=np.ones(len(link)),
        matrix=vstack((sharing(links, link), balance), format="csc"),
        row_lower=np.concatenate((np.full(links, -np.inf), wanted)),
        row_upper=np.concatenate((child.used.capacity, wanted)),
    )
