"""`Wiring`: what is to be wired, and how: links that stay, cables to place, who may join whom."""

from collections.abc import Iterator
from dataclasses import dataclass, field, replace

import numpy as np

from alltoall.designs.anneal import anneal, wiring_cost
from alltoall.designs.distances import room_for
from alltoall.errors import UsageError
from alltoall.ir.arrays import Floats, Ints, frozen
from alltoall.ir.topology import Topology
from alltoall.topologies.digraphs import genkautz

HOT, COLD = 4.0, 0.5
"""Temperatures at first and at last, in hops, if a search does not say."""

CHUNK = 2_000
"""Moves between two looks at the clock: some milliseconds up to 128 nodes."""

SLOW_CHUNK = 20
"""The same where every move looks at all failures or all loads."""

NO_NUMBERS = np.zeros((0, 0))
"""In place of prices or of a demand."""


def _no_links() -> Ints:
    return np.zeros((0, 2), dtype=np.int64)


@dataclass(frozen=True, eq=False)
class Wiring:
    """Cables between nodes, some of which may be placed otherwise.

    Row c of `ends` has the two ends of cable c, tail and head if links are one way. `fixed` links
    stay. Cables exchange ends only with those of the same number in `panel`. If cables are
    `sided`, a first end is only joined to a second. The cable from u to v costs `price[u, v]`, and
    all of them at most the `budget`.
    """

    nodes: int
    ends: Ints
    directed: bool
    fixed: Ints = field(default_factory=_no_links)
    panel: Ints | None = None
    sided: bool = False
    price: Floats | None = None
    budget: float = np.inf

    @property
    def links(self) -> int:
        """The number of one-way links."""
        return (len(self.ends) + len(self.fixed)) * (1 if self.directed else 2)

    def topology(self, name: str, notes: tuple[str, ...] = ()) -> Topology:
        """Return the network of this wiring."""
        pairs = np.concatenate([self.fixed, self.ends]).tolist()
        make = Topology.from_links if self.directed else Topology.from_edges
        return make(name, self.nodes, sorted(map(tuple, pairs)), notes=notes)

    def paid(self) -> float:
        """Return what its cables cost."""
        if self.price is None:
            return 0.0
        return float(self.price[self.ends[:, 0], self.ends[:, 1]].sum())


