"""Translations: groups of automorphisms in which only the identity fixes a terminal.

Under such a group a path for every chunk of one source, mapped by all its members, is a path for
every chunk of all sources of an orbit, each exactly once: whole chunks stay whole, without any
average. A torus, a hypercube, any Cayley graph has as many translations as nodes; generalized Kautz
graphs have about ten.

The largest such group is hard to find in general. Powers of random automorphisms, closed under
conjugation, soon give the translations of tori and hypercubes, which are a normal subgroup; if the
closure fixes a node, the power alone is tried. The random numbers are fixed.
"""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from alltoall.flows import sizes
from alltoall.flows.symmetry.orbits import Symmetry, find_symmetry, link_maps
from alltoall.ir.arrays import Ints
from alltoall.ir.problem import Problem

SAMPLED_AUTOMORPHISMS = 600
"""Random automorphisms whose powers are tried."""

POOLED_AUTOMORPHISMS = 12
"""Automorphisms in the pool whose products are random ones (product replacement)."""


@dataclass(frozen=True, eq=False)
class Translations:
    """A group of translations: generators, and all members [order, nodes], the identity first."""

    symmetry: Symmetry
    members: Ints

    @property
    def order(self) -> int:
        """The number of members."""
        return len(self.members)

    @cached_property
    def link_members(self) -> Ints:
        """The link map of each member [order, links]."""
        return link_maps(self.symmetry.problem.topology, self.members)


def find_translations(problem: Problem, wanted: bool = True) -> Translations:
    """Return the largest group found, or the trivial group."""
    topology = problem.topology
    fits = len(topology.terminals) * topology.links <= sizes.TRANSLATED_LINKS
    symmetry = find_symmetry(problem, wanted and fits)
    identity = np.arange(topology.nodes, dtype=np.int64)
    alone = Translations(Symmetry(problem, symmetry.generators[:0]), identity[None, :])
    if symmetry.trivial:
        return alone
    best = alone
    # All orbits of terminals fall into parts of the group's order.
    counts = np.bincount(symmetry.node_orbit[topology.terminals])
    most_members = int(np.gcd.reduce(counts[counts > 0]))
    for power in _powers(symmetry.generators, topology.terminals):
        if best.order == most_members:
            break
        for start in (best.symmetry.generators, symmetry.generators[:0]):
            grown = _generate(symmetry, [*start, power], most_members)
            if grown is not None and grown.order > best.order:
                best = grown
    return best


def _powers(generators: Ints, terminals: Ints) -> Iterator[Ints]:
    """Yield powers of the generators and of random products of them that fix no terminal."""
    for each in (*generators, *_random_products(generators)):
        power, order = each, _order(each)
        for exponent in range(1, order):
            if order % exponent == 0 and (power[terminals] != terminals).all():
                yield power
            power = each[power]


def _random_products(generators: Ints) -> Iterator[Ints]:
    """Yield random members of the group, by multiplying members of a pool."""
    random = np.random.default_rng(0)
    size = max(POOLED_AUTOMORPHISMS, len(generators))
    pool = [generators[index % len(generators)] for index in range(size)]
    for _ in range(SAMPLED_AUTOMORPHISMS):
        one, other = random.choice(len(pool), 2, replace=False)
        pool[one] = pool[one][pool[other]]
        yield pool[one]


def _order(permutation: Ints) -> int:
    """Return the order of a permutation, or 1 if it is above the number of items."""
    identity = np.arange(len(permutation))
    power = permutation
    for order in range(1, len(permutation) + 1):
        if np.array_equal(power, identity):
            return order
        power = permutation[power]
    return 1


def _generate(symmetry: Symmetry, generators: list[Ints], most_members: int) -> Translations | None:
    """Return the translations generated with conjugates, or else without; None if neither are."""
    for conjugating in (symmetry.generators, symmetry.generators[:0]):
        kept = list(generators)
        members = _members(kept, symmetry, most_members)
        if members is None:
            return None
        for conjugate in _conjugates(kept, conjugating):
            if not (members == conjugate).all(axis=1).any():
                kept.append(conjugate)
                members = _members(kept, symmetry, most_members)
                if members is None:
                    break
        if members is not None:
            return Translations(Symmetry(symmetry.problem, np.array(kept)), members)
    return None


def _conjugates(generators: list[Ints], by: Iterable[Ints]) -> Iterator[Ints]:
    """Yield the conjugates of generators, including those added meanwhile."""
    pairs = [(each, np.argsort(each)) for each in by]
    for generator in generators:
        for each, inverse in pairs:
            yield each[generator[inverse]]


def _members(generators: list[Ints], symmetry: Symmetry, most_members: int) -> Ints | None:
    """Return all members of the group, or None if one fixes a terminal or there are too many.

    A member is identified by the image of one terminal.
    """
    topology = symmetry.problem.topology
    terminals = topology.terminals
    found = {int(terminals[0]): np.arange(topology.nodes, dtype=np.int64)}
    queue = list(found)
    for at in queue:
        for generator in generators:
            member = generator[found[at]]
            image = int(member[terminals[0]])
            if image not in found:
                if len(found) == most_members:
                    return None
                found[image] = member
                queue.append(image)
            elif not np.array_equal(found[image], member):
                return None
    members = np.array(list(found.values()))
    return members if (members[1:, terminals] != terminals).all() else None
