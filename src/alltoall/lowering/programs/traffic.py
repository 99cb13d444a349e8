"""From a schedule to its traffic: the messages of its ranks with nothing left but their sizes.

Simulators read it: each rank sends bytes to another rank, or receives them from it. The kth send of
one rank to another with a tag meets the kth receive there with that tag.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from alltoall.errors import UsageError
from alltoall.ir.chunks import PerShard, shards_of
from alltoall.ir.messages import RankMessages
from alltoall.ir.schedule import Schedule
from alltoall.lowering.options import Options
from alltoall.lowering.programs.messages import messages_of


class Operation(NamedTuple):
    """A send or a receive; it starts when `after` have ended and `beside` have started."""

    sends: bool
    peer: int
    tag: int
    bytes: int
    after: list[int]
    beside: list[int]


@dataclass(frozen=True)
class Traffic:
    """The operations of all ranks; a shard of size 1 has `unit` bytes, that of a pair `shard`."""

    name: str
    unit: int
    shard: PerShard
    ranks: list[list[Operation]]


def traffic_of(schedule: Schedule, options: Options) -> Traffic:
    """Return the traffic of a schedule whose shards of size 1 have `options.shard_bytes`.

    An operation is a message, its tag the step. It comes after the messages that it waits for, and
    a send beside the one before it to the same rank: on a link, no step overtakes another.
    """
    messages = messages_of(schedule)
    shard = shards_of(messages.demand, options.shard_bytes)
    ranks = [list(_operations(part, shard, options.shard_bytes)) for part in messages.ranks]
    return Traffic(messages.name, options.shard_bytes, shard, ranks)


def _operations(part: RankMessages, shard: PerShard, unit: int) -> Iterator[Operation]:
    columns = (part.sends.tolist(), part.peer.tolist(), part.step.tolist(), _bytes(part, shard))
    first, waits = part.waits_first.tolist(), part.waits.tolist()
    last: dict[int, int] = {}
    for index, (sends, peer, step, size) in enumerate(zip(*columns, strict=True)):
        if not size:
            raise UsageError(
                f"shards of {unit:,} bytes leave nothing to send in step {step} between "
                f"ranks {part.rank} and {peer}; use larger shards (--bytes)"
            )
        beside = [last[peer]] if sends and peer in last else []
        yield Operation(sends, peer, step, size, waits[first[index] : first[index + 1]], beside)
        if sends:
            last[peer] = index


def _bytes(part: RankMessages, shard: PerShard) -> list[int]:
    """Return the bytes of every message; chunk k of C ends at floor((k + 1) m / C) of m bytes."""
    ends = (part.source, part.destination)
    size, chunks = shard.of(*ends).astype(object), part.chunks.of(*ends).astype(object)
    ranges = (part.chunk + part.count) * size // chunks - part.chunk * size // chunks
    sums = np.append(0, np.cumsum(ranges))
    return list(sums[part.first[1:]] - sums[part.first[:-1]])
