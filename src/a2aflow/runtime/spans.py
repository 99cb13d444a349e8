"""Where the bytes of a plan's messages lie, for a shard of any number of bytes.

Chunk k of a shard of m bytes is the bytes from floor(k m / C) to floor((k + 1) m / C), so m need
not be a multiple of C, the chunks per shard. A scratch slot holds the largest chunk.
"""

from dataclasses import dataclass

import numpy as np

from a2aflow.errors import UsageError
from a2aflow.ir.arrays import Ints
from a2aflow.ir.program import Buffer
from a2aflow.lowering.programs.messages import Plan

Span = tuple[Buffer, int, int]
"""Buffer, byte offset and number of bytes of one contiguous run."""


@dataclass(frozen=True, eq=False)
class Spans:
    """The runs of bytes of each message, those of message i being `first[i]:first[i + 1]`.

    A run is contiguous at both ranks, so that either side may send or receive it on its own.
    """

    first: Ints
    buffer: Ints
    offset: Ints
    count: Ints
    scratch_bytes: int

    def of(self, message: int) -> list[Span]:
        """Return the runs of a message in order: one empty run if it has no bytes at all."""
        begin, end = self.first[message : message + 2]
        columns = (self.buffer[begin:end], self.offset[begin:end], self.count[begin:end])
        rows = zip(*(column.tolist() for column in columns), strict=True)
        runs = [(Buffer(buffer), offset, count) for buffer, offset, count in rows]
        return runs or [(Buffer.INPUT, 0, 0)]


def spans_of(plan: Plan, shard_bytes: int) -> Spans:
    """Lay out a plan's messages in bytes; adjacent pieces become one run, empty ones vanish."""
    begin = plan.chunk * shard_bytes // plan.chunks_per_shard
    count = (plan.chunk + 1) * shard_bytes // plan.chunks_per_shard - begin
    kept = np.flatnonzero(count)
    count, begin = count[kept], begin[kept]
    message = np.repeat(np.arange(plan.messages), np.diff(plan.first))[kept]
    buffer, peer_buffer = plan.buffer[kept], plan.peer_buffer[kept]
    offset = _offsets(plan, buffer, plan.offset[kept], begin, shard_bytes)
    peer_offset = _offsets(plan, peer_buffer, plan.peer_offset[kept], begin, shard_bytes)
    joined = np.ones(max(len(kept) - 1, 0), dtype=np.bool_)
    for same in (message, buffer, peer_buffer):
        joined &= same[1:] == same[:-1]
    for place in (offset, peer_offset):
        joined &= place[1:] == place[:-1] + count[:-1]
    heads = np.flatnonzero(np.append(True, ~joined)[: len(kept)])
    return Spans(
        first=np.searchsorted(message[heads], np.arange(plan.messages + 1)),
        buffer=buffer[heads],
        offset=offset[heads],
        count=np.add.reduceat(count, heads) if len(heads) else count,
        scratch_bytes=plan.scratch * _slot_bytes(plan, shard_bytes),
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


def _offsets(plan: Plan, buffer: Ints, offset: Ints, begin: Ints, shard_bytes: int) -> Ints:
    """Return byte offsets of pieces that lie at chunk `offset` and begin there in their shard."""
    in_shard = offset // plan.chunks_per_shard * shard_bytes + begin
    return np.where(buffer == Buffer.SCRATCH, offset * _slot_bytes(plan, shard_bytes), in_shard)


def _slot_bytes(plan: Plan, shard_bytes: int) -> int:
    """Return the size of a scratch slot: that of the largest chunk."""
    return -(-shard_bytes // plan.chunks_per_shard)
