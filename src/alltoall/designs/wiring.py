"""`Wiring`: links that stay, cables to place, and rules for placing them."""

from collections.abc import Iterator
from dataclasses import dataclass, field, replace

import numpy as np

from alltoall import core
from alltoall.errors import UsageError
from alltoall.ir.arrays import Floats, Ints, frozen
from alltoall.ir.topology import Topology
from alltoall.topologies.digraphs import genkautz

CHUNK = 2_000
"""Moves between two checks of the clock: some milliseconds up to 128 nodes."""

SLOW_CHUNK = 20
"""Moves between two checks of the clock if every move evaluates all failures or all loads."""

MOST_NODES = 4096
"""The most nodes of a design: above, even one certified time takes minutes."""

SEEDS = 1 << 64
"""The number of seeds."""


@dataclass(frozen=True, eq=False)
class Wiring:
    """Fixed links, and cables that may be placed differently.

    Row c of `ends` has the two ends of cable c, tail and head of a one-way link. Cables exchange
    ends only with those of the same number in `panel`. If cables are `sided`, a first end is only
    joined to a second. The cable from u to v costs `price[u, v]`, and all of them at most `budget`.
    """

    nodes: int
    ends: Ints
    directed: bool
    fixed: Ints = field(default_factory=lambda: np.zeros((0, 2), dtype=np.int64))
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
        """Return the price of all cables."""
        if self.price is None:
            return 0.0
        return float(self.price[self.ends[:, 0], self.ends[:, 1]].sum())


def regular_wiring(nodes: int, degree: int, directed: bool) -> Wiring:
    """Return a first graph of this degree, from which all others can be reached, if there is any.

    It is the generalized Kautz graph, which has short distances, or a circulant for cables and if
    the Kautz graph has parallel links.
    """
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


@dataclass(frozen=True, eq=False)
class Aim:
    """The objective of a search: distances, weighted by level or by a demand, or after failures.

    A pair at distance k costs the sum of the first k weights, the last of which repeats. With
    `even`, uneven link loads cost too.
    """

    weight: Floats = field(default_factory=lambda: np.ones(1))
    demand: Floats | None = None
    failures: bool = False
    even: bool = False

    @property
    def plain(self) -> bool:
        """Whether the objective is the sum of all distances."""
        weighted = len(self.weight) > 1 or self.demand is not None
        return not (weighted or self.failures or self.even)


class Annealing:
    """An annealing: each `round` of moves continues from the last one."""

    def __init__(self, wiring: Wiring, aim: Aim, seed: int) -> None:
        self.wiring, self.aim = wiring, aim
        panel = np.zeros(len(wiring.ends), np.int64)
        if wiring.panel is not None:
            panel = np.unique(wiring.panel, return_inverse=True)[1].astype(np.int64)
        self.search = core.Annealing(
            nodes=wiring.nodes,
            fixed=wiring.fixed,
            ends=wiring.ends,
            directed=wiring.directed,
            turns=not (wiring.directed or wiring.sided),
            panel=panel,
            price=wiring.price,
            budget=wiring.budget,
            fine=float(wiring.nodes),
            weight=aim.weight,
            demand=aim.demand,
            failures=aim.failures,
            even=aim.even,
            seed=seed % SEEDS,
        )

    def round(self, moves: int, hot: float = 4.0, cold: float = 0.5) -> Iterator[float]:
        """Make moves from hot to cold; yield the least cost from time to time."""
        temperatures = np.geomspace(hot, cold, moves)
        chunk = SLOW_CHUNK if self.aim.failures or self.aim.even else CHUNK
        for begin in range(0, moves, chunk):
            self.search.run(temperatures[begin : begin + chunk])
            yield self.least

    @property
    def least(self) -> float:
        """The least cost so far."""
        return self.search.least

    def found(self) -> Wiring:
        """Return the best wiring so far."""
        return replace(self.wiring, ends=frozen(self.search.best(), np.int64))


def least_time(wiring: Wiring, aim: Aim) -> float:
    """Return the cost of a wiring per link: for distances, a lower bound on the time."""
    return Annealing(wiring, aim, 0).least / wiring.links
