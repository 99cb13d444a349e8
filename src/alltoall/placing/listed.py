"""Chunks that choose from listed paths, and from phases: each phase has its own copy of every link.

With one phase this picks paths (weights to chunks), with one path it picks phases (injection
control). Prices are those of `negotiate`.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import TypeVar

import numpy as np

from alltoall import core
from alltoall.ir.arrays import Floats, Ints
from alltoall.ir.topology import Topology
from alltoall.lp.settings import never
from alltoall.placing.chunks import grow_steeper
from alltoall.placing.negotiate import NEGOTIATION, Budgets, Negotiation, NegotiationParams
from alltoall.settings import Late

UNPLACED = -1
"""The phase of an unplaced chunk."""

FILL_WEIGHT = 4.0
"""The price of a full link beside that of a hop, which spreads chunks over phases.

`benchmarks/routes.py` measures it.
"""

CHOICES_PER_CALL = 1_000_000
"""Choices priced in one call of the core, so that Ctrl-C is heard."""

Answer = TypeVar("Answer")


@dataclass(frozen=True, eq=False)
class ListedChunks:
    """Chunk i of `size[i]` takes one of the paths `low[i]` to `high[i] - 1`.

    Path p is `link[start[p]:start[p + 1]]`.
    """

    start: Ints
    link: Ints
    low: Ints
    high: Ints
    size: Floats

    @property
    def count(self) -> int:
        """The number of chunks."""
        return len(self.size)


@dataclass(frozen=True, eq=False)
class Choice:
    """The path and the phase of every chunk."""

    path: Ints
    phase: Ints


@dataclass(frozen=True, eq=False)
class _Choosing(Negotiation):
    """Chunks that choose a path and a phase within budgets of the links of each phase."""

    chunks: ListedChunks
    choice: Choice
    links: int
    phases: int

    def move(self, begin: int, steepness: float) -> int:
        """Let some chunks over a budget choose again."""
        chunks, budgets = self.chunks, self.budgets
        return core.choose_within(
            chunks.start, chunks.link, chunks.low, chunks.high, self.links, self.phases,
            chunks.size, self.order, begin, CHOICES_PER_CALL, budgets.budget, budgets.share,
            budgets.history, FILL_WEIGHT, steepness, budgets.load,
            self.choice.path, self.choice.phase,
        )  # fmt: skip


def negotiate_listed(
    topology: Topology,
    chunks: ListedChunks,
    begin: Choice,
    budget: Floats,
    seed: int,
    late: Late = never,
    params: NegotiationParams = NEGOTIATION,
) -> tuple[Choice, bool]:
    """Return choices by which phase k takes at most `budget[k]` and True, or the last and False."""
    order = np.random.default_rng(seed).permutation(chunks.count).astype(np.int64)
    choice = Choice(np.array(begin.path), np.array(begin.phase))
    phases, links = len(budget), topology.links
    budgets = Budgets(
        np.outer(budget, topology.capacity).ravel(), np.ones(phases * links),
        float(chunks.size.mean()), params,
    )  # fmt: skip
    placed = choice.phase != UNPLACED
    used = Choice(choice.path[placed], choice.phase[placed])
    busy = phase_loads(topology, chunks, used, phases, chunks.size[placed])
    budgets.load += (busy * topology.capacity).ravel()
    state = _Choosing(budgets, order, chunks, choice, links, phases)
    grow_steeper(state, params.steepness(), late)
    return choice, budgets.excess == 0.0


def phase_loads(
    topology: Topology,
    chunks: ListedChunks,
    choice: Choice,
    phases: int,
    size: Floats | None = None,
) -> Floats:
    """Return the time of each link in each phase, shape [phases, links]."""
    size = chunks.size if size is None else size
    hops = np.diff(chunks.start)[choice.path]
    entry = np.repeat(chunks.start[choice.path] - np.cumsum(hops) + hops, hops)
    spot = (
        np.repeat(choice.phase, hops) * topology.links + chunks.link[entry + np.arange(len(entry))]
    )
    used = np.bincount(spot, np.repeat(size, hops), phases * topology.links)
    return np.asarray(used.reshape(phases, topology.links) / topology.capacity, dtype=np.float64)


def first_found(last: int, attempt: Callable[[int], Answer | None]) -> Answer | None:
    """Return the result of the lowest of the tries 0..last that gives any, by bisection.

    The first try is 0, which is the best there can be and often works.
    """
    best = attempt(0)
    if best is not None or last < 1:
        return best
    low, high = 0, last + 1
    while high - low > 1:
        middle = (low + high) // 2
        found = attempt(middle)
        if found is None:
            low = middle
        else:
            best, high = found, middle
    return best
