"""The check of queue pairs: each lands on its route, and together they carry every chunk once."""

from collections.abc import Iterator
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from alltoall.errors import VerificationError
from alltoall.ir.arrays import Ints, starts_of
from alltoall.lowering.tables.hashes import FIRST_PORT, LAST_PORT, picked_routes
from alltoall.lowering.tables.ompi.emit import MOST_QUEUE_PAIRS
from alltoall.lowering.tables.routed_file import RoutedFile, pair_sizes


@dataclass(frozen=True, eq=False)
class QueueTable:
    """The sends (source rank, destination rank, chunks), and the queue pairs.

    A queue pair is a row: send, number, source port, route, first chunk, count and phase.
    """

    hash: str
    address: Ints
    sends: Ints
    queues: Ints

    @cached_property
    def phase(self) -> Ints:
        """The phase of each queue pair."""
        return self.queues[:, 6]

    def most_routes(self, file: RoutedFile) -> int:
        """Return the largest number of routes of any send."""
        return int(pair_sizes(file.source, file.destination).max())

    def checked(self, file: RoutedFile) -> RoutedFile:
        """Return the file with the share that each route carries, or raise what is wrong."""
        sizes = pair_sizes(file.source, file.destination)
        violations = [*self._ranges(sizes), *self._coverage()]
        if not violations:
            violations += self._landing(sizes)
        send, count = self.queues[:, 0], self.queues[:, 5]
        route = np.minimum(starts_of(sizes)[send] + self.queues[:, 3], len(file.source) - 1)
        carried = np.bincount(route, count, len(file.source))
        for idle in np.flatnonzero(carried == 0)[:1]:
            violations.append(f"{file.route(int(idle))} has no queue pair")
        if violations:
            raise VerificationError(file.name, violations)
        per_rank = np.bincount(self.sends[send, 0], minlength=len(self.address))
        facts = {
            **file.facts,
            "queue_pairs": len(self.queues),
            "max_queue_pairs_per_rank": int(per_rank.max()),
            "chunks_per_shard": int(self.sends[:, 2].max()),
        }
        return replace(file, weight=carried / np.repeat(self.sends[:, 2], sizes), facts=facts)

    def _name(self, index: int) -> str:
        send = self.sends[self.queues[index, 0]]
        return f"queue pair {self.queues[index, 1]} of rank {send[0]} to rank {send[1]}"

    def _first(self, wrong: NDArray[np.bool_], words: str) -> Iterator[str]:
        found = np.flatnonzero(wrong)
        if len(found):
            more = f" (and {len(found) - 1} more)" if len(found) > 1 else ""
            yield f"{self._name(int(found[0]))} {words}{more}"

    def _ranges(self, sizes: Ints) -> Iterator[str]:
        send, number, port, route, _, count, _ = self.queues.T
        ports = f"{FIRST_PORT}..{LAST_PORT}"
        yield from self._first(
            (port < FIRST_PORT) | (port > LAST_PORT), f"has a source port outside {ports}"
        )
        yield from self._first(number >= MOST_QUEUE_PAIRS, "has a number of more than 24 bits")
        yield from self._first(route >= sizes[send], "takes a route that its send does not have")
        yield from self._first(count < 1, "carries no chunks")
        key = self.sends[send, 0] * MOST_QUEUE_PAIRS + number
        _, first = np.unique(key, return_index=True)
        again = np.ones(len(key), dtype=np.bool_)
        again[first] = False
        yield from self._first(again, "has the number of another one of its rank")

    def _coverage(self) -> Iterator[str]:
        """Hold the chunks of a send's queue pairs, end to end, against all its chunks."""
        send, first, count = self.queues[:, 0], self.queues[:, 4], self.queues[:, 5]
        order = np.lexsort((first, send))
        send, begin, end = send[order], first[order], (first + count)[order]
        expected = np.append(0, end[:-1])
        new = np.append(True, send[1:] != send[:-1])
        expected[new] = 0
        wrong = begin != expected
        last = np.append(new[1:], True)
        wrong |= last & (end != self.sends[send, 2])
        for at in np.flatnonzero(wrong)[:1]:
            source, destination, chunks = self.sends[send[at]]
            yield (
                f"the queue pairs of rank {source} to rank {destination} do not carry each of its "
                f"{chunks} chunks once (near chunk {begin[at]})"
            )

    def _landing(self, sizes: Ints) -> Iterator[str]:
        """Hash every queue pair as the fabric does."""
        send, number, port, route, _, _, _ = self.queues.T
        source, destination = self.address[self.sends[send, :2].T]
        lands = picked_routes(self.hash, port, source, destination, number, sizes[send])
        for at in np.flatnonzero(lands != route)[:1]:
            yield (
                f"{self._name(int(at))} with source port {port[at]} lands on route {lands[at]}; "
                f"expected route {route[at]} ({int((lands != route).sum())} such queue pairs)"
            )
