"""From a schedule to its traffic: the messages of its ranks with nothing left but their sizes."""

import numpy as np

from a2aflow.errors import UsageError
from a2aflow.ir.arrays import Ints, starts_of
from a2aflow.ir.chunks import PerShard, shards_of
from a2aflow.ir.messages import RankMessages
from a2aflow.ir.schedule import Schedule
from a2aflow.ir.traffic import RankTraffic, Traffic
from a2aflow.lowering.options import Options
from a2aflow.lowering.programs.messages import messages_of


def traffic_of(schedule: Schedule, options: Options) -> Traffic:
    """Return the traffic of a schedule whose shards of size 1 have `options.shard_bytes`.

    An operation is a message, its tag the step. It comes after the messages that it waits for, and
    a send beside the one before it to the same rank: on a link, no step overtakes another.
    """
    messages = messages_of(schedule)
    shard = shards_of(messages.demand, options.shard_bytes)
    parts = tuple(_part(part, shard, options.shard_bytes) for part in messages.ranks)
    return Traffic(messages.name, parts, options.shard_bytes, shard)


def _part(part: RankMessages, shard: PerShard, unit: int) -> RankTraffic:
    sizes = _bytes(part, shard)
    empty = np.flatnonzero(sizes == 0)
    if len(empty):
        raise UsageError(
            f"shards of {unit:,} bytes leave nothing to send in step {part.step[empty[0]]} between "
            f"ranks {part.rank} and {part.peer[empty[0]]}; use larger shards (--bytes)"
        )
    before = _sends_before(part)
    return RankTraffic(
        rank=part.rank,
        sends=part.sends,
        peer=part.peer,
        tag=part.step,
        bytes=sizes,
        after_first=part.waits_first,
        after=part.waits,
        beside_first=starts_of(before >= 0),
        beside=before[before >= 0],
    )


def _bytes(part: RankMessages, shard: PerShard) -> Ints:
    """Return the bytes of every message; chunk k of C ends at floor((k + 1) m / C) of m bytes."""
    ends = (part.source, part.destination)
    size, chunks = shard.of(*ends).astype(object), part.chunks.of(*ends).astype(object)
    ranges = (part.chunk + part.count) * size // chunks - part.chunk * size // chunks
    sums = np.append(0, np.cumsum(ranges)).astype(np.int64)
    return np.asarray(sums[part.first[1:]] - sums[part.first[:-1]])


def _sends_before(part: RankMessages) -> Ints:
    """Return the send before each send that goes to the same rank; -1 where there is none."""
    found = np.full(part.messages, -1, dtype=np.int64)
    last: dict[int, int] = {}
    for message in np.flatnonzero(part.sends).tolist():
        peer = int(part.peer[message])
        found[message] = last.get(peer, -1)
        last[peer] = message
    return found
