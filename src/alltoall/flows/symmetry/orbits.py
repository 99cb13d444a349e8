"""Orbits of a problem under its automorphisms, and flows under this symmetry.

An automorphism maps a flow of one source to a flow of another, and the average of all images of an
optimal flow is optimal too. So it is enough to solve for one source of each orbit, with the mean
load over the links of an orbit:

    apply    one group per orbit of sources, weighted by the size of the orbit; one capacity row per
             orbit of links (`flows.program`)
    invert   the flow of any source is the image of its representative's (`expand`)

On a torus one source stands for all; generalized Kautz graphs of degree 4 have at least ten
automorphisms.
"""

from collections.abc import Iterator
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np

from alltoall.errors import InputError
from alltoall.flows.exact import by_source, exact_flows
from alltoall.flows.symmetry.automorphisms import count_automorphisms, find_generators
from alltoall.ir.arrays import Floats, Ints, starts_of
from alltoall.ir.flow import Flow
from alltoall.ir.problem import Problem
from alltoall.ir.topology import Topology

MOST_ENTRIES = 20_000_000
"""The most entries of a flow that is expanded to every source."""


@dataclass(frozen=True, eq=False)
class Symmetry:
    """Automorphisms of a problem, as permutations of its nodes [generators, nodes]."""

    problem: Problem
    generators: Ints

    @property
    def trivial(self) -> bool:
        """Whether there is no symmetry."""
        return len(self.generators) == 0

    @cached_property
    def link_maps(self) -> Ints:
        """The same automorphisms as permutations of the links [generators, links]."""
        return link_maps(self.problem.topology, self.generators)

    @cached_property
    def node_orbit(self) -> Ints:
        """The number of each node's orbit."""
        return orbits(self.generators, self.problem.topology.nodes)

    @cached_property
    def link_orbit(self) -> Ints:
        """The number of each link's orbit."""
        return orbits(self.link_maps, self.problem.topology.links)

    def representatives(self) -> tuple[Ints, Ints]:
        """Return one source of each orbit, and the number of sources in it."""
        starts = self.problem.topology.terminals[self.problem.sources]
        _, first, size = np.unique(self.node_orbit[starts], return_index=True, return_counts=True)
        order = np.argsort(first)
        return self.problem.sources[first[order]], size[order].astype(np.int64)


def find_symmetry(problem: Problem, wanted: bool = True) -> Symmetry:
    """Return the symmetry of a problem: of its topology, capacities, terminals and demand."""
    none = np.zeros((0, problem.topology.nodes), dtype=np.int64)
    return Symmetry(problem, find_generators(problem) if wanted else none)


def link_maps(topology: Topology, node_maps: Ints) -> Ints:
    """Return the permutations of the links by permutations of the nodes.

    The k-th narrowest of parallel links maps to the k-th narrowest, so that maps compose.
    """
    order = np.lexsort((topology.capacity, topology.head, topology.tail))
    maps = np.empty((len(node_maps), topology.links), dtype=np.int64)
    for index, nodes in enumerate(node_maps):
        tail, head = nodes[topology.tail[order]], nodes[topology.head[order]]
        image = np.lexsort((topology.capacity[order], head, tail))
        maps[index, order[image]] = order
    return maps


def orbits(maps: Ints, count: int) -> Ints:
    """Return the number of the orbit of each of `count` items under permutations of them."""
    first = np.arange(count, dtype=np.int64)
    for each in maps:
        while not np.array_equal(first, first[each]):
            first = _merge(first, first[each])
    return np.unique(first, return_inverse=True)[1].astype(np.int64)


def _merge(first: Ints, other: Ints) -> Ints:
    """Join the sets of each item in two partitions, both given by the first item of each set."""
    parent = np.arange(len(first), dtype=np.int64)
    lower = np.minimum(first, other)
    np.minimum.at(parent, first, lower)
    np.minimum.at(parent, other, lower)
    while not np.array_equal(parent, parent[parent]):
        parent = parent[parent]
    return np.asarray(parent[first])


def expand(flow: Flow) -> Flow:
    """Return a flow with one group per source, from one with one group per orbit."""
    images = expand_if_small(flow)
    if images.generators is not None:
        raise InputError(
            f"{flow.problem.topology.name}: more than {MOST_ENTRIES:,} flow entries over all "
            "sources; the flow of one source per orbit is all that fits in memory"
        )
    return images


def expand_if_small(flow: Flow) -> Flow:
    """Return the flow of every source if that fits in memory, else the flow itself."""
    if flow.generators is None:
        return flow
    symmetry = Symmetry(flow.problem, flow.generators)
    starts = flow.problem.topology.terminals[flow.source]
    sizes = np.bincount(symmetry.node_orbit)[symmetry.node_orbit[starts]]
    if int(sizes @ np.diff(flow.start)) > MOST_ENTRIES:
        return flow
    order = count_automorphisms(flow.problem.topology, flow.problem.demand)
    groups = [_average(symmetry, flow, group, order) for group in range(flow.groups)]
    if int(sizes @ np.array([len(link) for _, link, _ in groups])) > MOST_ENTRIES:
        return flow
    position = flow.problem.topology.position
    images = [
        (int(position[node]), moved[link], amount)
        for at, link, amount in groups
        for node, moved in _images(symmetry, at)
    ]
    images.sort(key=lambda image: image[0])
    return replace(
        flow,
        source=np.array([source for source, _, _ in images], dtype=np.int64),
        start=starts_of([len(link) for _, link, _ in images]),
        link=np.concatenate([link for _, link, _ in images]),
        amount=np.concatenate([amount for _, _, amount in images]),
        generators=None,
    )


def _average(symmetry: Symmetry, flow: Flow, group: int, order: int) -> tuple[int, Ints, Floats]:
    """Return the node of a group's source, and its flow averaged over the stabiliser of that node.

    Only then do all automorphisms to another source give the same flow. Generators may claim less
    symmetry than there is, so the stabiliser keeps their orbits. It is trivial if the orbit is as
    large as the `order` of the group. An average of acyclic flows may have cycles, which
    `exact_flows` removes.
    """
    topology = symmetry.problem.topology
    node = int(topology.terminals[flow.source[group]])
    begin, end = flow.start[group], flow.start[group + 1]
    link, amount = flow.link[begin:end], flow.amount[begin:end]
    if int((symmetry.node_orbit == symmetry.node_orbit[node]).sum()) == order:
        return node, link, amount
    kept = 2 * symmetry.node_orbit + (np.arange(topology.nodes) == node)
    fixing = find_generators(symmetry.problem, kept)
    orbit = orbits(link_maps(topology, fixing), topology.links)
    total = np.bincount(orbit[link], amount, int(orbit.max()) + 1)
    mean = (total / np.bincount(orbit))[orbit] / flow.rate
    only = by_source(symmetry.problem, flow.source[group : group + 1])
    volume = exact_flows(topology, only, mean[None, :])[0]
    return node, np.flatnonzero(volume).astype(np.int64), volume[volume > 0] * flow.rate


def _images(symmetry: Symmetry, node: int) -> Iterator[tuple[int, Ints]]:
    """Yield every node of the orbit, with the link map of an automorphism from `node` to it.

    It is a breadth-first search over the generators.
    """
    found = {node: np.arange(symmetry.problem.topology.links, dtype=np.int64)}
    queue = [node]
    for at in queue:
        yield at, found[at]
        for nodes, links in zip(symmetry.generators, symmetry.link_maps, strict=True):
            image = int(nodes[at])
            if image not in found:
                found[image] = links[found[at]]
                queue.append(image)
