"""Symmetric wirings: lifts of small base graphs, in which a few sources stand for all.

A lift has a node (b, g) for every node b of a base graph and every element g of a group. A base arc
from b to c with voltage s becomes the links (b, g) -> (c, g s) for all g. Multiplication from the
left maps the lift to itself, so distances from (b, 1) for every b are all there are. One base node
gives the Cayley graphs of the group, and those of a cyclic group are the circulants.
Gross and Tucker, "Generating all graph coverings by permutation voltage assignments", 1977.

Groups are Z_m x| Z_k: pairs (i, j) with (i, j)(x, y) = (i + r^j x, j + y), where r^k = 1 modulo m.
With k = 1 they are cyclic, with r = 1 products of two cyclic groups, and with k = 2 and r = -1
dihedral. The element (i, j) is the number i + m j.
"""

from dataclasses import dataclass
from functools import cached_property

import numpy as np

from alltoall.ir.arrays import Ints


@dataclass(frozen=True)
class Group:
    """The group Z_m x| Z_k in which the second factor acts on the first by powers of r."""

    m: int
    k: int = 1
    r: int = 1

    @property
    def order(self) -> int:
        """The number of elements."""
        return self.m * self.k

    @cached_property
    def powers(self) -> Ints:
        """The powers r^0 to r^(k-1) modulo m."""
        return np.array([pow(self.r, j, self.m) for j in range(self.k)], dtype=np.int64)

    @cached_property
    def involutions(self) -> Ints:
        """The elements, besides the neutral one, that are their own inverses."""
        every = np.arange(1, self.order)
        return np.asarray(every[self.product(every, every) == 0])

    def product(self, one: Ints, two: Ints) -> Ints:
        """Return the products of elements."""
        j = one // self.m
        i = (one + self.powers[j] * two) % self.m
        return np.asarray(i + self.m * ((j + two // self.m) % self.k))


def groups_of_order(order: int) -> list[Group]:
    """Return the groups Z_m x| Z_k of an order: one cyclic, and all that are not."""
    found = [Group(order)]
    for k in range(2, order // 2 + 1):
        m = order // k
        if order % k or m < 2:
            continue
        found += [Group(m, k, r) for r in _actions(m, k) if r != 1 or np.gcd(m, k) > 1]
    return found


def _actions(m: int, k: int) -> list[int]:
    """Return the numbers r with r^k = 1 modulo m: one of those that generate the same powers."""
    found: dict[frozenset[int], int] = {}
    for r in range(1, m):
        if pow(r, k, m) == 1:
            found.setdefault(frozenset(pow(r, j, m) for j in range(k)), r)
    return list(found.values())
