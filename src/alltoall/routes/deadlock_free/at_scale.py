"""The search for an order of all channels, with whole chunks that go forward in it.

It begins with the best of a few orders (`lanes`), in which chunks are placed quickly, so that a
time limit always finds an answer. Then the order and the routes answer each other: channels are
moved to where the shortest paths of all pairs gain most (`core/channel_order.h`), then chunks
spread over the paths forward. Lengths are those that prove the unrestricted bound and, a little,
what the fullest links cost the chunks. The best order seen is improved again, with other draws.
`benchmarks/deadlock_free.py` measures all numbers below.
"""

from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from alltoall import core
from alltoall.ir.answer import Certificate
from alltoall.ir.arrays import Floats, Ints
from alltoall.ir.paths import Paths
from alltoall.ir.routes import Routes
from alltoall.ir.words import ProgressMessage
from alltoall.placing.chunks import Chunks
from alltoall.placing.place import DEFAULTS, QUICK, Placement, PlacementParams, place
from alltoall.routes.deadlock_free.lanes import Lanes, first_orders, forward_network
from alltoall.routes.single import DEFAULT_ROUTES
from alltoall.routes.weights import round_up_time
from alltoall.settings import RouteSettings

Singles = NDArray[np.float32]

ROUNDS = 30
"""How often the order and the routes answer each other at most, unless time runs out."""

PATIENT_ROUNDS = 10
"""Rounds in turn without a better answer after which the search ends."""

WORTHWHILE = 2e-4
"""A sweep is followed by another if it shortened the ways of all pairs by more than this share."""

READ_PER_CALL = 100_000_000
"""Distances read in one call of the core, so that a time limit is heard in between."""

LEAST_PRICE = 0.05
"""No link is shorter than this share of the mean: an order has to suit all links a little."""

PRICED = (0.1, 0.3)
"""Shares of what the fullest links cost in the lengths, beside those that prove the bound.

Starts take turns: the smaller share is better where the bound is near, the larger where it is not.
"""

ALL_CHUNKS = 10_000
"""Chunks of all pairs up to which shards are cut: where pairs are many, whole shards are fine."""


@dataclass(frozen=True, eq=False)
class TriedOrder:
    """An order, chunks on paths forward in it, and what both are worth: the less, the better.

    That is the time or, where some pairs have no path, the sum of distances.
    """

    order: Ints
    placed: Placement | None
    worth: tuple[float, float]


