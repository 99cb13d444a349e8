"""`negotiate`: chunks on paths within budgets of the links, by negotiated congestion.

The idea is that of PathFinder, the router of field-programmable gate arrays: every chunk takes its
cheapest path, links over their budget become more expensive, now and for good, and the chunks on
them look for another path. From the optimal fractional flow, few chunks ever have to move.
"""

from collections.abc import Iterator
from dataclasses import dataclass, field

import numpy as np

from alltoall import core
from alltoall.errors import InputError
from alltoall.ir.arrays import Floats, Ints
from alltoall.ir.paths import NOTHING
from alltoall.ir.topology import Topology
from alltoall.lp.settings import never
from alltoall.paths.shortest import core_graph
from alltoall.placing.chunks import Chunks, Table
from alltoall.placing.network import WAITING_COST, Network
from alltoall.placing.rounds import grow_steeper
from alltoall.settings import Late

MOST_PRESSURE = 1e3
"""The largest pressure, however many rounds there are."""

LESSON, HARDEST_LESSON = 0.3, 3.0
"""How much more expensive a link is for good per chunk over its budget, up to so many chunks."""

REROUTED_PER_CALL = 1000
"""Chunks rerouted in one call of the core, so that Ctrl-C is heard."""


@dataclass(frozen=True)
class NegotiationParams:
    """Pressure per chunk over a budget, its growth, and how many rounds may bring no progress."""

    pressure: float = 0.5
    growth: float = 1.3
    patience: int = 40

    def rounds(self, count: int) -> Iterator[float]:
        """Yield the pressure of each round."""
        for each in range(count):
            yield min(self.pressure * self.growth**each, MOST_PRESSURE)


@dataclass(eq=False)
class Budgets:
    """The budget of every priced link, what a chunk of size 1 loads it by, and its history.

    `grain` is a size that counts as one chunk.
    """

    budget: Floats
    share: Floats
    grain: float
    patience: int
    history: Floats = field(init=False)
    load: Floats = field(init=False)
    least: float = np.inf
    stale: int = 0
    excess: float = np.inf

    def __post_init__(self) -> None:
        self.history, self.load = np.zeros((2, len(self.budget)))

    def learn(self) -> bool:
        """Make links over their budget more expensive; return whether to stop."""
        over = self.load - self.budget
        over[over <= 1e-9 * np.maximum(1.0, self.budget)] = 0.0
        self.history += LESSON * np.minimum(HARDEST_LESSON, over / (self.grain * self.share))
        self.excess = float(over.sum())
        self.stale = 0 if self.excess < self.least else self.stale + 1
        self.least = min(self.least, self.excess)
        return self.excess == 0.0 or self.stale == self.patience


def negotiate(
    network: Network,
    chunks: Chunks,
    start: Table | Ints,
    budget: Floats,
    rounds: int,
    seed: int,
    late: Late = never,
    share: Floats | None = None,
    grain: float | None = None,
) -> tuple[Table, bool]:
    """Return paths within the budgets and True, or the last try and False.

    A chunk that has no path at all, as with fewer steps than hops, is an `InputError`.
    """
    share = np.ones(len(budget)) if share is None else share
    params = NegotiationParams()
    grain = float(chunks.size[0]) if grain is None else grain
    budgets = Budgets(budget, share, grain, params.patience)
    order = np.random.default_rng(seed).permutation(len(chunks.start)).astype(np.int64)
    talks = _Negotiation(network, chunks, budgets, order, start.astype(np.int32))
    core.add_loads(network.where, chunks.size, share, talks.table, budgets.load)
    grow_steeper(talks, params.rounds(rounds), late)
    return talks.table, talks.is_within()


@dataclass(frozen=True, eq=False)
class _Negotiation:
    """Chunks in a random order, and their paths."""

    network: Network
    chunks: Chunks
    budgets: Budgets
    order: Ints
    table: Table

    @property
    def count(self) -> int:
        """The number of chunks."""
        return len(self.order)

    def move(self, begin: int, steepness: float) -> int:
        """Reroute some of the chunks over a budget."""
        chunks, budgets = self.chunks, self.budgets
        stopped = core.reroute(
            self.network.where, chunks.start, chunks.end, chunks.size, self.order, begin,
            REROUTED_PER_CALL, budgets.budget, budgets.share, budgets.history, steepness,
            WAITING_COST, self.table, budgets.load,
        )  # fmt: skip
        if stopped < 0:
            chunk = self.order[NOTHING - stopped]
            ends = (self.network.node_name(int(at[chunk])) for at in (chunks.start, chunks.end))
            ways = " to node ".join(ends)
            raise InputError(f"no path leads from node {ways}; allow more steps, or connect them")
        return stopped

    def end_round(self) -> bool:
        """Raise prices; stop when all budgets hold, or without progress."""
        return self.budgets.learn() and (self.is_within() or self.budgets.excess > 0.0)

    def is_within(self) -> bool:
        """Return whether all chunks have a path and all budgets hold."""
        return self.budgets.excess == 0.0 and bool((self.table[:, 0] != NOTHING).all())


def trace_paths(graph: Topology, chunks: Chunks, volumes: Floats, row: Ints, hops: int) -> Ints:
    """Return a path per chunk [chunks, hops] that follows the volumes of its row, where it can.

    Each chunk walks back from its end along the largest remaining volume and takes its size out of
    it. A chunk that finds no volume left gets no path.
    """
    paths = np.full((len(chunks.start), hops), NOTHING, dtype=np.int64)
    remaining = np.array(volumes, dtype=np.float64, order="C")
    ends = chunks.start, chunks.end, chunks.size
    core.trace_paths(core_graph(graph), *ends, row, remaining, paths)
    return paths
