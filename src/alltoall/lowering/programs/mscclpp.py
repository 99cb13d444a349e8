"""MSCCL++ execution plans: JSON for ranks that write into each other's memory.

A rank has one thread block per neighbour and channel. In every step of the schedule the block puts
its chunks, signals, and waits for the neighbour's signal; if chunks have come into a buffer from
which the rank sends on, all blocks of the rank meet at a barrier. Scratch space is not used twice:
one-sided puts cannot ask its owner. A first exchange of signals shows that the neighbour has
started.

The executor takes the size of a chunk from the input or the output of the rank, so a rank that only
relays, and has neither, gets a shard to itself of one chunk: it is called with two buffers of one
chunk, of which one is copied to the other.

The reader takes the plans, ours or a peer's, of an out-of-place all-to-all that move data with puts
and copies. The limits of the executor hold: it does not check them, and a plan beyond them would
overrun its tables.
"""

import json
from collections import defaultdict
from collections.abc import Iterator
from dataclasses import dataclass, replace
from itertools import chain

import numpy as np

from alltoall.errors import FormatError, LimitError, UsageError
from alltoall.ir.arrays import Ints, rows
from alltoall.ir.chunks import Chunks
from alltoall.ir.execution_plan import Copy, ExecutionPlan, Operation, PlanOp, RankPlan
from alltoall.ir.files.fields import (
    Json,
    naming,
    short,
    take_int,
    take_ints,
    take_list,
    take_object,
    take_text,
)
from alltoall.ir.files.json.values import parse_json
from alltoall.ir.program import MAX_RANKS, Buffer, Place
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
        gpus = [_emit_gpu(moves, rank) for rank in range(moves.ranks)]
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


def _emit_gpu(moves: ChunkMoves, rank: int) -> Json:
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
            "ops": list(_emit_operations(mine, rank, link, len(links), first=not blocks)),
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


def _emit_operations(
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
                "src_buff": [_emit_place(Buffer(buffer), offset, size) for offset, _, _ in some],
                "dst_buff": [
                    {"buffer_id": REMOTE.index(Buffer(to)), "index": where, "size": size}
                    for _, to, where in some
                ],
                "channel_type": "memory",
            }


def _copy(offset: int, to: int, count: int) -> Json:
    source, target = _emit_place(Buffer.INPUT, offset, count), _emit_place(Buffer.OUTPUT, to, count)
    return {"name": "copy", "src_buff": [source], "dst_buff": [target]}


def _emit_place(buffer: Buffer, index: int, size: int) -> Json:
    return {"type": BUFFERS[buffer], "index": index, "size": size}


def _on_channel(name: str) -> Json:
    return {"name": name, "channel_ids": [0], "channel_type": "memory"}


BUFFER_NAMES = {name: buffer for buffer, name in BUFFERS.items()}
CHANNEL_TYPES = ("memory", "port")
MAX_BLOCKS = 1024
MAX_BARRIERS = 16

ByType = dict[str, list[int]]
"""Numbers of channels or buffers, by type of channel."""

RemoteBuffer = tuple[int, Buffer, tuple[str, ...]]
"""Rank, buffer, and the types of channels that access it."""

Limits = tuple[int, int]
"""Most entries of a list, and most numbers of each."""
BLOCK_LIMITS: Limits = (len(CHANNEL_TYPES), MAX_CHANNELS)


@dataclass(frozen=True)
class Block:
    """The channels and remote buffers of a thread block, by type of channel."""

    rank: int
    channels: ByType
    remote: dict[str, list[tuple[int, Buffer]]]


def _put(op: Json, block: Block, spot: str) -> list[Operation]:
    kind = take_text(op, "channel_type", spot, CHANNEL_TYPES)
    if "tbg_info" in op:
        raise FormatError(f"{spot}: tbg_info splits chunks among thread blocks; not supported")
    source_spot, target_spot = f"{spot}, src_buff", f"{spot}, dst_buff"
    ranges = take_list(op, "src_buff", spot, MAX_PER_OPERATION)
    sources = [_local(each, source_spot) for each in ranges]
    ranges = take_list(op, "dst_buff", spot, MAX_PER_OPERATION)
    targets = [_remote(each, block.remote[kind], target_spot) for each in ranges]
    if kind == "memory" and len({place.buffer for place, _ in sources}) > 1:
        raise FormatError(f"{spot}: puts from several buffers; the executor reads all from one")
    return [Operation(PlanOp.PUT, _pair_copies(sources, targets, spot))]


