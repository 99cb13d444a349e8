"""Read lists of puts, signals and waits into an `ExecutionPlan`, which says what they mean.

A rank has a thread block for every rank that it deals with, as NCCL orders puts to one rank only,
and all of them meet at a barrier after every operation of the list, as a stream does.
"""

from collections import Counter
from collections.abc import Callable, Iterable
from typing import Any

from a2aflow.errors import FormatError, InputError
from a2aflow.ir.chunks import Chunks
from a2aflow.ir.execution_plan import Copy, ExecutionPlan, Operation, PlanOp, RankPlan
from a2aflow.ir.files.fields import (
    MAX_INT,
    Json,
    short,
    take_int,
    take_list,
    take_object,
    take_text,
)
from a2aflow.ir.files.json import parse_json
from a2aflow.ir.program import MAX_RANKS, Buffer, Place, check_space
from a2aflow.lowering.programs.nccl_put.emit import FORMAT, WINDOWS

BUFFERS = {name: buffer for buffer, name in WINDOWS.items()}
MAX_OPERATIONS = 1 << 20
"""Operations of one rank, and parts of one operation."""


class _Lanes:
    """The operations of a rank so far: a lane for every rank that it deals with."""

    def __init__(self, rank: int, peers: list[int]) -> None:
        self.rank, self.peers = rank, peers
        self._lane = {peer: index for index, peer in enumerate(peers)}
        self.blocks: list[list[Operation]] = [[] for _ in peers or [rank]]

    def add(self, peer: int, op: PlanOp, **told: Any) -> None:
        """Add an operation on the channel to a rank."""
        lane = self._lane[peer]
        self.blocks[lane].append(Operation(op, channels=(lane,), **told))

    def move(self, peer: int, copy: Copy) -> None:
        """Add a put to a rank, or a copy within this one."""
        own = peer == self.rank
        lane = 0 if own else self._lane[peer]
        self.blocks[lane].append(Operation(PlanOp.COPY if own else PlanOp.PUT, (copy,)))

    def meet(self) -> None:
        """Let all that has been begun end."""
        for block in self.blocks:
            block.append(Operation(PlanOp.BARRIER, parties=len(self.blocks)))


def read_nccl_put(text: str, where: str) -> ExecutionPlan:
    """Build an execution plan from the lists of all ranks."""
    plan = take_object(parse_json(text, where), where)
    take_text(plan, "format", where, (FORMAT,))
    ranks = take_int(plan, "ranks", where, MAX_RANKS)
    lists = take_list(plan, "programs", where, MAX_RANKS)
    if len(lists) != ranks or ranks < 2:
        raise FormatError(f"{where}: {len(lists)} programs for {ranks} ranks; expected one of each")
    try:
        chunks, scratch = _chunks(plan, ranks, where), take_int(plan, "scratch", where)
        check_space(chunks.stored, [scratch] * ranks)
        read = [_rows(each, rank, ranks, where) for rank, each in enumerate(lists)]
        _require_signals(read, where)
        peers = _peers(read)
        parts = (_plan(rows, rank, peers[rank]) for rank, rows in enumerate(read))
        sizes = zip(chunks.inputs().tolist(), chunks.outputs().tolist(), strict=True)
        code = tuple(
            RankPlan(sent, received, scratch, tuple(own.peers), tuple(map(tuple, own.blocks)))
            for (sent, received), own in zip(sizes, parts, strict=True)
        )
        return ExecutionPlan(take_text(plan, "name", where), chunks, code)
    except InputError as error:
        if isinstance(error, FormatError):
            raise
        raise FormatError(f"{where}: {error}") from None


def _chunks(plan: Json, ranks: int, where: str) -> Chunks:
    """Return the chunks of every pair: as many of each, or those that are listed."""
    if "shards" not in plan:
        return Chunks(ranks, take_int(plan, "chunks_per_shard", where))
    rows = []
    for index, row in enumerate(take_list(plan, "shards", where, MAX_OPERATIONS)):
        source, to, count = _numbers(row, 3, f"{where}: shards[{index}]")
        rows.append((source, to, count))
    return Chunks.from_rows(ranks, rows)


Row = tuple[str, list[tuple[int, ...]], list[Copy]]
"""The name of an operation, the ranks and numbers that it says, and what it moves."""


def _rows(value: object, rank: int, ranks: int, where: str) -> list[Row]:
    """Read the list of a rank."""
    here = f"{where}: rank {rank}"
    rows: list[Row] = []
    for number, each in enumerate(take_list({"program": value}, "program", here, MAX_OPERATIONS)):
        spot = f"{here}, operation {number}"
        name = each[0] if isinstance(each, list) and each else None
        if not isinstance(name, str) or name not in READERS:
            raise FormatError(
                f"{spot}: is {short(each)}; expected an array that begins with one of "
                f"{', '.join(READERS)}"
            )
        rows.append((name, *READERS[name](each[1:], rank, ranks, spot)))
    return rows


