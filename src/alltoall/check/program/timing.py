"""The time of a lowered program on a topology, over whose links it must send.

Ranks are the terminals of the topology, in order. They may only send over links, or over paths
through nodes that are not terminals. The time is the sum over steps of the largest load of a link
over its capacity, in shards. Messages have steps, the steps of a plan are its barriers, and those
of a program are found by `paced_time`.

A program has no steps, only order. Steps of its sends are valid if a send comes in a later step
than every receive, and in no earlier step than every send, that is ordered before it; a receive is
in the step of the sends that it matches. The earliest and the latest steps are longest paths over
the instructions, where only the way from a receive to its successors takes a step.
"""

from collections import defaultdict, deque
from collections.abc import Iterable, Mapping
from graphlib import TopologicalSorter

import numpy as np

from alltoall.check.program.alltoall import AllToAllReport
from alltoall.check.program.memory import MAX_NAMED
from alltoall.errors import VerificationError
from alltoall.ir.arrays import rows
from alltoall.ir.execution_plan import ExecutionPlan
from alltoall.ir.messages import Messages
from alltoall.ir.program import EFFECTS, Program
from alltoall.ir.topology import Topology

Node = tuple[int, int, int]
"""An instruction: rank, thread and number."""
Fifo = tuple[int, int, int]
"""Sending rank, receiving rank and channel."""


class Levels:
    """The instructions of a program that ends, in an order in which they can run."""

    def __init__(self, program: Program) -> None:
        self.sends: dict[Fifo, list[tuple[Node, int]]] = {}
        receives: dict[Fifo, list[tuple[Node, int]]] = {}
        self._before: dict[Node, list[Node]] = {}
        for rank, code in enumerate(program.ranks):
            for index, thread in enumerate(code.threads):
                for number, each in enumerate(thread.instructions):
                    node, effects = (rank, index, number), EFFECTS[each.op]
                    self._before[node] = [(rank, *step) for step in each.after]
                    if number:
                        self._before[node].append((rank, index, number - 1))
                    if effects.sends and thread.send_to is not None:
                        fifo = (rank, thread.send_to, thread.channel)
                        self.sends.setdefault(fifo, []).append((node, each.count))
                    if effects.receives and thread.receive_from is not None:
                        fifo = (thread.receive_from, rank, thread.channel)
                        receives.setdefault(fifo, []).append((node, each.count))
        self._sent = {node for queue in self.sends.values() for node, _ in queue}
        self._matches = _matches(self.sends, receives)
        graph = {each: [*old, *self._matches.get(each, [])] for each, old in self._before.items()}
        self._order = list(TopologicalSorter(graph).static_order())

    def earliest(self, fixed: Mapping[Node, int] | None = None, least: int = 1) -> dict[Node, int]:
        """Return the first step of each send; those in `fixed` are in the step given there.

        Sends that are not fixed go in step `least` or later.
        """
        after: dict[Node, int] = {}
        step: dict[Node, int] = {}
        for node in self._order:
            need = max((after[other] for other in self._before[node]), default=1)
            if node in self._matches:
                need = max(need, 1 + max(step[other] for other in self._matches[node]))
            if node in self._sent:
                need = max(need, least)
                need = step[node] = fixed.get(node, need) if fixed else need
            after[node] = need
        return step

    def latest(self, steps: int) -> dict[Node, int]:
        """Return the last step of each send in an execution with a given number of steps."""
        most = dict.fromkeys(self._order, steps + 1)
        for node in reversed(self._order):
            if node in self._sent:
                most[node] = min(most[node], steps)
            for other in self._matches.get(node, []):
                most[other] = min(most[other], most[node] - 1)
            for other in self._before[node]:
                most[other] = min(most[other], most[node])
        return {node: most[node] for node in self._sent}


def _matches(
    sends: Mapping[Fifo, list[tuple[Node, int]]], receives: Mapping[Fifo, list[tuple[Node, int]]]
) -> dict[Node, list[Node]]:
    """Return, for each receive, the sends whose chunks it takes."""
    matches: dict[Node, list[Node]] = {}
    for fifo, taken in receives.items():
        pushed = _chunks(sends.get(fifo, []))
        for receiver, sender in dict.fromkeys(zip(_chunks(taken), pushed, strict=False)):
            matches.setdefault(receiver, []).append(sender)
    return matches


def _chunks(queue: Iterable[tuple[Node, int]]) -> list[Node]:
    return [node for node, count in queue for _ in range(count)]


Hop = tuple[int, int]
SLACK = 1e-9
"""Rounding error of the length of a step, as a share."""


def paced_time(
    program: Program, hops: Mapping[tuple[int, int], list[Hop]], capacity: Mapping[Hop, float]
) -> float:
    """Return the sum over the steps of the largest load of a hop over its capacity, in shards.

    There are as many steps as transfers in the longest chain. A step is as long as the chunks take
    that cannot go in a later one; in that time others that can go ahead, by due date, in the order
    of their FIFOs. So the time is that of a valid execution in steps; where FIFOs share links there
    may be a faster one. `hops` are the links between each two ranks that send. All chunks are of
    one size, and the shard of most chunks is 1.
    """
    levels, chunk = Levels(program), 1.0 / program.chunks.most
    steps = max(levels.earliest().values(), default=0)
    latest, fixed = levels.latest(steps), dict[Node, int]()
    # The sends of each FIFO, one entry per chunk, of which the first `sent` are gone.
    queues = [_chunks(queue) for queue in levels.sends.values()]
    paths, sent = [hops[fifo[:2]] for fifo in levels.sends], [0] * len(queues)
    total: dict[Hop, float] = defaultdict(float)
    for queue, path in zip(queues, paths, strict=True):
        for hop in path:
            total[hop] += len(queue) * chunk / capacity[hop]
    loads: dict[Hop, float] = defaultdict(float)

    def due(line: int, when: Mapping[Node, int]) -> bool:
        return sent[line] < len(queues[line]) and when[queues[line][sent[line]]] <= step

    def fits(line: int) -> bool:
        """Whether one more chunk leaves the step no longer than `length`."""
        most = length * (1 + SLACK)
        return all(loads[hop] + chunk / capacity[hop] <= most for hop in paths[line])

    def send(line: int) -> None:
        """Send one chunk; a send belongs to the step of its last chunk."""
        for hop in paths[line]:
            loads[hop] += chunk / capacity[hop]
        node, sent[line] = queues[line][sent[line]], sent[line] + 1
        if queues[line][sent[line] : sent[line] + 1] != [node]:
            fixed[node] = step

    def urgency(line: int) -> tuple[int, float]:
        return latest[queues[line][sent[line]]], -sum(total[hop] for hop in paths[line])

    time = 0.0
    for step in range(1, steps + 1):
        loads.clear()
        ready = list(range(len(queues)))
        for line in ready:
            while due(line, latest):
                send(line)
        length = max(loads.values())  # of the longest chain, one send is due in every step
        # Chunks that could go later go in this step, one by one, as far as its length allows.
        earliest = levels.earliest(fixed, least=step)
        while ready := [line for line in ready if due(line, earliest) and fits(line)]:
            for line in sorted(ready, key=urgency):
                if fits(line):
                    send(line)
        time += length
    return time


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
