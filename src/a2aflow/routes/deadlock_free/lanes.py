"""Lanes: the channels of a fabric, one per link and layer, and an order of all of them.

A route that only ever goes from a channel to a later one in the order cannot deadlock, whatever
else is routed; conversely all routes that cannot deadlock go forward in some order. So the order
is all there is to choose, and a way through it is found by reading it once (`forward`).

Where routes may change layer, a way goes from a channel of any layer to one of any other. Where
they may not, every layer has nodes of its own, and a way begins at its source in any of them.
"""

from dataclasses import dataclass

import numpy as np

from a2aflow.ir.arrays import Floats, Ints
from a2aflow.ir.problem import Problem
from a2aflow.paths.shortest import shortest_distances


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


def first_order(lanes: Lanes) -> Ints:
    """Return an order to begin with: in each layer up*/down*, from one root after the other.

    With a change of layer a way may go up and down as often as there are layers.
    """
    topology = lanes.problem.topology
    hops = shortest_distances(topology, np.ones(topology.links), np.arange(topology.nodes))
    roots = np.argsort(hops.sum(axis=1), kind="stable")
    parts = []
    for layer in range(lanes.layers):
        root = roots[0 if lanes.change else layer % len(roots)]
        parts.append(layer * topology.links + _up_down(lanes.problem, hops[root]))
    return np.concatenate(parts)


def _up_down(problem: Problem, hops: Floats) -> Ints:
    """Return the links towards a root, the farthest first, and then those away from it."""
    topology = problem.topology
    level = np.argsort(np.argsort(hops, kind="stable"))
    up = level[topology.head] < level[topology.tail]
    place = np.where(up, -level[topology.tail], level[topology.tail])
    return np.lexsort((place, ~up)).astype(np.int64)
