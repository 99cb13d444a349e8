"""Files for simulators, read back and simulated: alltoall itself only writes them."""

import re
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from typing import Any

import numpy as np

from alltoall.ir.chunks import PerShard, shards_of
from alltoall.ir.schedule import Schedule
from alltoall.lowering.programs.simulators import Traffic, TrafficOperation

HEAD = re.compile(r"num_ranks (\d+)\n// alltoall name (.*)\n// alltoall shard (\d+)\n")
RANK = re.compile(r"\nrank (\d+) \{\n((?:// alltoall to \d+ \d+\n)*)((?:l.*\n)*)\}\n")
SEND = re.compile(r"l(\d+): (?:send (\d+)b to|recv (\d+)b from) (\d+) tag (\d+)")
Fields = dict[int, list[Any]]
"""The values of a protobuf message by the numbers of their fields."""

Loads = Counter[tuple[int, int, int]]
"""Bytes by step, sender and receiver."""

End = tuple[int, int]
"""A rank and the number of one of its operations."""

REQUIRES = re.compile(r"l(\d+) (i?)requires l(\d+)")


def read_goal(text: str) -> Traffic:
    """Return the traffic that GOAL describes; every line has to be one that we write."""
    head, parts = HEAD.match(text), list(RANK.finditer(text))
    assert head is not None
    assert text == head[0] + "".join(part[0] for part in parts)
    ranks, unit = int(head[1]), int(head[3])
    assert [int(part[1]) for part in parts] == list(range(ranks))
    rows = [(int(part[1]), *to) for part in parts for to in _pairs(r"to (\d+) (\d+)", part[2])]
    operations = [_goal_operations(part[3].splitlines()) for part in parts]
    return Traffic(head[2], unit, _shard(ranks, unit, rows), operations)


def _goal_operations(lines: list[str]) -> list[TrafficOperation]:
    found: list[TrafficOperation] = []
    for line in lines:
        operation, edge = SEND.fullmatch(line), REQUIRES.fullmatch(line)
        if operation is not None:
            label, sent, received, peer, tag = operation.groups()
            assert int(label) == len(found) + 1
            size = int(sent or received)
            found.append(TrafficOperation(sent is not None, int(peer), int(tag), size, [], []))
        else:
            assert edge is not None, line
            later, other = int(edge[1]) - 1, int(edge[3]) - 1
            assert later == len(found) - 1
            (found[later].beside if edge[2] else found[later].after).append(other)
    return found


def _pairs(pattern: str, text: str) -> list[tuple[int, int]]:
    return [(int(one), int(two)) for one, two in re.findall(pattern, text)]


def _shard(ranks: int, unit: int, rows: list[tuple[int, int, int]]) -> PerShard:
    """Return the bytes of every shard: all alike unless some are listed."""
    if not rows:
        return PerShard(ranks, unit)
    counts = np.zeros((ranks, ranks), dtype=np.int64)
    for source, to, size in rows:
        counts[source, to] = size
    return PerShard(ranks, counts=counts)


def read_chakra(files: Mapping[str, bytes]) -> Traffic:
    """Return the traffic that traces describe; all their dependencies are on ends."""
    assert list(files) == [f"alltoall.{rank}.et" for rank in range(len(files))]
    traces = [[_fields(each) for each in _sized(data)] for data in files.values()]
    about = [_attributes(trace[0][2]) for trace in traces]
    (name,), (unit,) = about[0]["alltoall_name"][29], about[0]["alltoall_shard"][9]
    rows = [
        (rank, to, size)
        for rank, told in enumerate(about)
        for packed in told.get("alltoall_shards", {}).get(10, [])
        for to, size in enumerate(_numbers(_fields(packed)[1][0]))
    ]
    operations = [
        [_chakra_operation(node, rank, number) for number, node in enumerate(trace[1:])]
        for rank, trace in enumerate(traces)
    ]
    return Traffic(name.decode(), unit, _shard(len(files), unit, rows), operations)


def _chakra_operation(node: Fields, rank: int, number: int) -> TrafficOperation:
    assert node.get(1, [0]) == [number]
    sends = {5: True, 6: False}[node[3][0]]
    told = _attributes(node[10])
    ends = [told["comm_src"][7][0], told["comm_dst"][7][0]]
    assert ends.pop(0 if sends else 1) == rank
    before = [each for packed in node.get(5, []) for each in _numbers(packed)]
    return TrafficOperation(
        sends, ends[0], told["comm_tag"][7][0], told["comm_size"][9][0], before, []
    )


def _attributes(attributes: list[bytes]) -> dict[str, Fields]:
    """Return the fields of attributes by their names."""
    return {each[1][0].decode(): each for each in map(_fields, attributes)}


