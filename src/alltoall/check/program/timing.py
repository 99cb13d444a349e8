"""How long a lowered program takes on a topology, and that it keeps to its links.

Ranks are the terminals of the topology, in order. They may only send over links, or over paths
through nodes that are not terminals. The time is the sum over steps of the largest load of a link
over its capacity, in shards: the steps of `pacing` for a program, which has none of its own, for a
plan its barriers, and for messages their own.
"""

from collections import deque
from collections.abc import Iterator, Mapping
from typing import Protocol

import numpy as np

from alltoall.check.program.memory import MAX_NAMED
from alltoall.check.program.pacing import Hop, paced_time
from alltoall.errors import VerificationError
from alltoall.ir.arrays import Ints
from alltoall.ir.execution_plan import ExecutionPlan
from alltoall.ir.messages import Messages
from alltoall.ir.program import Program
from alltoall.ir.topology import Topology

Hops = Mapping[tuple[int, int], list[Hop]]
"""The links between each two ranks of which one sends to the other."""


class Executed(Protocol):
    """What executing something tells of its loads."""

    @property
    def sends(self) -> Ints:
        """What every rank sends to every other."""

    def shards(self) -> Mapping[tuple[int, int, int], float]:
        """Return what goes by step, sender and receiver, in shards."""


def time_on(
    lowered: Program | ExecutionPlan | Messages,
    report: Executed,
    topology: Topology,
    where: str,
) -> float:
    """Return the time of a program on a topology; raise if it sends where no link leads."""
    if len(report.sends) != len(topology.terminals):
        found = (
            f"a program for {len(report.sends)} ranks; {topology.name} has "
            f"{len(topology.terminals)} terminals"
        )
        raise VerificationError(where, [found])
    hops, capacity = _hops(report, topology, where), _capacities(topology)
    if isinstance(lowered, Program):
        return paced_time(lowered, hops, capacity)
    return _time_of_steps(report, hops, capacity)


def _hops(report: Executed, topology: Topology, where: str) -> Hops:
    hops: dict[tuple[int, int], list[Hop]] = {}
    strays: list[str] = []
    for sender, receiver in np.argwhere(report.sends).tolist():
        path = _path(topology, sender, receiver)
        if path is None:
            strays.append(_stray(topology, sender, receiver))
        else:
            hops[sender, receiver] = path
    if strays:
        raise VerificationError(where, strays[:MAX_NAMED])
    return hops


def _time_of_steps(report: Executed, hops: Hops, capacity: Mapping[Hop, float]) -> float:
    loads: dict[tuple[int, Hop], float] = {}
    for (step, sender, receiver), shards in report.shards().items():
        for hop in hops[sender, receiver]:
            loads[step, hop] = loads.get((step, hop), 0.0) + shards
    worst: dict[int, float] = {}
    for (step, hop), shards in loads.items():
        worst[step] = max(worst.get(step, 0.0), shards / capacity[hop])
    return sum(worst.values())


def _stray(topology: Topology, sender: int, receiver: int) -> str:
    ends = topology.terminal_name(sender), topology.terminal_name(receiver)
    return (
        f"rank {sender} sends to rank {receiver}, but no link or path through switches of "
        f"{topology.name} leads from node {ends[0]} to node {ends[1]}"
    )


def _capacities(topology: Topology) -> dict[Hop, float]:
    """Return the capacity from node to node, of all parallel links together."""
    capacity: dict[Hop, float] = {}
    ends = zip(topology.tail.tolist(), topology.head.tolist(), strict=True)
    for hop, each in zip(ends, topology.capacity.tolist(), strict=True):
        capacity[hop] = capacity.get(hop, 0.0) + each
    return capacity


def _path(topology: Topology, sender: int, receiver: int) -> list[Hop] | None:
    """Return a shortest path between two ranks through nodes that are not terminals, if any."""
    start, goal = int(topology.terminals[sender]), int(topology.terminals[receiver])
    passes = np.ones(topology.nodes, dtype=np.bool_)
    passes[topology.terminals] = False
    parent = {start: start}
    queue = deque([start])
    while queue and goal not in parent:
        node = queue.popleft()
        for head in topology.head[topology.tail == node].tolist():
            if head not in parent and (head == goal or passes[head]):
                parent[head] = node
                queue.append(head)
    return list(_walk_back(parent, start, goal)) if goal in parent else None


def _walk_back(parent: dict[int, int], start: int, node: int) -> Iterator[Hop]:
    while node != start:
        yield parent[node], node
        node = parent[node]
