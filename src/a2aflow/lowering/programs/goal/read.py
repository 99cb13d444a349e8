"""Read GOAL, ours or a peer's, into `Traffic`: sends, receives and what requires what.

As strict as the converter of LogGOPSim: a rank after the other from 0 on, a label before it is
used. What it would take silently is refused: labels given twice, ranks that do not exist, and, as
an all-to-all has neither, computations and receives from anybody.
"""

import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field

import numpy as np

from a2aflow.errors import FormatError, InputError
from a2aflow.ir.arrays import starts_of
from a2aflow.ir.chunks import MAX_UNEVEN, PerShard
from a2aflow.ir.traffic import MAX_OPERATION_BYTES, MAX_TAG, RankTraffic, Traffic

MAX_LINES = 1 << 22
"""Lines of a file: what its executor holds in memory for each is not little."""

NUMBER = r"(0|[1-9][0-9]{0,17})"
NAME = r"([a-zA-Z][a-zA-Z0-9_]*)"
RANKS = re.compile(rf"num_ranks {NUMBER}")
RANK = re.compile(rf"rank {NUMBER} ?\{{")
OPERATION = re.compile(
    rf"(?:{NAME}: ?)?(send|recv) {NUMBER}b (to|from) {NUMBER}(?: tag {NUMBER})?"
    rf"(?: cpu [0-9]{{1,3}})?(?: nic [0-9]{{1,3}})?"
)
DEPENDENCY = re.compile(rf"{NAME} (i?requires) {NAME}")
TOLD = re.compile(rf"// a2aflow (?:(name) (.*)|(shard) {NUMBER}|(to) {NUMBER} {NUMBER})")
EXPECTED = (
    "such as `l1: send 1024b to 1 tag 0`, `l2: recv 1024b from 0 tag 0` or `l2 requires l1`, in a "
    "`rank 0 {` after `num_ranks N`"
)


@dataclass
class _Rank:
    """The operations of a rank so far, the numbers of its labels, and what it has for others."""

    rank: int
    rows: list[tuple[bool, int, int, int]] = field(default_factory=list)
    labels: dict[str, int] = field(default_factory=dict)
    edges: dict[str, set[tuple[int, int]]] = field(
        default_factory=lambda: {"requires": set(), "irequires": set()}
    )
    shards: dict[int, int] = field(default_factory=dict)

    def part(self) -> RankTraffic:
        """Return what has been read."""
        columns = list(zip(*self.rows, strict=True)) or [(), (), (), ()]
        sends, peer, tag, size = (np.array(column, dtype=np.int64) for column in columns)
        first, others = {}, {}
        for word, edges in self.edges.items():
            rows = np.array(sorted(edges), dtype=np.int64).reshape(-1, 2)
            first[word] = starts_of(np.bincount(rows[:, 0], minlength=len(self.rows)))
            others[word] = rows[:, 1]
        return RankTraffic(
            rank=self.rank,
            sends=sends > 0,
            peer=peer,
            tag=tag,
            bytes=size,
            after_first=first["requires"],
            after=others["requires"],
            beside_first=first["irequires"],
            beside=others["irequires"],
        )


