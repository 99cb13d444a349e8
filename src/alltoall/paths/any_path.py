"""Whole chunks on any paths of a graph, rerouted until no class of links is over its budget.

Links of a class share one budget: under translations the path of one chunk stands for all its
images, so what it puts on any link of an orbit, all of them carry. The negotiation is that of
`paths.negotiate`. A cheapest path is found by a tree of shortest paths, or by a sweep over the
steps of a graph that is unrolled in time.
"""

from dataclasses import dataclass
from functools import cached_property
from typing import TypeAlias, TypeVar

import numpy as np
from numba import njit
from numpy.typing import NDArray

from alltoall.errors import InputError
from alltoall.ir.arrays import Floats, Ints
from alltoall.ir.paths import NOTHING
from alltoall.ir.topology import Topology
from alltoall.lp.settings import never
from alltoall.paths.negotiate import BUDGET_ROUNDING, HARDEST_LESSON, LESSON, Pace, until_within
from alltoall.paths.shortest import Adjacency, shortest_tree
from alltoall.paths.steps import WAITING_COST, cheapest_in_steps
from alltoall.settings import Late

Table: TypeAlias = NDArray[np.int32]
"""Paths, one a row: the links in order, then `NOTHING`. At a million paths half the size counts."""

AnyTable = TypeVar("AnyTable", Ints, Table)

TREES_PER_CALL = 1000
"""Chunks that are rerouted by trees in one call of the compiled code, so that Ctrl-C is heard."""

SWEPT_PER_CALL = 200_000_000
"""Links that are swept over in one call of the compiled code, so that Ctrl-C is heard."""

NO_WAY = -1
"""What the compiled code returns for the first in the order, if there is no path for its chunk."""

LEAST_BUDGET = 1e-12
"""The share of a chunk below which the budget of a link is as good as nothing."""


@dataclass(frozen=True, eq=False)
class Chunks:
    """Chunks to route on a graph: from node `start` to node `end`, each of a `size`."""

    start: Ints
    end: Ints
    size: Floats


@dataclass(frozen=True, eq=False)
class Budgets:
    """The class of each link, what a chunk of size 1 puts on each class, and the budgets.

    Links of a class beyond the last are free. `grain` is a size that counts as one chunk.
    """

    link_class: Ints
    share: Floats
    budget: Floats
    grain: float


def negotiate(
    graph: Topology,
    chunks: Chunks,
    paths: AnyTable,
    budget: Floats | Budgets,
    rounds: int,
    seed: int,
    late: Late = never,
    steps: tuple[int, int] = (0, 0),
) -> tuple[AnyTable, bool]:
    """Return paths within the budgets of the links and True, or the last try and False.

    It ends early when it is `late`. A link costs 1 a chunk, and more when contended. `steps` has
    the number of steps and the links of each if the graph is unrolled in time; a chunk that has no
    way at all, as with fewer steps than hops, is an `InputError`.
    """
    if not isinstance(budget, Budgets):
        every = np.arange(graph.links, dtype=np.int64)
        budget = Budgets(every, np.ones(graph.links), budget, float(chunks.size[0]))
    order = np.random.default_rng(seed).permutation(len(chunks.start)).astype(np.int64)
    load, history = np.zeros((2, len(budget.budget)))
    table = paths.copy()
    _add_all(load, table, chunks.size, budget.link_class, budget.share)
    talks = _OnGraph(graph, chunks, budget, steps, order, table, load, history)
    return table, until_within(talks, len(order), rounds, late, Pace())


