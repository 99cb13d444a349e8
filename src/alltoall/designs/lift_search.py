"""Lifts: wirings that are symmetric under a group, and the search among groups and bases."""

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from alltoall import core
from alltoall.designs.wiring import SEEDS, Wiring
from alltoall.ir.arrays import Ints
from alltoall.settings import Late


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
        """The elements, except the neutral one, that are their own inverses."""
        every = np.arange(1, self.order)
        return np.asarray(every[self.product(every, every) == 0])

    def product(self, one: Ints, two: Ints) -> Ints:
        """Return the products of elements."""
        j = one // self.m
        i = (one + self.powers[j] * two) % self.m
        return np.asarray(i + self.m * ((j + two // self.m) % self.k))


def groups_of_order(order: int) -> list[Group]:
    """Return the groups Z_m x| Z_k of an order: the cyclic one, and all others."""
    found = [Group(order)]
    for k in range(2, order // 2 + 1):
        m = order // k
        if order % k or m < 2:
            continue
        # The numbers r with r^k = 1 modulo m, one for each set of powers.
        actions: dict[frozenset[int], int] = {}
        for r in range(1, m):
            if pow(r, k, m) == 1:
                actions.setdefault(frozenset(pow(r, j, m) for j in range(k)), r)
        found += [Group(m, k, r) for r in actions.values() if r != 1 or np.gcd(m, k) > 1]
    return found


NO_WAY_BACK = -1
"""The place of the reverse link of a one-way link."""


@dataclass(frozen=True)
class LiftParams:
    """Effort of the search among lifts.

    A base has at most `most_bases` nodes, and a group at least `least_order` elements: smaller
    groups save nothing. At most `most_shapes` random shapes are tried, and at least `least_shapes`.
    The moves of a shape, `least_moves` to `most_moves`, touch `work` links. Temperatures fall from
    `hot` to `cold`, as shares of the nodes times the nodes of the base. A simple start is drawn at
    most `draws` times.
    """

    most_bases: int = 16
    least_order: int = 3
    most_shapes: int = 60
    least_shapes: int = 10
    most_moves: int = 1_000
    least_moves: int = 50
    work: float = 1e7
    hot: float = 0.02
    cold: float = 0.001
    draws: int = 50


@dataclass(frozen=True, eq=False)
class Lift:
    """A wiring that is symmetric under a group: base arcs (tail, head, voltage), and its cost.

    The cost is the mean over all nodes of the sum of distances.
    """

    group: Group
    bases: int
    directed: bool
    arcs: Ints
    single: Ints
    cost: float

    @property
    def name(self) -> str:
        """The name: the nodes of the base, and the group."""
        group = f"Z{self.group.m}" + (f":Z{self.group.k}" if self.group.k > 1 else "")
        group += f"({self.group.r})" if self.group.r > 1 else ""
        return f"{group}" if self.bases == 1 else f"{self.bases} x {group}"

    def wiring(self) -> Wiring:
        """Return the cables of every base arc, for every element of the group."""
        order = self.group.order
        tail, head, voltage = self.arcs[:, :, None].transpose(1, 0, 2)
        element = np.arange(order)[None]
        other = self.group.product(element, voltage)
        once = (self.single[:, None] == 0) | (element < other)
        ends = np.stack([(tail * order + element)[once], (head * order + other)[once]], axis=1)
        return Wiring(self.bases * order, ends, self.directed)


@dataclass(frozen=True)
class Shape:
    """A group, the nodes of a base, and the number of single arcs, which are their own reverse."""

    group: Group
    bases: int
    singles: int


def shapes(
    nodes: int, degree: int, directed: bool, most: int, rng: np.random.Generator
) -> list[Shape]:
    """Return at most `most` random shapes with a number of nodes, the smallest bases first."""
    found: list[Shape] = []
    for bases in range(1, min(LiftParams.most_bases, nodes // LiftParams.least_order) + 1):
        if nodes % bases:
            continue
        for group in groups_of_order(nodes // bases):
            singles = _numbers_of_singles(group, bases * degree, directed)
            found += [Shape(group, bases, each) for each in singles]
    drawn = np.sort(rng.permutation(len(found))[:most])
    return [found[each] for each in drawn]


def _numbers_of_singles(group: Group, ports: int, directed: bool) -> list[int]:
    """Return numbers of single arcs: the least possible one, and about half."""
    if directed:
        return [0]
    least = ports % 2
    if not len(group.involutions):
        return [] if least else [0]
    half = ports // 2 - (ports // 2 - least) % 2
    return [least] if half <= least or len(group.involutions) < 3 else [least, half]


def search_lifts(
    nodes: int, degree: int, directed: bool, seed: int, effort: float, late: Late
) -> Iterator[Lift]:
    """Yield lifts as they are found: some moves for every shape, four times as many for the best.

    An effort below 1 reduces the numbers of shapes and moves.
    """
    rng = np.random.default_rng(seed)
    first: list[tuple[float, int, Shape]] = []
    most = max(LiftParams.least_shapes, int(LiftParams.most_shapes * effort))
    for number, shape in enumerate(shapes(nodes, degree, directed, most, rng)):
        if late():
            return
        lift = anneal_shape(shape, degree, directed, _moves(shape, degree, effort), seed)
        if lift is not None:
            first.append((lift.cost, number, shape))
            yield lift
    for _, number, shape in sorted(first, key=lambda each: each[:2])[: 2 + len(first) // 4]:
        if late():
            return
        moves = 4 * _moves(shape, degree, effort)
        lift = anneal_shape(shape, degree, directed, moves, seed + number + 1)
        if lift is not None:
            yield lift


def _moves(shape: Shape, degree: int, effort: float) -> int:
    """Return the number of moves of a shape; each searches from every node of the base."""
    moves = effort * LiftParams.work / (shape.bases**2 * shape.group.order * degree)
    return int(np.clip(moves, LiftParams.least_moves, LiftParams.most_moves))


def anneal_shape(shape: Shape, degree: int, directed: bool, moves: int, seed: int) -> Lift | None:
    """Return the best lift of a shape after a number of moves, or None if there is none."""
    group, bases = shape.group, shape.bases
    rng = np.random.default_rng(seed)
    for _ in range(LiftParams.draws):
        arcs, places, single = _random_start(shape, degree, directed, rng)
        rule = (group.m, group.k, group.powers, group.involutions)
        search = core.LiftAnnealing(bases, degree, *rule, arcs, places, single, seed % SEEDS)
        if search.is_simple:
            break
    else:
        return None
    scale = bases * group.order * bases
    search.run(np.geomspace(LiftParams.hot * scale, LiftParams.cold * scale, moves))
    if search.least == np.inf:
        return None
    return Lift(group, bases, directed, search.best(), single, search.least / bases)


def _random_start(
    shape: Shape, degree: int, directed: bool, rng: np.random.Generator
) -> tuple[Ints, Ints, Ints]:
    """Return random base arcs, their places in the rows of their ends, and the single ones."""
    ports = np.arange(shape.bases * degree)
    drawn = rng.permutation(ports)
    if directed:
        tails, heads = ports, drawn
        places = np.stack([ports, np.full(len(ports), NO_WAY_BACK)], axis=1)
    else:
        alone, joined = drawn[: shape.singles], drawn[shape.singles :]
        tails = np.append(alone, joined[::2])
        heads = np.append(alone, joined[1::2])
        places = np.stack([tails, heads], axis=1)
    voltage = rng.integers(shape.group.order, size=len(tails))
    single = np.zeros(len(tails), dtype=np.int64)
    if shape.singles and not directed:
        single[: shape.singles] = 1
        voltage[: shape.singles] = rng.choice(shape.group.involutions, shape.singles)
    arcs = np.stack([tails // degree, heads // degree, voltage], axis=1)
    return arcs, places, single
