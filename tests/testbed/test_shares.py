"""Which bytes each route carries: all of them, once, in the ratio of the weights."""

import numpy as np
import pytest

import alltoall
from alltoall.errors import UsageError
from alltoall.ir.chunks import PerShard, shards_of
from alltoall.ir.demand import Demand
from alltoall.ir.routes import Routes
from alltoall.lowering.tables.routed_file import in_file_order
from alltoall.testbed.shares import MOST_CHUNKS, WEIGHTS, Pieces, pieces_of


def cube(method: str = "ewsp", demand: Demand | None = None) -> Routes:
    """Return routes of a cube in file order."""
    return in_file_order(alltoall.route("hypercube:3", f"{method}:layering=none", demand=demand))[0]


def covered(routes: Routes, shard: PerShard, cut: Pieces) -> None:
    """Check that the pieces of each pair lie side by side and make up its shard."""
    pair = routes.pair(8)[cut.route]
    for each in np.unique(routes.pair(8)):
        here = np.flatnonzero(pair == each)
        here = here[np.argsort(cut.offset[here])]
        ends = np.append(cut.offset[here], shard.of(each // 8, each % 8))
        assert ends[0] == 0
        assert np.array_equal(np.diff(ends), cut.length[here])
    assert cut.length.min() > 0


@pytest.mark.parametrize("weights", WEIGHTS)
@pytest.mark.parametrize("size", [1, 5, 997, 100_000])
def test_pieces_make_up_every_shard(weights: str, size: int) -> None:
    """Also where there are fewer bytes than routes or chunks."""
    routes = cube()
    shard = shards_of(routes.problem.demand, size)
    covered(routes, shard, pieces_of(routes, shard, weights))


def test_uneven_shards() -> None:
    """Each pair has its own size, and some have nothing."""
    matrix = np.triu(np.arange(1.0, 65).reshape(8, 8) / 7, 1)
    routes = cube("extp", Demand(8, matrix))
    shard = shards_of(routes.problem.demand, 1000)
    for weights in WEIGHTS:
        covered(routes, shard, pieces_of(routes, shard, weights))


def test_bytes_are_in_the_ratio_of_weights() -> None:
    """No route is off by a byte or more from its exact share."""
    routes = cube()
    shard = shards_of(routes.problem.demand, 100_001)
    carried = pieces_of(routes, shard, "weights").bytes_of(routes.count)
    assert np.abs(carried - 100_001 * routes.weight).max() < 1


def test_chunks_go_round() -> None:
    """A shard of six chunks over six routes: one each, and each is a sixth of it."""
    routes = cube()
    assert routes.denominator == 6
    cut = pieces_of(routes, shards_of(routes.problem.demand, 6000), "chunks")
    assert set(cut.length.tolist()) == {1000}
    two = np.flatnonzero((routes.source == 0) & (routes.destination == 3))
    taken = np.isin(cut.route, two)
    turns = cut.route[taken][np.argsort(cut.offset[taken])] - two[0]
    assert turns.tolist() == [0, 1, 0, 1, 0, 1]
    assert MOST_CHUNKS >= 6


def test_unknown_weights_are_refused() -> None:
    """The message says which there are."""
    routes = cube()
    with pytest.raises(UsageError, match="expected one of weights, chunks, paced, phases"):
        pieces_of(routes, shards_of(routes.problem.demand, 10), "evenly")
