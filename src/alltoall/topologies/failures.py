"""Failures of cables and nodes, by name, and the problem that remains after each."""

import math
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import chain, combinations

import numpy as np

from alltoall.errors import UsageError
from alltoall.ir.arrays import Ints, rows
from alltoall.ir.problem import Problem, demand_without, numbers_left, without_links, without_nodes
from alltoall.ir.topology import Topology
from alltoall.topologies.operators import cable_links, links_between, partner_links

TOGETHER = "+"
"""Joins links and nodes that fail together."""


@dataclass(frozen=True)
class Failure:
    """Links, in both directions of a cable, and nodes that fail together."""

    name: str
    links: tuple[int, ...] = ()
    nodes: tuple[int, ...] = ()

    def left_of(self, problem: Problem) -> Problem:
        """Return the problem on the surviving network, where nodes keep their names."""
        topology, (links, nodes) = problem.topology, self._numbers()
        cut = without_links(topology, links, f"without {self.name}")
        if len(nodes):
            names = topology.names or tuple(map(str, range(topology.nodes)))
            cut = without_nodes(replace(cut, names=names), nodes, "renumbered")
        return Problem(cut, demand_without(problem, nodes))

    def links_left(self, topology: Topology) -> Ints:
        """Return the numbers of the surviving links."""
        return numbers_left(topology, *self._numbers())[1]

    def _numbers(self) -> tuple[Ints, Ints]:
        return np.array(self.links, dtype=np.int64), np.array(self.nodes, dtype=np.int64)


def failures_of(
    topology: Topology, links: int = 1, nodes: int = 0, only: Sequence[str] = ()
) -> tuple[int, Iterator[Failure]]:
    """Return the number of failures and an iterator over them.

    Enumerate all sets of `links` links (cables, if bidirectional), then all sets of `nodes` nodes,
    or only the named ones.
    """
    if only:
        # All cables between two nodes fail together, and so do the parts of `a-b+c`.
        words = [[text] if topology.has_node(text) else text.split(TOGETHER) for text in only]
        parts = [[_parse_part(topology, each.strip()) for each in row] for row in words]
        return len(only), map(_join, parts)
    if min(links, nodes) < 0 or links + nodes == 0:
        raise UsageError(f"{links} links or {nodes} nodes fail; expected at least 1 of either")
    kinds = [(_cables(topology), links), (_nodes(topology), nodes)]
    kinds = [(single, together) for single, together in kinds if together]
    every = chain.from_iterable(combinations(*kind) for kind in kinds)
    return sum(math.comb(len(single), together) for single, together in kinds), map(_join, every)


def _join(parts: Sequence[Failure]) -> Failure:
    return Failure(
        f" {TOGETHER} ".join(part.name for part in parts),
        tuple(link for part in parts for link in part.links),
        tuple(node for part in parts for node in part.nodes),
    )


def _cables(topology: Topology) -> list[Failure]:
    """Return the failure of every cable or one-way link, one for equal parallel links."""
    first = cable_links(topology)
    back = partner_links(topology)[first] if topology.bidirectional else first
    ends = list(rows(topology.tail[first], topology.head[first]))
    parallel, found = Counter(ends), dict[str, Failure]()
    cables = rows(topology.capacity[first], first, back)
    for (u, v), (capacity, *links) in zip(ends, cables, strict=True):
        name = _link_name(topology, (u, v))
        if parallel[u, v] > 1:
            name += f" (one of {parallel[u, v]}, capacity {capacity:g})"
        found.setdefault(name, Failure(name, tuple(sorted(set(links)))))
    return list(found.values())


def _nodes(topology: Topology) -> list[Failure]:
    return [Failure(f"node {topology.node_name(v)}", nodes=(v,)) for v in range(topology.nodes)]


def _link_name(topology: Topology, pair: tuple[int, int]) -> str:
    return f"link {'-'.join(map(topology.node_name, pair))}"


def _parse_part(topology: Topology, word: str) -> Failure:
    if topology.has_node(word):
        return _nodes(topology)[topology.node_of(word)]
    pair = topology.ends_of(word)
    return Failure(_link_name(topology, pair), tuple(links_between(topology, [pair]).tolist()))
