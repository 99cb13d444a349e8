"""In which step of a synchronous execution a send can go, at the earliest and at the latest.

A program has no steps, only order. A numbering of its sends by steps is valid if a send comes in a
later step than every receive, and in no earlier step than every send, that is ordered before it; a
receive is in the step of the sends that it matches. Both bounds are longest paths over the
instructions, where only the way from a receive to what follows it takes a step.
"""

from collections.abc import Iterable, Mapping
from graphlib import TopologicalSorter

from alltoall.ir.program import EFFECTS, Program

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
        self._order = list(
            TopologicalSorter(
                {
                    node: [*before, *self._matches.get(node, [])]
                    for node, before in self._before.items()
                }
            ).static_order()
        )

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
        """Return the last step of each send in an execution of so many steps."""
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
