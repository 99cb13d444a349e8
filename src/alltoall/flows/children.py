"""The child programs: from the flow of a source to a flow per destination.

For source s with master flow f' (exact and acyclic after post-processing), over flows x[d, l]:

    minimise    sum over d, l of x[d, l]                                 (eq:Dmcmcf-s-f)
    subject to  sum over d of x[d, l]  <=  f'[l]         for every link  (ineq:Dmcmcf-s-capacity)
                B x[d]  =  wanted[d] at d, 0 elsewhere   for every d     (conservation and demand)
                x[d, l] >= 0

Only links that carry f' and lead towards d get a variable: a link with f' = 0 can carry nothing,
and on an acyclic flow a link that does not lead to d never helps d. A vertex of the master program
is nearly a tree per source, so this shrinks a child from (N-1) * links variables to about one per
pair and hop.

Every decomposition of f' into paths is a solution, and `flows.decompose` finds one without a linear
program; these are the paper's programs, to compare with.
"""

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from alltoall.flows import sizes
from alltoall.flows.by_lp import conservation, link_sums
from alltoall.flows.decompose import commodity_flow
from alltoall.flows.exact import Groups, exact_flows
from alltoall.flows.symmetry.orbits import expand
from alltoall.flows.workers import Local, run_all
from alltoall.ir.arrays import Floats, Ints
from alltoall.ir.flow import Flow
from alltoall.ir.topology import Topology
from alltoall.lp.program import LinearProgram, sparse_matrix
from alltoall.lp.settings import LPSettings
from alltoall.lp.solve import solve_program
from alltoall.settings import SolveSettings


@dataclass(frozen=True, eq=False)
class Child:
    """The problem of one source, on a topology of the links that its master flow uses.

    `link[l]` is the index, in the whole topology, of the link l of `used`.
    """

    used: Topology
    link: Ints
    start: int
    wanted: Floats
    solver: str

    @property
    def destinations(self) -> Ints:
        """The nodes with a demand from this source."""
        return np.flatnonzero(self.wanted).astype(np.int64)


def split_by_programs(master: Flow, settings: SolveSettings) -> Flow:
    """Return the master's flow per commodity, by solving all children.

    Raise TimeoutError if the time limit comes first.
    """
    master = expand(master)
    pairs = master.problem.demand.pairs()
    terminals = len(master.problem.topology.terminals)
    destinations = np.bincount(pairs[0], minlength=terminals)
    entries = int(np.diff(master.start) @ destinations[master.source])
    local = Local.PROCESSES if entries >= sizes.CHILD_WORK else Local.ONE_BY_ONE
    children = _children(master, settings.solver)
    flows = list(run_all(solve_child, children, master.groups, settings, local, "children"))
    node, link, amount = (np.concatenate(part) for part in zip(*flows, strict=True))
    source = np.repeat(master.source, [len(each) for each, _, _ in flows])
    keys = source * terminals + master.problem.topology.position[node]
    start = np.append(np.searchsorted(keys, pairs[0] * terminals + pairs[1]), len(keys))
    return commodity_flow(master, *pairs, start, link, amount)


def _children(master: Flow, solver: str) -> Iterator[Child]:
    topology = master.problem.topology
    for group, source in enumerate(master.source):
        entries = slice(master.start[group], master.start[group + 1])
        volume = np.zeros(topology.links)
        volume[master.link[entries]] = master.amount[entries] * master.time
        wanted = master.problem.node_demand(master.source[group : group + 1])[0]
        yield child_of(topology, int(topology.terminals[source]), wanted, volume, solver)


def child_of(topology: Topology, start: int, wanted: Floats, volume: Floats, solver: str) -> Child:
    """Return the child problem of a source, from its exact master flow."""
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
    """Solve a child program; return destination node, link and amount of every positive flow."""
    destinations = child.destinations
    start = np.full(len(destinations), child.start, dtype=np.int64)
    wanted = np.zeros((len(destinations), child.used.nodes))
    wanted[np.arange(len(destinations)), destinations] = child.wanted[destinations]
    groups = Groups(source=start, destination=destinations, start=start, wanted=wanted)
    row, link = _variables(child)
    result = solve_program(_program(child, groups, row, link), child.solver, LPSettings(threads=1))
    approximate = np.zeros((len(destinations), child.used.links))
    if result.x is not None:
        approximate[row, link] = result.x
    flows = exact_flows(child.used, groups, approximate)
    row, link = np.nonzero(flows)
    return destinations[row], child.link[link], flows[row, link]


def _variables(child: Child) -> tuple[Ints, Ints]:
    """Return the row of `destinations` and the link of every variable, by destination."""
    leads = np.eye(child.used.nodes, dtype=np.bool_)  # leads[v, d]: used links lead from v to d
    before = -1
    while (pairs := int(leads.sum())) > before:
        before = pairs
        np.logical_or.at(leads, child.used.tail, leads[child.used.head])
    row, link = np.nonzero(leads[child.used.head][:, child.destinations].T)
    return row.astype(np.int64), link.astype(np.int64)


def _program(child: Child, groups: Groups, row: Ints, link: Ints) -> LinearProgram:
    """Build the program over the variables (row, link): capacity rows first, then conservation."""
    balance, wanted = conservation(child.used, groups, row, link)
    links = child.used.links
    return LinearProgram(
        cost=np.ones(len(link)),
        matrix=sparse_matrix(
            (links + len(wanted), len(link)), link_sums(link), balance.shift(rows=links)
        ),
        row_lower=np.concatenate((np.full(links, -np.inf), wanted)),
        row_upper=np.concatenate((child.used.capacity, wanted)),
    )
