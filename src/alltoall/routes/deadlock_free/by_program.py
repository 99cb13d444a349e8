"""The best routes in a given order of all channels: a linear program on a layered graph.

For a given order the least time is the concurrent flow program with one group per source:

    minimise    z
    subject to  sum over g and channels c of link l of x[g, c]  <=  cap[l] z   for every link l
                B x[g]  =  wanted[g]                                           for every group g
                x >= 0

where B is the incidence matrix of the layered graph. Flow that arrives at a node on a channel can
leave on every later channel of the order. So a node has a chain of copies, a new copy whenever an
arrival follows a departure; channels join copies, and a storage link joins each copy to the next.
The copies are at most twice as many as the channels.

A terminal has two more copies: one where its flow starts, joined to the first copy of its chains,
and one where flow for it ends, joined from the last.
"""

from dataclasses import dataclass
from functools import cached_property

import numpy as np

from alltoall.flows.by_lp import linear_program
from alltoall.flows.decompose import paths_on_graph
from alltoall.flows.exact import Groups, exact_flows
from alltoall.flows.program import FlowProgram
from alltoall.ir.arrays import Floats, Ints, starts_of
from alltoall.ir.paths import Paths
from alltoall.ir.topology import Topology
from alltoall.lp.program import LPResult
from alltoall.lp.solve import solve_program
from alltoall.routes.deadlock_free.lanes import Lanes
from alltoall.settings import SolveSettings


def best_paths(lanes: Lanes, order: Ints, settings: SolveSettings) -> tuple[Paths, Floats] | None:
    """Return paths of channels and their weights of least time; None if time is too short."""
    layered = layered_graph(lanes, order)
    result, variables = solve_layered(layered, settings)
    if result.x is None:
        return None
    volumes = np.zeros((len(layered.program.groups.start), layered.graph.links))
    volumes[variables] = result.x[:-1]
    exact = exact_flows(layered.graph, layered.program.groups, volumes)
    paths, width = paths_on_graph(layered.graph, layered.program.groups, exact, layered.ends)
    return _channel_paths(lanes, paths).merge_equal(width)


@dataclass(frozen=True, eq=False)
class LayeredGraph:
    """Link c of `graph` is channel c of the lanes; after the channels come free links.

    `node` is the topology's node of each copy. Terminal t starts at `starts[t]` and ends at
    `ends[t]`.
    """

    lanes: Lanes
    graph: Topology
    node: Ints
    starts: Ints
    ends: Ints

    @cached_property
    def program(self) -> FlowProgram:
        """The concurrent flow program, one group per source; channels of a link are one class."""
        problem = self.lanes.problem
        source, links = problem.sources, problem.topology.links
        wanted = np.zeros((len(source), self.graph.nodes))
        wanted[:, self.ends] = problem.demand.rows(source)
        groups = Groups(source, None, self.starts[source], wanted)
        origin = np.full(self.graph.links, links, dtype=np.int64)
        origin[: len(self.lanes.link)] = self.lanes.link
        budget = np.zeros(links, dtype=np.int64)
        return FlowProgram(self.graph, groups, np.ones(len(source)), origin, budget)

    def variables(self) -> tuple[Ints, Ints]:
        """Return group and link of all useful variables: reached, and not back at the source."""
        tail, head, groups = self.graph.tail, self.graph.head, self.program.groups
        home = self.node[groups.start][:, None]
        allowed = (self.node[head] != home) | (self.node[tail] == home)
        reached = np.zeros((len(groups.start), self.graph.nodes), dtype=np.bool_)
        reached[np.arange(len(groups.start)), groups.start] = True
        while True:
            row, link = np.nonzero(reached[:, tail] & allowed)
            if reached[row, head[link]].all():
                return row.astype(np.int64), link.astype(np.int64)
            reached[row, head[link]] = True


def solve_layered(
    layered: LayeredGraph, settings: SolveSettings
) -> tuple[LPResult, tuple[Ints, Ints]]:
    """Solve for the least time in the order; the last variable of the result is that time."""
    solver = "ipm" if settings.solver == "auto" else settings.solver
    variables = layered.variables()
    program = linear_program(layered.program, *variables)
    return solve_program(program, solver, settings.lp_settings()), variables


def layered_graph(lanes: Lanes, order: Ints) -> LayeredGraph:
    """Build the graph of an order of all channels, first to last."""
    topology, ends_of = lanes.problem.topology, np.concatenate(lanes.ends)
    timetable = np.lexsort((np.tile(np.argsort(order), 2), ends_of))
    at, arrives = ends_of[timetable], np.repeat((False, True), len(order))[timetable]
    begins = np.ones(len(at), dtype=np.bool_)
    begins[1:] = (at[1:] != at[:-1]) | (arrives[1:] & ~arrives[:-1])
    copy = np.empty(len(at), dtype=np.int64)
    copy[timetable] = np.cumsum(begins) - 1
    # The node of each copy, and the copies at the tail and the head of each channel.
    copies, channels = at[begins], copy.reshape(2, len(order))
    waits = np.flatnonzero(copies[1:] == copies[:-1])
    starts = len(copies) + np.arange(len(topology.terminals))
    ends = starts + len(starts)
    first = np.searchsorted(copies, lanes.terminals).ravel()
    last = np.searchsorted(copies, lanes.terminals, side="right").ravel() - 1
    arcs = np.concatenate(
        (
            channels,
            np.stack((waits, waits + 1)),
            np.stack((np.tile(starts, lanes.copies), first)),
            np.stack((last, np.tile(ends, lanes.copies))),
        ),
        axis=1,
    )
    # The channels of a link have its capacity together; free links are as wide as can be.
    capacity = np.full(arcs.shape[1], max(lanes.problem.demand.total, 1.0))
    capacity *= topology.capacity.max()
    capacity[: len(lanes.link)] = topology.capacity[lanes.link] / lanes.layers
    graph = Topology(
        name=f"{topology.name} in {lanes.layers} layers",
        nodes=int(ends[-1]) + 1,
        tail=arcs[0],
        head=arcs[1],
        capacity=capacity,
        terminals=np.concatenate((starts, ends)),
    )
    node = np.concatenate((copies % topology.nodes, topology.terminals, topology.terminals))
    return LayeredGraph(lanes, graph, node, starts, ends)


def _channel_paths(lanes: Lanes, paths: Paths) -> Paths:
    """Return paths of the layered graph as paths of channels, without free links and loops."""
    tail, head = (ends.tolist() for ends in lanes.ends)
    if lanes.copies > 1:
        nodes = lanes.problem.topology.nodes
        tail, head = ([node % nodes for node in ends] for ends in (tail, head))
    arcs = paths.link.tolist()
    routes = [
        _simple([arc for arc in arcs[begin:end] if arc < len(tail)], tail, head)
        for begin, end in zip(paths.start[:-1], paths.start[1:], strict=True)
    ]
    link = np.array([channel for route in routes for channel in route], dtype=np.int64)
    start = starts_of([len(route) for route in routes])
    return Paths(paths.source, paths.destination, start, link)


def _simple(channels: list[int], tail: list[int], head: list[int]) -> list[int]:
    """Return a path without its loops; it still goes forward in the order."""
    place = {tail[channels[0]]: 0}
    simple: list[int] = []
    for channel in channels:
        back = place.get(head[channel])
        if back is None:
            simple.append(channel)
            place[head[channel]] = len(simple)
        else:
            del simple[back:]
            place = {node: at for node, at in place.items() if at <= back}
    return simple
