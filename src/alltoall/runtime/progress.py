"""Which messages may start: the dataflow of one call, without any knowledge of a runtime.

Sends to a peer start in the order of their steps, and so do receives from one. A send of a later
step may be ready earlier, but on the link it would only delay what the peer has to pass on next: on
an emulated 3-cube, dataflow without this order took a fifth longer than steps with a barrier after
each.

Sends also come in batches, so that none is far ahead of what its peer expects: transports keep few
messages that are not expected yet, and leave unread what comes behind them.
"""

from collections.abc import Iterable, Mapping, Sequence

import numpy as np

from alltoall.ir.messages import RankMessages

BATCH_REQUESTS = 8
"""How many requests, at least, make a batch of sends to a peer."""


def let_go(plan: RankMessages, requests: Sequence[int]) -> dict[int, int]:
    """Return the send that waits until another one is received, by that other one.

    It is the first of a batch to a peer; the other is the last of the batch before the one before.
    """
    found: dict[int, int] = {}
    batches: dict[int, tuple[int, int | None, int | None]] = {}
    for message in np.flatnonzero(plan.sends).tolist():
        peer = int(plan.peer[message])
        count, last, before = batches.get(peer, (0, None, None))
        if count >= BATCH_REQUESTS:
            if before is not None:
                found[before] = message
            count, before = 0, last
        batches[peer] = (count + requests[message], message, before)
    return found


class Progress:
    """Counts down what each message waits for, and the requests that each consists of."""

    def __init__(
        self, plan: RankMessages, requests: Sequence[int], let_go: Mapping[int, int]
    ) -> None:
        self._followers, self._next_alike, self._let_go = plan.followers, plan.next_alike, let_go
        self._waiting = list(plan.waiting)
        for message in (*self._next_alike, *let_go.values()):
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
                freed = [*self._followers[message], *self._let_go_by(message)]
                free += [each for each in freed if self._meet(each)]
        return self._started(free)

    def _started(self, messages: list[int]) -> list[int]:
        """Return messages that start now, and those that were only waiting for their turn."""
        for message in messages:
            after = self._next_alike[message]
            if after is not None and self._meet(after):
                messages.append(after)
        return messages

    def _let_go_by(self, message: int) -> Iterable[int]:
        return (self._let_go[message],) if message in self._let_go else ()

    def _meet(self, message: int) -> bool:
        """Note one thing that a message waited for; return whether it may start."""
        self._waiting[message] -= 1
        return self._waiting[message] == 0
