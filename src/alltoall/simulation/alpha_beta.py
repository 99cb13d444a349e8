"""Simulate schedules: by the alpha-beta model, or with max-min fair rates of messages.

All chunks from one terminal to another in one step are one message, as in `ir.messages`. A message
of b bytes over links of rate r and latency a, in dataflow:

    ready     all its chunks have arrived at its sender, and links have ended earlier steps
    issued    after the overhead of each message of its sender in this step, one after the other
    ends      a link works on all its messages of a step until the last has ended: b / r each
    arrives   when the last of its links has ended, after the sum of their latencies

With a barrier, a step is ready when all messages of the step before have arrived. Terminals store
and forward; other nodes (switches, NIC halves) pass on within the step. An injection limit is an
additional link at both ends of every message.

Here links carry earlier steps first. TCP, and most NICs, know no steps: concurrent messages of a
host share its bandwidth evenly, and larger ones end later. Over such a fair transport:

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
from alltoall.errors import InputError
from alltoall.ir.arrays import Floats, Ints, inner_index, starts_of
from alltoall.ir.fabric import Fabric
from alltoall.ir.schedule import Schedule
from alltoall.simulation.fluid import ENTRIES_AT_ONCE

SYNCS = ("dataflow", "step")
"""Messages wait for the chunks that they forward, or for a barrier after every step."""

SHARINGS = ("due", "fair")
"""Link policies: earlier steps first, or fair sharing among all active messages."""

MOST_HOPS_DOUBLED = 40
"""Doublings of the links of a chunk in one step, more than any topology has."""


@dataclass(frozen=True, eq=False)
class StepMessages:
    """Messages by step: m goes in step `step[m]` from terminal `sender[m]` to `receiver[m]`.

    In use u, `shards[u]` of message `message[u]` cross the link `link[u]` on the path `trail[u]`;
    parallel parts of a message have different trails. Message `later[w]` waits for the arrival of
    `earlier[w]`, of an earlier step.
    """

    step: Ints
    sender: Ints
    receiver: Ints
    message: Ints
    link: Ints
    trail: Ints
    shards: Floats
    later: Ints
    earlier: Ints


def messages_of_schedule(schedule: Schedule) -> StepMessages:
    """Return the messages of a schedule with their dependencies."""
    topology, position = schedule.problem.topology, schedule.problem.topology.position
    tail, head = topology.tail[schedule.link], topology.head[schedule.link]
    root = _roots(schedule, tail, head)
    delivers = position[head] >= 0
    receiver = np.zeros(schedule.sends, dtype=np.int64)
    receiver[root[delivers]] = position[head[delivers]]
    terminals = len(topology.terminals)
    key = (schedule.step * terminals + position[tail[root]]) * terminals + receiver[root]
    known, message = np.unique(key, return_inverse=True)
    later, earlier = _waits(schedule, tail, head, message, delivers)
    return StepMessages(
        step=known // terminals**2,
        sender=known // terminals % terminals,
        receiver=known % terminals,
        message=message,
        link=schedule.link,
        trail=root,
        shards=schedule.sizes(),
        later=later,
        earlier=earlier,
    )


def _places(schedule: Schedule, tail: Ints, head: Ints) -> tuple[Ints, Ints]:
    """Return numbers of the (chunk, node) at the tail and at the head of every send."""
    topology = schedule.problem.topology
    pair = schedule.source * len(topology.terminals) + schedule.destination
    most = int(schedule.chunk.max(initial=0)) + 1
    chunk = np.unique(pair * most + schedule.chunk, return_inverse=True)[1]
    ends = np.concatenate([chunk * topology.nodes + tail, chunk * topology.nodes + head])
    place = np.unique(ends, return_inverse=True)[1]
    return place[: schedule.sends], place[schedule.sends :]


def _roots(schedule: Schedule, tail: Ints, head: Ints) -> Ints:
    """Return for every send the one by which its chunk left a terminal in the same step."""
    passing = schedule.problem.topology.position[tail] < 0
    root = np.arange(schedule.sends)
    if not passing.any():
        return root
    taken, put = _places(schedule, tail, head)
    order = np.argsort(put * schedule.steps + schedule.step, kind="stable")
    found = (put * schedule.steps + schedule.step)[order]
    wanted = (taken * schedule.steps + schedule.step)[passing]
    at = np.minimum(np.searchsorted(found, wanted), len(found) - 1)
    root[passing] = np.where(found[at] == wanted, order[at], root[passing])
    for _ in range(MOST_HOPS_DOUBLED):
        further = root[root]
        if np.array_equal(further, root):
            break
        root = further
    stray = np.flatnonzero(passing[root])
    if len(stray):
        name = schedule.problem.topology.link_name(int(schedule.link[stray[0]]))
        raise InputError(
            f"send {stray[0]} takes a chunk over {name}, whose tail stores nothing and was not "
            "given it in this step; expected a schedule that verifies"
        )
    return root


def _waits(
    schedule: Schedule, tail: Ints, head: Ints, message: Ints, delivers: np.ndarray
) -> tuple[Ints, Ints]:
    """Return the pairs of messages that wait for each other: the first delivery of each chunk."""
    terminals = schedule.problem.topology.terminals
    relays = schedule.problem.topology.position[tail] >= 0
    relays &= tail != terminals[schedule.source]
    taken, put = _places(schedule, tail, head)
    brought = np.flatnonzero(delivers)
    # Sends are ordered by step, so the first of equal places is the first delivery.
    places, first = np.unique(put[brought], return_index=True)
    wanted = np.flatnonzero(relays)
    at = np.minimum(np.searchsorted(places, taken[wanted]), max(len(places) - 1, 0))
    if len(wanted) and not np.array_equal(places[at], taken[wanted]):
        raise InputError("a send takes a chunk from where it never arrives; verify the schedule")
    count = int(message.max(initial=0)) + 1
    before = message[brought[first[at]]] if len(wanted) else np.zeros(0, dtype=np.int64)
    pairs = np.unique(message[wanted] * count + before)
    return pairs // count, pairs % count


def seconds_of_messages(
    messages: StepMessages, fabric: Fabric, shard_bytes: float, sync: str, start: Floats
) -> float:
    """Return the arrival time of the last message, with the start time of each terminal."""
    message, resources, seconds = _works(messages, fabric, shard_bytes)
    latency = latencies(messages, fabric)
    steps = np.unique(messages.step)
    of_step = np.searchsorted(messages.step, np.append(steps, steps[-1] + 1))
    uses = np.searchsorted(message, of_step)
    waits = np.searchsorted(messages.later, of_step)
    ready = start[messages.sender]
    arrival = np.zeros(len(messages.step))
    free = np.zeros(fabric.topology.links + 2 * len(fabric.topology.terminals))
    barrier = 0.0
    for index in range(len(steps)):
        first, last = int(of_step[index]), int(of_step[index + 1])
        wait, use = (slice(int(at[index]), int(at[index + 1])) for at in (waits, uses))
        np.maximum.at(ready, messages.later[wait], arrival[messages.earlier[wait]])
        begin = np.maximum(ready[first:last], barrier)
        begin = _issue_times(begin, messages.sender[first:last], fabric.overhead)
        mine, resource = message[use] - first, resources[use]
        np.maximum.at(begin, mine, free[resource])
        ended = _end_times(begin[mine], resource, seconds[use])
        free[resource] = ended
        here = np.zeros(last - first)
        np.maximum.at(here, mine, ended)
        arrival[first:last] = here + latency[first:last]
        if sync == "step":
            barrier = max(barrier, float(arrival[first:last].max()))
    return float(arrival.max())


def _works(messages: StepMessages, fabric: Fabric, shard_bytes: float) -> tuple[Ints, Ints, Floats]:
    """Return message, resource and seconds of each work item, limited terminals included."""
    links, terminals = fabric.topology.links, len(fabric.topology.terminals)
    message, resource, shards = messages.message, messages.link, messages.shards
    rate, resources = fabric.link_rates, links + 2 * terminals
    if fabric.injection is not None:
        # The size of each message: the sum over its parallel parts.
        first = np.unique(messages.trail, return_index=True)[1]
        parts = messages.message[first], messages.shards[first]
        total = np.bincount(*parts, len(messages.step)).astype(np.float64)
        every = np.arange(len(messages.step))
        message = np.concatenate([message, every, every])
        ends = (links + messages.sender, links + terminals + messages.receiver)
        resource = np.concatenate([resource, *ends])
        shards = np.concatenate([shards, total, total])
        rate = np.concatenate([rate, np.full(2 * terminals, fabric.injection)])
    used, place = np.unique(message * resources + resource, return_inverse=True)
    amount = np.bincount(place, shards, len(used)) * shard_bytes
    resource = used % resources
    return used // resources, resource, amount / rate[resource]


def latencies(messages: StepMessages, fabric: Fabric) -> Floats:
    """Return the latency of each message: that of its slowest part."""
    trails, trail = np.unique(messages.trail, return_inverse=True)
    along = np.bincount(trail, fabric.latency[messages.link], len(trails))
    latency = np.zeros(len(messages.step))
    np.maximum.at(latency, messages.message, along[trail])
    return latency


def _issue_times(ready: Floats, sender: Ints, overhead: float) -> Floats:
    """Return the issue times of the messages of a step, sequential at each sender."""
    if overhead == 0:
        return np.array(ready)
    order = np.lexsort((ready, sender))
    fresh = np.append(True, np.diff(sender[order]) != 0)
    turn = np.arange(len(order)) - np.flatnonzero(fresh)[np.cumsum(fresh) - 1]
    issued = ready[order] + overhead
    for each in range(1, int(turn.max()) + 1):
        now = np.flatnonzero(turn == each)
        issued[now] = np.maximum(issued[now], issued[now - 1] + overhead)
    found = np.empty_like(issued)
    found[order] = issued
    return found


def _end_times(begin: Floats, resource: Ints, seconds: Floats) -> Floats:
    """Return the time when the resource of each use has ended all its work of the step.

    A resource never idles with work waiting: its end is the latest sum of the begin of a use and
    all work from then on.
    """
    order = np.lexsort((begin, resource))
    fresh = np.append(True, np.diff(resource[order]) != 0)
    bounds = np.append(np.flatnonzero(fresh), len(order))
    done = np.append(0.0, np.cumsum(seconds[order]))
    segment = np.cumsum(fresh) - 1
    rest = done[bounds[1:]][segment] - done[:-1]
    last = np.maximum.reduceat(begin[order] + rest, bounds[:-1])
    found = np.empty_like(begin)
    found[order] = last[segment]
    return found


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
    later, earlier, gates = _gated_waits(messages, sync)
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


def _gated_waits(messages: StepMessages, sync: str) -> tuple[Ints, Ints, int]:
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
