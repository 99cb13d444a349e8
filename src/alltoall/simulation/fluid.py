"""Routes as a fluid: every flow has a max-min fair rate, which changes when others begin or end.

    a flow begins at its start and the sender's overhead, and has its share of the bytes to send
    rate of flow f       w_f * level_f, by progressive filling over links and, if there is an
                         injection limit, over what each terminal sends and receives
    the last byte is in  when the flow has sent all, after the latencies of the links of its route

Routes are those of fabrics that forward: nothing is stored on the way.
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
"""What takes a line of progress."""

ENTRIES_AT_ONCE = 2_000_000
"""Links of flows that a call of the core goes through, so that Ctrl-C is heard."""

SAME_MOMENT = 1e-9
"""The share by which numbers of messages may be off by rounding."""

MOST_FLOWS = 1 << 20
"""Flows of one route at once, at most."""

MOST_MESSAGES = 1 << 20
"""Messages of one route, at most: each may be an event."""

WEIGHTS = ("equal", "share")
"""By what flows share links: every flow alike, or every route as paced at its weight."""

EXACT_FLOWS = 5_000
"""Routes up to which every event is simulated, unless a resolution is asked for."""

COARSE = 1e-3
"""The resolution of more routes than that, as a share of what their fullest link takes."""


def no_report(_: str) -> None:
    """Say nothing."""


@dataclass(frozen=True, eq=False)
class Flows:
    """Flow f sends `bytes[f]` over path f from `start[f]` on, at a fair share by `weight[f]`.

    It does so in `rounds[f]` equal parts, each of which costs its sender the overhead of a message.
    """

    paths: Paths
    bytes: Floats
    weight: Floats
    start: Floats
    rounds: Ints

    @staticmethod
    def join(parts: Sequence["Flows"]) -> "Flows":
        """Return the flows of several sets, one after the other."""
        joined = {
            key: np.concatenate([getattr(part, key) for part in parts])
            for key in ("bytes", "weight", "start", "rounds")
        }
        return Flows(Paths.join([part.paths for part in parts]), **joined)


def arrivals(
    flows: Flows, fabric: Fabric, window: float = 0.0, report: Report = no_report
) -> Floats:
    """Return when the last byte of every flow is in, in seconds.

    What flows leave is taken up by others at once; with a window, no more often than that, which is
    faster to simulate and never shorter.
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
    """Return what each path uses, and how much there is of it: links, and what terminals inject."""
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
    """What may be asked of routes as a fluid.

    A route has `flows` flows at once. They send messages of `chunk_bytes` one after the other, or,
    without that, one message each; a route of fewer messages has fewer flows.
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
        """Return what was asked for, or what suits so many routes."""
        if self.resolution is not None:
            return self.resolution
        return 0.0 if routes <= EXACT_FLOWS else COARSE


def flows_of(routes: Routes, shard_bytes: float, start: Floats, asked: FluidSettings) -> Flows:
    """Return the flows of routes, for shards of so many bytes, from when each terminal begins."""
    size = routes.weight * shard_bytes
    messages = np.full(routes.count, float(asked.flows))
    if asked.chunk_bytes is not None:
        messages = np.ceil(size / asked.chunk_bytes * (1 - SAME_MOMENT))
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
    phases: Sequence[Flows], fabric: Fabric, window: float, report: Report = no_report
) -> float:
    """Return when all is in if each phase begins when all of the one before are in."""
    now = 0.0
    for flows in phases:
        begun = replace(flows, start=np.maximum(flows.start, now))
        now = max(now, float(arrivals(begun, fabric, window, report).max()))
    return now


def ends_of_jobs(
    jobs: Sequence[Flows], fabric: Fabric, window: float, report: Report = no_report
) -> list[float]:
    """Return when all of each job is in if all jobs share the links, each by its own routes."""
    found = arrivals(Flows.join(jobs), fabric, window, report)
    cuts = np.cumsum([job.paths.count for job in jobs])[:-1]
    return [float(each.max()) for each in np.split(found, cuts)]
