"""Chakra execution traces, one protobuf file per rank, as ASTRA-sim's custom collectives.

A file is a `GlobalMetadata` and then a `Node` per operation, each after its length. A node says its
size, both ranks and its tag as attributes, and in `data_deps` which nodes have to end before it
starts. There is no dependency on a start: a send comes after the one before it to the same rank,
as the steps of a thread block do in traces that are made of MSCCL files.
"""

from collections.abc import Iterator

import numpy as np

from alltoall.ir.schedule import Schedule
from alltoall.lowering.options import Options
from alltoall.lowering.programs.traffic import Operation, Traffic, traffic_of

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
    return {
        f"alltoall.{rank}.et": b"".join(_messages(traffic, rank))
        for rank in range(len(traffic.ranks))
    }


def _messages(traffic: Traffic, rank: int) -> Iterator[bytes]:
    yield _sized(b"".join(_field(2, each) for each in _metadata(traffic, rank)))
    for index, operation in enumerate(traffic.ranks[rank]):
        yield _sized(_node(index, rank, operation))


def _metadata(traffic: Traffic, rank: int) -> Iterator[bytes]:
    """Yield what the whole is: what the reader of ASTRA-sim passes over."""
    yield _attribute("schema", STRING, SCHEMA.encode())
    yield _attribute("alltoall_name", STRING, traffic.name.encode(errors="replace"))
    yield _attribute("alltoall_shard", INT64, traffic.unit)
    if traffic.shard.counts is not None:
        row = np.asarray(traffic.shard.counts[rank]).tolist()
        yield _attribute("alltoall_shards", INT64_LIST, _packed(1, row))


def _node(number: int, rank: int, operation: Operation) -> bytes:
    sends, peer, tag, size, after, beside = operation
    ends, before = (rank, peer) if sends else (peer, rank), sorted({*after, *beside})
    does = "send" if sends else "receive"
    fields = [_field(1, number)] if number else []
    fields += [_field(2, f"{does} {ends[0]} {ends[1]} {tag}".encode())]
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
    """Return a field: a number, or bytes after their length."""
    if isinstance(value, int):
        return _varint(key << 3 | VARINT) + _varint(value)
    return _varint(key << 3 | BYTES) + _sized(value)


def _sized(data: bytes) -> bytes:
    return _varint(len(data)) + data


def _varint(number: int) -> bytes:
    """Return a number that is not negative, 7 bits in a byte, the lowest first."""
    found = bytearray()
    while number > 0x7F:
        found.append(number & 0x7F | 0x80)
        number >>= 7
    found.append(number)
    return bytes(found)
