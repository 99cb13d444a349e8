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
from alltoall.paths.blocks import BLOCK_CELLS
from alltoall.paths.shortest import core_graph
from alltoall.placing.chunks import Chunks, Table, grow_steeper
from alltoall.placing.network import WAITING_COST, Network
from alltoall.settings import Late

MOST_PRESSURE = 1e3
"""The largest pressure in any round."""

MOST_REROUTED = 1000
"""Chunks rerouted in one call of the core, if links are few, so that Ctrl-C is heard."""


@dataclass(frozen=True)
class NegotiationParams:
    """How links over their budget become expensive; `benchmarks/routes.py` measures it.

    Attributes:
        pressure: the price of a chunk over the budget in the first round, where a hop costs 1.
        growth: the factor by which it grows from round to round.
        rounds: rounds at most.
        patience: rounds in turn without progress after which chunks give up.
        lesson: how much more expensive a link is for good per chunk over its budget.
        tries: orders of the chunks that are tried, each from its own seed.

    """

    pressure: float = 1.0
    growth: float = 1.3
    rounds: int = 200
    patience: int = 40
    lesson: float = 0.3
    tries: int = 8

    def steepness(self) -> Iterator[float]:
        """Yield the pressure of each round."""
        for each in range(self.rounds):
            yield min(self.pressure * self.growth**each, MOST_PRESSURE)


NEGOTIATION = NegotiationParams()
"""The parameters of all negotiations."""


@dataclass(eq=False)
class Budgets:
    """The budget of every priced link, what a chunk of size 1 loads it by, and its history.

    `grain` is a size that counts as one chunk.
    """

    budget: Floats
    share: Floats
    grain: float
    params: NegotiationParams
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
        self.history += self.params.lesson * over / (self.grain * self.share)
        self.excess = float(over.sum())
        self.stale = 0 if self.excess < self.least else self.stale + 1
        self.least = min(self.least, self.excess)
        return self.excess == 0.0 or self.stale == self.params.patience


@dataclass(frozen=True, eq=False)
class Negotiation:
    """Chunks that move in a random order, and the budgets that they are to keep."""

    budgets: Budgets
    order: Ints

    @property
    def count(self) -> int:
        """The number of chunks."""
        return len(self.order)

    def end_round(self) -> bool:
        """Raise prices; stop when all budgets hold, or without progress."""
        return self.budgets.learn()


@dataclass(frozen=True, eq=False)
class _Rerouting(Negotiation):
    """Chunks that may take any path of a network."""

    network: Network
    chunks: Chunks
    table: Table

    def move(self, begin: int, steepness: float) -> int:
        """Reroute some of the chunks over a budget."""
        chunks, budgets = self.chunks, self.budgets
        most = min(MOST_REROUTED, max(1, BLOCK_CELLS // self.network.links))
        stopped = core.reroute(
            self.network.where, chunks.start, chunks.end, chunks.size, self.order, begin,
            most, budgets.budget, budgets.share, budgets.history, steepness,
            WAITING_COST, self.table, budgets.load,
        )  # fmt: skip
        if stopped < 0:
            chunk = self.order[NOTHING - stopped]
            ends = (self.network.node_name(int(at[chunk])) for at in (chunks.start, chunks.end))
            ways = " to node ".join(ends)
            raise InputError(f"no path leads from node {ways}; allow more steps, or connect them")
        return stopped

    def end_round(self) -> bool:
        """Raise prices; a chunk without a path is no reason to stop while the budgets hold."""
        return super().end_round() and (self.is_within() or self.budgets.excess > 0.0)

    def is_within(self) -> bool:
        """Return whether all chunks have a path and all budgets hold."""
        return self.budgets.excess == 0.0 and bool((self.table[:, 0] != NOTHING).all())


def negotiate(
    network: Network,
    chunks: Chunks,
    start: Table | Ints,
    budget: Floats,
    seed: int,
    late: Late = never,
    params: NegotiationParams = NEGOTIATION,
    share: Floats | None = None,
    grain: float | None = None,
) -> tuple[Table, bool]:
    """Return paths within the budgets and True, or the last try and False.

    A chunk that has no path at all, as with fewer steps than hops, is an `InputError`.
    """
    share = np.ones(len(budget)) if share is None else share
    grain = float(chunks.size[0]) if grain is None else grain
    budgets = Budgets(budget, share, grain, params)
    order = np.random.default_rng(seed).permutation(len(chunks.start)).astype(np.int64)
    state = _Rerouting(budgets, order, network, chunks, start.astype(np.int32))
    budgets.load += network.loads(state.table, chunks.size) * share
    grow_steeper(state, params.steepness(), late)
    return state.table, state.is_within()


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
