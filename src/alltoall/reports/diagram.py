"""The diagram of a topology: a place for every node, a line for every link.

Larger topologies are drawn by groups of consecutive nodes. A line then stands for all
links from one group to another and shows the fullest of them, and there are `MOST_LINES` at most.
"""

import math
from dataclasses import dataclass
from typing import Any

import numpy as np

from alltoall.ir.arrays import Floats, Ints, rows
from alltoall.ir.layout import Layout, layout
from alltoall.ir.topology import Topology
from alltoall.reports.packed import packed_floats, packed_ints

MOST_LINES = 20_000
"""Lines that a browser redraws at every step of a schedule without delay."""

MOST_NODES = 4_096
"""Most nodes in the selection list."""


@dataclass(frozen=True, eq=False)
class Diagram:
    """Groups and lines of a topology: node v is in `group[v]`, link l in `line[l]`."""

    topology: Topology
    group: Ints
    groups: int
    line: Ints
    tail: Ints
    head: Ints

    @property
    def lines(self) -> int:
        """The number of lines."""
        return len(self.tail)

    @property
    def whole(self) -> bool:
        """Whether every node is drawn, rather than groups of them."""
        return self.groups == self.topology.nodes

    def fullest(self, per_link: Floats) -> Floats:
        """Return for every line the largest value of its links."""
        most = np.zeros(self.lines)
        np.maximum.at(most, self.line, per_link)
        return most

    def lines_of(self, links: Ints) -> Ints:
        """Return the lines of some links."""
        return np.unique(self.line[links])

    def groups_within(self, nodes: Ints) -> Ints:
        """Return the groups that lie within a set of nodes."""
        size = np.bincount(self.group, minlength=self.groups)
        return np.flatnonzero(np.bincount(self.group[nodes], minlength=self.groups) == size)

    def content(self) -> dict[str, Any]:
        """Return the drawing data of the topology."""
        name = self.topology.node_name
        first = np.searchsorted(self.group, np.arange(self.groups + 1))
        ends = rows(first[:-1], first[1:] - 1)
        terminal = np.zeros(self.groups, dtype=np.int64)
        terminal[self.group[self.topology.terminals]] = 1
        return {
            "name": self.topology.name,
            "notes": list(self.topology.notes),
            "nodes": self.topology.nodes,
            "terminals": len(self.topology.terminals),
            "links": self.topology.links,
            "whole": self.whole,
            "names": [name(a) if a == b else f"{name(a)} … {name(b)}" for a, b in ends],
            "isTerminal": packed_ints(terminal),
            **self._places(),
            "tail": packed_ints(self.tail),
            "head": packed_ints(self.head),
            "capacity": packed_floats(self.fullest(self.topology.capacity)),
        }

    def _places(self) -> dict[str, Any]:
        """Return a place in the unit square for every group, the y axis down."""
        if self.whole:
            return _node_places(self.topology, layout(self.topology))
        angle = 2 * np.pi * np.arange(self.groups) / self.groups
        return {
            "x": packed_floats(0.5 + 0.5 * np.sin(angle)),
            "y": packed_floats(0.5 - 0.5 * np.cos(angle)),
            "bothWays": _both_ways(self.tail, self.head),
        }


def _node_places(topology: Topology, found: Layout) -> dict[str, Any]:
    """Return places, hosts that share a place with their NICs, circles, and wrap-around links.

    A link around a grid leaves its tail and enters its head in the direction of the next node of
    its dimension, `aroundX` and `aroundY`.
    """
    content: dict[str, Any] = {
        "x": packed_floats(found.place[:, 0]),
        "y": packed_floats(found.place[:, 1]),
        "host": packed_ints(found.host),
        "bothWays": _both_ways(found.host[topology.tail], found.host[topology.head]),
        "circles": [[group.label, *group.centre, group.radius] for group in found.groups],
    }
    if len(found.towards) and (found.wraps >= 0).any():
        aside = np.where((found.wraps >= 0)[:, None], found.towards[found.wraps], 0.0)
        across = found.place[topology.head] - found.place[topology.tail]
        aside *= np.where((across * aside).sum(axis=1) > 0, -1.0, 1.0)[:, None]
        content |= {"aroundX": packed_floats(aside[:, 0]), "aroundY": packed_floats(aside[:, 1])}
    return content


def _both_ways(tail: Ints, head: Ints) -> bool:
    """Return whether most lines have a reverse line, to be drawn side by side."""
    most = int(max(tail.max(initial=0), head.max(initial=0))) + 1
    return bool(np.isin(head * most + tail, tail * most + head).mean() > 0.5)


def draw_topology(topology: Topology) -> Diagram:
    """Return the diagram of a topology."""
    if topology.links <= MOST_LINES and topology.nodes <= MOST_NODES:
        nodes, links = np.arange(topology.nodes), np.arange(topology.links)
        return Diagram(topology, nodes, topology.nodes, links, topology.tail, topology.head)
    groups = min(topology.nodes, math.isqrt(MOST_LINES))
    group = np.arange(topology.nodes) * groups // topology.nodes
    key = group[topology.tail] * groups + group[topology.head]
    used, line = np.unique(key, return_inverse=True)
    return Diagram(topology, group, groups, line, used // groups, used % groups)
