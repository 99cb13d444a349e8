"""Byte ranges of a rank's messages, for shards of any sizes.

Chunk k of a shard of m bytes in C chunks is the bytes from floor(k m / C) to floor((k + 1) m / C),
so m need not be a multiple of C. A scratch slot holds the largest chunk of any pair.
"""

from dataclasses import dataclass
from typing import TypeAlias

import numpy as np

from alltoall.errors import InputError, UsageError
from alltoall.ir.arrays import Ints, inner_index
from alltoall.ir.chunks import Chunks, PerShard, shards_of
from alltoall.ir.demand import Demand
from alltoall.ir.messages import RankMessages
from alltoall.ir.program import Buffer

Sizes: TypeAlias = int | Ints | PerShard | None
"""Shard sizes of a call: the bytes of a shard of size 1, or of every pair, equal at all ranks; None
if all shards are equal, so that the buffers tell."""

Span = tuple[Buffer, int, int]
"""Buffer, byte offset and number of bytes of one contiguous run."""


@dataclass(frozen=True, eq=False)
class Spans:
    """The runs of bytes of each message: `first[i]:first[i + 1]` for message i.

    A run is contiguous at both ranks, so that it can be sent and received by itself.
    """

    first: Ints
    buffer: Ints
    offset: Ints
    count: Ints
    scratch_bytes: int

    def of(self, message: int) -> list[Span]:
        """Return the runs of a message in order; an empty message has one empty run."""
        begin, end = self.first[message : message + 2]
        columns = (self.buffer[begin:end], self.offset[begin:end], self.count[begin:end])
        rows = zip(*(column.tolist() for column in columns), strict=True)
        runs = [(Buffer(buffer), offset, count) for buffer, offset, count in rows]
        return runs or [(Buffer.INPUT, 0, 0)]


def spans_of(part: RankMessages, shard: PerShard) -> Spans:
    """Lay out a rank's messages in bytes; adjacent chunks become one run, empty ones vanish."""
    pieces = _Pieces(part, shard)
    kept = np.flatnonzero(pieces.bytes)
    count, message = pieces.bytes[kept], pieces.message[kept]
    places = [
        (buffer[kept], pieces.offsets(buffer, slot)[kept])
        for buffer, slot in (
            (pieces.from_buffer, pieces.from_slot),
            (pieces.to_buffer, pieces.to_slot),
        )
    ]
    joined = message[1:] == message[:-1]
    for buffer, offset in places:
        joined &= (buffer[1:] == buffer[:-1]) & (offset[1:] == offset[:-1] + count[:-1])
    heads = np.flatnonzero(np.append(True, ~joined)[: len(kept)])
    sends = part.sends[message]
    return Spans(
        first=np.searchsorted(message[heads], np.arange(part.messages + 1)),
        buffer=np.where(sends, places[0][0], places[1][0])[heads],
        offset=np.where(sends, places[0][1], places[1][1])[heads],
        count=np.add.reduceat(count, heads) if len(heads) else count,
        scratch_bytes=part.scratch * pieces.slot,
    )


class _Pieces:
    """The chunks of all ranges of a rank, one by one, in bytes."""

    def __init__(self, part: RankMessages, shard: PerShard) -> None:
        self.shard, count = shard, part.count
        self.slot = slot_bytes(part.chunks, shard)
        inner = inner_index(count)
        ranges = np.repeat(np.arange(len(count)), count)
        self.message = part.message_of_range[ranges]
        self.source, self.destination = part.source[ranges], part.destination[ranges]
        chunk, chunks = part.chunk[ranges] + inner, part.chunks.of(self.source, self.destination)
        size = shard.of(self.source, self.destination)
        self.begin = chunk * size // chunks
        self.bytes = (chunk + 1) * size // chunks - self.begin
        self.from_buffer, self.to_buffer = part.from_buffer[ranges], part.to_buffer[ranges]
        self.from_slot, self.to_slot = part.from_slot[ranges] + inner, part.to_slot[ranges] + inner

    def offsets(self, buffer: Ints, slot: Ints) -> Ints:
        """Return the byte offset of every chunk in a buffer of its sender or receiver."""
        in_input = self.shard.in_input(self.source, self.destination)
        in_output = self.shard.in_output(self.source, self.destination)
        in_shard = np.where(buffer == Buffer.INPUT, in_input, in_output) + self.begin
        return np.where(buffer == Buffer.SCRATCH, slot * self.slot, in_shard)


def slot_bytes(chunks: Chunks, shard: PerShard) -> int:
    """Return the size of a scratch slot: the largest chunk of any pair."""
    if chunks.counts is None and shard.counts is None:
        return -(-shard.most // chunks.most)
    pairs = np.indices((chunks.ranks, chunks.ranks))
    return int((-(-shard.of(*pairs) // np.maximum(chunks.of(*pairs), 1))).max())


def sizes_of(part: RankMessages, sizes: Sizes, send: tuple[int, int], received: int) -> PerShard:
    """Return the bytes of every pair, from the buffers or the given sizes."""
    ranks, (sent, items) = part.chunks.ranks, send
    if sizes is None and part.demand.uniform:
        return PerShard(ranks, shard_bytes_of(ranks, sent, items, received))
    if sizes is None:
        raise UsageError(
            "this schedule is for an uneven demand, and buffers alone do not tell how large shards "
            "are; give the bytes of a shard of size 1, or a matrix with those of every pair"
        )
    try:
        shard = sizes if isinstance(sizes, PerShard) else _told(part.demand, sizes)
    except InputError as error:
        raise UsageError(str(error)) from None
    _require_chunks(part.chunks, shard)
    expected = int(shard.inputs()[part.rank]), int(shard.outputs()[part.rank])
    if (sent, received) != expected:
        raise UsageError(
            f"rank {part.rank} has {sent} bytes to send and room for {received}; expected "
            f"{expected[0]} and {expected[1]}, the sums over its shards"
        )
    return shard


def _told(demand: Demand, sizes: int | Ints) -> PerShard:
    if isinstance(sizes, int):
        return shards_of(demand, sizes)
    return PerShard(demand.terminals, counts=sizes)


def _require_chunks(chunks: Chunks, shard: PerShard) -> None:
    """Refuse bytes for pairs without chunks in the schedule."""
    if chunks.counts is None or shard.counts is None:
        return
    stray = (shard.counts > 0) & (chunks.counts == 0)
    np.fill_diagonal(stray, False)
    if stray.any():
        source, to = np.argwhere(stray)[0]
        raise UsageError(
            f"{shard.counts[source, to]} bytes from rank {source} to rank {to}, a pair without "
            "demand in this schedule; expected 0 bytes"
        )


def shard_bytes_of(ranks: int, send_bytes: int, send_items: int, recv_bytes: int) -> int:
    """Return the bytes of a shard of the user's two buffers; refuse buffers that do not fit."""
    if send_bytes != recv_bytes:
        raise UsageError(
            f"the send buffer has {send_bytes} bytes, the receive buffer {recv_bytes}; "
            "expected as many in both"
        )
    if send_items % ranks:
        raise UsageError(
            f"a buffer of {send_items} elements for {ranks} ranks; expected a multiple of {ranks}: "
            "one equal shard per rank (pad the buffer)"
        )
    return send_bytes // ranks


def own_spans(rank: int, shard: PerShard) -> tuple[slice, slice]:
    """Return the place of a rank's own shard in its input and output."""
    own = (np.array(rank), np.array(rank))
    count = int(shard.of(*own))
    begins = (int(shard.in_input(*own)), int(shard.in_output(*own)))
    return slice(begins[0], begins[0] + count), slice(begins[1], begins[1] + count)
