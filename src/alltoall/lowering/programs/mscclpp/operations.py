"""The operations of MSCCL++ execution plans that this project reads."""

from collections.abc import Callable
from dataclasses import dataclass

from alltoall.errors import FormatError
from alltoall.ir.execution_plan import Copy, Operation, PlanOp
from alltoall.ir.files.fields import Json, take_int, take_ints, take_list, take_object, take_text
from alltoall.ir.program import Buffer, Place
from alltoall.lowering.programs.msccl.emit import BUFFERS
from alltoall.lowering.programs.mscclpp.emit import MAX_PER_OPERATION

BUFFER_NAMES = {name: buffer for buffer, name in BUFFERS.items()}
CHANNEL_TYPES = ("memory", "port")
MAX_BLOCKS = 1024
MAX_BARRIERS = 16


@dataclass(frozen=True)
class Block:
    """What the operations of a thread block refer to by number, for each type of channel."""

    rank: int
    channels: dict[str, list[int]]
    remote: dict[str, list[tuple[int, Buffer]]]


def _put(op: Json, block: Block, spot: str) -> list[Operation]:
    kind = take_text(op, "channel_type", spot, CHANNEL_TYPES)
    sources = [_local(each, f"{spot}, src_buff") for each in _buffers(op, "src_buff", spot)]
    targets = [
        _remote(each, block.remote[kind], f"{spot}, dst_buff")
        for each in _buffers(op, "dst_buff", spot)
    ]
    if kind == "memory" and len({place.buffer for place, _ in sources}) > 1:
        raise FormatError(f"{spot}: puts from several buffers; the executor reads all from one")
    return [Operation(PlanOp.PUT, _joined(sources, targets, spot))]


def _put_with_signal(op: Json, block: Block, spot: str) -> list[Operation]:
    take_text(op, "channel_type", spot, ("port",))
    channels = _chosen_channels(op, block, spot)
    return [*_put(op, block, spot), Operation(PlanOp.SIGNAL, channels=channels, ordered=True)]


def _copy(op: Json, block: Block, spot: str) -> list[Operation]:
    ends = [
        [_local(each, f"{spot}, {key}") for each in take_list(op, key, spot, 1)]
        for key in ("src_buff", "dst_buff")
    ]
    targets = [(block.rank, place, size) for place, size in ends[1]]
    return [Operation(PlanOp.COPY, _joined(ends[0], targets, spot))]


def _signal(op: Json, block: Block, spot: str) -> list[Operation]:
    return [
        Operation(
            PlanOp.SIGNAL,
            channels=_chosen_channels(op, block, spot),
            relaxed=op["name"].startswith("rlx"),
            ordered=op["channel_type"] == "port",
        )
    ]


def _wait(op: Json, block: Block, spot: str) -> list[Operation]:
    return [Operation(PlanOp.WAIT, channels=_chosen_channels(op, block, spot))]


def _barrier(op: Json, _: Block, spot: str) -> list[Operation]:
    barrier = take_int(op, "barrier_id", spot, MAX_BARRIERS - 1)
    parties = take_int(op, "num_threadblocks", spot, MAX_BLOCKS)
    return [Operation(PlanOp.BARRIER, barrier=barrier, parties=parties)]


def _nop(_op: Json, _block: Block, _spot: str) -> list[Operation]:
    return [Operation(PlanOp.NOP)]


def _flush(op: Json, block: Block, spot: str) -> list[Operation]:
    """Read a flush, which orders nothing that the interpreter does not order already."""
    _chosen_channels(op, block, spot)
    return []


READERS: dict[str, Callable[[Json, Block, str], list[Operation]]] = {
    "put": _put,
    "pws": _put_with_signal,
    "pwsf": _put_with_signal,
    "copy": _copy,
    "signal": _signal,
    "rlxsignal": _signal,
    "wait": _wait,
    "rlxwait": _wait,
    "flush": _flush,
    "barrier": _barrier,
    "nop": _nop,
}


def read_operation(value: object, block: Block, spot: str) -> list[Operation]:
    """Read one operation, which may stand for several or for none."""
    op = take_object(value, spot)
    return READERS[take_text(op, "name", spot, tuple(READERS))](op, block, spot)


def _chosen_channels(op: Json, block: Block, spot: str) -> tuple[int, ...]:
    own = block.channels[take_text(op, "channel_type", spot, CHANNEL_TYPES)]
    chosen = take_ints(op, "channel_ids", spot, MAX_PER_OPERATION)
    for channel in chosen:
        if channel >= len(own):
            raise FormatError(f"{spot}: channel {channel} of {len(own)} that the block has")
    return tuple(own[channel] for channel in chosen)


def _buffers(op: Json, key: str, spot: str) -> list[object]:
    if "tbg_info" in op:
        raise FormatError(f"{spot}: tbg_info splits chunks among thread blocks; not supported")
    return take_list(op, key, spot, MAX_PER_OPERATION)


def _local(value: object, spot: str) -> tuple[Place, int]:
    buffer = take_object(value, spot)
    kind = BUFFER_NAMES[take_text(buffer, "type", spot, tuple(BUFFER_NAMES))]
    return Place(kind, take_int(buffer, "index", spot)), take_int(buffer, "size", spot)


def _remote(value: object, known: list[tuple[int, Buffer]], spot: str) -> tuple[int, Place, int]:
    buffer = take_object(value, spot)
    number = take_int(buffer, "buffer_id", spot)
    if number >= len(known):
        raise FormatError(f"{spot}: buffer_id {number} of {len(known)} that the block refers to")
    rank, kind = known[number]
    place = Place(kind, take_int(buffer, "index", spot))
    return rank, place, take_int(buffer, "size", spot)


def _joined(
    sources: list[tuple[Place, int]], targets: list[tuple[int, Place, int]], spot: str
) -> tuple[Copy, ...]:
    if [size for _, size in sources] != [size for *_, size in targets]:
        raise FormatError(f"{spot}: src_buff and dst_buff have different sizes")
    return tuple(
        Copy(source, rank, target, size)
        for (source, size), (rank, target, _) in zip(sources, targets, strict=True)
    )
