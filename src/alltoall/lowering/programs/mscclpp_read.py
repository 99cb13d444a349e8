"""Read an MSCCL++ execution plan, ours or a peer's, into an `ExecutionPlan`.

It takes the plans of an out-of-place all-to-all that move data with puts and copies. The limits of
the executor hold: it does not check them, and a plan beyond them would overrun its tables.
"""

from dataclasses import dataclass
from itertools import chain

from alltoall.errors import FormatError
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
from alltoall.lowering.programs.msccl_emit import BUFFERS
from alltoall.lowering.programs.mscclpp_emit import MAX_CHANNELS, MAX_OPERATIONS, MAX_PER_OPERATION

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
