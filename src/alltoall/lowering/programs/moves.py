"""Moves: runs of chunks that one rank gives another in one instruction.

The passes: `duplicate` runs the schedule on K parallel channels, each with its own Kth of every
shard; `merge` joins moves whose chunks lie next to each other at both ends; `spread` deals long
FIFOs out to several; `balance` limits how many of them share a channel.
"""

from collections import Counter
from dataclasses import dataclass, fields, replace

import numpy as np

from alltoall.ir.arrays import Ints, run_starts
from alltoall.ir.chunks import Chunks
from alltoall.ir.program import Buffer
from alltoall.lowering.programs.transfers import BufferPlacement


@dataclass(frozen=True, eq=False)
class ChunkMoves:
    """Move i takes `count[i]` chunks from a place at its sender to a place at its receiver.

    Ordered by step, channel, sender, receiver, and place at the sender: the order of every FIFO.
    """

    ranks: int
    chunks: Chunks
    scratch: Ints
    step: Ints
    channel: Ints
    sender: Ints
    receiver: Ints
    from_buffer: Ints
    from_offset: Ints
    to_buffer: Ints
    to_offset: Ints
    count: Ints

    def take(self, which: Ints) -> "ChunkMoves":
        """Return the moves with these indices, in this order."""
        arrays = [each.name for each in fields(self)[3:]]
        return replace(self, **{key: getattr(self, key)[which] for key in arrays})

    def sort(self) -> "ChunkMoves":
        """Return the moves in order."""
        ends = (self.receiver, self.sender, self.channel, self.step)
        return self.take(np.lexsort((self.from_offset, self.from_buffer, *ends)))


def duplicate(placement: BufferPlacement, channels: int) -> ChunkMoves:
    """Return one move per chunk and channel.

    Channel k carries the kth of `channels` equal parts of every shard, cut into as many chunks as
    the schedule has per shard, and has its own part of every scratch buffer.
    """
    transfers, copies = placement.transfers, np.arange(channels, dtype=np.int64)[:, None]
    count = transfers.chunks.of(transfers.source, transfers.destination)

    def offsets(buffer: Ints, offset: Ints, rank: Ints) -> Ints:
        first = (offset - transfers.chunk) * channels
        in_shards = first + copies * count + transfers.chunk
        in_scratch = copies * placement.scratch[rank] + offset
        return np.where(buffer == Buffer.SCRATCH, in_scratch, in_shards).ravel()

    def repeated(values: Ints) -> Ints:
        return np.tile(values, channels)

    moves = ChunkMoves(
        ranks=transfers.ranks,
        chunks=transfers.chunks.times(channels),
        scratch=placement.scratch * channels,
        step=repeated(transfers.step),
        channel=np.repeat(copies.ravel(), transfers.count),
        sender=repeated(transfers.sender),
        receiver=repeated(transfers.receiver),
        from_buffer=repeated(placement.from_buffer),
        from_offset=offsets(placement.from_buffer, placement.from_offset, transfers.sender),
        to_buffer=repeated(placement.to_buffer),
        to_offset=offsets(placement.to_buffer, placement.to_offset, transfers.receiver),
        count=np.ones(transfers.count * channels, dtype=np.int64),
    )
    return moves.sort()


def merge(moves: ChunkMoves, most: int | None = None) -> ChunkMoves:
    """Join moves that lie next to each other at both ends, to at most `most` chunks each."""
    if not len(moves.step):
        return moves
    ends = (moves.step, moves.channel, moves.sender, moves.receiver)
    shift = moves.from_offset - moves.to_offset
    begins = run_starts(*ends, moves.from_buffer, moves.to_buffer, shift)
    begins[1:] |= np.diff(moves.from_offset) != moves.count[:-1]
    first = np.flatnonzero(begins)
    if most is not None:
        within = np.arange(len(begins)) - first[np.cumsum(begins) - 1]
        begins |= within % most == 0
        first = np.flatnonzero(begins)
    counts = np.add.reduceat(moves.count, first)
    return replace(moves.take(first), count=counts)


def spread(moves: ChunkMoves, parts: int) -> ChunkMoves:
    """Deal the moves of each FIFO out to `parts` channels in turn, so that each holds fewer."""
    if parts == 1:
        return moves
    keys = (moves.channel, moves.receiver, moves.sender)
    order = np.lexsort(keys)
    begins = run_starts(*(key[order] for key in keys))
    turn = np.empty(len(order), dtype=np.int64)
    turn[order] = np.arange(len(order)) - np.flatnonzero(begins)[np.cumsum(begins) - 1]
    return replace(moves, channel=moves.channel * parts + turn % parts).sort()


def balance(moves: ChunkMoves, most: int) -> ChunkMoves:
    """Give FIFOs other channels where a rank would have more than `most` ends on one channel."""
    fifos = np.stack((moves.channel, moves.sender, moves.receiver))
    keys, which = np.unique(fifos, axis=1, return_inverse=True)
    ends: Counter[tuple[int, int]] = Counter()
    taken: set[tuple[int, int, int]] = set()
    channels = np.empty(keys.shape[1], dtype=np.int64)
    for fifo, (sender, receiver) in enumerate(keys[1:].T.tolist()):
        channel = 0
        while (sender, receiver, channel) in taken or max(
            ends[sender, channel], ends[receiver, channel]
        ) >= most:
            channel += 1
        ends.update([(sender, channel), (receiver, channel)])
        taken.add((sender, receiver, channel))
        channels[fifo] = channel
    return replace(moves, channel=channels[which.ravel()]).sort()
