"""A mixture-of-experts layer: tokens to their experts, and results back.

    dispatch   rows in the order of their experts, and the exchange
    experts    y = W_e x for all received rows
    combine    the exchange back, and the weighted sum

Ranks share the counts of rows once, for all exchanges. An expert is a cheap linear map, since the
exchange is what is measured, and works element by element, so that the result equals, bit for bit,
what a rank computes alone for its tokens.
"""

from collections.abc import Mapping, Sequence
from functools import partial
from typing import Any

import numpy as np

from alltoall.ir.arrays import Ints, starts_of
from alltoall.ir.chunks import PerShard
from alltoall.workloads.ranks import Bytes, Ranks, Turns, Way
from alltoall.workloads.router import Router, Rows, applied, rows_between
from alltoall.workloads.timing import UNTOUCHED, Steps, measure_ways, wrong_shards

ROW_BUFFERS = 7
"""Row buffers at once: sent, received, computed, returned, and for sums and comparison."""

SCORE_BYTES = 24
"""Of every token and expert while experts are drawn."""


class Layer:
    """The tokens and the experts of a rank, its buffers, and the steps on them."""

    def __init__(self, ranks: Ranks, router: Router) -> None:
        self.router, self.rank = router, ranks.rank
        self._tokens = router.embeddings(ranks.rank)
        self._expert, self._share = router.choices(ranks.rank)
        # Rows by expert, and so by rank; where the row of each choice then lies.
        self._order = np.argsort(self._expert.ravel(), kind="stable")
        self._place = np.argsort(self._order, kind="stable")
        table = np.array(ranks.gather(router.sent(ranks.rank)))
        between = rows_between(router, table) * router.row_bytes
        self.there = PerShard(router.ranks, counts=between)
        self.back = PerShard(router.ranks, counts=between.T)
        first = ranks.rank * router.experts_per_rank
        self._mine = range(first, first + router.experts_per_rank)
        self._runs = _runs(table[:, first : first + router.experts_per_rank])
        self._weights = [router.weights(expert) for expert in self._mine]
        self.sent = np.empty((len(self._order), router.hidden), dtype=np.float32)
        self.received = np.empty((int(table[:, self._mine].sum()), router.hidden), dtype=np.float32)
        self.made = np.empty_like(self.received)
        self.returned = np.empty_like(self.sent)
        self.result = np.empty_like(self._tokens)

    def steps(self, way: Way) -> Steps:
        """Return the three steps with the given exchanges."""
        there, back = way.exchanges[0], way.exchanges[-1]

        def dispatch() -> None:
            np.take(self._tokens, self._order // self.router.top_k, axis=0, out=self.sent)
            there.exchange(as_bytes(self.sent), as_bytes(self.received), self.there)

        def combine() -> None:
            back.exchange(as_bytes(self.made), as_bytes(self.returned), self.back)
            self._add_up(self.returned, self.result)

        return [("dispatch", dispatch), ("experts", self._apply), ("combine", combine)]

    def alone(self) -> Rows:
        """Return the result computed by this rank alone."""
        tokens, found = np.repeat(self._tokens, self.router.top_k, axis=0), np.empty_like(self.sent)
        experts = self._expert.ravel()
        for expert in np.unique(experts).tolist():
            of_it = experts == expert
            found[of_it] = applied(self.router.weights(expert), tokens[of_it])
        result = np.empty_like(self._tokens)
        self._add_up(found[self._order], result)
        return result

    def _apply(self) -> None:
        """Let each expert of this rank make something of its rows, which lie by source."""
        for weights, runs in zip(self._weights, self._runs, strict=True):
            for run in runs:
                self.made[run] = applied(weights, self.received[run])

    def _add_up(self, rows: Rows, result: Rows) -> None:
        """Return the weighted sum of each token's expert results, in the order of its choices."""
        result[...] = 0
        for choice in range(self.router.top_k):
            place = self._place[choice :: self.router.top_k]
            result += self._share[:, choice, None] * rows[place]


def _runs(table: Ints) -> list[list[slice]]:
    """Return the places of each local expert's rows from every source."""
    starts = starts_of(table.ravel())
    runs = [slice(*starts[at : at + 2].tolist()) for at in range(table.size)]
    experts = table.shape[1]
    return [[run for run in runs[e::experts] if run.start < run.stop] for e in range(experts)]


def as_bytes(rows: Rows) -> Bytes:
    """Return rows as bytes, in place."""
    return rows.reshape(-1).view(np.uint8)


def dispatch_and_combine(
    ranks: Ranks, ways: Sequence[Way], parameters: Mapping[str, Any], turns: Turns
) -> dict[str, Any]:
    """Check and time the layer by every exchange; return rows and violations."""
    layer = Layer(ranks, Router(**parameters))
    expected = layer.alone()
    check = partial(_checked, ranks, layer, expected)
    return measure_ways(ranks, ways, layer.steps, check, turns)


def _checked(ranks: Ranks, layer: Layer, expected: Rows, way: Way) -> tuple[float, list[str]]:
    """Run the layer once into buffers of NaN; return the error and violations."""
    for rows in (layer.received, layer.returned):
        as_bytes(rows)[:] = UNTOUCHED
    violations = []
    for _, step in layer.steps(way):
        step()
    for sent, found, shard, name in (
        (layer.sent, layer.received, layer.there, "dispatch"),
        (layer.made, layer.returned, layer.back, "combine"),
    ):
        subject = f"{name} by {way.name}"
        violations += wrong_shards(ranks, as_bytes(sent), as_bytes(found), shard, subject)
    error = float(np.abs(layer.result - expected).max())
    errors = ranks.gather(error)
    violations += [
        f"by {way.name}: the result of rank {rank} is off by {each:.1e} from what it computes "
        "without the others; expected the same bits"
        for rank, each in enumerate(errors)
        if each != 0  # nor is what is not a number
    ]
    return max(errors), violations


def needed_bytes(router: Router) -> int:
    """Estimate the memory of all ranks together."""
    rows = router.ranks * router.tokens * router.top_k
    scores = SCORE_BYTES * router.ranks * router.tokens * router.experts
    return ROW_BUFFERS * rows * router.row_bytes + scores
