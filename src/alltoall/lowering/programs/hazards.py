"""Hazards: what must end before something else may start, by who reads and writes which place.

In the order of a rank's work, what reads a place waits for what wrote it (RAW), and what writes
waits for those that read what was there (WAR) or, if nobody did, for what wrote it (WAW).
"""

from collections.abc import Hashable, Iterable
from typing import Generic, TypeVar

Who = TypeVar("Who", bound=Hashable)
Spot = tuple[int, int]
"""A buffer and an offset in it."""


class Hazards(Generic[Who]):
    """Who last wrote each place, and who has read it since."""

    def __init__(self) -> None:
        self._writer: dict[Spot, Who] = {}
        self._readers: dict[Spot, list[Who]] = {}

    def touch(self, who: Who, reads: Iterable[Spot], writes: Iterable[Spot]) -> set[Who]:
        """Return what `who` conflicts with, and remember what it touches."""
        conflicts: set[Who] = set()
        for place in reads:
            if place in self._writer:
                conflicts.add(self._writer[place])
            self._readers.setdefault(place, []).append(who)
        for place in writes:
            readers = self._readers.pop(place, [])
            # The readers have waited for the writer already.
            conflicts.update(readers or ([self._writer[place]] if place in self._writer else []))
            self._writer[place] = who
        return conflicts
