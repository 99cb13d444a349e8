"""Order chunks on their paths by list scheduling, in longer and shorter steps.

List scheduling (`serve`) sends chunks step by step, the most urgent first, in steps of up to a
quota. Fewer steps cost time, so quotas are tried from one long step down to many short ones.

A path is a row of legs: the links that a chunk passes within one step, from one terminal to the
next. Let R[l] be the remaining work of link l, S[l] the part of it that waits at its tail now, and
R the largest R[l]. No order takes less than R from here, and link l may idle for R - R[l] without
adding to that. So it starves, and delays the end, after

    slack[l]  =  R - R[l] + S[l].

**Duration:** a step ends when the first link starves, so it takes the least slack of all links with
more work to come, and at most the quota. **Priority:** of the chunks that wait for a link, the
first is the one whose further path leads to the link of least slack; ties go to the longer path,
and then to the larger chunk.
"""

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np

from alltoall import core
from alltoall.errors import InputError
from alltoall.ir.answer import Certificate
from alltoall.ir.arrays import Floats, Ints, inner_index, starts_of
from alltoall.ir.chunks import Chunks
from alltoall.ir.flow import Flow
from alltoall.ir.paths import Paths
from alltoall.ir.problem import Problem
from alltoall.ir.routes import Routes
from alltoall.ir.schedule import Schedule
from alltoall.ir.topology import Topology
from alltoall.lp.settings import never
from alltoall.placing.chunks import Chunks as CutChunks
from alltoall.placing.chunks import Table
from alltoall.routes.single import spread_chunks
from alltoall.routes.whole_chunks import RouteChunks
from alltoall.schedules.chunks import CutShards, mean_shard, require_few
from alltoall.settings import Late, RouteSettings, ScheduleSettings, SolveSettings


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
    cut = CutShards.of(problem, per_shard)
    paths = Paths.from_table(cut.source, cut.destination, spread(CutChunks(*cut.ends, cut.size)))
    return Placed(problem, cut.chunks, paths, cut.chunk, cut.size)


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


@dataclass(frozen=True, eq=False)
class Legs:
    """The legs of all chunks: leg g has the links `begin[g]` to `begin[g + 1]` of the paths.

    Chunk c has the legs `first[c]` to `first[c + 1]`.
    """

    first: Ints
    begin: Ints

    @property
    def most(self) -> int:
        """The most legs of a chunk: a lower bound on the number of steps."""
        return int(np.diff(self.first).max())


def legs_of(topology: Topology, paths: Paths) -> Legs:
    """Return the legs of paths."""
    ends = np.isin(topology.head[paths.link], topology.terminals)
    legs = np.bincount(paths.path_of_link, ends, paths.count).astype(np.int64)
    return Legs(starts_of(legs), np.append(0, np.flatnonzero(ends) + 1))


def serve(
    topology: Topology,
    paths: Paths,
    size: Floats,
    quota: float,
    shortest: float,
    late: Late = never,
) -> core.ListScheduler | None:
    """Send all chunks in steps of up to the quota; return None if it gets late.

    A step takes at least as long as the largest chunk that it sends, and at least the share
    `shortest` of the quota: a share of 1 gives the fewest steps.
    """
    legs, pace = legs_of(topology, paths), 1 / topology.capacity
    scheduler = core.ListScheduler(
        size, legs.first, legs.begin, paths.link, pace, quota, shortest * quota
    )
    while not scheduler.done:
        if late():
            return None
        scheduler.step()
    return scheduler


