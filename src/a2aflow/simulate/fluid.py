"""Routes as a fluid: every flow has a max-min fair rate, which changes when others begin or end.

    a flow begins at its start and the sender's overhead, and has its share of the bytes to send
    rate of flow f       w_f * level_f, by progressive filling over links and, if there is an
                         injection limit, over what each terminal sends and receives
    the last byte is in  when the flow has sent all, after the latencies of the links of its route

Routes are those of fabrics that forward: nothing is stored on the way.
"""

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from a2aflow.ir.arrays import Floats, Ints, inner_index, starts_of
from a2aflow.ir.fabric import Fabric
from a2aflow.ir.paths import Paths
from a2aflow.simulate.filling import WAITING, advance

ENTRIES_AT_ONCE = 20_000_000
"""Links of flows that are gone through before a signal is heard."""


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


def no_report(_: str) -> None:
    """Say nothing."""


def arrivals(
    flows: Flows,
    fabric: Fabric,
    window: float = 0.0,
    report: Callable[[str], None] = no_report,
) -> Floats:
    """Return when the last byte of every flow is in, in seconds.

    What flows leave is taken up by others at once; with a window, no more often than that, which is
    faster to simulate and never shorter.
    """
    paths, capacity = _resources(flows.paths, fabric)
    rounds = flows.rounds if fabric.overhead > 0 else np.ones_like(flows.rounds)
    count = flows.paths.count
    state = np.full(count, WAITING, dtype=np.int64)
    when = flows.start + fabric.overhead
    changing = (state, rounds.copy(), when, np.zeros(count), np.zeros(count))
    # Weights of about 1 and sizes as they are: levels are then rates that resources have.
    weight = flows.weight / flows.weight.max(initial=1e-300)
    part = flows.bytes / rounds
    free, live = capacity.copy(), np.arange(count, dtype=np.int64)
    alive, now = count, 0.0
    while alive:
        events = max(1, ENTRIES_AT_ONCE // max(1, int(alive * len(paths[1]) / count)))
        alive, now = advance(
            paths,
            capacity,
            weight,
            part,
            fabric.overhead,
            window,
            changing,
            free,
            live,
            alive,
            now,
            events,
        )
        report(f"{count - alive:,} of {count:,} flows are done after {now:.3g} s")
    latency = np.add.reduceat(fabric.latency[flows.paths.link], flows.paths.start[:-1])
    return np.asarray(when + latency)


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
