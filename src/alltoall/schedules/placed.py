"""`Placed`: all chunks of a problem on their paths, without steps."""

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from alltoall.ir.arrays import Floats, Ints, inner_index
from alltoall.ir.chunks import Chunks
from alltoall.ir.flow import Flow
from alltoall.ir.paths import Paths
from alltoall.ir.problem import Problem
from alltoall.ir.routes import Routes
from alltoall.lp.settings import never
from alltoall.placing.chunks import Chunks as CutChunks
from alltoall.placing.chunks import Table
from alltoall.routes.route_chunks import RouteChunks
from alltoall.routes.single import spread_chunks
from alltoall.schedules.timed_chunks import mean_shard, require_few
from alltoall.settings import RouteSettings, SolveSettings


@dataclass(frozen=True)
class ListParams:
    """Effort of schedules by list; `benchmarks/resolve.py` and `benchmarks/scale.py` measure it.

    Paths are negotiated for up to `negotiated` chunks; with more of them, cutting finer gains as
    much. Steps take 1, 1/2, 1/4, ... 1/`most_parts` of the time of the paths, and none is cut short
    below the share `shortest_step` of its quota. More chunks per shard are tried while there are at
    most `most_chunks` in all. Where no most is given, up to `most_in_rounds` chunks of a shard go
    in rounds, and `few_chunks` in all. Windows of rounds grow by a step, or by one in
    `finer_window` of a period.
    """

    negotiated: int = 2_000
    most_parts: int = 128
    shortest_step: float = 0.125
    most_chunks: int = 400_000
    most_in_rounds: int = 1024
    few_chunks: int = 12_000
    finer_window: int = 8


@dataclass(frozen=True, eq=False)
class Placed:
    """All chunks of a problem by pair, each with its path and its size."""

    problem: Problem
    chunks: Chunks
    paths: Paths
    chunk: Ints
    size: Floats

    @property
    def time(self) -> float:
        """The largest load of the paths over capacity: a lower bound on the time of any order."""
        topology = self.problem.topology
        return float((self.paths.load(self.size, topology.links) / topology.capacity).max())


def place_chunks(flow: Flow, per_shard: int, solving: SolveSettings) -> Placed:
    """Cut all shards into chunks, `per_shard` of size 1, and give every chunk a path."""
    settings = RouteSettings(solve=solving)

    def spread(cut: CutChunks) -> Table:
        return spread_chunks(flow, per_shard, cut, settings, "list", ListParams.negotiated)

    return place_all(flow.problem, per_shard, spread)


def place_all(problem: Problem, per_shard: int, spread: Callable[[CutChunks], Table]) -> Placed:
    """Cut all shards into chunks, and put these on the paths of `spread`."""
    terminals = problem.topology.terminals
    chunks = Chunks.of_demand(problem.demand, per_shard)
    require_few(chunks.total)
    pairs = problem.demand.pairs()
    counts = chunks.of(*pairs)
    source, destination = (np.repeat(each, counts) for each in pairs)
    size = np.repeat(problem.demand.of(*pairs) / counts, counts)
    table = spread(CutChunks(terminals[source], terminals[destination], size))
    paths = Paths.from_table(source, destination, table)
    return Placed(problem, chunks, paths, inner_index(counts), size)


def place_routes(routes: Routes, per_shard: int) -> Placed:
    """Cut all shards into chunks, and divide these over the routes by largest remainders."""
    chunks = Chunks.of_demand(routes.problem.demand, per_shard)
    require_few(chunks.total)
    cut = RouteChunks(routes, per_shard, never)
    paths = cut.paths.select(cut.rounded().path)
    return Placed(routes.problem, chunks, paths, inner_index(cut.counts), cut.size)


def per_shard(problem: Problem, chunks: int) -> int:
    """Return the chunks of a shard of size 1 that make about `chunks` of one of mean size."""
    return max(1, round(chunks / mean_shard(problem)))


def most_per_shard(problem: Problem, chunks: int) -> int:
    """Return the chunks of a shard of size 1 that make at most `chunks` of one of mean size."""
    return max(1, int(chunks / mean_shard(problem) * (1 + 1e-9)))
