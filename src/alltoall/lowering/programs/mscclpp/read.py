"""Read an MSCCL++ execution plan, ours or a peer's, into an `ExecutionPlan`.

It takes the plans of an out-of-place all-to-all that move data with puts and copies. The limits of
the executor hold: what exceeds them would overrun its tables, not be refused by it.
"""

from alltoall.errors import FormatError, InputError
from alltoall.ir.chunks import Chunks
from alltoall.ir.execution_plan import ExecutionPlan, Operation, RankPlan
from alltoall.ir.files.fields import (
    Json,
    short,
    take_int,
    take_ints,
    take_list,
    take_object,
    take_text,
)
from alltoall.ir.files.json.values import parse_json
from alltoall.ir.program import MAX_RANKS, Buffer
from alltoall.lowering.programs.mscclpp.emit import MAX_CHANNELS, MAX_OPERATIONS
from alltoall.lowering.programs.mscclpp.operations import (
    BUFFER_NAMES,
    CHANNEL_TYPES,
    MAX_BLOCKS,
    Block,
    read_operation,
)

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
    try:
        return ExecutionPlan(take_text(plan, "name", where), _chunks(plan, ranks, where), ranks)
    except InputError as error:
        raise FormatError(f"{where}: {error}") from None


def _chunks(plan: Json, ranks: tuple[RankPlan, ...], where: str) -> Chunks:
    """Return the chunks of every pair: those of the shards that are listed, or as many of all."""
    if "shards" not in plan:
        chunks = ranks[0].input if ranks else 0
        if not ranks or chunks % len(ranks):
            raise FormatError(
                f"{where}: {chunks} input chunks for {len(ranks)} GPUs; expected a multiple of them"
            )
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
    peers = _peers(gpu, here)
    remote = _remote_buffers(gpu, here)
    blocks = [
        _block(block, index, rank, peers, remote, f"{here}, threadblock {index}")
        for index, block in enumerate(take_list(gpu, "threadblocks", here, MAX_BLOCKS))
    ]
    return RankPlan(
        input=take_int(gpu, "input_chunks", here),
        output=take_int(gpu, "output_chunks", here),
        scratch=take_int(gpu, "scratch_chunks", here),
        channels=tuple(peer for kind in CHANNEL_TYPES for peer in peers[kind]),
        blocks=tuple(blocks),
    )


def _peers(gpu: Json, here: str) -> dict[str, list[int]]:
    """Return the rank at the other end of each channel, by type."""
    peers: dict[str, list[int]] = {kind: [] for kind in CHANNEL_TYPES}
    for value in take_list(gpu, "channels", here, MAX_LINKS):
        channel = take_object(value, f"{here}, channels")
        kind = take_text(channel, "channel_type", f"{here}, channels", CHANNEL_TYPES)
        peers[kind] += take_ints(channel, "connected_to", f"{here}, channels", MAX_LINKS)
    return peers


def _remote_buffers(gpu: Json, here: str) -> list[tuple[int, Buffer, tuple[str, ...]]]:
    buffers = []
    for index, value in enumerate(take_list(gpu, "remote_buffers", here, MAX_LINKS)):
        spot = f"{here}, remote buffer {index}"
        buffer = take_object(value, spot)
        kind = BUFFER_NAMES[take_text(buffer, "type", spot, tuple(BUFFER_NAMES))]
        access = take_list(buffer, "access_channel_types", spot, len(CHANNEL_TYPES))
        buffers.append((take_int(buffer, "rank", spot), kind, tuple(map(str, access))))
    return buffers


def _block(
    value: object,
    index: int,
    rank: int,
    peers: dict[str, list[int]],
    remote: list[tuple[int, Buffer, tuple[str, ...]]],
    here: str,
) -> tuple[Operation, ...]:
    block = take_object(value, here)
    if take_int(block, "id", here) != index:
        raise FormatError(f"{here}: its id is {block['id']}; expected the thread blocks in order")
    context = Block(rank, _channels(block, peers, here), _references(block, remote, here))
    return tuple(
        operation
        for number, each in enumerate(take_list(block, "ops", here, MAX_OPERATIONS))
        for operation in read_operation(each, context, f"{here}, op {number}")
    )


def _channels(block: Json, peers: dict[str, list[int]], here: str) -> dict[str, list[int]]:
    """Return the channels of a block, by type, as numbers among all channels of the rank."""
    channels: dict[str, list[int]] = {kind: [] for kind in CHANNEL_TYPES}
    offset = {"memory": 0, "port": len(peers["memory"])}
    for value in take_list(block, "channels", here, len(CHANNEL_TYPES)):
        entry = take_object(value, f"{here}, channels")
        kind = take_text(entry, "channel_type", f"{here}, channels", CHANNEL_TYPES)
        for channel in take_ints(entry, "channel_ids", f"{here}, channels", MAX_CHANNELS):
            if channel >= len(peers[kind]):
                raise FormatError(f"{here}: {kind} channel {channel} does not exist")
            channels[kind].append(offset[kind] + channel)
    return channels


def _references(
    block: Json, remote: list[tuple[int, Buffer, tuple[str, ...]]], here: str
) -> dict[str, list[tuple[int, Buffer]]]:
    found: dict[str, list[tuple[int, Buffer]]] = {kind: [] for kind in CHANNEL_TYPES}
    if "remote_buffer_refs" not in block:
        return found
    for value in take_list(block, "remote_buffer_refs", here, len(CHANNEL_TYPES)):
        entry = take_object(value, f"{here}, remote_buffer_refs")
        kind = take_text(entry, "access_channel_type", f"{here}, remote_buffer_refs", CHANNEL_TYPES)
        ids = take_ints(entry, "remote_buffer_ids", f"{here}, remote_buffer_refs", MAX_CHANNELS)
        for buffer in ids:
            if buffer >= len(remote) or kind not in remote[buffer][2]:
                raise FormatError(f"{here}: remote buffer {buffer} is not there for {kind} access")
            found[kind].append(remote[buffer][:2])
    return found
