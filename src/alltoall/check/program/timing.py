"""The time of a lowered program on a topology, over whose links it must send.

Ranks are the terminals of the topology, in order. They may only send over links, or over paths
through nodes that are not terminals. The time is the sum over steps of the largest load of a link
over its capacity, in shards. Messages have steps, the steps of a plan are its barriers, and those
of a program are found by `pacing`.
"""

from collections import defaultdict, deque
from collections.abc import Mapping

import numpy as np

from alltoall.check.program.alltoall import AllToAllReport
from alltoall.check.program.memory import MAX_NAMED
from alltoall.check.program.pacing import Hop, paced_time
from alltoall.errors import VerificationError
from alltoall.ir.arrays import rows
from alltoall.ir.execution_plan import ExecutionPlan
from alltoall.ir.messages import Messages
from alltoall.ir.program import Program
from alltoall.ir.topology import Topology

Hops = Mapping[tuple[int, int], list[Hop]]
"""The links between every two ranks that communicate."""


def time_on(
    lowered: Program | ExecutionPlan | Messages,
    report: AllToAllReport,
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
    hops = _hops(report, topology, where)
    capacity: dict[Hop, float] = defaultdict(float)  # of all parallel links together
    for tail, head, each in rows(topology.tail, topology.head, topology.capacity):
        capacity[tail, head] += each
    if isinstance(lowered, Program):
        return paced_time(lowered, hops, capacity)
    loads: dict[int, dict[Hop, float]] = defaultdict(lambda: defaultdict(float))
    for (step, sender, receiver), shards in report.shards().items():
        for hop in hops[sender, receiver]:
            loads[step][hop] += shards
    return sum(max(load[hop] / capacity[hop] for hop in load) for load in loads.values())


def _hops(report: AllToAllReport, topology: Topology, where: str) -> Hops:
    hops: dict[tuple[int, int], list[Hop]] = {}
    strays: list[str] = []
    for sender, receiver in np.argwhere(report.sends).tolist():
        start, goal = int(topology.terminals[sender]), int(topology.terminals[receiver])
        paths: dict[int, list[Hop]] = {start: []}
        queue = deque([start])
        while queue and goal not in paths:
            node = queue.popleft()
            for head in topology.head[topology.tail == node].tolist():
                if head not in paths and (head == goal or topology.position[head] < 0):
                    paths[head] = [*paths[node], (node, head)]
                    queue.append(head)
        path = paths.get(goal)
        if path is None:
            strays.append(
                f"rank {sender} sends to rank {receiver}, but no link or path through switches of "
                f"{topology.name} leads {topology.pair_name(sender, receiver)}"
            )
        else:
            hops[sender, receiver] = path
    if strays:
        raise VerificationError(where, strays[:MAX_NAMED])
    return hops
