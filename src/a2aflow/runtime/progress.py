"""Which messages may start: the dataflow of one call, without any knowledge of a runtime."""

from collections.abc import Iterable, Sequence

from a2aflow.ir.messages import RankMessages


class Progress:
    """Counts down what each message waits for, and the requests that each consists of."""

    def __init__(self, plan: RankMessages, requests: Sequence[int]) -> None:
        self._followers = plan.followers
        self._waiting = list(plan.waiting)
        self._requests = list(requests)
        self.unfinished = sum(requests)

    def ready(self) -> list[int]:
        """Return the messages that wait for nothing: the first to start."""
        return [message for message, count in enumerate(self._waiting) if count == 0]

    def finish(self, messages: Iterable[int]) -> list[int]:
        """Note one finished request of each of `messages`; return the messages that may start."""
        started: list[int] = []
        for message in messages:
            self.unfinished -= 1
            self._requests[message] -= 1
            if self._requests[message] == 0:
                started += self._release(message)
        return started

    def _release(self, message: int) -> list[int]:
        free: list[int] = []
        for follower in self._followers[message]:
            self._waiting[follower] -= 1
            if self._waiting[follower] == 0:
                free.append(follower)
        return free