class _Reader:
    """What the lines so far have said."""

    def __init__(self) -> None:
        self.ranks: int | None = None
        self.name = "GOAL"
        self.unit: int | None = None
        self.done: list[RankTraffic] = []
        self.shards: list[tuple[int, int, int]] = []
        self.open: _Rank | None = None

    def take(self, line: str) -> str | None:
        """Take a line; return what is wrong with it, if anything."""
        for pattern, take in self._forms():
            match = pattern.fullmatch(line)
            if match is not None:
                return take(match)
        if not line or (line.startswith("//") and "a2aflow" not in line):
            return None
        if self.open is not None and line == "}":
            self.close(self.open)
            return None
        return "is not a line of GOAL that an all-to-all has"

    def _forms(self) -> Iterator[tuple[re.Pattern[str], Callable[[re.Match[str]], str | None]]]:
        """Yield what a line may be, here."""
        if self.open is not None:
            yield OPERATION, self._operation
            yield DEPENDENCY, self._dependency
        elif self.ranks is not None:
            yield RANK, self._rank
        else:
            yield RANKS, self._ranks
        yield TOLD, self._told

    def _ranks(self, match: re.Match[str]) -> str | None:
        self.ranks = int(match[1])
        if not 2 <= self.ranks <= MAX_UNEVEN:
            return f"has {self.ranks} ranks, but 2 to {MAX_UNEVEN:,} can be executed"
        return None

    def _rank(self, match: re.Match[str]) -> str | None:
        self.open = _Rank(int(match[1]))
        if self.open.rank != len(self.done) or self.open.rank >= (self.ranks or 0):
            return f"is not rank {len(self.done)} of {self.ranks}, the next one"
        return None

    def close(self, rank: _Rank) -> None:
        """End a rank."""
        self.done.append(rank.part())
        self.shards += [(rank.rank, to, size) for to, size in rank.shards.items()]
        self.open = None

    def _operation(self, match: re.Match[str]) -> str | None:
        label, does, size, way, peer, tag = match.groups()
        rank = self.open
        if rank is None or (does == "send") != (way == "to"):
            return "does not send to, or receive from"
        if label is not None:
            if label in rank.labels:
                return f"has a label that rank {rank.rank} has already"
            rank.labels[label] = len(rank.rows)
        row = (does == "send", int(peer), int(tag or 0), int(size))
        if row[1] >= (self.ranks or 0) or row[1] == rank.rank:
            return f"is no other one of the {self.ranks} ranks"
        if row[2] > MAX_TAG or not 1 <= row[3] <= MAX_OPERATION_BYTES:
            return f"has not 1 to {MAX_OPERATION_BYTES:,} bytes and a tag up to {MAX_TAG}"
        rank.rows.append(row)
        return None

    def _dependency(self, match: re.Match[str]) -> str | None:
        later, word, earlier = match.groups()
        rank = self.open
        if rank is None or later not in rank.labels or earlier not in rank.labels:
            return "has a label that no line before it gives"
        rank.edges[word].add((rank.labels[later], rank.labels[earlier]))
        return None

    def _told(self, match: re.Match[str]) -> str | None:
        _, name, shard, unit, _, to, size = match.groups()
        if name is not None and self.open is None:
            self.name = name
        elif shard is not None and self.open is None and self.unit is None:
            self.unit = int(unit)
        elif to is not None and self.open is not None and int(to) not in self.open.shards:
            if int(to) >= (self.ranks or 0) or not 1 <= int(size) <= MAX_OPERATION_BYTES:
                return "is no shard of the ranks"
            self.open.shards[int(to)] = int(size)
        else:
            return "says what is not asked here, or has been said"
        return None

    def shard(self) -> PerShard | None:
        """Return how large shards are, as far as comments say."""
        if self.unit is None or self.ranks is None:
            return None
        if not self.shards:
            return PerShard(self.ranks, self.unit)
        counts = np.zeros((self.ranks, self.ranks), dtype=np.int64)
        source, to, size = np.array(self.shards, dtype=np.int64).T
        counts[source, to] = size
        return PerShard(self.ranks, counts=counts)


def read_goal(text: str, where: str) -> Traffic:
    """Build the traffic of all ranks from GOAL."""
    lines = text.count("\n")
    if lines > MAX_LINES:
        raise FormatError(
            f"{where}: {lines:,} lines; expected at most {MAX_LINES:,}, use a schedule of fewer "
            "messages"
        )
    reader = _Reader()
    for number, line in enumerate(text.split("\n"), 1):
        found = " ".join(line.split())
        problem = reader.take(found)
        if problem is not None:
            raise FormatError(
                f"{where}: line {number}, {found[:60]!r}, {problem}; expected lines {EXPECTED}"
            )
    if reader.open is not None or len(reader.done) != reader.ranks:
        raise FormatError(
            f"{where}: ends after {len(reader.done)} of {reader.ranks or 'how many'} ranks; the "
            "file may be truncated"
        )
    try:
        return Traffic(reader.name, tuple(reader.done), reader.unit, reader.shard())
    except InputError as error:
        raise FormatError(f"{where}: {error}") from None