NAMES = (
    *("put", "pws", "pwsf", "copy", "signal", "rlxsignal", "wait", "rlxwait"),
    *("flush", "barrier", "nop"),
)
"""The operations that are read."""


def _operations(value: object, block: Block, spot: str) -> list[Operation]:
    """Read one operation, which expands to none, one or several."""
    op = take_object(value, spot)
    name, found = take_text(op, "name", spot, NAMES), list[Operation]()
    if name == "nop":
        found = [Operation(PlanOp.NOP)]
    elif name == "barrier":
        barrier = take_int(op, "barrier_id", spot, MAX_BARRIERS - 1)
        parties = take_int(op, "num_threadblocks", spot, MAX_BLOCKS)
        found = [Operation(PlanOp.BARRIER, barrier=barrier, parties=parties)]
    elif name == "copy":
        sources, ends = (
            [_local(each, f"{spot}, {key}") for each in take_list(op, key, spot, 1)]
            for key in ("src_buff", "dst_buff")
        )
        targets = [(block.rank, place, size) for place, size in ends]
        found = [Operation(PlanOp.COPY, _pair_copies(sources, targets, spot))]
    elif name == "put":
        found = _put(op, block, spot)
    elif name.startswith("pws"):
        take_text(op, "channel_type", spot, ("port",))
        channels = _chosen_channels(op, block, spot)
        signal = Operation(PlanOp.SIGNAL, channels=channels, ordered=True)
        found = [*_put(op, block, spot), signal]
    else:
        channels, relaxed = _chosen_channels(op, block, spot), name.startswith("rlx")
        if name.endswith("wait"):
            found = [Operation(PlanOp.WAIT, channels=channels)]
        elif name.endswith("signal"):
            ordered = op["channel_type"] == "port"
            found = [Operation(PlanOp.SIGNAL, channels=channels, relaxed=relaxed, ordered=ordered)]
        # A flush orders nothing that the interpreter does not order already.
    return found


def _chosen_channels(op: Json, block: Block, spot: str) -> tuple[int, ...]:
    own = block.channels[take_text(op, "channel_type", spot, CHANNEL_TYPES)]
    chosen = take_ints(op, "channel_ids", spot, MAX_PER_OPERATION)
    for channel in chosen:
        if channel >= len(own):
            raise FormatError(f"{spot}: channel {channel} of {len(own)} that the block has")
    return tuple(own[channel] for channel in chosen)


def _kind(buffer: Json, spot: str) -> Buffer:
    return BUFFER_NAMES[take_text(buffer, "type", spot, tuple(BUFFER_NAMES))]


def _local(value: object, spot: str) -> tuple[Place, int]:
    buffer = take_object(value, spot)
    place = Place(_kind(buffer, spot), take_int(buffer, "index", spot))
    return place, take_int(buffer, "size", spot)


def _remote(value: object, known: list[tuple[int, Buffer]], spot: str) -> tuple[int, Place, int]:
    buffer = take_object(value, spot)
    number = take_int(buffer, "buffer_id", spot)
    if number >= len(known):
        raise FormatError(f"{spot}: buffer_id {number} of {len(known)} that the block refers to")
    rank, kind = known[number]
    place = Place(kind, take_int(buffer, "index", spot))
    return rank, place, take_int(buffer, "size", spot)


def _pair_copies(
    sources: list[tuple[Place, int]], targets: list[tuple[int, Place, int]], spot: str
) -> tuple[Copy, ...]:
    if [size for _, size in sources] != [size for *_, size in targets]:
        raise FormatError(f"{spot}: src_buff and dst_buff have different sizes")
    ranges = zip(sources, targets, strict=True)
    return tuple(Copy(source, rank, to, size) for (source, size), (rank, to, _) in ranges)


MAX_LINKS = 1 << 20


def read_mscclpp(text: str, where: str) -> ExecutionPlan:
    """Build an execution plan from its JSON."""
    plan = take_object(parse_json(text, where), where)
    take_text(plan, "collective", where, ("alltoall",))
    take_text(plan, "protocol", where, ("Simple",))
    if plan.get("inplace") is not False:
        raise FormatError(f"{where}: inplace is {short(plan.get('inplace'))}; expected false")
    gpus = take_list(plan, "gpus", where, MAX_RANKS)
    ranks = tuple(_gpu(gpu, rank, where) for rank, gpu in enumerate(gpus))
    with naming(where):
        return ExecutionPlan(take_text(plan, "name", where), _chunks(plan, ranks, where), ranks)


