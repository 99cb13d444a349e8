"""Simulate routes as a fluid of flows with max-min fair rates.

    a flow begins after the start time and the overhead of its sender, with its share of the bytes
    rate of flow f     w_f * level_f, by progressive filling over links and injection limits
    the last byte      arrives when the flow has sent all, after the latencies of its links

Rates change when flows begin or end. Switches forward: nothing is stored on the way.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import TypeAlias

import numpy as np

from alltoall import core
from alltoall.errors import UsageError
from alltoall.ir.arrays import Floats, Ints, inner_index, starts_of
from alltoall.ir.fabric import Fabric
from alltoall.ir.paths import Paths
from alltoall.ir.routes import Routes
from alltoall.ir.words import ProgressMessage

Report: TypeAlias = Callable[[str], None]
"""A function for lines of progress."""

ENTRIES_AT_ONCE = 2_000_000
"""Links of flows in one call of the core, between two checks for Ctrl-C."""

ROUNDING = 1e-9
"""The relative rounding error of numbers of messages."""

MOST_FLOWS = MOST_MESSAGES = 1 << 20
"""The most concurrent flows, and messages, of a route: each may be an event."""

WEIGHTS = ("equal", "share")
"""Flows share links equally, or in proportion to the weights of their routes."""

EXACT_FLOWS = 5_000
"""Routes up to which every event is simulated by default."""

COARSE = 1e-3
"""The default resolution of more routes, as a share of the time of the fullest link."""


def silent(_: str) -> None:
    """Report nothing."""


@dataclass(frozen=True, eq=False)
class Flows:
    """Flow f sends `bytes[f]` over path f from `start[f]` on, at a fair share by `weight[f]`.

    It sends `rounds[f]` equal messages, each with the overhead of its sender.
    """

    paths: Paths
    bytes: Floats
    weight: Floats
    start: Floats
    rounds: Ints

    @staticmethod
    def join(parts: Sequence["Flows"]) -> "Flows":
        """Return the flows of several sets, one after the other."""
        keys = ("bytes", "weight", "start", "rounds")
        joined = (np.concatenate([getattr(part, key) for part in parts]) for key in keys)
        return Flows(Paths.join([part.paths for part in parts]), *joined)


def arrivals(flows: Flows, fabric: Fabric, window: float = 0.0, report: Report = silent) -> Floats:
    """Return the arrival time of the last byte of every flow, in seconds.

    Rates change at every event; with a window, at most once in it, which is faster to simulate and
    never gives a shorter time.
    """
    paths, capacity = _resources(flows.paths, fabric)
    rounds = flows.rounds if fabric.overhead > 0 else np.ones_like(flows.rounds)
    count = flows.paths.count
    # Weights of about 1 and sizes as they are: levels are then rates that resources have.
    weight = flows.weight / flows.weight.max(initial=1e-300)
    part, begin = flows.bytes / rounds, flows.start + fabric.overhead
    sending = core.FluidFlows(
        *paths, capacity, weight, part, rounds, begin, fabric.overhead, window
    )
    while alive := sending.alive:
        sending.advance(max(1, int(ENTRIES_AT_ONCE * count / max(1, alive * len(paths[1])))))
        done = count - sending.alive
        text = f"{done:,} of {count:,} flows are done after {sending.now:.3g} s"
        report(ProgressMessage.of_count(text, done, count))
    latency = np.add.reduceat(fabric.latency[flows.paths.link], flows.paths.start[:-1])
    return np.asarray(sending.ends + latency)


def _resources(paths: Paths, fabric: Fabric) -> tuple[tuple[Ints, Ints], Floats]:
    """Return the resources of each path, and their rates: links, and injection limits."""
    if fabric.injection is None:
        return (paths.start, paths.link), fabric.link_rates
    links, terminals = fabric.topology.links, len(fabric.topology.terminals)
    hops = paths.hops
    start = starts_of(hops + 2)
    resource = np.empty(int(start[-1]), dtype=np.int64)
    resource[np.repeat(start[:-1], hops) + inner_index(hops)] = paths.link
    resource[start[1:] - 2] = links + paths.source
    resource[start[1:] - 1] = links + terminals + paths.destination
    limits = np.full(2 * terminals, fabric.injection)
    return (start, resource), np.concatenate([fabric.link_rates, limits])


@dataclass(frozen=True)
class FluidSettings:
    """Settings of the fluid simulation.

    A route has `flows` concurrent flows. They send messages of `chunk_bytes` one after the other,
    or one message each by default; a route of fewer messages has fewer flows.
    """

    weights: str = "equal"
    flows: int = 1
    chunk_bytes: int | None = None
    resolution: float | None = None

    def __post_init__(self) -> None:
        if self.weights not in WEIGHTS:
            known = ", ".join(WEIGHTS)
            raise UsageError(f"weights {self.weights!r}; expected one of {known}")
        if not 1 <= self.flows <= MOST_FLOWS:
            raise UsageError(f"{self.flows} flows of each route; expected 1 to {MOST_FLOWS:,}")
        if self.chunk_bytes is not None and self.chunk_bytes < 1:
            raise UsageError(f"messages of {self.chunk_bytes} bytes; expected 1 or more")
        if self.resolution is not None and not 0 <= self.resolution <= 1:
            raise UsageError(f"resolution {self.resolution:g}; expected a share from 0 to 1")

    def resolution_for(self, routes: int) -> float:
        """Return the requested resolution, or the default one for so many routes."""
        if self.resolution is not None:
            return self.resolution
        return 0.0 if routes <= EXACT_FLOWS else COARSE


def flows_of(routes: Routes, shard_bytes: float, start: Floats, asked: FluidSettings) -> Flows:
    """Return the flows of routes for a shard size, with the start time of each terminal."""
    size = routes.weight * shard_bytes
    messages = np.full(routes.count, float(asked.flows))
    if asked.chunk_bytes is not None:
        messages = np.ceil(size / asked.chunk_bytes * (1 - ROUNDING))
        if float(messages.max()) > MOST_MESSAGES:
            raise UsageError(
                f"a route of {messages.max():.3g} messages; expected {MOST_MESSAGES:,} or fewer. "
                "Use larger ones"
            )
    messages = np.maximum(messages, 1.0)
    side_by_side = np.minimum(messages, asked.flows)
    return Flows(
        paths=routes,
        bytes=size,
        weight=side_by_side if asked.weights == "equal" else routes.weight,
        start=start[routes.source],
        rounds=np.ceil(messages / side_by_side).astype(np.int64),
    )


def seconds_of_phases(
    phases: Sequence[Flows], fabric: Fabric, window: float, report: Report = silent
) -> float:
    """Return the time of the last arrival if each phase begins after the one before."""
    now = 0.0
    for flows in phases:
        begun = replace(flows, start=np.maximum(flows.start, now))
        now = max(now, float(arrivals(begun, fabric, window, report).max()))
    return now


def ends_of_jobs(
    jobs: Sequence[Flows], fabric: Fabric, window: float, report: Report = silent
) -> list[float]:
    """Return the last arrival of each job if all jobs share the links, each on its own routes."""
    found = arrivals(Flows.join(jobs), fabric, window, report)
    cuts = np.cumsum([job.paths.count for job in jobs])[:-1]
    return [float(each.max()) for each in np.split(found, cuts)]
