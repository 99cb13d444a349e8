"""`Paths` over links from terminal to terminal."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar

import numpy as np
from numpy.typing import NDArray

from alltoall.errors import InputError
from alltoall.ir.arrays import Floats, Ints, freeze, inner_index, starts_of
from alltoall.ir.noun import Noun

NOTHING = -1
"""Entry after the last link of a path in a table."""


@dataclass(frozen=True, eq=False, repr=False)
class Paths(Noun):
    """Path p leads from `source[p]` to `destination[p]` over `link[start[p]:start[p + 1]]`.

    Sources and destinations are positions in `topology.terminals`, and every path has a link.
    """

    BRIEF: ClassVar[tuple[str, ...]] = ("hops",)

    source: Ints
    destination: Ints
    start: Ints
    link: Ints

    def __post_init__(self) -> None:
        freeze(self, np.int64, "source", "destination", "start", "link")
        count, start = len(self.source), self.start
        sound = (
            self.source.shape == self.destination.shape == (count,)
            and start.shape == (count + 1,)
            and int(start[0]) == 0
            and bool(np.all(np.diff(start) > 0))
            and self.link.shape == (int(start[-1]),)
        )
        if not sound:
            raise InputError(
                f"the arrays of the {type(self).__name__.lower()} do not fit together; expected a "
                "source, a destination and at least one link each, and one start more than there "
                "are"
            )

    @classmethod
    def from_table(
        cls, source: Ints, destination: Ints, table: NDArray[np.int32] | Ints
    ) -> "Paths":
        """Return the paths of a table: a row each, of its links in order and then `NOTHING`."""
        taken = table != NOTHING
        return Paths(source, destination, starts_of(taken.sum(axis=1)), table[taken])

    @staticmethod
    def join(parts: Sequence["Paths"]) -> "Paths":
        """Return the paths of several sets, one after the other."""
        return Paths(
            source=np.concatenate([part.source for part in parts]),
            destination=np.concatenate([part.destination for part in parts]),
            start=starts_of(np.concatenate([part.hops for part in parts])),
            link=np.concatenate([part.link for part in parts]),
        )

    @property
    def count(self) -> int:
        """The number of paths."""
        return len(self.source)

    @property
    def hops(self) -> Ints:
        """The number of links of each path."""
        return np.diff(self.start)

    @property
    def path_of_link(self) -> Ints:
        """The path to which each entry of `link` belongs."""
        return np.repeat(np.arange(self.count), self.hops)

    def pair(self, terminals: int) -> Ints:
        """Return one number for the two ends of each path, by source and then destination."""
        return self.source * terminals + self.destination

    def select(self, which: Ints) -> "Paths":
        """Return some of the paths, in the given order."""
        hops = self.hops[which]
        entries = np.repeat(self.start[which], hops) + inner_index(hops)
        return Paths(
            self.source[which], self.destination[which], starts_of(hops), self.link[entries]
        )

    def table(self, width: int | None = None) -> Ints:
        """Return a row per path: its links in order, then `NOTHING`."""
        room = int(self.hops.max(initial=0)) if width is None else width
        table = np.full((self.count, room), NOTHING, dtype=np.int64)
        table[self.path_of_link, inner_index(self.hops)] = self.link
        return table

    def keys(self, label: Ints | None = None) -> NDArray[np.int32]:
        """Return a row per path of its ends, label and links: equal for equal paths only."""
        ends = [self.source, self.destination, *([] if label is None else [label])]
        keys = np.full((self.count, len(ends) + int(self.hops.max(initial=0))), NOTHING, np.int32)
        keys[:, : len(ends)] = np.stack(ends, axis=1)
        keys[self.path_of_link, len(ends) + inner_index(self.hops)] = self.link
        return keys

    def equal(self, label: Ints | None = None) -> tuple[Ints, Ints]:
        """Return the first path of each set of equal ones, by pair, and the set of every path."""
        keys = self.keys(label)
        # Sorting column by column is many times faster than `np.unique` over rows.
        order = np.lexsort(keys.T[::-1])
        fresh = np.ones(len(order), dtype=np.bool_)
        fresh[1:] = (keys[order[1:]] != keys[order[:-1]]).any(axis=1)
        same = np.empty(len(order), dtype=np.int64)
        same[order] = np.cumsum(fresh) - 1
        return order[fresh], same

    def merge_equal(self, weight: Floats) -> tuple["Paths", Floats]:
        """Return the distinct paths, ordered by pair, and the sum of the weights of each."""
        first, same = self.equal()
        return self.select(first), np.bincount(same, weight).astype(np.float64)

    def load(self, weight: Floats, links: int) -> Floats:
        """Return the load of each of `links` links if path p carries `weight[p]`."""
        carried = np.bincount(self.link, weight[self.path_of_link], links)
        return carried.astype(np.float64, copy=False)

    def _title(self) -> str:
        return f"{self.count:,} paths"

    def _facts(self) -> dict[str, str]:
        return {"hops": f"{len(self.link):,}"}