def _put(parts: list[Any], rank: int, ranks: int, spot: str) -> tuple[list[Any], list[Copy]]:
    copies = []
    for row in _only_list(parts, spot):
        if not isinstance(row, list) or len(row) != 6:
            raise FormatError(f"{spot}: is {short(row)}; expected a rank, two places and a count")
        (peer,) = _numbers(row[:1], 1, spot)
        copies.append(_move(_other(peer, rank, ranks, spot), row[1:], spot))
    return [], copies


def _copy(parts: list[Any], rank: int, _: int, spot: str) -> tuple[list[Any], list[Copy]]:
    if len(parts) != 5:
        raise FormatError(f"{spot}: is {short(parts)}; expected two places and a count")
    return [], [_move(rank, parts, spot)]


def _move(peer: int, parts: list[Any], spot: str) -> Copy:
    """Read two places, each a window and an offset, and a count."""
    windows = [parts[0], parts[2]]
    if not all(isinstance(each, str) and each in BUFFERS for each in windows):
        raise FormatError(f"{spot}: windows {short(windows)}; expected {', '.join(BUFFERS)}")
    begin, to, count = _numbers([parts[1], parts[3], parts[4]], 3, spot)
    if BUFFERS[windows[1]] is Buffer.INPUT:
        raise FormatError(f"{spot}: writes to the window i; expected o or s")
    return Copy(Place(BUFFERS[windows[0]], begin), peer, Place(BUFFERS[windows[1]], to), count)


def _signal(parts: list[Any], rank: int, ranks: int, spot: str) -> tuple[list[Any], list[Copy]]:
    peers = _only_list(parts, spot)
    numbers = _numbers(peers, len(peers), spot)
    return [(_other(peer, rank, ranks, spot), 1) for peer in numbers], []


def _wait(parts: list[Any], rank: int, ranks: int, spot: str) -> tuple[list[Any], list[Copy]]:
    found = []
    for row in _only_list(parts, spot):
        peer, count = _numbers(row, 2, spot)
        if not count:
            raise FormatError(f"{spot}: waits for no signal; expected at least 1")
        found.append((_other(peer, rank, ranks, spot), count))
    if len({peer for peer, _ in found}) < len(found):
        raise FormatError(f"{spot}: waits for a rank twice; expected each once")
    return found, []


READERS: dict[str, Callable[[list[Any], int, int, str], tuple[list[Any], list[Copy]]]] = {
    "put": _put,
    "copy": _copy,
    "signal": _signal,
    "wait": _wait,
}


def _only_list(parts: list[Any], spot: str) -> list[Any]:
    if len(parts) != 1 or not isinstance(parts[0], list) or not parts[0]:
        raise FormatError(f"{spot}: has {short(parts)}; expected one array, not empty")
    return take_list({"array": parts[0]}, "array", spot, MAX_OPERATIONS)


def _numbers(values: Any, count: int, spot: str) -> list[int]:
    known = isinstance(values, list) and len(values) == count
    if not known or not all(type(each) is int and 0 <= each <= MAX_INT for each in values):
        raise FormatError(f"{spot}: is {short(values)}; expected {count} numbers 0..{MAX_INT}")
    found: list[int] = values
    return found


def _other(peer: int, rank: int, ranks: int, spot: str) -> int:
    if peer >= ranks or peer == rank:
        raise FormatError(f"{spot}: names rank {peer}; expected another one of 0..{ranks - 1}")
    return peer


def _require_signals(read: list[list[Row]], where: str) -> None:
    """Refuse a rank that waits for more signals than it gets; each is an operation of the plan."""
    signals: Counter[tuple[int, int]] = Counter()
    waits: Counter[tuple[int, int]] = Counter()
    for rank, rows in enumerate(read):
        for name, told, copies in rows:
            for peer, count in told:
                if name == "wait":
                    waits[peer, rank] += count
                else:
                    signals[rank, peer] += count
            signals.update((rank, copy.rank) for copy in copies)
    for (peer, rank), count in waits.items():
        if count > signals[peer, rank]:
            raise FormatError(
                f"{where}: rank {rank} waits for {count} signals of rank {peer}, which gives it "
                f"{signals[peer, rank]}"
            )


def _peers(read: list[list[Row]]) -> list[list[int]]:
    """Return the ranks that each rank deals with, whichever of the two says so."""
    found: list[set[int]] = [set() for _ in read]
    for rank, rows in enumerate(read):
        for _, told, copies in rows:
            named = {peer for peer, *_ in told} | {copy.rank for copy in copies}
            for peer in named - {rank}:
                found[rank].add(peer)
                found[peer].add(rank)
    return [sorted(each) for each in found]


def _plan(rows: Iterable[Row], rank: int, peers: list[int]) -> _Lanes:
    """Return what the list of a rank means."""
    lanes = _Lanes(rank, peers)
    for name, told, copies in rows:
        for copy in copies:
            lanes.move(copy.rank, copy)
            if name == "put":
                lanes.add(copy.rank, PlanOp.SIGNAL, ordered=True)
        for peer, count in told:
            for _ in range(count):
                if name == "wait":
                    lanes.add(peer, PlanOp.WAIT)
                else:
                    lanes.add(peer, PlanOp.SIGNAL, bare=True)
        lanes.meet()
    return lanes
