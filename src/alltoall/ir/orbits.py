"""Orbits of nodes and links under automorphisms.

A flow with generators has the same load, the mean, on all links of an orbit.
"""

from dataclasses import dataclass

import numpy as np

from alltoall.ir.arrays import Floats, Ints
from alltoall.ir.problem import Problem
from alltoall.ir.topology import Topology


@dataclass(frozen=True, eq=False)
class Orbits:
    """The number of each node's and each link's orbit."""

    of_node: Ints
    of_link: Ints

    def even(self, lengths: Floats, tolerance: float) -> bool:
        """Whether lengths are equal, up to a share, on all links of each orbit."""
        least = np.full(int(self.of_link.max()) + 1, np.inf)
        np.minimum.at(least, self.of_link, lengths)
        return bool(np.all(lengths <= least[self.of_link] * (1 + tolerance)))

    def mean(self, load: Floats) -> Floats:
        """Return for each link the mean of `load` over its orbit."""
        mean = np.bincount(self.of_link, load) / np.bincount(self.of_link)
        return np.asarray(mean[self.of_link])


def orbits_of(topology: Topology, generators: Ints) -> Orbits:
    """Return the orbits of nodes and links under automorphisms.

    Of parallel links the k-th by capacity is mapped to the k-th by capacity.
    """
    order = np.lexsort((topology.capacity, topology.head, topology.tail))
    of_node, of_link = np.arange(topology.nodes), np.arange(topology.links)
    image = np.empty(topology.links, dtype=np.int64)
    for nodes in generators:
        tail, head = nodes[topology.tail[order]], nodes[topology.head[order]]
        image[order[np.lexsort((topology.capacity[order], head, tail))]] = order
        of_node, of_link = _join_classes(of_node, nodes), _join_classes(of_link, image)
    return Orbits(*(np.unique(label, return_inverse=True)[1] for label in (of_node, of_link)))


def _join_classes(label: Ints, image: Ints) -> Ints:
    """Join the class of each item with that of its image: the lower label wins until all agree."""
    while True:
        other = label[image]
        if np.array_equal(label, other):
            return label
        winner = np.arange(len(label))
        np.minimum.at(winner, np.maximum(label, other), np.minimum(label, other))
        label = winner[label]


def sources_per_group(problem: Problem, sources: Ints, orbits: Orbits) -> Floats:
    """Return the number of sources of the problem in the orbit of each of some sources."""
    starts = problem.topology.terminals
    total = np.bincount(orbits.of_node[starts[problem.sources]], minlength=problem.topology.nodes)
    return total[orbits.of_node[starts[sources]]].astype(np.float64)
