"""The search among lifts: many groups and bases for a moment, the best of them for longer."""

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from alltoall import core
from alltoall.designs.lifts import Group, groups_of_order
from alltoall.designs.wiring import SEEDS, Wiring
from alltoall.ir.arrays import Ints
from alltoall.settings import Late

MOST_BASES = 16
"""Nodes of a base, at most: as many sources are searched from."""

LEAST_ORDER = 3
"""Elements of a group, at least: below that, symmetry saves nothing."""

SHAPES_TRIED = 60
"""Shapes that are tried, random ones if there are more; 256 nodes have two hundred."""

LEAST_SHAPES = 10
"""Shapes that are tried whatever the effort."""

MOVES, LEAST_MOVES = 1_000, 50
"""Moves of a shape when all are tried, at most and at least."""

WORK = 1e7
"""Links that the moves of a shape may touch: nodes of the base x all links x moves."""

HOT, COLD = 0.02, 0.001
"""Temperatures at first and at last, as shares of the nodes times the nodes of the base."""

DRAWS = 50
"""Random starts that are drawn, at most, for one without self-loops and parallel links."""

NO_WAY_BACK = -1
"""The place of the way back of a one-way link."""


@dataclass(frozen=True, eq=False)
class Lift:
    """A wiring that a group maps to itself: base arcs (tail, head, voltage), and its cost.

    The cost is the mean over the nodes of the sum of distances from each.
    """

    group: Group
    bases: int
    directed: bool
    arcs: Ints
    single: Ints
    cost: float

    @property
    def name(self) -> str:
        """What it is called: the nodes of its base, and its group."""
        group = f"Z{self.group.m}" + (f":Z{self.group.k}" if self.group.k > 1 else "")
        group += f"({self.group.r})" if self.group.r > 1 else ""
        return f"{group}" if self.bases == 1 else f"{self.bases} x {group}"

    def wiring(self) -> Wiring:
        """Return its cables: those of every base arc, for every element of the group."""
        order = self.group.order
        tail, head, voltage = self.arcs[:, :, None].transpose(1, 0, 2)
        element = np.arange(order)[None]
        other = self.group.product(element, voltage)
        once = (self.single[:, None] == 0) | (element < other)
        ends = np.stack([(tail * order + element)[once], (head * order + other)[once]], axis=1)
        return Wiring(self.bases * order, ends, self.directed)


@dataclass(frozen=True)
class Shape:
    """What a lift is searched with: a group, the nodes of a base, and arcs that are single."""

    group: Group
    bases: int
    singles: int


def shapes(
    nodes: int, degree: int, directed: bool, most: int, rng: np.random.Generator
) -> list[Shape]:
    """Return shapes of so many nodes, the smallest bases first; random ones if there are more."""
    found: list[Shape] = []
    for bases in range(1, min(MOST_BASES, nodes // LEAST_ORDER) + 1):
        if nodes % bases:
            continue
        for group in groups_of_order(nodes // bases):
            singles = _numbers_of_singles(group, bases * degree, directed)
            found += [Shape(group, bases, each) for each in singles]
    drawn = np.sort(rng.permutation(len(found))[:most])
    return [found[each] for each in drawn]


def _numbers_of_singles(group: Group, ports: int, directed: bool) -> list[int]:
    """Return how many arcs may be their own way back: as few as can be, and about half."""
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
    """Yield lifts as they are found: every shape for some moves, the best for four times as many.

    With less effort than 1, fewer shapes are tried, with fewer moves.
    """
    rng = np.random.default_rng(seed)
    first: list[tuple[float, int, Shape]] = []
    most = max(LEAST_SHAPES, int(SHAPES_TRIED * effort))
    for number, shape in enumerate(shapes(nodes, degree, directed, most, rng)):
        if late():
            return
        moves = _moves(shape, degree, effort)
        lift = anneal_shape(shape, degree, directed, moves, seed)
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
    """Return how many moves a shape gets; each searches from every node of the base."""
    touched = shape.bases**2 * shape.group.order * degree
    return int(np.clip(effort * WORK / touched, LEAST_MOVES, MOVES))


def anneal_shape(shape: Shape, degree: int, directed: bool, moves: int, seed: int) -> Lift | None:
    """Return the best lift of a shape that a number of moves finds, or None if there is none."""
    group, bases = shape.group, shape.bases
    rng = np.random.default_rng(seed)
    for _ in range(DRAWS):
        arcs, places, single = _random_start(shape, degree, directed, rng)
        rule = (group.m, group.k, group.powers, group.involutions)
        search = core.LiftAnnealing(bases, degree, *rule, arcs, places, single, seed % SEEDS)
        if search.is_simple:
            break
    else:
        return None
    scale = bases * group.order * bases
    search.run(np.geomspace(HOT * scale, COLD * scale, moves))
    if search.least == np.inf:
        return None
    return Lift(group, bases, directed, search.best(), single, search.least / bases)


def _random_start(
    shape: Shape, degree: int, directed: bool, rng: np.random.Generator
) -> tuple[Ints, Ints, Ints]:
    """Return random base arcs, the places of each in the rows of its ends, and which are single."""
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