def _fields(data: bytes) -> Fields:
    """Return the values of a protobuf message by field: numbers, or bytes after their length."""
    found: Fields = {}
    at = 0
    while at < len(data):
        head, at = _varint(data, at)
        value, at = _varint(data, at)
        assert head & 7 in (0, 2)
        if head & 7 == 0:
            found.setdefault(head >> 3, []).append(value)
        else:
            found.setdefault(head >> 3, []).append(data[at : at + value])
            at += value
    assert at == len(data)
    return found


def _sized(data: bytes) -> Iterator[bytes]:
    """Yield the messages of a file, each of which stands after its length."""
    at = 0
    while at < len(data):
        length, at = _varint(data, at)
        yield data[at : at + length]
        at += length
    assert at == len(data)


def _numbers(data: bytes) -> Iterator[int]:
    at = 0
    while at < len(data):
        number, at = _varint(data, at)
        yield number


def _varint(data: bytes, at: int) -> tuple[int, int]:
    """Return the number that begins at a byte, and where it ends."""
    number = shift = 0
    while data[at] > 0x7F:
        number |= (data[at] & 0x7F) << shift
        at, shift = at + 1, shift + 7
    return number | data[at] << shift, at + 1


READERS: Mapping[str, Callable[[Any], Traffic]] = {"goal": read_goal, "chakra": read_chakra}


def check_traffic(traffic: Traffic, schedule: Schedule) -> None:
    """Simulate traffic, and compare the bytes of every step with those of its schedule.

    Where links enter switches, only what leaves and enters terminals is compared.
    """
    loads = simulate(traffic)
    assert {step for step, *_ in loads} == set(schedule.step.tolist())
    shard = shards_of(schedule.problem.demand, traffic.unit)
    assert traffic.shard == shard
    ends = (schedule.source, schedule.destination)
    size, chunks = shard.of(*ends).astype(object), schedule.chunks.of(*ends).astype(object)
    amount = (schedule.chunk + 1) * size // chunks - schedule.chunk * size // chunks
    topology = schedule.problem.topology
    sent = zip(
        schedule.step.tolist(),
        topology.position[topology.tail[schedule.link]].tolist(),
        topology.position[topology.head[schedule.link]].tolist(),
        amount,
        strict=True,
    )
    expected: Loads = Counter()
    for step, sender, receiver, count in sent:
        expected[step, sender, receiver] += count
    if len(topology.terminals) == topology.nodes:
        assert loads == expected
    assert _at_terminals(loads) == _at_terminals(expected)


def _at_terminals(loads: Loads) -> Counter[tuple[str, int, int]]:
    """Return the bytes that leave and enter each terminal in each step; -1 is a switch."""
    found: Counter[tuple[str, int, int]] = Counter()
    for (step, sender, receiver), count in loads.items():
        found["out", step, sender] += count if sender >= 0 else 0
        found["in", step, receiver] += count if receiver >= 0 else 0
    return +found


def simulate(traffic: Traffic) -> Loads:
    """Let every send meet its receive, and end; return the bytes by step, sender and receiver."""
    partner = _partners(traffic)
    started: set[End] = set()
    ended: set[End] = set()
    left = set(partner)
    while left:
        ready = {end for end in left if _is_ready(traffic, end, started, ended)}
        assert ready, f"deadlock: {len(left)} operations never start"
        started |= ready
        ended |= {end for one in ready for end in (one, partner[one]) if partner[end] in started}
        left -= ready
    loads: Loads = Counter()
    for rank, operations in enumerate(traffic.ranks):
        for each in operations:
            if each.sends:
                loads[each.tag, rank, each.peer] += each.bytes
            for other in (*each.after, *each.beside):
                assert operations[other].tag < each.tag
    return loads


def _is_ready(traffic: Traffic, end: End, started: set[End], ended: set[End]) -> bool:
    rank, operation = end[0], traffic.ranks[end[0]][end[1]]
    after = all((rank, other) in ended for other in operation.after)
    return after and all((rank, other) in started for other in operation.beside)


def _partners(traffic: Traffic) -> dict[End, End]:
    """Join the kth send of one rank to another with a tag to the kth receive there."""
    ends: dict[bool, dict[tuple[int, int, int, int], list[End]]] = {True: {}, False: {}}
    for rank, operations in enumerate(traffic.ranks):
        for number, (sends, peer, tag, size, *_) in enumerate(operations):
            pair = (rank, peer) if sends else (peer, rank)
            ends[sends].setdefault((*pair, tag, size), []).append((rank, number))
    sent, received = ends[True], ends[False]
    assert {key: len(each) for key, each in sent.items()} == {
        key: len(each) for key, each in received.items()
    }
    pairs = [pair for key in sent for pair in zip(sent[key], received[key], strict=True)]
    return dict(pairs) | {two: one for one, two in pairs}