@dataclass(frozen=True, eq=False)
class OrderSearch:
    """A search for orders of lanes; the certificate proves the bound without layers."""

    lanes: Lanes
    certificate: Certificate
    settings: RouteSettings

    def best_orders(self, starts: int = 1) -> list[TriedOrder]:
        """Return the orders found from several starts, the best first.

        Every other start is a random order, the others the best of the first orders.
        """
        solve, seed = self.settings.solve, self.settings.seed
        firsts = (self._try(each, QUICK) for each in first_orders(self.lanes, solve))
        first = min(firsts, key=lambda tried: tried.worth)
        found = [first]
        for number in range(starts):
            if self._is_good(min(found, key=lambda tried: tried.worth)) or solve.out_of_time():
                break
            rng = np.random.default_rng(seed + number)
            begin = first
            if number % 2 == 1:
                begin = self._try(rng.permutation(len(first.order)), QUICK)
            priced = PRICED[number // 2 % len(PRICED)]
            found.append(self._improve_rounds(begin, rng, priced))
        return sorted(found, key=lambda tried: tried.worth)

    def _is_good(self, tried: TriedOrder) -> bool:
        return tried.worth[0] <= self._goal * (1 + 1e-9)

    def _improve_rounds(
        self, best: TriedOrder, rng: np.random.Generator, priced: float
    ) -> TriedOrder:
        """Return the best order found when order and routes answer each other."""
        proof = self._scaled(self.certificate.lengths)
        prices, stale = [proof], 0
        for _ in range(ROUNDS):
            late = self.settings.solve.out_of_time()
            if self._is_good(best) or stale == PATIENT_ROUNDS or late:
                break
            order = best.order.copy()
            lengths = (1 - priced) * proof + priced * np.mean(prices, axis=0)
            self._improve(order, self._scaled(lengths), rng)
            tried = self._try(order, DEFAULTS)
            if tried.placed is not None:
                prices.append(tried.placed.lengths)
            stale = 0 if tried.worth < best.worth else stale + 1
            best = tried if tried.worth <= best.worth else best
        return best

    def _try(self, order: Ints, params: PlacementParams) -> TriedOrder:
        """Place all chunks on ways forward in an order."""
        late = self.settings.solve.out_of_time
        network = forward_network(self.lanes, order)
        placed = place(network, self._chunks, self._goal, params, late=late)
        if placed is None:
            proof = self._scaled(self.certificate.lengths)
            return TriedOrder(
                order, None, (np.inf, core.improve_order(order, *self._game(proof), 0, 0))
            )
        above, solve = placed.time / self.certificate.bound - 1, self.settings.solve
        text = f"an order tried: {above:.2%} above the bound without layers"
        solve.report(ProgressMessage.of_gap(text, above, solve.gap))
        return TriedOrder(order, placed, (placed.time, 0.0))

    @property
    def _per_shard(self) -> int:
        """The number of chunks of a shard."""
        pairs = len(self.lanes.problem.demand.pairs()[0])
        return min(DEFAULT_ROUTES, max(1, ALL_CHUNKS // pairs))

    @cached_property
    def _chunks(self) -> Chunks:
        """The chunks of all pairs, from terminal to terminal."""
        demand = self.lanes.problem.demand
        source, destination = (np.repeat(each, self._per_shard) for each in demand.pairs())
        return Chunks(source, destination, demand.of(source, destination) / self._per_shard)

    @cached_property
    def _goal(self) -> float:
        """A time that is good enough: the bound, rounded up to whole chunks."""
        return round_up_time(self.lanes.problem, self.certificate.bound, self._per_shard)

    def _scaled(self, lengths: Floats) -> Floats:
        """Return lengths of which none is too short, that times capacity add up to 1."""
        capacity = self.lanes.problem.topology.capacity
        least = LEAST_PRICE * float(lengths @ capacity) / len(lengths)
        longer = np.maximum(lengths, least / capacity)
        return np.asarray(longer / float(longer @ capacity))

    def _game(self, lengths: Floats) -> tuple[int, Ints, Ints, Ints, Singles, Singles]:
        """Return the channels of an order: nodes, ends, terminals, lengths and demands."""
        lanes = self.lanes
        wanted = np.ascontiguousarray(lanes.problem.demand.table().T, dtype=np.float32)
        single = lengths[lanes.link].astype(np.float32)
        nodes = lanes.copies * lanes.problem.topology.nodes
        return nodes, *lanes.ends, lanes.terminals, single / single.mean(), wanted

    def _improve(self, order: Ints, lengths: Floats, rng: np.random.Generator) -> None:
        """Move channels, in place, until a sweep is no longer worth its time."""
        late = self.settings.solve.sharing().out_of_time
        terminals, game = self.lanes.terminals.shape[1], self._game(lengths)
        per_call = 1 + READ_PER_CALL // (2 * terminals * (len(order) + 4 * terminals))
        before = core.improve_order(order, *game, 0, 0)
        while True:
            for first in range(0, len(order), per_call):
                if late():
                    return
                moves = min(per_call, len(order) - first)
                after = core.improve_order(order, *game, moves, int(rng.integers(2**63)))
            if after > before * (1 - WORTHWHILE):
                return
            before = after

    def routes(self, tried: TriedOrder, method: str) -> Routes | None:
        """Return a route per distinct path of channels, weighted by the chunks that take it."""
        if tried.placed is None:
            return None
        chunks = self._chunks
        paths = Paths.from_table(chunks.start, chunks.end, tried.placed.table)
        merged = paths.merge_equal(chunks.size)
        routes = routes_of_channels(self.lanes, *merged, self.certificate, method)
        whole = self._per_shard if self.lanes.problem.demand.uniform else None
        return replace(routes, denominator=whole)


def routes_of_channels(
    lanes: Lanes, paths: Paths, weight: Floats, certificate: Certificate, method: str
) -> Routes:
    """Return weighted paths of channels as routes; layers that none takes are not counted."""
    return Routes(
        problem=lanes.problem,
        source=paths.source,
        destination=paths.destination,
        start=paths.start,
        link=lanes.link[paths.link],
        weight=weight,
        certificate=certificate,
        method=method,
        hop_layer=np.unique(lanes.layer[paths.link], return_inverse=True)[1],
    )
