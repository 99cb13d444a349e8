"""Decompose flows into paths or commodities, without a linear program or by one.

After post-processing the flow of a source conserves exactly, and every decomposition into paths is
optimal: no link carries more than before. `split` (`core/flow.h`) decomposes a block of groups;
blocks of bounded size run independently, on threads or on a cluster. The number of workers changes
neither the blocks nor the result.

For each destination in turn, the path whose narrowest link is widest is taken off, as much as that
link carries or the destination still lacks, until the demand is met. Every path empties a link or
serves a destination, so the paths of a source are at most its links and destinations.

**Rounding.** What is left of a demand when its inflow is used up belongs to the pair's widest path;
a demand so small beside others that rounding swallowed all its inflow takes the fewest links that
carried flow. Either way the widths of a pair add up to its demand.

`split_by_programs` is the paper's way, to compare with: every decomposition is a solution of its
child programs. For source s with master flow f' (exact and acyclic after post-processing), over
flows x[d, l]:

    minimise    sum over d, l of x[d, l]                                 (eq:Dmcmcf-s-f)
    subject to  sum over d of x[d, l]  <=  f'[l]         for every link  (ineq:Dmcmcf-s-capacity)
                B x[d]  =  wanted[d] at d, 0 elsewhere   for every d     (conservation and demand)
                x[d, l] >= 0

Only links that carry f' and lead towards d get a variable: a link with f' = 0 can carry nothing,
and on an acyclic flow a link that does not lead to d never helps d. A vertex of the master program
is nearly a tree per source, so this shrinks a child from (N-1) * links variables to about one per
pair and hop.
"""

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from itertools import pairwise
from typing import TypeAlias, TypeVar

import numpy as np

from alltoall import core
from alltoall.errors import InputError
from alltoall.flows import sizes
from alltoall.flows.by_lp import conservation, link_sums
from alltoall.flows.exact import Groups, exact_flows
from alltoall.flows.symmetry.orbits import expand
from alltoall.flows.workers import Local, run_all
from alltoall.ir.answer import Certificate
from alltoall.ir.arrays import Floats, Ints, inner_index, starts_of
from alltoall.ir.flow import Flow
from alltoall.ir.paths import Paths
from alltoall.ir.problem import Problem
from alltoall.ir.topology import Topology
from alltoall.lp.program import LinearProgram, sparse_matrix
from alltoall.lp.settings import LPSettings
from alltoall.lp.solve import solve_program
from alltoall.settings import SolveSettings

Csr: TypeAlias = tuple[Ints, Ints, Floats]
"""(start, item, value) in compressed rows: links and amounts, or end nodes and demands."""


@dataclass(frozen=True, eq=False)
class FlowBlock:
    """The flows of some groups, each from one node to its destinations, in compressed rows.

    Group g leaves node `begin[g]`, which is terminal `source[g]`, with `amount[e]` on `link[e]` for
    e in start[g]:start[g + 1]. It is to bring `demand[p]` to node `end[p]`, which is terminal
    `destination[p]`, for p in pairs[g]:pairs[g + 1]. A block holds all that is needed, so that it
    can be worked on anywhere.
    """

    nodes: int
    tail: Ints
    head: Ints
    source: Ints
    begin: Ints
    start: Ints
    link: Ints
    amount: Floats
    pairs: Ints
    destination: Ints
    end: Ints
    demand: Floats


def split(block: FlowBlock) -> tuple[Paths, Floats, Ints]:
    """Return the widest paths of all pairs of a block, in order, their widths, and their pairs.

    The widths of a pair add up exactly.
    """
    failed, pair, width, start, link = core.split_flows(
        core.Graph(block.nodes, block.tail, block.head),
        block.begin,
        (block.start, block.link, block.amount),
        (block.pairs, block.end, block.demand),
    )
    if failed >= 0:
        first = int(np.searchsorted(block.pairs, failed, side="right")) - 1
        raise InputError(
            f"no flow from node {block.begin[first]} leads to node {block.end[failed]}, which "
            f"wants {block.demand[failed]:g}; expected a flow that conserves"
        )
    group = np.searchsorted(block.pairs, pair, side="right") - 1
    return Paths(block.source[group], block.destination[pair], start, link), width, pair


BLOCK_ENTRIES = 1 << 17
"""Links with flow and destinations in one block, together, unless one group has more."""

Result = TypeVar("Result")


def widest_paths(flow: Flow, settings: SolveSettings) -> tuple[Paths, Floats]:
    """Return the widest paths of a flow, by group, and their widths as volumes.

    The flow of a source is decomposed for all its destinations at once. The widths of a pair add up
    to its demand. Raise TimeoutError if the time limit comes first.
    """
    flow = expand(flow)
    parts = list(_for_blocks(split, _whole(flow), flow.time, settings))
    return Paths.join([paths for paths, _, _ in parts]), np.concatenate([part[1] for part in parts])


def of_sources(flow: Flow, sources: Ints) -> Flow:
    """Return the part of a flow that starts at some sources."""
    groups = np.flatnonzero(np.isin(flow.source, sources))
    count = np.diff(flow.start)[groups]
    entries = np.repeat(flow.start[groups], count) + inner_index(count)
    return replace(
        flow,
        source=flow.source[groups],
        destination=None if flow.destination is None else flow.destination[groups],
        start=starts_of(count),
        link=flow.link[entries],
        amount=flow.amount[entries],
    )


