"""Put the messages of a lowered schedule, or of a program, on the links of a topology.

Every send instruction of a program, such as MSCCL XML of another tool, is a message. It waits for
the messages that its thread, and those in its `after`, received since they last sent. A thread
sends to one rank in order: the step of a message follows that of its predecessor in the thread and
of all messages it waits for. FIFOs are unlimited.
"""

from collections import defaultdict, deque
from collections.abc import Iterator
from itertools import pairwise

import numpy as np

from alltoall.errors import InputError
from alltoall.ir.arrays import Floats, Ints
from alltoall.ir.messages import Messages, RankMessages
from alltoall.ir.program import EFFECTS, Program
from alltoall.ir.topology import Topology
from alltoall.simulation.alpha_beta import StepMessages

Way = list[tuple[list[int], float]]
"""The paths from one rank to another: links, and the share of the message on them."""


def messages_of_lowered(lowered: Messages, topology: Topology) -> StepMessages:
    """Return messages on a topology whose terminals, in order, are their ranks.

    A message takes the links from its sender to its receiver, in proportion to their capacities;
    without such links, a shortest path through switches.
    """
    ranks = len(lowered.ranks)
    if ranks != len(topology.terminals):
        raise InputError(
            f"messages of {ranks} ranks on {topology.name}, which has "
            f"{len(topology.terminals)} terminals; expected a rank for each of them"
        )
    key = [_keys(part, ranks) for part in lowered.ranks]
    sent = [keys[part.sends] for keys, part in zip(key, lowered.ranks, strict=True)]
    known = np.sort(np.concatenate(sent))
    step, sender, receiver = known // ranks**2, known // ranks % ranks, known % ranks
    shards = np.zeros(len(known))
    later: list[Ints] = []
    earlier: list[Ints] = []
    for part, keys in zip(lowered.ranks, key, strict=True):
        place = np.searchsorted(known, keys)
        shards[place[part.sends]] = _sizes(part)[part.sends]
        later.append(np.repeat(place, np.diff(part.waits_first)))
        earlier.append(place[part.waits])
    pairs = np.unique(np.concatenate(later) * len(known) + np.concatenate(earlier))
    use = uses_of(topology, sender, receiver, shards)
    return StepMessages(
        step, sender, receiver, *use, later=pairs // len(known), earlier=pairs % len(known)
    )


def _keys(part: RankMessages, ranks: int) -> Ints:
    """Return a number for each message from its step, sender and receiver."""
    sender = np.where(part.sends, part.rank, part.peer)
    receiver = np.where(part.sends, part.peer, part.rank)
    return np.asarray((part.step * ranks + sender) * ranks + receiver)


def _sizes(part: RankMessages) -> Floats:
    """Return the size of every message, in shards."""
    chunk = part.demand.of(part.source, part.destination)
    size = chunk / part.chunks.of(part.source, part.destination) * part.count
    return np.asarray(np.add.reduceat(size, part.first[:-1])) if part.messages else np.zeros(0)


def uses_of(
    topology: Topology, sender: Ints, receiver: Ints, shards: Floats
) -> tuple[Ints, Ints, Ints, Floats]:
    """Return message, link, trail and shards of every use."""
    ways: dict[tuple[int, int], Way] = {}
    rows: list[tuple[int, int, int]] = []
    amount: list[float] = []
    trail = 0
    for index, ends in enumerate(zip(sender.tolist(), receiver.tolist(), strict=True)):
        if ends not in ways:
            ways[ends] = _way(topology, *topology.terminals[list(ends)].tolist())
        for links, share in ways[ends]:
            rows += [(index, link, trail) for link in links]
            amount += [shards[index] * share] * len(links)
            trail += 1
    message, link, trails = np.array(rows, dtype=np.int64).reshape(-1, 3).T
    return message, link, trails, np.array(amount)


def _way(topology: Topology, start: int, goal: int) -> Way:
    """Return the parallel links from one node to another, or a path through switches."""
    direct = np.flatnonzero((topology.tail == start) & (topology.head == goal))
    if len(direct):
        share = topology.capacity[direct] / topology.capacity[direct].sum()
        return [([link], part) for link, part in zip(direct.tolist(), share.tolist(), strict=True)]
    by: dict[int, int] = {start: -1}
    queue = deque([start])
    while queue and goal not in by:
        node = queue.popleft()
        for link in np.flatnonzero(topology.tail == node).tolist():
            head = int(topology.head[link])
            if head not in by and (head == goal or topology.position[head] < 0):
                by[head] = link
                queue.append(head)
    if goal not in by:
        ends = topology.node_name(start), topology.node_name(goal)
        raise InputError(
            f"a message from node {ends[0]} to node {ends[1]}, between which {topology.name} has "
            "no link and no way through switches; expected the topology that it was made for"
        )
    links: list[int] = []
    while goal != start:
        links.append(by[goal])
        goal = int(topology.tail[by[goal]])
    return [(links[::-1], 1.0)]


