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
from numba import njit

from alltoall.ir.arrays import Floats, Ints

REBASED = 0.3
"""The share of moves that exchange base ends, where the base has several nodes."""


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
        twice = np.array([product(each, each, self.m, self.k, self.powers) for each in every])
        return np.asarray(every[twice == 0], dtype=np.int64)


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


@njit(cache=True)
def product(one: int, two: int, m: int, k: int, powers: Ints) -> int:
    """Return the product of two elements."""
    j = one // m
    i: int = (one % m + powers[j] * (two % m)) % m
    return i + m * ((j + two // m) % k)


@njit(cache=True)
def inverse(one: int, m: int, k: int, powers: Ints) -> int:
    """Return the inverse of an element."""
    j = (k - one // m) % k
    i: int = (-powers[j] * (one % m)) % m
    return i + m * j


@njit(cache=True)
def lift_cost(
    head: Ints, voltage: Ints, bases: int, m: int, k: int, powers: Ints, queue: Ints, seen: Ints
) -> int:
    """Return the sum of the distances from all (b, 1), or a large number if some are infinite.

    Entry (b, p) of `head` and `voltage` is what port p of base node b leads to. `seen` is scratch.
    """
    order, total = m * k, 0
    seen[:] = -1
    for base in range(bases):
        queue[0] = base * order
        seen[base * order] = base
        begin, end, depth = 0, 1, 0
        while begin < end:
            last = end
            depth += 1
            for at in range(begin, last):
                b, g = queue[at] // order, queue[at] % order
                j, i = g // m, g % m
                for port in range(head.shape[1]):
                    s = voltage[b, port]
                    step = (i + powers[j] * (s % m)) % m + m * ((j + s // m) % k)
                    other = head[b, port] * order + step
                    if seen[other] != base:
                        seen[other] = base
                        queue[end] = other
                        end += 1
                        total += depth
            begin = last
        if end < bases * order:
            return 1 << 40
    return total


@njit(cache=True)
def anneal_lift(
    head: Ints,
    voltage: Ints,
    ends: Ints,
    slots: Ints,
    single: Ints,
    m: int,
    k: int,
    powers: Ints,
    involutions: Ints,
    temperatures: Floats,
    best: Ints,
    costs: Ints,
    rng: np.random.Generator,
) -> None:
    """Try one move at each temperature: a base arc gets another voltage, or two exchange heads.

    Row c of `ends` is (tail, head, voltage) of base arc c; `slots[c]` are the flat places of the
    arc and of the arc back, the last place of all for one-way links. An arc that is `single` is its
    own way back. `best` and `costs` (now, best) are kept up to date.
    """
    bases, order = len(head) - 1, m * k
    queue, seen = np.empty(bases * order, np.int64), np.empty(bases * order, np.int64)
    kept = np.empty((2, 3), np.int64)
    for temperature in temperatures:
        one = rng.integers(0, len(ends))
        two = rng.integers(0, len(ends))
        kept[0], kept[1] = ends[one], ends[two]
        if bases > 1 and rng.random() < REBASED:
            if single[one] or single[two] or one == two or ends[one, 1] == ends[two, 1]:
                continue
            _swap_heads(ends, slots, one, two)
        elif single[one]:
            ends[one, 2] = involutions[rng.integers(0, len(involutions))]
        else:
            ends[one, 2] = rng.integers(0, order)
        place(head, voltage, ends, slots, one, m, k, powers)
        place(head, voltage, ends, slots, two, m, k, powers)
        taken = simple(head, voltage, ends[one, 0]) and simple(head, voltage, ends[one, 1])
        taken = taken and simple(head, voltage, ends[two, 0])
        taken = taken and simple(head, voltage, ends[two, 1])
        if taken:
            cost = lift_cost(head, voltage, bases, m, k, powers, queue, seen)
            taken = cost <= costs[0] - temperature * np.log(1.0 - rng.random())
        if taken:
            costs[0] = cost
            if cost < costs[1]:
                costs[1] = cost
                best[:] = ends
            continue
        if ends[one, 1] != kept[0, 1] or ends[two, 1] != kept[1, 1]:
            _swap_heads(ends, slots, one, two)
        ends[one], ends[two] = kept[0], kept[1]
        place(head, voltage, ends, slots, one, m, k, powers)
        place(head, voltage, ends, slots, two, m, k, powers)


@njit(cache=True)
def _swap_heads(ends: Ints, slots: Ints, one: int, two: int) -> None:
    """Exchange the heads of two base arcs, each of which keeps its tail and its voltage."""
    ends[one, 1], ends[two, 1] = ends[two, 1], ends[one, 1]
    slots[one, 1], slots[two, 1] = slots[two, 1], slots[one, 1]


@njit(cache=True)
def place(
    head: Ints, voltage: Ints, ends: Ints, slots: Ints, arc: int, m: int, k: int, powers: Ints
) -> None:
    """Write an arc, and the arc back, to where they stand."""
    ports = head.shape[1]
    tail, end, s = ends[arc]
    back = slots[arc, 1]
    head[back // ports, back % ports] = tail
    voltage[back // ports, back % ports] = inverse(s, m, k, powers)
    there = slots[arc, 0]
    head[there // ports, there % ports] = end
    voltage[there // ports, there % ports] = s


@njit(cache=True)
def simple(head: Ints, voltage: Ints, base: int) -> bool:
    """Whether no link of a base node leads to itself, and no two to the same node."""
    for port in range(head.shape[1]):
        if head[base, port] == base and voltage[base, port] == 0:
            return False
        for other in range(port):
            same = head[base, port] == head[base, other]
            if same and voltage[base, port] == voltage[base, other]:
                return False
    return True
