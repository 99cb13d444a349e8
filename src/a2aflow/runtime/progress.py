"""Which messages may start: the dataflow of one call, without any knowledge of a runtime.

Sends to a peer start in the order of their steps. One of a later step may be ready earlier, but on
the link it would only delay what the peer has to pass on next: on an emulated 3-cube, dataflow
without this order took a fifth longer than steps with a barrier after each.
"""

from collections.abc import Iterable, Sequence

from a2aflow.ir.messages import RankMessages


class Progress:
    """Counts down what each message waits for, and the requests that each consists of."""

    def __init__(self, plan: RankMessages, requests: Sequence[int]) -> None:
        self._followers, self._next_sends = plan.followers, plan.next_sends
        self._waiting = list(plan.waiting)
        for message in self._next_sends:
            if message is not None:
                self._waiting[message] += 1
        self._requests = list(requests)
        self.unfinished = sum(requests)

    def ready(self) -> list[int]:
        """Return the messages that wait for nothing: the first to start."""
        return self._started([each for each, count in enumerate(self._waiting) if count == 0])

    def finish(self, messages: Iterable[int]) -> list[int]:
        """Note one finished request of each of `messages`; return the messages that may start."""
        free: list[int] = []
        for message in messages:
            self.unfinished -= 1
            self._requests[message] -= 1
            if self._requests[message] == 0:
                free += [each for each in self._followers[message] if self._meet(each)]
        return self._started(free)

    def _started(self, messages: list[int]) -> list[int]:
        """Return messages that start now, and those that were only waiting for their turn."""
        for message in messages:
            after = self._next_sends[message]
            if after is not None and self._meet(after):
                messages.append(after)
        return messages

    def _meet(self, message: int) -> bool:
        """Note one thing that a message waited for; return whether it may start."""
        self._waiting[message] -= 1
        return self._waiting[message] == 0