Spot = tuple[int, int, int]
"""Rank, thread and number of an instruction."""


def messages_of_program(program: Program, topology: Topology) -> StepMessages:
    """Return messages on a topology whose terminals, in order, are the program's ranks."""
    if not program.chunks.uniform:
        raise InputError("a program of uneven shards cannot be simulated; expected equal ones")
    sends = list(_sends(program))
    number = {spot: index for index, (spot, *_) in enumerate(sends)}
    level: dict[Spot, int] = {}
    awaits: dict[Spot, frozenset[int]] = {}
    received = _received(program, sends)
    for spot in _in_order(program, received):
        rank, block, index = spot
        instruction = program.ranks[rank].threads[block].instructions[index]
        before = [(rank, step.thread, step.number) for step in instruction.after]
        previous = [(rank, block, index - 1)] if index else []
        waits = set[int]().union(*(awaits[each] for each in before))
        waits.update(*(awaits[each] for each in previous if each not in number))
        ready = [level[each] + (each in number) for each in (*before, *previous)]
        if spot in received:
            waits.add(number[received[spot]])
            ready.append(level[received[spot]] + 1)
        level[spot], awaits[spot] = max(ready, default=0), frozenset(waits)
    order = sorted(range(len(sends)), key=lambda each: (level[sends[each][0]], each))
    place = np.argsort(order)
    step = np.array([level[sends[each][0]] for each in order], dtype=np.int64)
    sender, receiver = (np.array([sends[each][end] for each in order]) for end in (1, 2))
    shards = np.array([sends[each][3] for each in order]) / program.chunks.most
    pairs = [
        (later, int(place[earlier]))
        for later, each in enumerate(order)
        for earlier in sorted(awaits[sends[each][0]], key=lambda earlier: int(place[earlier]))
    ]
    later, earlier = np.array(pairs, dtype=np.int64).reshape(-1, 2).T
    uses = uses_of(topology, sender, receiver, shards)
    return StepMessages(step, sender, receiver, *uses, later, earlier)


def _sends(program: Program) -> Iterator[tuple[Spot, int, int, int]]:
    """Yield the spot, sender, receiver and number of chunks of every instruction that sends."""
    for rank, own in enumerate(program.ranks):
        for block, thread in enumerate(own.threads):
            for index, each in enumerate(thread.instructions):
                if EFFECTS[each.op].sends and thread.send_to is not None:
                    yield (rank, block, index), rank, thread.send_to, each.count


def _received(program: Program, sends: list[tuple[Spot, int, int, int]]) -> dict[Spot, Spot]:
    """Return the sending instruction of every receive's last chunk."""
    fifo: defaultdict[tuple[int, int, int], list[Spot]] = defaultdict(list)
    for (rank, block, index), sender, receiver, count in sends:
        channel = program.ranks[rank].threads[block].channel
        fifo[sender, receiver, channel] += [(rank, block, index)] * count
    found = {}
    for rank, own in enumerate(program.ranks):
        for block, thread in enumerate(own.threads):
            popped = 0
            for index, each in enumerate(thread.instructions):
                if EFFECTS[each.op].receives and thread.receive_from is not None:
                    popped += each.count
                    queue = fifo[thread.receive_from, rank, thread.channel]
                    found[rank, block, index] = queue[popped - 1]
    return found


def _in_order(program: Program, received: dict[Spot, Spot]) -> Iterator[Spot]:
    """Yield the instructions in topological order."""
    waiting: defaultdict[Spot, list[Spot]] = defaultdict(list)
    missing: dict[Spot, int] = {}
    for rank, own in enumerate(program.ranks):
        for block, thread in enumerate(own.threads):
            spots = [(rank, block, index) for index in range(len(thread.instructions))]
            before = {spot: [previous] for previous, spot in pairwise(spots)}
            for spot, each in zip(spots, thread.instructions, strict=True):
                needs = before.get(spot, []) + [(rank, a.thread, a.number) for a in each.after]
                needs += [received[spot]] if spot in received else []
                missing[spot] = len(needs)
                for other in needs:
                    waiting[other].append(spot)
    ready = [spot for spot, count in missing.items() if not count]
    while ready:
        spot = ready.pop()
        yield spot
        for other in waiting[spot]:
            missing[other] -= 1
            if not missing[other]:
                ready.append(other)
