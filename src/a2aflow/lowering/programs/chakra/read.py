"""Read Chakra execution traces, ours or a peer's, into `Traffic`.

It takes what a custom collective of ASTRA-sim may have but for computations: nodes that send and
receive, with their sizes, and dependencies of both kinds, which ASTRA-sim does not tell apart.
"""

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field

import numpy as np

from a2aflow.errors import FormatError, InputError
from a2aflow.ir.arrays import Ints, starts_of
from a2aflow.ir.chunks import MAX_UNEVEN, PerShard
from a2aflow.ir.traffic import MAX_OPERATION_BYTES, MAX_TAG, RankTraffic, Traffic
from a2aflow.lowering.programs.chakra.wire import Fields, fields_of, messages_of

FILE = re.compile(r"(.*)\.(0|[1-9][0-9]{0,5})\.et")
MAX_NODES = 1 << 21
"""Nodes of all ranks: what their executor holds in memory for each is not little."""

KINDS = {5: True, 6: False}
"""The node types that send and receive: whether each sends."""

Attributes = dict[str, Fields]


@dataclass
class _Trace:
    """What the file of a rank says."""

    rows: list[tuple[bool, int, int, int]] = field(default_factory=list)
    edges: set[tuple[int, int]] = field(default_factory=set)
    name: str | None = None
    unit: int | None = None
    shards: list[int] | None = None


def read_chakra(files: Mapping[str, bytes], where: str) -> Traffic:
    """Build the traffic of all ranks from their traces."""
    traces: list[_Trace] = []
    left = MAX_NODES
    for rank, (name, data) in enumerate(_in_order(files, where)):
        traces.append(_trace(data, rank, len(files), left, f"{where}/{name}"))
        left -= len(traces[-1].rows)
    told = {(each.name, each.unit, each.shards is None) for each in traces}
    if len(told) > 1:
        raise FormatError(f"{where}: the traces do not tell the same of what they are parts of")
    try:
        parts = tuple(_part(rank, each) for rank, each in enumerate(traces))
        name = traces[0].name or "chakra"
        return Traffic(name, parts, traces[0].unit, _shard(traces))
    except InputError as error:
        raise FormatError(f"{where}: {error}") from None


def _in_order(files: Mapping[str, bytes], where: str) -> list[tuple[str, bytes]]:
    """Return the files of all ranks in their order; there has to be one of each."""
    found: dict[int, str] = {}
    for name in files:
        match = FILE.fullmatch(name)
        if match is not None:
            found[int(match[2])] = name
    names = {match[1] for name in files if (match := FILE.fullmatch(name)) is not None}
    expected = range(len(files))
    if sorted(found) != list(expected) or len(names) != 1 or not 2 <= len(files) <= MAX_UNEVEN:
        raise FormatError(
            f"{where}: files {', '.join(sorted(files)[:3])}, ...; expected NAME.0.et, NAME.1.et "
            f"and so on, one for each of 2 to {MAX_UNEVEN:,} ranks"
        )
    return [(found[rank], files[found[rank]]) for rank in expected]


def _trace(data: bytes, rank: int, ranks: int, left: int, here: str) -> _Trace:
    trace, messages = _Trace(), messages_of(data, here)
    head = next(messages, None)
    if head is None:
        raise FormatError(f"{here}: is empty; expected the metadata of a trace, and its nodes")
    _take_metadata(trace, fields_of(head, here), ranks, here)
    numbers: dict[int, int] = {}
    before: list[list[int]] = []
    for each in messages:
        spot = f"{here}: node {len(trace.rows)}"
        if len(trace.rows) >= left:
            raise FormatError(f"{spot}: expected at most {MAX_NODES:,} nodes in all traces")
        node = fields_of(each, spot)
        identity = node.number(1, spot) or 0
        if numbers.setdefault(identity, len(trace.rows)) != len(trace.rows):
            raise FormatError(f"{spot}: its id {identity} is that of another node")
        trace.rows.append(_row(node, rank, ranks, spot))
        before.append([*node.repeated(4, spot), *node.repeated(5, spot)])
    for later, others in enumerate(before):
        for other in others:
            if other not in numbers:
                raise FormatError(f"{here}: node {later} depends on id {other}, which no node has")
            trace.edges.add((later, numbers[other]))
    return trace


