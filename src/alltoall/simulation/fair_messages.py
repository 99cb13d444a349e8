"""Simulate schedules over a fair transport: active messages have max-min fair rates.

In the alpha-beta model links carry earlier steps first. TCP, and most NICs, know no steps:
concurrent messages of a host share its bandwidth evenly, and larger ones end later.

    ready     all its chunks have arrived at its sender; with barriers, all messages of the step
              before have arrived
    issued    after the overhead of each message of its sender, one after the other
    begins    when the message before it, between the same two terminals, has left
    rate      by progressive filling, over links and injection limits
    arrives   when all of it has left, after the latencies of its links

A message on several paths has a part on each, with rates proportional to the parts.
"""

from dataclasses import dataclass

import numpy as np

from alltoall import core
from alltoall.ir.arrays import Floats, Ints, inner_index, starts_of
from alltoall.ir.fabric import Fabric
from alltoall.simulation.alpha_beta import StepMessages, latencies
from alltoall.simulation.fluid import ENTRIES_AT_ONCE


@dataclass(frozen=True, eq=False)
class _Parts:
    """Part p of message `message[p]` has `shards[p]` for `resource[start[p]:start[p + 1]]`.

    Parts are in the order of their messages.
    """

    message: Ints
    shards: Floats
    start: Ints
    resource: Ints


def seconds_of_fair_messages(
    messages: StepMessages, fabric: Fabric, shard_bytes: float, sync: str, start: Floats
) -> float:
    """Return the arrival time of the last message, with the start time of each terminal."""
    parts = _parts(messages, fabric)
    total = np.bincount(parts.message, parts.shards)
    limits = () if fabric.injection is None else (np.full(2 * len(start), fabric.injection),)
    later, earlier, gates = _waits(messages, sync)
    count = len(messages.step) + gates
    sender = np.append(messages.sender, np.full(gates, len(start)))
    waits = 1 + np.bincount(later, minlength=count)
    # The next message between the same two terminals.
    pair = messages.sender * (int(messages.receiver.max(initial=0)) + 1) + messages.receiver
    of_pair = np.argsort(pair, kind="stable")
    follows = np.flatnonzero(np.diff(pair[of_pair]) == 0)
    successor = np.full(count, -1, dtype=np.int64)
    successor[of_pair[follows]] = of_pair[follows + 1]
    waits[successor[successor >= 0]] += 1
    order = np.argsort(earlier, kind="stable")
    rates = core.FairMessages(
        parts.start,
        parts.resource,
        np.concatenate((fabric.link_rates, *limits)),
        parts.shards / total[parts.message],
        parts.shards * shard_bytes,
        starts_of(np.bincount(parts.message, minlength=count)),
        waits,
        starts_of(np.bincount(earlier, minlength=count)),
        later[order],
        successor,
        sender,
        np.append(latencies(messages, fabric), np.zeros(gates)),
        np.where(np.arange(count) < len(messages.step), fabric.overhead, 0.0),
        np.append(start, 0.0),
    )
    events = max(1, ENTRIES_AT_ONCE // len(parts.resource))
    while not rates.advance(events):
        pass  # Python handles Ctrl-C here.
    return rates.now


def _waits(messages: StepMessages, sync: str) -> tuple[Ints, Ints, int]:
    """Return the pairs of messages that wait for each other, and the number of gates.

    A barrier is a gate: an empty message that waits for a step, and for which the next step waits.
    """
    if sync != "step":
        return messages.later, messages.earlier, 0
    number = np.unique(messages.step, return_inverse=True)[1]
    count, gates = len(number), int(number.max(initial=0))
    every = np.arange(count)
    before, after = every[number < gates], every[number > 0]
    later = np.concatenate((count + number[before], after))
    earlier = np.concatenate((before, count + number[after] - 1))
    return later, earlier, gates


def _parts(messages: StepMessages, fabric: Fabric) -> _Parts:
    """Return the parts of each message with their paths."""
    order = np.lexsort((messages.link, messages.trail))
    trail, link = messages.trail[order], messages.link[order]
    first = np.flatnonzero(np.append(True, np.diff(trail) != 0))
    hops = np.diff(np.append(first, len(trail)))
    rows = np.full((len(first), 1 + int(hops.max(initial=0))), -1, dtype=np.int64)
    rows[:, 0] = messages.message[order][first]
    rows[np.repeat(np.arange(len(first)), hops), 1 + inner_index(hops)] = link
    ways, part = np.unique(rows, axis=0, return_inverse=True)
    message = ways[:, 0]
    if fabric.injection is not None:
        links, terminals = fabric.topology.links, len(fabric.topology.terminals)
        ends = (links + messages.sender[message], links + terminals + messages.receiver[message])
        ways = np.column_stack((ways, *ends))
    used = ways[:, 1:] >= 0
    shards = np.bincount(part.ravel(), messages.shards[order][first], len(ways))
    return _Parts(
        message, shards.astype(np.float64), starts_of(used.sum(axis=1)), ways[:, 1:][used]
    )
