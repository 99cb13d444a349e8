"""Files for simulators: GOAL text (LogGOPSim, ATLAHS) and Chakra traces (ASTRA-sim).

Both are written from `Traffic`, the messages of ranks reduced to their sizes. The kth send of one
rank to another with a tag meets the kth receive there with that tag.

GOAL: `a requires b` starts a when b has ended, `a irequires b` when b has started. Comments have
the size of shards, or of every shard if the demand is uneven.

Chakra: one protobuf file per rank, a `GlobalMetadata` and then a `Node` per operation, each after
its length. `data_deps` names the nodes that have to end before a node starts. There is no
dependency on a start: a send comes after the one before it to the same rank.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from alltoall.errors import UsageError
from alltoall.ir.arrays import rows
from alltoall.ir.chunks import PerShard, shards_of
from alltoall.ir.messages import RankMessages
from alltoall.ir.schedule import Schedule
from alltoall.lowering.options import Options
from alltoall.lowering.programs.messages import messages_of


class TrafficOperation(NamedTuple):
    """A send or a receive; it starts when `after` have ended and `beside` have started."""

    sends: bool
    peer: int
    tag: int
    bytes: int
    after: list[int]
    beside: list[int]


@dataclass(frozen=True)
class Traffic:
    """The operations of all ranks; a shard of size 1 has `unit` bytes, and `shard` has them all."""

    name: str
    unit: int
    shard: PerShard
    ranks: list[list[TrafficOperation]]


def traffic_of(schedule: Schedule, options: Options) -> Traffic:
    """Return the traffic of a schedule whose shards of size 1 have `options.shard_bytes`.

    An operation is a message, its tag the step. It comes after the messages that it waits for, and
    a send starts after the one before it to the same rank: on a link, no step overtakes another.
    """
    messages = messages_of(schedule)
    shard = shards_of(messages.demand, options.shard_bytes)
    ranks = [list(_operations(part, shard, options.shard_bytes)) for part in messages.ranks]
    return Traffic(messages.name, options.shard_bytes, shard, ranks)


def _operations(part: RankMessages, shard: PerShard, unit: int) -> Iterator[TrafficOperation]:
    columns = (part.sends, part.peer, part.step, _bytes(part, shard))
    first, waits = part.waits_first.tolist(), part.waits.tolist()
    last: dict[int, int] = {}
    for index, (sends, peer, step, size) in enumerate(rows(*columns)):
        if not size:
            raise UsageError(
                f"shards of {unit:,} bytes leave nothing to send in step {step} between "
                f"ranks {part.rank} and {peer}; use larger shards (--bytes)"
            )
        after = waits[first[index] : first[index + 1]]
        beside = [last[peer]] if sends and peer in last else []
        yield TrafficOperation(sends, peer, step, size, after, beside)
        if sends:
            last[peer] = index


def _bytes(part: RankMessages, shard: PerShard) -> NDArray[np.object_]:
    """Return the bytes of every message; chunk k of C ends at floor((k + 1) m / C) of m bytes."""
    ends = (part.source, part.destination)
    size, chunks = shard.of(*ends).astype(object), part.chunks.of(*ends).astype(object)
    ranges = (part.chunk + part.count) * size // chunks - part.chunk * size // chunks
    sums = np.append(0, np.cumsum(ranges))
    return np.asarray(sums[part.first[1:]] - sums[part.first[:-1]])


MAX_NAME = 200
"""Characters of a topology's name in a comment."""


def emit_goal(schedule: Schedule, options: Options) -> str:
    """Lower a schedule to GOAL."""
    return "".join(_goal_lines(traffic_of(schedule, options)))


