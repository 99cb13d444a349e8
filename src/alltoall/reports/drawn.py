"""What is drawn of a topology: a place for every node, and a line for every link.

A topology that is too large for that is drawn by groups of consecutive nodes; then a line stands
for all links from one group to another, and is as full as the fullest of them. Whatever the size, a
page has no more than `MOST_LINES` of them.
"""

import math
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

from alltoall.ir.arrays import Floats, Ints
from alltoall.ir.layout import Layout, layout
from alltoall.ir.topology import Topology
from alltoall.reports.packed import packed_floats, packed_ints

MOST_LINES = 20_000
"""Lines that a browser draws again at every step of a schedule without anybody waiting."""

MOST_NODES = 4_096
"""Nodes whose names a list to choose from can have."""


@dataclass(frozen=True, eq=False)
class Drawn:
    """A topology as a page draws it: node v is in group `group[v]`, link l is in line `line[l]`."""

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
        """Return for every line the largest of its links."""
        most = np.zeros(self.lines)
        np.maximum.at(most, self.line, per_link)
        return most

    def content(self) -> dict[str, Any]:
        """Return all that a page needs to draw it."""
        return {
            "name": self.topology.name,
            "notes": list(self.topology.notes),
            "nodes": self.topology.nodes,
            "terminals": len(self.topology.terminals),
            "links": self.topology.links,
            "whole": self.whole,
            "names": self._names(),
            "isTerminal": packed_ints(self._terminal()),
            **self._places(),
            "tail": packed_ints(self.tail),
            "head": packed_ints(self.head),
            "capacity": packed_floats(self.fullest(self.topology.capacity)),
        }

    @cached_property
    def _first(self) -> Ints:
        """The first node of every group."""
        return np.searchsorted(self.group, np.arange(self.groups + 1))

    def _names(self) -> list[str]:
        name = self.topology.node_name
        if self.whole:
            return [name(node) for node in range(self.topology.nodes)]
        ends = zip(self._first[:-1].tolist(), (self._first[1:] - 1).tolist(), strict=True)
        return [name(a) if a == b else f"{name(a)} … {name(b)}" for a, b in ends]

    def _terminal(self) -> Ints:
        """Return 1 for every group with a terminal in it."""
        found = np.zeros(self.groups, dtype=np.int64)
        found[self.group[self.topology.terminals]] = 1
        return found

    def _places(self) -> dict[str, Any]:
        """Return a place in the unit square for every group, the y axis down."""
        if self.whole:
            return _laid_out(self.topology, layout(self.topology))
        turn = 2 * np.pi * np.arange(self.groups) / self.groups
        return {
            "x": packed_floats(0.5 + 0.5 * np.sin(turn)),
            "y": packed_floats(0.5 - 0.5 * np.cos(turn)),
            "bothWays": _both_ways(self.tail, self.head),
        }


def _laid_out(topology: Topology, found: Layout) -> dict[str, Any]:
    """Return places, the node at whose place each is drawn, circles, and links that go around.

    A link around a grid leaves its tail and enters its head in one direction, `aroundX` and
    `aroundY`: that to the next node of its dimension.
    """
    circles = [[each.label, *each.centre, each.radius] for each in found.groups]
    said: dict[str, Any] = {
        "x": packed_floats(found.place[:, 0]),
        "y": packed_floats(found.place[:, 1]),
        "host": packed_ints(found.host),
        "bothWays": _both_ways(found.host[topology.tail], found.host[topology.head]),
        "circles": circles,
    }
    if len(found.towards) and (found.wraps >= 0).any():
        aside = np.where((found.wraps >= 0)[:, None], found.towards[found.wraps], 0.0)
        across = found.place[topology.head] - found.place[topology.tail]
        aside *= np.where((across * aside).sum(axis=1) > 0, -1.0, 1.0)[:, None]
        said |= {"aroundX": packed_floats(aside[:, 0]), "aroundY": packed_floats(aside[:, 1])}
    return said


def _both_ways(tail: Ints, head: Ints) -> bool:
    """Whether most lines have another one the other way, so that the two lie beside each other."""
    most = int(max(tail.max(initial=0), head.max(initial=0))) + 1
    return bool(np.isin(head * most + tail, tail * most + head).mean() > 0.5)


def drawn(topology: Topology) -> Drawn:
    """Return what is drawn of a topology."""
    if topology.links <= MOST_LINES and topology.nodes <= MOST_NODES:
        nodes, links = np.arange(topology.nodes), np.arange(topology.links)
        return Drawn(topology, nodes, topology.nodes, links, topology.tail, topology.head)
    groups = min(topology.nodes, math.isqrt(MOST_LINES))
    group = np.arange(topology.nodes) * groups // topology.nodes
    key = group[topology.tail] * groups + group[topology.head]
    used, line = np.unique(key, return_inverse=True)
    return Drawn(topology, group, groups, line, used // groups, used % groups)
