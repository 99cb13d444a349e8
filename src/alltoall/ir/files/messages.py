"""Messages as a file of numbers in lines, for ranks and for a small library in C to read.

docs/formats.md describes it. A header has all sizes; then every rank has a section of known length,
so that it can seek its own. The reader accepts only the exact text that the writer makes.
"""

import math
import re
from collections.abc import Iterator
from io import BytesIO
from pathlib import Path
from typing import Any, BinaryIO, NamedTuple

import numpy as np
from numpy.typing import NDArray

from alltoall.errors import FormatError
from alltoall.ir.arrays import Ints
from alltoall.ir.chunks import Chunks
from alltoall.ir.demand import Demand
from alltoall.ir.files.fields import MAX_INT, naming, parse_int, short
from alltoall.ir.messages import RANGE, Messages, RankMessages
from alltoall.ir.program import MAX_RANKS

MESSAGES_FORMAT = "alltoall.messages/1"
MAX_LINE = 4096
"""Most bytes of a line of the header."""

MESSAGE_COLUMNS, RANGE_COLUMNS = 5, len(RANGE)
_NUMBERS = re.compile(rb"[0-9 \n]*")


class _Section(NamedTuple):
    """The sizes of the section of a rank."""

    messages: int
    ranges: int
    waits: int
    scratch: int
    bytes: int


class _Header(NamedTuple):
    """The fields that all ranks share, and the sizes of their sections."""

    name: str
    steps: int
    chunks: Chunks
    demand: Demand
    sections: tuple[_Section, ...]


def messages_text(messages: Messages) -> str:
    """Return the file of messages."""
    bodies = [_body(part) for part in messages.ranks]
    index = [
        f"{part.messages} {len(part.source)} {len(part.waits)} {part.scratch} {len(body)}\n"
        for part, body in zip(messages.ranks, bodies, strict=True)
    ]
    return "".join((*_head(messages), *index, *bodies))