def _take_metadata(trace: _Trace, head: Fields, ranks: int, here: str) -> None:
    """Note what our own traces say of the whole."""
    found = _attributes(head, 2, here)
    if "a2aflow_name" in found:
        name = found["a2aflow_name"].text(29, here) or b""
        trace.name = name.decode("utf-8", "replace")
    if "a2aflow_shard" in found:
        trace.unit = found["a2aflow_shard"].number(9, here) or 0
    if "a2aflow_shards" in found:
        row = fields_of(found["a2aflow_shards"].text(10, here) or b"", here).repeated(1, here)
        if len(row) != ranks or max(row) > MAX_OPERATION_BYTES:
            raise FormatError(
                f"{here}: {len(row)} shards; expected {ranks}, one for each rank, of at most "
                f"{MAX_OPERATION_BYTES:,} bytes"
            )
        trace.shards = row


def _attributes(message: Fields, key: int, here: str) -> Attributes:
    found: Attributes = {}
    for data in message.texts.get(key, []):
        attribute = fields_of(data, here)
        name = (attribute.text(1, here) or b"").decode("utf-8", "replace")
        if name in found:
            raise FormatError(f"{here}: attribute {name[:40]!r} is there twice; expected it once")
        found[name] = attribute
    return found


def _row(node: Fields, rank: int, ranks: int, here: str) -> tuple[bool, int, int, int]:
    """Return whether a node sends, its peer, its tag and its bytes."""
    kind = node.number(3, here) or 0
    if kind not in KINDS:
        raise FormatError(
            f"{here}: a node of type {kind}; expected COMM_SEND_NODE (5) or COMM_RECV_NODE (6), "
            "all that an all-to-all has"
        )
    sends, attributes = KINDS[kind], _attributes(node, 10, here)
    values = dict(_numbers(attributes, here))
    own, peer = ("comm_src", "comm_dst") if sends else ("comm_dst", "comm_src")
    for key, most in ((peer, ranks - 1), ("comm_tag", MAX_TAG), ("comm_size", MAX_OPERATION_BYTES)):
        if not 0 <= values.get(key, -1) <= most:
            raise FormatError(
                f"{here}: {key} is {values.get(key, 'missing')}; expected 0 to {most}"
            )
    if values.get(own, rank) != rank:
        raise FormatError(f"{here}: {own} is {values[own]}; expected {rank}, whose trace it is")
    return sends, values[peer], values["comm_tag"], values["comm_size"]


def _numbers(attributes: Attributes, here: str) -> Iterator[tuple[str, int]]:
    """Yield the numbers of a node, each of the type that ASTRA-sim reads it as."""
    for name, key in {"comm_size": 9, "comm_src": 7, "comm_dst": 7, "comm_tag": 7}.items():
        if name in attributes:
            number = attributes[name].number(key, here)
            if number is None:
                kind = {7: "int32", 9: "int64"}[key]
                raise FormatError(f"{here}: {name} has no {kind} value, which ASTRA-sim reads")
            yield name, number


def _part(rank: int, trace: _Trace) -> RankTraffic:
    columns = list(zip(*trace.rows, strict=True)) or [(), (), (), ()]
    sends, peer, tag, size = (np.array(column, dtype=np.int64) for column in columns)
    rows: Ints = np.array(sorted(trace.edges), dtype=np.int64).reshape(-1, 2)
    nothing = np.zeros(0, dtype=np.int64)
    return RankTraffic(
        rank=rank,
        sends=sends > 0,
        peer=peer,
        tag=tag,
        bytes=size,
        after_first=starts_of(np.bincount(rows[:, 0], minlength=len(sends))),
        after=rows[:, 1],
        beside_first=starts_of(np.zeros(len(sends))),
        beside=nothing,
    )


def _shard(traces: list[_Trace]) -> PerShard | None:
    if traces[0].unit is None:
        return None
    if traces[0].shards is None:
        return PerShard(len(traces), traces[0].unit)
    return PerShard(len(traces), counts=np.array([each.shards for each in traces]))
