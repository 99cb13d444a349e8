"""What ranks have to start: a message per step and neighbour, with all chunks that go there."""

import numpy as np

from alltoall.ir.arrays import Ints
from alltoall.ir.schedule import Schedule


def receivers_of(schedule: Schedule) -> Ints:
    """Return, for each send, the rank that its chunk reaches in the same step, behind switches.

    It is -1 where a chunk is left at a switch, which no checked schedule does.
    """
    topology = schedule.problem.topology
    receiver = topology.position[topology.head[schedule.link]]
    terminals = len(topology.terminals)
    shard = schedule.source * terminals + schedule.destination
    where = (
        (schedule.step * terminals**2 + shard) * int(schedule.chunk.max(initial=0) + 1)
    ) + schedule.chunk
    tail, head = topology.tail[schedule.link], topology.head[schedule.link]
    next_send = {(key, int(node)): i for i, (key, node) in enumerate(zip(where, tail, strict=True))}
    for send in np.flatnonzero(receiver < 0):
        hop = int(send)
        for _ in range(topology.nodes):
            if receiver[hop] >= 0:
                break
            hop = next_send.get((where[hop], int(head[hop])), hop)
        receiver[send] = receiver[hop]
    return receiver


def operations_of(schedule: Schedule) -> Ints:
    """Return how many messages each rank sends and receives, one per step and neighbour.

    All that a rank gives another one in a step is one message: runtimes are told it at once.
    """
    topology = schedule.problem.topology
    ranks = len(topology.terminals)
    sender, receiver = topology.position[topology.tail[schedule.link]], receivers_of(schedule)
    begins = sender >= 0
    message = np.unique(np.stack((schedule.step[begins], sender[begins], receiver[begins])), axis=1)
    return np.bincount(message[1], minlength=ranks) + np.bincount(message[2], minlength=ranks)
