"""Lists of puts, signals and waits for the one-sided calls of NCCL 2.29 and later.

docs/formats/nccl-put.md describes them. In every step of the schedule a rank puts its chunks into
the windows of others, which signals them, and waits for the signals of those that put into its own.
Scratch is used again: who has read a place last, or got what nobody reads, signals the rank that
writes there next. At first every rank tells those that put into its windows that it has begun.
"""

import json
from collections import Counter
from collections.abc import Iterator

import numpy as np

from a2aflow.ir.program import Buffer
from a2aflow.ir.schedule import Schedule
from a2aflow.lowering.options import Options
from a2aflow.lowering.programs.compile import moves_of
from a2aflow.lowering.programs.moves import Moves
from a2aflow.lowering.programs.streams import own_shard

FORMAT = "a2aflow.nccl-put/1"

WINDOWS = {Buffer.INPUT: "i", Buffer.OUTPUT: "o", Buffer.SCRATCH: "s"}
"""What a file calls the windows that all ranks register."""

Row = list[object]
Release = tuple[int, int, int]
"""After a step, a rank tells another that it may write."""


def emit_nccl_put(schedule: Schedule, options: Options) -> str:
    """Lower a schedule to the lists of its ranks."""
    del options  # Streams and contexts are the caller's affair.
    moves = moves_of(schedule)
    chunks, releases = moves.chunks, _Releases(_releases(moves))
    shards = {"shards": chunks.rows()}
    head = {
        "format": FORMAT,
        "name": schedule.problem.topology.name,
        "ranks": moves.ranks,
        **({"chunks_per_shard": chunks.per_shard} if chunks.uniform else shards),
        "scratch": int(moves.scratch.max()),
    }
    lists = (_text(list(_operations(moves, rank, releases))) for rank in range(moves.ranks))
    return _text(head)[:-1] + ',"programs":[\n' + ",\n".join(lists) + "\n]}\n"


def _text(value: object) -> str:
    return json.dumps(value, separators=(",", ":"))


class _Releases:
    """Who tells whom that it may write, by step and either end."""

    def __init__(self, found: set[Release]) -> None:
        self.told_by: dict[tuple[int, int], list[int]] = {}
        self.told_to: dict[tuple[int, int], list[int]] = {}
        for step, owner, writer in sorted(found):
            self.told_by.setdefault((step, owner), []).append(writer)
            self.told_to.setdefault((step, writer), []).append(owner)


def _operations(moves: Moves, rank: int, releases: _Releases) -> Iterator[Row]:
    sent, received = moves.sender == rank, moves.receiver == rank
    writers = np.unique(moves.sender[received]).tolist()
    if writers:
        yield ["signal", writers]
    if sent.any():
        yield ["wait", [[peer, 1] for peer in np.unique(moves.receiver[sent]).tolist()]]
    for begin, to, count in own_shard(moves.chunks, rank):
        yield ["copy", "i", begin, "o", to, count]
    for step in np.unique(moves.step).tolist():
        now = moves.step == step
        puts = [_put(moves, each) for each in np.flatnonzero(sent & now).tolist()]
        if puts:
            yield ["put", puts]
        yield from _waits(Counter(moves.sender[received & now].tolist()))
        freed = releases.told_by.get((step, rank), [])
        if freed:
            yield ["signal", freed]
        yield from _waits(Counter(releases.told_to.get((step, rank), [])))


def _waits(counts: Counter[int]) -> Iterator[Row]:
    if counts:
        yield ["wait", [[peer, count] for peer, count in sorted(counts.items())]]


def _put(moves: Moves, each: int) -> Row:
    ends = (moves.from_buffer, moves.from_offset), (moves.to_buffer, moves.to_offset)
    places = [
        value
        for buffer, offset in ends
        for value in (WINDOWS[Buffer(int(buffer[each]))], int(offset[each]))
    ]
    return [int(moves.receiver[each]), *places, int(moves.count[each])]


def _releases(moves: Moves) -> set[Release]:
    """Return who tells whom, after which step, that a place is free to be written again.

    A place is free when what was written there has been read for the last time, or if nobody reads
    it, when it has come. A rank that writes what it has got from the owner since need not be told,
    but to find that out is not worth a signal.
    """
    found: set[Release] = set()
    busy: dict[tuple[int, int, int], int] = {}
    columns = ("step", "sender", "receiver", "from_buffer", "from_offset", "to_buffer", "to_offset")
    rows = zip(*(getattr(moves, key).tolist() for key in (*columns, "count")), strict=True)
    for step, sender, receiver, source, begin, target, to, count in rows:
        for each in range(count):
            busy[sender, source, begin + each] = step
            place = (receiver, target, to + each)
            if place in busy:
                found.add((busy[place], receiver, sender))
            busy[place] = step
    return found