def regular_wiring(nodes: int, degree: int, directed: bool) -> Wiring:
    """Return a graph of this degree, from which all are reached.

    One-way links are those of the generalized Kautz graph, which has short distances to begin with,
    unless it has parallel links; cables are those of a circulant.
    """
    require_regular(nodes, degree, directed)
    if directed and nodes > degree + 1:
        kautz = genkautz(nodes, degree, rewire=True)
        ends = np.stack([kautz.tail, kautz.head], axis=1)
        if len(np.unique(ends, axis=0)) == len(ends):
            return Wiring(nodes, ends, directed)
    jumps = list(range(1, degree + 1 if directed else degree // 2 + 1))
    tail = np.tile(np.arange(nodes), len(jumps))
    head = (tail + np.repeat(jumps, nodes)) % nodes
    if not directed and degree % 2:
        half = np.arange(nodes // 2)
        tail, head = np.append(tail, half), np.append(head, half + nodes // 2)
    return Wiring(nodes, np.stack([tail, head], axis=1).astype(np.int64), directed)


def wiring_of(topology: Topology, directed: bool) -> Wiring:
    """Return the wiring of a network, as one-way links or as cables."""
    ends = np.stack([topology.tail, topology.head], axis=1)
    kept = ends if directed else ends[topology.tail < topology.head]
    return Wiring(topology.nodes, kept, directed)


def require_regular(nodes: int, degree: int, directed: bool) -> None:
    """Raise if no simple graph has this many nodes of this degree."""
    if not (nodes >= 2 and 1 <= degree < nodes):
        raise UsageError(
            f"{nodes} nodes of degree {degree}; expected at least 2 nodes, and a degree from 1 to "
            f"{max(nodes - 1, 1)}"
        )
    if not directed and nodes * degree % 2:
        raise UsageError(
            f"{nodes} nodes of degree {degree} have {nodes * degree} ports, and a cable takes two; "
            "expected an even number, add a node or use one-way links"
        )
    if not directed and degree == 1 and nodes > 2:
        raise UsageError(f"cables from 1 port join pairs; {nodes} nodes need a degree of 2 or more")


@dataclass(frozen=True, eq=False)
class Aim:
    """What a search minimises: distances, weighted by level or by a demand, or after failures.

    A pair at distance k costs the sum of the first k weights, the last of which goes on. If loads
    are to be `even`, uneven link loads cost too.
    """

    weight: Floats = field(default_factory=lambda: np.ones(1))
    demand: Floats | None = None
    failures: bool = False
    even: bool = False

    @property
    def plain(self) -> bool:
        """Whether the sum of all distances is all that counts."""
        weighted = len(self.weight) > 1 or self.demand is not None
        return not (weighted or self.failures or self.even)


class Annealing:
    """A search under way: each `round` of moves cools down from where the last one ended."""

    def __init__(self, wiring: Wiring, aim: Aim, seed: int) -> None:
        self.wiring, self.aim, self.rng = wiring, aim, np.random.default_rng(seed)
        self.ends = np.array(wiring.ends)
        self.best = self.ends.copy()
        self.out, self.slots = _adjacency(wiring)
        self.mates, self.first, self.count = _mates(wiring)
        self.room = room_for(wiring.nodes)
        self.fine = float(wiring.nodes)
        self.demand = NO_NUMBERS if aim.demand is None else np.array(aim.demand)
        self.costs = np.full(2, self._cost())

    def _cost(self) -> float:
        over = self.fine * max(0.0, self.wiring.paid() - self.wiring.budget)
        both = not self.wiring.directed
        aim = self.aim
        how = (aim.weight, self.demand, aim.failures, aim.even, self.room, np.inf)
        return over + float(wiring_cost(self.out, self.wiring.nodes, both, *how))

    def round(self, moves: int, hot: float = HOT, cold: float = COLD) -> Iterator[float]:
        """Make moves from hot to cold; yield the least cost after some of them."""
        temperatures = np.geomspace(hot, cold, moves)
        prices = NO_NUMBERS if self.wiring.price is None else self.wiring.price
        chunk = SLOW_CHUNK if self.aim.failures or self.aim.even else CHUNK
        for begin in range(0, moves, chunk):
            anneal(
                self.out,
                self.ends,
                self.slots,
                self.mates,
                self.first,
                self.count,
                not (self.wiring.directed or self.wiring.sided),
                self.aim.weight,
                self.demand,
                self.aim.failures,
                self.aim.even,
                prices,
                self.wiring.budget,
                self.fine,
                self.room,
                temperatures[begin : begin + chunk],
                self.best,
                self.costs,
                self.rng,
            )
            yield float(self.costs[1])

    @property
    def least(self) -> float:
        """The least cost so far."""
        return float(self.costs[1])

    def found(self) -> Wiring:
        """Return the best wiring so far."""
        return replace(self.wiring, ends=frozen(self.best.copy(), np.int64))


def least_time(wiring: Wiring, aim: Aim) -> float:
    """Return the cost of a wiring per link: by distances, no all-to-all takes less."""
    return Annealing(wiring, aim, 0).least / wiring.links


def _adjacency(wiring: Wiring) -> tuple[Ints, Ints]:
    """Return the successors of every node, and where each cable's two ends stand among them.

    A row of successors is filled up with the node itself; behind all rows is a place for the ways
    back that one-way links do not have.
    """
    both = not wiring.directed
    links = [(*each, False) for each in wiring.fixed.tolist()]
    links += [(*each, True) for each in wiring.ends.tolist()]
    rows: list[list[int]] = [[] for _ in range(wiring.nodes)]
    places: list[list[tuple[int, int] | None]] = []
    for a, b, movable in links:
        rows[a].append(b)
        place: list[tuple[int, int] | None] = [(a, len(rows[a]) - 1), None]
        if both:
            rows[b].append(a)
            place[1] = (b, len(rows[b]) - 1)
        if movable:
            places.append(place)
    ports = max(map(len, rows))
    full = [row + [node] * (ports - len(row)) for node, row in enumerate(rows)]
    nowhere = wiring.nodes * ports
    slots = [
        [nowhere if one is None else one[0] * ports + one[1] for one in each] for each in places
    ]
    out = np.array([*full, [0] * ports], dtype=np.int64)
    return out, np.array(slots, dtype=np.int64).reshape(-1, 2)


def _mates(wiring: Wiring) -> tuple[Ints, Ints, Ints]:
    """Return the cables by panel; and for each where those of its panel begin, and how many."""
    panel = np.zeros(len(wiring.ends), np.int64) if wiring.panel is None else wiring.panel
    order = np.argsort(panel, kind="stable").astype(np.int64)
    _, first, which, count = np.unique(
        panel[order], return_index=True, return_inverse=True, return_counts=True
    )
    back = np.argsort(order)
    return order, first[which][back].astype(np.int64), count[which][back].astype(np.int64)
