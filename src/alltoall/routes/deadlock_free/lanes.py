"""Lanes: the channels of a fabric, one per link and layer, and an order of all of them.

A route that only ever goes from a channel to a later one in the order cannot deadlock, whatever
else is routed; conversely all routes that cannot deadlock go forward in some order. So the order
is all there is to choose, and a way through it is found by reading it once (`forward`).

Where routes may change layer, a way goes from a channel of any layer to one of any other. Where
they may not, every layer has nodes of its own, and a way begins at its source in any of them.
"""

from dataclasses import dataclass

import numpy as np
from numba import njit

from alltoall.ir.arrays import Ints
from alltoall.ir.problem import Problem
from alltoall.placing.network import Network, in_order


@dataclass(frozen=True, eq=False)
class Lanes:
    """Channel c is link `c % links` in layer `c // links`, from `tail[c]` to `head[c]`.

    Node v in copy k is `k * nodes + v`; there is one copy if routes may change layer, else one per
    layer.
    """

    problem: Problem
    layers: int
    change: bool

    @property
    def copies(self) -> int:
        """How many copies of the nodes there are."""
        return 1 if self.change else self.layers

    @property
    def link(self) -> Ints:
        """The link of each channel."""
        return np.tile(np.arange(self.problem.topology.links), self.layers)

    @property
    def layer(self) -> Ints:
        """The layer of each channel."""
        return np.repeat(np.arange(self.layers), self.problem.topology.links)

    @property
    def ends(self) -> tuple[Ints, Ints]:
        """The tail and the head of each channel, in its copy of the nodes."""
        topology = self.problem.topology
        copy = np.zeros_like(self.layer) if self.change else self.layer * topology.nodes
        return topology.tail[self.link] + copy, topology.head[self.link] + copy

    @property
    def terminals(self) -> Ints:
        """The terminals [copies, terminals] in each copy of the nodes."""
        topology = self.problem.topology
        return np.arange(self.copies)[:, None] * topology.nodes + topology.terminals


def forward_network(lanes: Lanes, order: Ints) -> Network:
    """Return the network of paths between terminals along channels of increasing rank."""
    capacity = lanes.problem.topology.capacity
    return in_order(capacity, lanes.ends, lanes.link, lanes.terminals, order)


def hop_layers(lanes: Lanes, order: Ints, start: Ints, link: Ints) -> Ints | None:
    """Return the layer of each hop of the paths `link[start[p]:start[p + 1]]`, None if some fail.

    A hop takes the first channel of its link that comes after the one before.
    """
    rank = np.argsort(order).reshape(lanes.layers, -1)
    layer: Ints = _climb(rank, start, link)
    return None if (layer < 0).any() else layer


@njit(cache=True)
def _climb(rank: Ints, start: Ints, link: Ints) -> Ints:
    layer = np.full(len(link), -1, dtype=np.int64)
    for path in range(len(start) - 1):
        at = -1
        for hop in range(start[path], start[path + 1]):
            for each in range(len(rank)):
                place = rank[each, link[hop]]
                if place > at and (layer[hop] < 0 or place < rank[layer[hop], link[hop]]):
                    layer[hop] = each
            if layer[hop] < 0:
                break
            at = rank[layer[hop], link[hop]]
    return layer