def _goal_lines(traffic: Traffic) -> Iterator[str]:
    name = " ".join(traffic.name.split())[:MAX_NAME].encode("ascii", "replace").decode()
    yield f"num_ranks {len(traffic.ranks)}\n"
    yield f"// alltoall name {name}\n"
    yield f"// alltoall shard {traffic.unit}\n"
    for rank, operations in enumerate(traffic.ranks):
        yield f"\nrank {rank} {{\n"
        if traffic.shard.counts is not None:
            row = traffic.shard.counts[rank]
            for to in np.flatnonzero(row).tolist():
                yield f"// alltoall to {to} {row[to]}\n"
        for index, (sends, peer, tag, size, after, beside) in enumerate(operations):
            verb = f"send {size}b to {peer}" if sends else f"recv {size}b from {peer}"
            yield f"l{index + 1}: {verb} tag {tag}\n"
            yield from (f"l{index + 1} requires l{other + 1}\n" for other in after)
            yield from (f"l{index + 1} irequires l{other + 1}\n" for other in beside)
        yield "}\n"


SCHEMA = "1.0.2-chakra.0.0.4"
"""The version of the schema that the converters of Chakra name."""

VARINT, BYTES = 0, 2
"""Wire types of protobuf: a number, and a length with that many bytes."""

NAME, INT32, INT64, INT64_LIST, STRING = 1, 7, 9, 10, 29
"""Fields of `AttributeProto`."""

SEND, RECEIVE = 5, 6
"""Values of `NodeType`."""


def emit_chakra(schedule: Schedule, options: Options) -> dict[str, bytes]:
    """Lower a schedule to the traces of its ranks, by file name."""
    traffic = traffic_of(schedule, options)
    files: dict[str, bytes] = {}
    for rank, operations in enumerate(traffic.ranks):
        # The attributes of the whole, which the reader of ASTRA-sim skips.
        attributes = [
            _attribute("schema", STRING, SCHEMA.encode()),
            _attribute("alltoall_name", STRING, traffic.name.encode(errors="replace")),
            _attribute("alltoall_shard", INT64, traffic.unit),
        ]
        if traffic.shard.counts is not None:
            row = np.asarray(traffic.shard.counts[rank]).tolist()
            attributes.append(_attribute("alltoall_shards", INT64_LIST, _packed(1, row)))
        metadata = b"".join(_field(2, each) for each in attributes)
        nodes = (_node(index, rank, operation) for index, operation in enumerate(operations))
        files[f"alltoall.{rank}.et"] = b"".join(map(_sized, (metadata, *nodes)))
    return files


def _node(number: int, rank: int, operation: TrafficOperation) -> bytes:
    sends, peer, tag, size, after, beside = operation
    ends, before = (rank, peer) if sends else (peer, rank), sorted({*after, *beside})
    verb = "send" if sends else "receive"
    fields = [_field(1, number)] if number else []
    fields += [_field(2, f"{verb} {ends[0]} {ends[1]} {tag}".encode())]
    fields += [_field(3, SEND if sends else RECEIVE)]
    fields += [_packed(5, before)] if before else []
    attributes = (
        _attribute("comm_size", INT64, size),
        _attribute("comm_src", INT32, ends[0]),
        _attribute("comm_dst", INT32, ends[1]),
        _attribute("comm_tag", INT32, tag),
    )
    return b"".join([*fields, *(_field(10, each) for each in attributes)])


def _attribute(name: str, key: int, value: int | bytes) -> bytes:
    return _field(NAME, name.encode()) + _field(key, value)


def _packed(key: int, numbers: list[int]) -> bytes:
    return _field(key, b"".join(map(_varint, numbers)))


def _field(key: int, value: int | bytes) -> bytes:
    if isinstance(value, int):
        return _varint(key << 3 | VARINT) + _varint(value)
    return _varint(key << 3 | BYTES) + _sized(value)


def _sized(data: bytes) -> bytes:
    return _varint(len(data)) + data


def _varint(number: int) -> bytes:
    """Return a non-negative number in 7-bit groups, lowest first."""
    found = bytearray()
    while number > 0x7F:
        found.append(number & 0x7F | 0x80)
        number >>= 7
    found.append(number)
    return bytes(found)
