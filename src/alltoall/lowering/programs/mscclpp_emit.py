"""MSCCL++ execution plans: JSON for ranks that write into each other's memory.

A rank has one thread block per neighbour and channel. In every step of the schedule the block puts
its chunks, signals, and waits for the neighbour's signal; if chunks have come into a buffer from
which the rank sends on, all blocks of the rank meet at a barrier. Scratch space is not used twice:
one-sided puts cannot ask its owner. A first exchange of signals shows that the neighbour has
started.

The executor takes the size of a chunk from the input or the output of the rank, so a rank that only
relays, and has neither, gets a shard to itself of one chunk: it is called with two buffers of one
chunk, of which one is copied to the other.
"""

import json
from collections import defaultdict
from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import numpy as np

from alltoall.errors import LimitError, UsageError
from alltoall.ir.arrays import Ints, rows
from alltoall.ir.chunks import Chunks
from alltoall.ir.program import Buffer
from alltoall.ir.schedule import Schedule
from alltoall.lowering.options import Options
from alltoall.lowering.programs.compile import moves_of
from alltoall.lowering.programs.dependencies import own_shard
from alltoall.lowering.programs.moves import ChunkMoves
from alltoall.lowering.programs.msccl_emit import BUFFERS, algorithm_name

MAX_OPERATIONS = 64
MAX_CHANNELS = 16
MAX_PER_OPERATION = 8
MAX_PARTS = 8
REMOTE = (Buffer.OUTPUT, Buffer.SCRATCH)
"""The buffers of a neighbour that a rank writes to, in the order of their ids in a block."""

Json = dict[str, Any]
Link = tuple[int, int]
"""The neighbour and the channel of a thread block."""


def emit_mscclpp(schedule: Schedule, options: Options) -> str:
    """Lower a schedule to an execution plan; a long thread block is dealt out to several."""
    if options.protocol != "Simple":
        expected = "expected Simple, the one without packets"
        raise UsageError(f"protocol {options.protocol!r} for mscclpp; {expected}")
    name = algorithm_name(schedule.problem.topology.name)
    longest = 0
    for parts in range(1, MAX_PARTS + 1):
        moves = _with_relays(moves_of(schedule, options.channels, parts=parts, reuse=False))
        gpus = [_gpu(moves, rank) for rank in range(moves.ranks)]
        found = max(len(block["ops"]) for gpu in gpus for block in gpu["threadblocks"])
        if found <= MAX_OPERATIONS:
            return json.dumps(_plan(name, moves.chunks, gpus), indent=1) + "\n"
        longest = longest or found
    raise LimitError(
        f"{name}: {longest} operations per thread block, but mscclpp takes at most "
        f"{MAX_OPERATIONS}; use fewer chunks per shard, or a schedule of fewer steps"
    )


def _with_relays(moves: ChunkMoves) -> ChunkMoves:
    """Give ranks that only relay a shard to themselves."""
    relays = np.flatnonzero((moves.chunks.inputs() == 0) & (moves.chunks.outputs() == 0))
    if moves.chunks.counts is None or not len(relays):
        return moves
    counts = moves.chunks.counts.copy()
    counts[relays, relays] = 1
    return replace(moves, chunks=Chunks(moves.ranks, counts=counts))


def _plan(name: str, chunks: Chunks, gpus: list[Json]) -> Json:
    # The executor reads no shards: they tell `verify` which chunk belongs where.
    return ({} if chunks.uniform else {"shards": chunks.rows()}) | {
        "name": name,
        "collective": "alltoall",
        "protocol": "Simple",
        "inplace": False,
        "reuse_resources": False,
        "gpus": gpus,
        "num_threads_per_block": 1024,
        "use_double_scratch_buffer": False,
        "buffer_alignment": 16,
        "min_message_size": 0,
        "max_message_size": 2**64 - 1,
    }