def _chunks(plan: Json, ranks: tuple[RankPlan, ...], where: str) -> Chunks:
    """Return the chunks of every pair: those of the listed shards, or equal ones."""
    if "shards" not in plan:
        chunks = ranks[0].input if ranks else 0
        if not ranks or chunks % len(ranks):
            found = f"{chunks} input chunks for {len(ranks)} GPUs"
            raise FormatError(f"{where}: {found}; expected a multiple of them")
        return Chunks(len(ranks), chunks // len(ranks))
    rows = []
    for index, row in enumerate(take_list(plan, "shards", where, MAX_LINKS)):
        here = f"{where}: shards[{index}]"
        numbers = take_ints({"row": row}, "row", here, 3)
        if len(numbers) != 3:
            raise FormatError(f"{here} is {short(row)}; expected two GPUs and a number of chunks")
        rows.append((numbers[0], numbers[1], numbers[2]))
    return Chunks.from_rows(len(ranks), rows)


def _gpu(value: object, rank: int, where: str) -> RankPlan:
    here = f"{where}: gpu {rank}"
    gpu = take_object(value, here)
    if take_int(gpu, "id", here) != rank:
        raise FormatError(f"{here}: its id is {gpu['id']}; expected the GPUs in order")
    peers = _by_type(gpu, "channels", "channel_type", "connected_to", here, (MAX_LINKS, MAX_LINKS))
    remote: list[RemoteBuffer] = []
    for index, each in enumerate(take_list(gpu, "remote_buffers", here, MAX_LINKS)):
        spot = f"{here}, remote buffer {index}"
        buffer = take_object(each, spot)
        kind = _kind(buffer, spot)
        access = take_list(buffer, "access_channel_types", spot, len(CHANNEL_TYPES))
        remote.append((take_int(buffer, "rank", spot), kind, tuple(map(str, access))))
    blocks = tuple(
        _block(block, index, rank, peers, remote, f"{here}, threadblock {index}")
        for index, block in enumerate(take_list(gpu, "threadblocks", here, MAX_BLOCKS))
    )
    keys = ("input_chunks", "output_chunks", "scratch_chunks")
    sizes = [take_int(gpu, key, here) for key in keys]
    return RankPlan(sizes[0], sizes[1], sizes[2], tuple(peers["memory"] + peers["port"]), blocks)


def _by_type(obj: Json, key: str, type_key: str, ids_key: str, here: str, limits: Limits) -> ByType:
    found: ByType = {kind: [] for kind in CHANNEL_TYPES}
    spot = f"{here}, {key}"
    for value in take_list(obj, key, here, limits[0]):
        entry = take_object(value, spot)
        kind = take_text(entry, type_key, spot, CHANNEL_TYPES)
        found[kind] += take_ints(entry, ids_key, spot, limits[1])
    return found


def _block(
    value: object,
    index: int,
    rank: int,
    peers: ByType,
    remote: list[RemoteBuffer],
    here: str,
) -> tuple[Operation, ...]:
    block = take_object(value, here)
    if take_int(block, "id", here) != index:
        raise FormatError(f"{here}: its id is {block['id']}; expected the thread blocks in order")
    channels = _by_type(block, "channels", "channel_type", "channel_ids", here, BLOCK_LIMITS)
    for kind, first in (("memory", 0), ("port", len(peers["memory"]))):
        for channel in channels[kind]:
            if channel >= len(peers[kind]):
                raise FormatError(f"{here}: {kind} channel {channel} does not exist")
        channels[kind] = [first + channel for channel in channels[kind]]
    keys = ("remote_buffer_refs", "access_channel_type", "remote_buffer_ids")
    ids = _by_type({keys[0]: []} | block, *keys, here, BLOCK_LIMITS)
    for kind, buffers in ids.items():
        for buffer in buffers:
            if buffer >= len(remote) or kind not in remote[buffer][2]:
                raise FormatError(f"{here}: remote buffer {buffer} is not there for {kind} access")
    referred = {kind: [remote[each][:2] for each in buffers] for kind, buffers in ids.items()}
    context = Block(rank, channels, referred)
    operations = enumerate(take_list(block, "ops", here, MAX_OPERATIONS))
    found = (_operations(each, context, f"{here}, op {number}") for number, each in operations)
    return tuple(chain.from_iterable(found))