def _head(messages: Messages) -> Iterator[str]:
    chunks, matrix = messages.chunks, messages.demand
    rows = chunks.rows()
    name = " ".join(messages.name.split())[: MAX_LINE // 8]
    name = name.encode(errors="replace").decode()
    yield f"{MESSAGES_FORMAT}\nname {name}\n"
    yield f"ranks {chunks.ranks}\nsteps {messages.steps}\n"
    yield f"chunks {chunks.per_shard or 0}\nshards {len(rows)}\n"
    for source, to, count in rows:
        amount = float(matrix.of(np.array(source), np.array(to)))
        yield f"{source} {to} {count} {amount!r}\n"


def _body(part: RankMessages) -> str:
    """Return the section of a rank: its messages, their ranges, then their waits."""
    columns = (part.sends, part.peer, part.step, np.diff(part.first), np.diff(part.waits_first))
    ranges = [getattr(part, key) for key in RANGE]
    return "".join((*_lines(*columns), *_lines(*ranges), *_lines(part.waits)))


def _lines(*columns: NDArray[Any]) -> Iterator[str]:
    rows = zip(*(column.astype(np.int64).tolist() for column in columns), strict=True)
    return (" ".join(map(str, row)) + "\n" for row in rows)


def messages_from_text(text: str, where: str) -> Messages:
    """Build the messages of all ranks from the text of their file."""
    file = BytesIO(text.encode())
    header = _header(file, where)
    parts = tuple(_section(file, header, rank, where) for rank in range(len(header.sections)))
    if file.read(1):
        raise FormatError(f"{where}: more text after the section of the last rank")
    with naming(where):
        return Messages(header.name, parts)


def read_rank(path: Path, rank: int) -> RankMessages:
    """Read the messages of one rank: the header and its own section."""
    with path.open("rb") as file:
        header = _header(file, str(path))
        file.seek(sum(section.bytes for section in header.sections[:rank]), 1)
        return _section(file, header, rank, str(path))


def _header(file: BinaryIO, where: str) -> _Header:
    if _line(file, where) != MESSAGES_FORMAT:
        raise FormatError(f"{where}: the first line is not {MESSAGES_FORMAT!r}")
    key, _, name = _line(file, where).partition(" ")
    if key != "name":
        raise FormatError(f"{where}: the second line is {key[:60]!r}; expected a name")
    ranks = _keyed(file, "ranks", 2, MAX_RANKS, where)
    steps = _keyed(file, "steps", 1, MAX_INT, where)
    per_shard = _keyed(file, "chunks", 0, MAX_INT, where)
    shards = _keyed(file, "shards", 0, 0 if per_shard else ranks * (ranks - 1), where)
    with naming(where):
        chunks, demand = _shards(file, ranks, per_shard, shards, where)
    sections = tuple(
        _Section(*_numbers(_line(file, where), 5, f"{where}: the index of rank {rank}"))
        for rank in range(ranks)
    )
    return _Header(name, steps, chunks, demand, sections)


def _shards(
    file: BinaryIO, ranks: int, per_shard: int, shards: int, where: str
) -> tuple[Chunks, Demand]:
    """Read the chunks and the amount of every pair, unless all are equal."""
    if per_shard:
        return Chunks(ranks, per_shard), Demand(ranks)
    rows, amounts = [], []
    for index in range(shards):
        here = f"{where}: shard {index}"
        numbers, _, amount = _line(file, where).rpartition(" ")
        source, to, count = _numbers(numbers, 3, here)
        rows.append((source, to, count))
        amounts.append(_amount(amount, here))
    chunks = Chunks.from_rows(ranks, rows)
    matrix = np.zeros((ranks, ranks))
    matrix[tuple(np.array(rows)[:, :2].T)] = amounts
    if len(rows) == ranks * (ranks - 1) and set(amounts) == {1.0}:
        return chunks, Demand(ranks)
    return chunks, Demand(ranks, matrix)


def _section(file: BinaryIO, header: _Header, rank: int, where: str) -> RankMessages:
    here, sizes = f"{where}: rank {rank}", header.sections[rank]
    data = file.read(sizes.bytes)
    wanted = MESSAGE_COLUMNS * sizes.messages + RANGE_COLUMNS * sizes.ranges + sizes.waits
    # A number takes a digit and a space or a line end.
    if len(data) != sizes.bytes or 2 * wanted > sizes.bytes or not _NUMBERS.fullmatch(data):
        raise FormatError(
            f"{here}: its section is not {sizes.bytes:,} bytes of {wanted:,} numbers; the file may "
            "be truncated"
        )
    numbers = np.array(data.split(), dtype=np.float64)
    if len(numbers) != wanted or np.any(numbers > MAX_INT):
        raise FormatError(
            f"{here}: {len(numbers):,} numbers; expected {wanted:,}, none above {MAX_INT}"
        )
    with naming(where):
        part = _part(numbers.astype(np.int64), header, rank)
    if _body(part).encode() != data:
        raise FormatError(
            f"{here}: numbers are not written as expected: {MESSAGE_COLUMNS} in the line of a "
            f"message, {RANGE_COLUMNS} of a range, one of a wait, without zeros before them"
        )
    return part


def _part(numbers: Ints, header: _Header, rank: int) -> RankMessages:
    sizes = header.sections[rank]
    cuts = np.cumsum((MESSAGE_COLUMNS * sizes.messages, RANGE_COLUMNS * sizes.ranges))
    messages, ranges, waits = np.split(numbers, cuts)
    sends, peer, step, range_counts, wait_counts = messages.reshape(-1, MESSAGE_COLUMNS).T
    columns = dict(zip(RANGE, ranges.reshape(-1, RANGE_COLUMNS).T, strict=True))
    return RankMessages(
        rank=rank,
        steps=header.steps,
        chunks=header.chunks,
        demand=header.demand,
        scratch=sizes.scratch,
        step=step,
        peer=peer,
        sends=sends > 0,
        first=np.append(0, np.cumsum(range_counts)),
        waits_first=np.append(0, np.cumsum(wait_counts)),
        waits=waits,
        **columns,
    )


def _line(file: BinaryIO, where: str) -> str:
    data = file.readline(MAX_LINE)
    if not data.endswith(b"\n"):
        raise FormatError(f"{where}: the header ends early, or has a line above {MAX_LINE} bytes")
    return data[:-1].decode("utf-8", errors="replace")


def _keyed(file: BinaryIO, key: str, least: int, most: int, where: str) -> int:
    line = _line(file, where)
    found, _, value = line.partition(" ")
    if found != key:
        raise FormatError(f"{where}: found the line {short(line)}; expected {key} and a number")
    return parse_int(value, key, where, most, least)


def _numbers(line: str, count: int, here: str) -> list[int]:
    words = line.split(" ")
    if len(words) != count:
        raise FormatError(f"{here}: found {short(line)}; expected {count} numbers")
    return [parse_int(word, f"number {index}", here) for index, word in enumerate(words)]


def _amount(word: str, here: str) -> float:
    try:
        amount = float(word)
    except ValueError:
        amount = math.nan
    if not 0 < amount < math.inf or repr(amount) != word:
        raise FormatError(f"{here}: its demand is {word[:60]!r}; expected a positive number")
    return amount
