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
from alltoall.lp.matrix import sparse_matrix
from alltoall.lp.program import LinearProgram
from alltoall.lp.settings import LPSettings
from alltoall.lp.solve import solve_program
from alltoall.settings import SolveSettings


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


def split_by_programs(master: Flow, settings: SolveSettings) -> Flow:
    """Return the master's flow per commodity, by solving all children.

    Raise TimeoutError if the time limit comes first.
    """
    master = expand(master)
    pair_source, pair_destination = master.problem.demand.pairs()
    destinations = np.bincount(pair_source, minlength=len(master.problem.topology.terminals))
    entries = int(np.diff(master.start) @ destinations[master.source])
    local = Local.PROCESSES if entries >= sizes.CHILD_WORK else Local.ONE_BY_ONE
    children = _children(master, settings.solver)
    flows = list(run_all(solve_child, children, master.groups, settings, local, "children"))
    return _together(master, flows, pair_source, pair_destination)


def _children(master: Flow, solver: str) -> Iterator[Child]:
    topology = master.problem.topology
    for group, source in enumerate(master.source):
        entries = slice(master.start[group], master.start[group + 1])
        volume = np.zeros(topology.links)
        volume[master.link[entries]] = master.amount[entries] * master.time
        wanted = master.problem.node_demand(master.source[group : group + 1])[0]
        yield child_of(topology, int(topology.terminals[source]), wanted, volume, solver)


def _together(
    master: Flow,
    flows: list[tuple[Ints, Ints, Floats]],
    pair_source: Ints,
    pair_destination: Ints,
) -> Flow:
    """Put the children's flows together."""
    topology = master.problem.topology
    terminals = len(topology.terminals)
    source = np.repeat(master.source, [len(link) for _, link, _ in flows])
    destination = topology.position[np.concatenate([node for node, _, _ in flows])]
    keys = source * terminals + destination
    wanted = pair_source * terminals + pair_destination
    return commodity_flow(
        master,
        pair_source,
        pair_destination,
        np.append(np.searchsorted(keys, wanted), len(keys)),
        np.concatenate([link for _, link, _ in flows]),
        np.concatenate([amount for _, _, amount in flows]),
    )


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
        matrix=sparse_matrix(
            (links + len(wanted), len(link)), link_sums(link), balance.moved(rows=links)
        ),
        row_lower=np.concatenate((np.full(links, -np.inf), wanted)),
        row_upper=np.concatenate((child.used.capacity, wanted)),
    )
