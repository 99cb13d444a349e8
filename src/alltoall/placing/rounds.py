"""The loop that all placements share: rounds at prices that grow steeper."""

from collections.abc import Iterable
from typing import Protocol

from alltoall.settings import Late


class Placing(Protocol):
    """Chunks with places, which move in rounds."""

    @property
    def count(self) -> int:
        """The number of moves of a round."""

    def move(self, begin: int, steepness: float) -> int:
        """Make a bounded number of moves from `begin` on; return where it stopped."""

    def end_round(self) -> bool:
        """Take stock after a round; return whether to stop."""


def grow_steeper(placing: Placing, steepness: Iterable[float], late: Late) -> None:
    """Let chunks move in rounds, one per steepness, until they are placed well or it is `late`.

    A round is done in parts, so that Ctrl-C and the time limit are heard in between.
    """
    for each in steepness:
        begin = 0
        while begin < placing.count:
            if late():
                return
            begin = placing.move(begin, each)
        if placing.end_round():
            return
