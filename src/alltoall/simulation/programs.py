"""Messages of a program, such as MSCCL XML of another tool, on the links of a topology.

Every send instruction is a message. It waits for the messages that its thread, and those in its
`after`, received since they last sent. A thread sends to one rank in order: the step of a message
follows that of its predecessor in the thread and of all messages it waits for. FIFOs are unlimited.
"""

from collections import defaultdict
from collections.abc import Iterator
from itertools import pairwise

import numpy as np

from alltoall.errors import InputError
from alltoall.ir.program import EFFECTS, Program
from alltoall.ir.topology import Topology
from alltoall.simulation.alpha_beta import StepMessages
from alltoall.simulation.lowered import uses_of

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