@dataclass(frozen=True, eq=False)
class _OnGraph:
    """Chunks in an order, their paths, and what these put on the classes of links."""

    graph: Topology
    chunks: Chunks
    budgets: Budgets
    steps: tuple[int, int]
    order: Ints
    table: Ints | Table
    load: Floats
    history: Floats

    def reroute(self, begin: int, pressure: float) -> int:
        """Reroute some of the chunks over a budget."""
        graph, chunks, budgets = self.graph, self.chunks, self.budgets
        swept = max(1, SWEPT_PER_CALL // graph.links)
        stopped: int = _reroute(
            (*self._outgoing, graph.tail, graph.head, budgets.link_class),
            self.steps,
            (chunks.start, chunks.end, chunks.size, self.order),
            (budgets.budget, budgets.share, self.history, pressure),
            begin,
            swept if self.steps[0] else TREES_PER_CALL,
            self.table,
            self.load,
        )
        if stopped < 0:
            chunk = self.order[NO_WAY - stopped]
            start, end = (graph.node_name(int(each[chunk])) for each in (chunks.start, chunks.end))
            ends = f"node {start} to node {end}"
            within = f" in {self.steps[0]} steps; allow more" if self.steps[0] else ""
            raise InputError(f"{graph.name}: there is no way from {ends}{within}")
        return stopped

    @cached_property
    def _outgoing(self) -> tuple[Ints, Ints]:
        return Adjacency(self.graph).outgoing

    def learn(self) -> float:
        """Make classes over their budget dearer."""
        budgets = self.budgets
        over: float = _learn(self.load, self.history, budgets.budget, budgets.share, budgets.grain)
        return over

    def complete(self) -> bool:
        """Whether all paths fitted into the table."""
        return bool((self.table[:, 0] != NOTHING).all())


Prices: TypeAlias = tuple[Floats, Floats, Floats, float]
"""Budget, share and history of each class, and the pressure."""


@njit(cache=True)
def _add_all(load: Floats, paths: AnyTable, size: Floats, kind: Ints, share: Floats) -> None:
    for chunk in range(len(size)):
        _add(load, paths[chunk], size[chunk], kind, share)


@njit(cache=True)
def _add(load: Floats, path: AnyTable, size: float, kind: Ints, share: Floats) -> None:
    for link in path:
        if link == NOTHING:
            break
        if kind[link] < len(load):
            load[kind[link]] += size * share[kind[link]]


@njit(cache=True)
def _reroute(
    network: tuple[Ints, Ints, Ints, Ints, Ints],
    steps: tuple[int, int],
    chunks: tuple[Ints, Ints, Floats, Ints],
    prices: Prices,
    begin: int,
    most_rerouted: int,
    paths: AnyTable,
    load: Floats,
) -> int:
    """Let the chunks from `order[begin]` on look for another way; return where it stopped.

    It stops after `most_rerouted` chunks or at the end, or with `NO_WAY` less the place of a chunk
    whose end cannot be reached. Without steps, every link is its own class.
    """
    first, out, tail, head, kind = network
    start, end, size, order = chunks
    nodes, share = len(first) - 1, prices[1]
    cost, distance = np.empty(len(load) + 1), np.empty(nodes)
    parent, settled = np.empty(nodes, dtype=np.int64), np.empty(nodes, dtype=np.int64)
    priced, rerouted = 0.0, 0
    for place in range(begin, len(order)):
        chunk = order[place]
        path, mine = paths[chunk], size[chunk]
        if not _needs_rerouting(path, load, prices[0], kind):
            continue
        if rerouted == most_rerouted:
            return place
        rerouted += 1
        _add(load, path, -mine, kind, share)
        if mine != priced:
            for each in range(len(load)):
                cost[each] = _cost(each, mine, load, prices)
            cost[len(load)] = WAITING_COST
            priced = mine
        else:
            _reprice(path, mine, load, prices, kind, cost)
        if steps[0]:
            cheapest_in_steps((tail, head), kind, steps, cost, start[chunk], distance, parent)
        else:
            shortest_tree(nodes, first, out, head, cost, start[chunk], distance, parent, settled)
        if distance[end[chunk]] == np.inf:
            return NO_WAY - place
        _write_path(path, parent, tail, start[chunk], end[chunk])
        _add(load, path, mine, kind, share)
        _reprice(path, mine, load, prices, kind, cost)
    return len(order)


@njit(cache=True)
def _learn(load: Floats, history: Floats, budget: Floats, share: Floats, grain: float) -> float:
    """Make classes over their budget dearer; return how much they are over it in all."""
    total = 0.0
    for each in range(len(load)):
        over = load[each] - budget[each]
        if over > BUDGET_ROUNDING * max(1.0, budget[each]):
            total += over
            history[each] += LESSON * min(HARDEST_LESSON, over / (grain * share[each]))
    return total


@njit(cache=True)
def _needs_rerouting(path: AnyTable, load: Floats, budget: Floats, kind: Ints) -> bool:
    if path[0] == NOTHING:
        return True
    for link in path:
        if link == NOTHING:
            break
        each = kind[link]
        if each < len(load):
            slack = BUDGET_ROUNDING * max(1.0, budget[each])
            if load[each] > budget[each] + slack:
                return True
    return False


@njit(cache=True)
def _cost(kind: int, size: float, load: Floats, prices: Prices) -> float:
    """Return what a link of a class costs a chunk.

    What is over the budget counts in chunks, and in budgets where not even one chunk fits: a link
    that is a million times too narrow delays its step a million times.
    """
    budget, share, history, pressure = prices
    mine = size * share[kind]
    over = max(0.0, load[kind] + mine - budget[kind]) / max(
        min(mine, budget[kind]), LEAST_BUDGET * mine
    )
    return float((1.0 + history[kind]) * (1.0 + pressure * over))


@njit(cache=True)
def _reprice(
    path: AnyTable, size: float, load: Floats, prices: Prices, kind: Ints, cost: Floats
) -> None:
    """Bring the costs of the classes that a path uses up to date."""
    for link in path:
        if link == NOTHING:
            break
        if kind[link] < len(load):
            cost[kind[link]] = _cost(kind[link], size, load, prices)


@njit(cache=True)
def _write_path(path: AnyTable, parent: Ints, tail: Ints, start: int, end: int) -> None:
    """Write the tree's path from start to end; one that does not fit the table stays unwritten."""
    length, node = 0, end
    while node != start:
        node = tail[parent[node]]
        length += 1
    path[:] = NOTHING
    if length > len(path):
        return
    node = end
    while node != start:
        length -= 1
        path[length] = parent[node]
        node = tail[parent[node]]