def _gpu(moves: ChunkMoves, rank: int) -> Json:
    mine = moves.take(np.flatnonzero((moves.sender == rank) | (moves.receiver == rank)))
    # In the same order of channels at both ends.
    neighbours = np.where(mine.sender == rank, mine.receiver, mine.sender)
    links = sorted({(peer, channel) for peer, channel in rows(neighbours, mine.channel)})
    peers = sorted({peer for peer, _ in links})
    # A kernel has at least one thread block, even on a rank without neighbours.
    lone = [_copy(*each) for each in own_shard(moves.chunks, rank)]
    blocks: list[Json] = []
    for link in links:
        first = len(REMOTE) * peers.index(link[0])
        ids = list(range(first, first + len(REMOTE)))
        block = {
            "id": len(blocks),
            "ops": list(_operations(mine, rank, link, len(links), first=not blocks)),
            "channels": [{"channel_type": "memory", "channel_ids": [len(blocks)]}],
            "remote_buffer_refs": [{"access_channel_type": "memory", "remote_buffer_ids": ids}],
        }
        blocks.append(block)
    return {
        "id": rank,
        "input_chunks": int(moves.chunks.inputs()[rank]),
        "output_chunks": int(moves.chunks.outputs()[rank]),
        "scratch_chunks": int(moves.scratch[rank]),
        "threadblocks": blocks
        or [{"id": 0, "ops": lone, "channels": [], "remote_buffer_refs": []}],
        "channels": [{"channel_type": "memory", "connected_to": [peer for peer, _ in links]}],
        "remote_buffers": [
            {"rank": peer, "type": BUFFERS[buffer], "access_channel_types": ["memory"]}
            for peer in peers
            for buffer in REMOTE
        ],
        "semaphores": [],
    }


def _operations(
    mine: ChunkMoves, rank: int, link: Link, blocks: int, first: bool
) -> Iterator[Json]:
    yield _on_channel("rlxsignal")
    yield _on_channel("rlxwait")
    yield {"name": "nop"}
    if first:
        yield from (_copy(*each) for each in own_shard(mine.chunks, rank))
    on_link = mine.channel == link[1]
    sends = on_link & (mine.sender == rank) & (mine.receiver == link[0])
    receives = on_link & (mine.receiver == rank) & (mine.sender == link[0])
    sent_on = np.isin(mine.to_buffer, mine.from_buffer[mine.sender == rank])
    stored = (mine.receiver == rank) & sent_on
    for step in np.unique(mine.step):
        now = mine.step == step
        which = np.flatnonzero(sends & now)
        if len(which):
            yield from _puts(mine, which)
            yield {"name": "nop"}
            yield _on_channel("signal")
        if np.any(receives & now):
            yield _on_channel("wait")
        if np.any(stored & now):
            yield {"name": "barrier", "barrier_id": 0, "num_threadblocks": blocks}


def _puts(mine: ChunkMoves, which: Ints) -> Iterator[Json]:
    """Yield puts of up to 8 ranges, all of one size and from one buffer as the kernel wants."""
    alike: dict[tuple[int, int], list[tuple[int, int, int]]] = defaultdict(list)
    columns = (mine.from_buffer, mine.count, mine.from_offset, mine.to_buffer, mine.to_offset)
    for buffer, size, *ends in rows(*(column[which] for column in columns)):
        alike[buffer, size].append((ends[0], ends[1], ends[2]))
    for (buffer, size), ranges in sorted(alike.items()):
        for begin in range(0, len(ranges), MAX_PER_OPERATION):
            some = ranges[begin : begin + MAX_PER_OPERATION]
            yield {
                "name": "put",
                "src_buff": [_local(Buffer(buffer), offset, size) for offset, _, _ in some],
                "dst_buff": [
                    {"buffer_id": REMOTE.index(Buffer(to)), "index": where, "size": size}
                    for _, to, where in some
                ],
                "channel_type": "memory",
            }


def _copy(offset: int, to: int, count: int) -> Json:
    source, target = _local(Buffer.INPUT, offset, count), _local(Buffer.OUTPUT, to, count)
    return {"name": "copy", "src_buff": [source], "dst_buff": [target]}


def _local(buffer: Buffer, index: int, size: int) -> Json:
    return {"type": BUFFERS[buffer], "index": index, "size": size}


def _on_channel(name: str) -> Json:
    return {"name": name, "channel_ids": [0], "channel_type": "memory"}
