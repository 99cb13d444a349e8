"""The layered graph: in it a way goes forward in the order of one virtual layer, and nothing else.

Within a layer the links at a node, sorted by the layer's order, are like trains at a station: who
arrives on a link can leave on every later one. So a node has a chain of copies in each layer, a new
copy whenever an arrival follows a departure; links join copies, and waiting joins a copy to
the next. The copies are at most twice as many as the links, however many turns there are.

A terminal has two more copies: one where its flow starts, joined to the first copy in every layer,
and one where flow for it ends, joined from the last. Layers are not joined: a route has one.
"""

from dataclasses import dataclass
from functools import cached_property

import numpy as np

from alltoall.flows.groups import Groups
from alltoall.flows.program import FlowProgram
from alltoall.ir.arrays import Ints, starts_of
from alltoall.ir.problem import Problem
from alltoall.ir.topology import Topology


@dataclass(frozen=True, eq=False)
class LayeredGraph:
    """Link k * links + l of `graph` is link l in layer k; after those come the free links.

    `node` is the node of which each node of the graph is a copy. Terminal t starts at
    `starts[t]` and ends at `ends[t]`.
    """

    problem: Problem
    layers: int
    graph: Topology
    node: Ints
    starts: Ints
    ends: Ints

    @property
    def layered_links(self) -> int:
        """The number of links of the graph that are links of a layer."""
        return self.layers * self.problem.topology.links

    @property
    def origin(self) -> Ints:
        """The link of the topology that each link of the graph is, and `links` for free ones."""
        links = self.problem.topology.links
        origin = np.full(self.graph.links, links, dtype=np.int64)
        origin[: self.layered_links] = np.tile(np.arange(links), self.layers)
        return origin

    @cached_property
    def program(self) -> FlowProgram:
        """The concurrent flow program, one group per source; the copies of a link are one class.

        A group goes from the start of its terminal to the ends of all.
        """
        source, links = self.problem.sources, self.problem.topology.links
        wanted = np.zeros((len(source), self.graph.nodes))
        wanted[:, self.ends] = self.problem.demand.rows(source)
        groups = Groups(source, None, self.starts[source], wanted)
        budget = np.zeros(links, dtype=np.int64)
        return FlowProgram(self.graph, groups, np.ones(len(source)), self.origin, budget)

    def variables(self) -> tuple[Ints, Ints]:
        """Return group and link of all that can be useful: reached, and not back at the source."""
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


def layered_graph(problem: Problem, orders: Ints) -> LayeredGraph:
    """Build the graph of the orders [layers, links], each a list of all links, first to last."""
    topology = problem.topology
    chains = [_chains(topology, order) for order in orders]
    base = starts_of([len(each.node) for each in chains])
    starts = base[-1] + np.arange(len(topology.terminals))
    ends = starts + len(starts)
    in_place = list(zip(chains, base[:-1], strict=True))
    arcs = [each.links + offset for each, offset in in_place]
    arcs += [each.waiting + offset for each, offset in in_place]
    arcs += [np.stack((starts, each.first[topology.terminals] + at)) for each, at in in_place]
    arcs += [np.stack((each.last[topology.terminals] + at, ends)) for each, at in in_place]
    node = [each.node for each in chains] + [topology.terminals, topology.terminals]
    graph = _topology(problem, len(orders), np.concatenate(arcs, axis=1), int(ends[-1]) + 1)
    return LayeredGraph(problem, len(orders), graph, np.concatenate(node), starts, ends)


def _topology(problem: Problem, layers: int, arcs: Ints, nodes: int) -> Topology:
    """Return the graph of the arcs; those after the links of the layers are as wide as can be.

    The copies of a link have its capacity together.
    """
    topology = problem.topology
    capacity = np.full(arcs.shape[1], max(problem.demand.total, 1.0) * topology.capacity.max())
    capacity[: layers * topology.links] = np.tile(topology.capacity / layers, layers)
    return Topology(
        name=f"{topology.name} in {layers} layers",
        nodes=nodes,
        tail=arcs[0],
        head=arcs[1],
        capacity=capacity,
        terminals=np.arange(nodes - 2 * len(topology.terminals), nodes),
    )


@dataclass(frozen=True, eq=False)
class _Chains:
    """One layer: the nodes of its copies, the ends of links and waits, each node's end copies."""

    node: Ints
    links: Ints
    waiting: Ints
    first: Ints
    last: Ints


def _chains(topology: Topology, order: Ints) -> _Chains:
    place = np.argsort(order)
    node = np.concatenate((topology.tail, topology.head))
    arriving = np.repeat((False, True), topology.links)
    timetable = np.lexsort((np.tile(place, 2), node))
    at, arrives = node[timetable], arriving[timetable]
    begins = np.ones(len(at), dtype=np.bool_)
    begins[1:] = (at[1:] != at[:-1]) | (arrives[1:] & ~arrives[:-1])
    copy = np.empty(len(at), dtype=np.int64)
    copy[timetable] = np.cumsum(begins) - 1
    copies = at[begins]
    waits = np.flatnonzero(copies[1:] == copies[:-1])
    return _Chains(
        node=copies,
        links=copy.reshape(2, topology.links),
        waiting=np.stack((waits, waits + 1)),
        first=np.searchsorted(copies, np.arange(topology.nodes)),
        last=np.searchsorted(copies, np.arange(topology.nodes), side="right") - 1,
    )
