"""Networks to place chunks on: all paths of a graph, or the paths that follow an order of links.

Two kinds of orders occur. Channels in a deadlock-free order: a path takes channels of increasing
rank. Links of a graph unrolled in time: a path takes links of later and later steps. A priced link
is one whose load counts: several channels share the physical link, and images under a symmetry
share one class.
"""

from dataclasses import dataclass

import numpy as np

from alltoall import core
from alltoall.errors import InputError
from alltoall.ir.arrays import Floats, Ints
from alltoall.ir.paths import NOTHING
from alltoall.ir.topology import Topology
from alltoall.paths.shortest import core_graph
from alltoall.placing.chunks import Table


def no_path(topology: Topology) -> InputError:
    """Return the error of a topology that does not join some pair."""
    return InputError(f"{topology.name}: no path joins some pair; connect all pairs with demand")


WAITING_COST = 1e-3
"""The cost of a step of waiting, where a hop over an uncontended link costs 1."""


@dataclass(frozen=True, eq=False)
class Network:
    """Where chunks can go, and the capacity of every priced link."""

    where: core.Graph | core.LinkOrder
    capacity: Floats
    longest_path: int
    topology: Topology | None = None
    """The names of nodes, for messages."""
    priced: Ints | None = None
    """The priced link of each link, `len(capacity)` for one that is free; None for itself."""

    @property
    def links(self) -> int:
        """The number of links that paths may take."""
        return len(self.capacity if self.priced is None else self.priced)

    def loads(self, table: Table, size: Floats) -> Floats:
        """Return the loads of the priced links by chunks on paths."""
        count = len(self.capacity)
        load = np.zeros(count + 1)
        for links in table.T:
            used = links != NOTHING
            each = links[used] if self.priced is None else self.priced[links[used]]
            load += np.bincount(each, size[used], count + 1)
        return load[:count]

    def node_name(self, node: int) -> str:
        """Return the name of a node, for messages."""
        return str(node) if self.topology is None else self.topology.node_name(node)


def any_path(topology: Topology) -> Network:
    """Return the network of all paths of a topology; every link is priced."""
    longest = max(1, topology.nodes - 1)
    return Network(core_graph(topology), topology.capacity, longest, topology)


def in_order(
    capacity: Floats, ends: tuple[Ints, Ints], link: Ints, copies: Ints, order: Ints
) -> Network:
    """Return the network of paths along channels of increasing rank.

    Channel c leads from `ends[0][c]` to `ends[1][c]` over `link[c]`; `copies[k, t]` is the node of
    terminal t in copy k, and chunks go between terminals.
    """
    nodes = int(max(ends[0].max(), ends[1].max(), copies.max())) + 1
    blocks = np.array([0, len(order)])
    channels = core.Graph(nodes, *ends)
    where = core.LinkOrder(channels, order, blocks, nodes, link, len(capacity), copies)
    return Network(where, capacity, len(order), priced=link)


def in_steps(
    graph: Topology, steps: int, per_step: int, link_class: Ints, capacity: Floats
) -> Network:
    """Return the network of paths in a graph unrolled in time.

    Links t * per_step to (t + 1) * per_step - 1 are those of step t, from nodes of moment t to
    nodes of moment t + 1 or to switches, which have a copy per step. The links of waiting come
    after all steps. Links of a class share one price; the last class is free.
    """
    timed = steps * per_step
    waiting = (graph.links - timed) // steps
    links = np.arange(timed).reshape(steps, per_step)
    stored = np.arange(timed, graph.links).reshape(steps, waiting)
    order = np.concatenate((links, stored), axis=1)
    blocks = np.concatenate(([0], np.cumsum(np.tile([per_step, waiting], steps))))
    first_switch = (steps + 1) * waiting
    nodes = np.arange(graph.nodes)[None]
    where = core.LinkOrder(
        core_graph(graph), order.ravel(), blocks, first_switch, link_class, len(capacity), nodes
    )  # fmt: skip
    return Network(where, capacity, graph.links, graph, link_class)