def paths_on_graph(
    graph: Topology, groups: Groups, volumes: Floats, ends: Ints
) -> tuple[Paths, Floats]:
    """Return the widest paths of exact volumes [groups, links of any graph], and their widths.

    Flow to terminal t ends at node `ends[t]` of the graph.
    """
    group, link = np.nonzero(volumes)
    wants, destination = np.nonzero(groups.wanted[:, ends])
    rows = np.arange(len(volumes) + 1)
    block = FlowBlock(
        nodes=graph.nodes,
        tail=graph.tail,
        head=graph.head,
        source=groups.source,
        begin=groups.start,
        start=np.searchsorted(group, rows),
        link=link,
        amount=volumes[group, link],
        pairs=np.searchsorted(wants, rows),
        destination=destination,
        end=ends[destination],
        demand=groups.wanted[wants, ends[destination]],
    )
    paths, width, _ = split(block)
    return paths, width


def paths_of_volumes(
    problem: Problem, groups: Groups, volumes: Floats, settings: SolveSettings
) -> tuple[Paths, Floats]:
    """Return the widest paths of exact volumes [sources, links], and their widths as volumes.

    Raise TimeoutError if the time limit comes first.
    """
    group, link = np.nonzero(volumes)
    start = np.searchsorted(group, np.arange(len(volumes) + 1))
    nothing = Certificate(np.ones(problem.topology.links), 0.0)
    flow = Flow(problem, 1.0, groups.source, None, start, link, volumes[group, link], nothing, "")
    return widest_paths(flow, settings)


def per_commodity(flow: Flow, settings: SolveSettings) -> Flow:
    """Return a flow per source as one per commodity, at the largest feasible rate.

    Raise TimeoutError if the time limit comes first.
    """
    flow = expand(flow)
    whole = _whole(flow)
    parts = zip(*_for_blocks(commodities, whole, flow.time, settings), strict=True)
    starts, links, volumes = map(list, parts)
    start = starts_of(np.concatenate([np.diff(each) for each in starts]))
    source = np.repeat(whole.source, np.diff(whole.pairs))
    entries = start, np.concatenate(links), np.concatenate(volumes)
    return commodity_flow(flow, source, whole.destination, *entries)


def commodity_flow(
    flow: Flow, source: Ints, destination: Ints, start: Ints, link: Ints, volume: Floats
) -> Flow:
    """Return a flow with these volumes per commodity, at the largest feasible rate."""
    topology = flow.problem.topology
    time = float((np.bincount(link, volume, topology.links) / topology.capacity).max())
    return replace(
        flow,
        rate=1.0 / time,
        source=source,
        destination=destination,
        start=start,
        link=link,
        amount=volume / time,
    )


def commodities(block: FlowBlock) -> Csr:
    """Return the flow of each pair of a block, in compressed rows: (start, link, volume)."""
    paths, width, pair = split(block)
    links, hops = len(block.tail), np.diff(paths.start)
    entry = np.repeat(pair, hops) * links + paths.link
    cell, place = np.unique(entry, return_inverse=True)
    start = np.searchsorted(cell, np.arange(len(block.end) + 1) * links).astype(np.int64)
    volume = np.bincount(place, np.repeat(width, hops), len(cell))
    return start, cell % links, np.asarray(volume, dtype=np.float64)


def _whole(flow: Flow) -> FlowBlock:
    """Return all groups of a flow as one block, with amounts instead of volumes."""
    topology = flow.problem.topology
    if flow.destination is None:
        group, destination = np.nonzero(flow.problem.demand.rows(flow.source))
    else:
        group, destination = np.arange(flow.groups), flow.destination
    return FlowBlock(
        nodes=topology.nodes,
        tail=topology.tail,
        head=topology.head,
        source=flow.source,
        begin=topology.terminals[flow.source],
        start=flow.start,
        link=flow.link,
        amount=flow.amount,
        pairs=np.searchsorted(group, np.arange(flow.groups + 1)),
        destination=destination,
        end=topology.terminals[destination],
        demand=flow.problem.demand.of(flow.source[group], destination),
    )


def _for_blocks(
    function: Callable[[FlowBlock], Result], whole: FlowBlock, time: float, settings: SolveSettings
) -> Iterator[Result]:
    """Yield the results of a function for all blocks of a flow, in order."""
    block = (whole.start + whole.pairs)[:-1] // BLOCK_ENTRIES
    cuts = [0, *(1 + np.flatnonzero(np.diff(block))).tolist(), len(block)]
    blocks = (_part(whole, time, low, high) for low, high in pairwise(cuts))
    return run_all(function, blocks, len(cuts) - 1, settings, Local.THREADS, "blocks of sources")


def _part(whole: FlowBlock, time: float, low: int, high: int) -> FlowBlock:
    """Return the groups low:high of a flow, with volumes instead of amounts."""
    entries = slice(whole.start[low], whole.start[high])
    wanted = slice(whole.pairs[low], whole.pairs[high])
    return replace(
        whole,
        source=whole.source[low:high],
        begin=whole.begin[low:high],
        start=whole.start[low : high + 1] - whole.start[low],
        link=whole.link[entries],
        amount=whole.amount[entries] * time,
        pairs=whole.pairs[low : high + 1] - whole.pairs[low],
        destination=whole.destination[wanted],
        end=whole.end[wanted],
        demand=whole.demand[wanted],
    )


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
