"""Orders of chunks on their paths: longer and shorter steps, and the best of them.

List scheduling (`serve`) sends chunks step by step, the most urgent first, in steps of up to a
quota. Fewer steps cost time, so quotas are tried from one long step down to many short ones.

A path is a row of legs: the links that a chunk passes within one step, from one terminal to the
next. Let R[l] be the time that link l still needs for all that is to pass it, S[l] that for what
waits at its tail now, and R the largest R[l]. No order takes less than R from here, and link l may
idle for R - R[l] without adding to that. So it runs dry, to the loss of all, after

    slack[l]  =  R - R[l] + S[l].

**Duration:** a step ends when the first link runs dry, so it takes the least slack of all links
that have more to come, and no longer than the quota. **Priority:** of the chunks that wait for a
link, the first is the one whose further path leads to the link that runs dry first; among equals,
the longer path, and then the larger chunk.
"""

from collections.abc import Iterator
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np

from alltoall import core
from alltoall.errors import InputError
from alltoall.ir.answer import Certificate
from alltoall.ir.arrays import Floats, Ints, starts_of
from alltoall.ir.paths import Paths
from alltoall.ir.schedule import Schedule
from alltoall.ir.topology import Topology
from alltoall.lp.settings import never
from alltoall.schedules.placed import ListParams, Placed
from alltoall.settings import Late, ScheduleSettings


@dataclass(frozen=True, eq=False)
class Ways:
    """Chunks of a `size` on paths, which are rows of legs.

    Chunk c has the legs `first[c]` to `first[c + 1]`, leg g the links `begin[g]` to `begin[g + 1]`
    of `link`.
    """

    size: Floats
    first: Ints
    begin: Ints
    link: Ints

    @property
    def legs(self) -> int:
        """The most legs of a chunk: the fewest steps that all of them can take."""
        return int(np.diff(self.first).max())


@dataclass(frozen=True, eq=False)
class Served:
    """What comes of list scheduling: the step of each leg, and how long all steps take."""

    step: Ints
    steps: int
    time: float


def ways_of(topology: Topology, paths: Paths, size: Floats) -> Ways:
    """Return chunks on paths, with the legs that these have."""
    ends = np.isin(topology.head[paths.link], topology.terminals)
    legs = np.bincount(paths.path_of_link, ends, paths.count).astype(np.int64)
    return Ways(size, starts_of(legs), np.append(0, np.flatnonzero(ends) + 1), paths.link)


def serve(
    topology: Topology, ways: Ways, quota: float, shortest: float, late: Late = never
) -> Served | None:
    """Send all chunks in steps that take up to the quota; None if it gets late.

    A step that sends anything takes as long as the largest chunk that waits, whatever the quota. It
    is not cut short below the share `shortest` of the quota: of 1, nothing is, and there are fewest
    steps.
    """
    pace = 1 / topology.capacity
    sending = core.ListScheduler(
        ways.size, ways.first, ways.begin, ways.link, pace, quota, shortest * quota
    )
    while not sending.done:
        if late():
            return None
        sending.step()
    return Served(sending.step_of_leg, sending.steps, sending.time)


@dataclass(frozen=True, eq=False)
class Ordered:
    """Chunks on their paths, these as rows of legs, and the step of each leg."""

    placed: Placed
    ways: Ways
    served: Served

    @classmethod
    def of(cls, placed: Placed, step: Ints, steps: int) -> "Ordered":
        """Return an order from the step of each leg."""
        ways = ways_of(placed.problem.topology, placed.paths, placed.size)
        order = cls(placed, ways, Served(step, steps, 0.0))
        return replace(order, served=replace(order.served, time=float(order.durations().sum())))

    def without_empty(self) -> "Ordered":
        """Return the same order without steps in which nothing is sent."""
        used, step = np.unique(self.served.step, return_inverse=True)
        return replace(self, served=replace(self.served, step=step, steps=len(used)))

    @property
    def time(self) -> float:
        """How long all steps take."""
        return self.served.time

    @property
    def steps(self) -> int:
        """How many steps there are."""
        return self.served.steps

    @cached_property
    def step(self) -> Ints:
        """The step of every link of every path."""
        return np.repeat(self.served.step, np.diff(self.ways.begin))

    def durations(self) -> Floats:
        """Return how long each step takes."""
        topology, paths = self.placed.problem.topology, self.placed.paths
        place = self.step * topology.links + paths.link
        size = self.placed.size[paths.path_of_link]
        load = np.bincount(place, size, self.steps * topology.links)
        slowest = (load.reshape(self.steps, -1) / topology.capacity).max(axis=1)
        return np.asarray(slowest, dtype=np.float64)

    def cost(self, latency: float) -> float:
        """Return what it takes, if each step costs something besides its time."""
        return self.time + latency * self.steps

    def write(
        self, certificate: Certificate, fractional_time: float, method: str = "list"
    ) -> Schedule:
        """Write chunks on their ways as the sends of each step."""
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
    """Return chunks in the order of a list, in steps of up to the quota; None if it gets late."""
    topology = placed.problem.topology
    ways = ways_of(topology, placed.paths, placed.size)
    served = serve(topology, ways, quota, shortest, late)
    return None if served is None else Ordered(placed, ways, served)


def orders_of(placed: Placed, settings: ScheduleSettings, every: bool = False) -> Iterator[Ordered]:
    """Yield orders of shorter and shorter steps, until more steps cannot pay; one at least.

    The first has as few steps as there can be, if the number of steps is given or `every` order is
    asked for.
    """
    least, latency = placed.time, settings.latency
    fewest = [(1, 1.0)] if every or settings.steps is not None else []
    doubling = (2**power for power in range(ListParams.most_parts.bit_length()))
    # Fewer steps are taken for this share of the time, so less is not worth more steps.
    near = 1e-9 if every else settings.step_tolerance
    best, late = np.inf, never
    for parts, shortest in (*fewest, *((each, ListParams.shortest_step) for each in doubling)):
        found = order_by_list(placed, least / parts, shortest, late)
        if found is None:
            return
        settings.solve.report(f"{found.steps} steps: {found.time / least - 1:.2%} over the paths")
        yield found
        late = settings.solve.out_of_time
        best = min(best, found.cost(latency))
        none_left = least + latency * found.steps >= best / (1 + near)
        if found.steps > (settings.steps or found.steps) or none_left:
            return


def best_order(several: list[Ordered], settings: ScheduleSettings) -> Ordered:
    """Return the order of least cost, and of fewest steps among those that cost little more."""
    allowed = [each for each in several if each.steps <= (settings.steps or each.steps)]
    if not allowed:
        raise InputError(
            f"{settings.steps} steps; expected at least {several[0].ways.legs}, as many as the "
            "longest path has: ask for more, or for the method tsmcf"
        )
    latency = settings.latency
    near = min(each.cost(latency) for each in allowed) * (1 + settings.step_tolerance)
    return min(
        (each for each in allowed if each.cost(latency) <= near),
        key=lambda each: (each.steps, each.time),
    )


def cheaper(one: Ordered, other: Ordered, latency: float) -> Ordered:
    """Return the order that costs less; the first if there is nothing between them."""
    return other if other.cost(latency) < one.cost(latency) * (1 - 1e-9) else one