@dataclass(frozen=True, eq=False)
class Ordered:
    """Chunks on their paths, the step of each leg, and the time of all steps."""

    placed: Placed
    leg_step: Ints
    steps: int
    time: float

    @classmethod
    def of(cls, placed: Placed, leg_step: Ints) -> "Ordered":
        """Return an order from the step of each leg."""
        steps = int(leg_step.max()) + 1
        time = cls(placed, leg_step, steps, 0.0).durations().sum()
        return cls(placed, leg_step, steps, float(time))

    def without_empty(self) -> "Ordered":
        """Return the same order without empty steps."""
        used, step = np.unique(self.leg_step, return_inverse=True)
        return replace(self, leg_step=step, steps=len(used))

    @cached_property
    def legs(self) -> Legs:
        """The legs of all paths."""
        return legs_of(self.placed.problem.topology, self.placed.paths)

    @cached_property
    def step(self) -> Ints:
        """The step of every link of every path."""
        return np.repeat(self.leg_step, np.diff(self.legs.begin))

    def durations(self) -> Floats:
        """Return the duration of each step."""
        topology, paths = self.placed.problem.topology, self.placed.paths
        place = self.step * topology.links + paths.link
        size = self.placed.size[paths.path_of_link]
        load = np.bincount(place, size, self.steps * topology.links)
        slowest = (load.reshape(self.steps, -1) / topology.capacity).max(axis=1)
        return np.asarray(slowest, dtype=np.float64)

    def cost(self, latency: float) -> float:
        """Return the time, plus a latency for each step."""
        return self.time + latency * self.steps

    def write(
        self, certificate: Certificate, fractional_time: float, method: str = "list"
    ) -> Schedule:
        """Return the schedule of this order."""
        placed, chunk = self.placed, self.placed.paths.path_of_link
        order = np.lexsort((placed.paths.link, chunk, self.step))
        chunk = chunk[order]
        return Schedule(
            problem=placed.problem,
            chunks=placed.chunks,
            steps=self.steps,
            step=self.step[order],
            source=placed.paths.source[chunk],
            destination=placed.paths.destination[chunk],
            chunk=placed.chunk[chunk],
            link=placed.paths.link[order],
            certificate=certificate,
            fractional_time=fractional_time,
            method=method,
        )


def order_by_list(
    placed: Placed, quota: float, shortest: float = ListParams.shortest_step, late: Late = never
) -> Ordered | None:
    """Order chunks by a list, in steps of up to the quota; return None if it gets late."""
    topology = placed.problem.topology
    served = serve(topology, placed.paths, placed.size, quota, shortest, late)
    if served is None:
        return None
    return Ordered(placed, served.step_of_leg, served.steps, served.time)


def orders_of(placed: Placed, settings: ScheduleSettings) -> Iterator[Ordered]:
    """Yield at least one order, then orders of shorter and shorter steps while more steps can pay.

    With a given number of steps, the first order has the fewest steps.
    """
    least, latency = placed.time, settings.latency
    fewest = [(1, 1.0)] if settings.steps is not None else []
    doubling = (2**power for power in range(ListParams.most_parts.bit_length()))
    best, late = np.inf, never
    for parts, shortest in (*fewest, *((each, ListParams.shortest_step) for each in doubling)):
        found = order_by_list(placed, least / parts, shortest, late)
        if found is None:
            return
        settings.solve.report(f"{found.steps} steps: {found.time / least - 1:.2%} over the paths")
        yield found
        late = settings.solve.out_of_time
        best = min(best, found.cost(latency))
        none_left = least + latency * found.steps >= best / (1 + settings.step_tolerance)
        if found.steps > (settings.steps or found.steps) or none_left:
            return


def best_order(several: list[Ordered], settings: ScheduleSettings) -> Ordered:
    """Return the order of least cost, and of fewest steps among those that cost little more."""
    allowed = [each for each in several if each.steps <= (settings.steps or each.steps)]
    if not allowed:
        raise InputError(
            f"{settings.steps} steps; expected at least {several[0].legs.most}, as many as the "
            "longest path has: ask for more, or for the method tsmcf"
        )
    latency = settings.latency
    near = min(each.cost(latency) for each in allowed) * (1 + settings.step_tolerance)
    return min(
        (each for each in allowed if each.cost(latency) <= near),
        key=lambda each: (each.steps, each.time),
    )


def cheaper(one: Ordered, other: Ordered, latency: float) -> Ordered:
    """Return the order that costs less; the first if both cost the same."""
    return other if other.cost(latency) < one.cost(latency) * (1 - 1e-9) else one
