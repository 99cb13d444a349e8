"""Put the messages of a lowered schedule on the links of a topology."""

from collections import deque

import numpy as np

from alltoall.errors import InputError
from alltoall.ir.arrays import Floats, Ints
from alltoall.ir.messages import Messages, RankMessages
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
