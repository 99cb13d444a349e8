"""The work of a rank: its part of a schedule, messages or a program."""

from collections.abc import Callable
from dataclasses import dataclass
from importlib import import_module
from os import PathLike
from pathlib import Path
from typing import TypeAlias

from alltoall.errors import UsageError
from alltoall.ir.execution_plan import ExecutionPlan
from alltoall.ir.files.artefacts import artefact_as, is_saved
from alltoall.ir.files.json.values import parse_json
from alltoall.ir.files.messages import MESSAGES_FORMAT, messages_from_text
from alltoall.ir.files.npz import is_archive
from alltoall.ir.files.text import decode, exists, read_bytes, require_size
from alltoall.ir.messages import Messages, RankMessages
from alltoall.ir.program import Program
from alltoall.ir.quantities import parse_sizes
from alltoall.ir.schedule import Schedule
from alltoall.ir.words import kind_in_words
from alltoall.lowering import MAX_LOWERED_BYTES, kind_of, parse_lowered

COMPILER = "alltoall.lowering.programs.messages"
"""By name: ranks of `run` read messages, and start faster without the compiler."""

SCHEDULER = "alltoall.schedules.public"
"""By name, for the same reason: only a SPEC needs the scheduler."""

Work = Schedule | Messages | RankMessages
"""Input of a runtime: a schedule, or its messages for all ranks or for one."""

Given: TypeAlias = Schedule | Messages | str | PathLike[str]
"""Input of callers: also the path of either, or a SPEC."""


def part_of(work: Work, rank: int) -> RankMessages:
    """Return the messages of one rank."""
    if isinstance(work, Schedule):
        found: RankMessages = import_module(COMPILER).rank_messages(work, rank)
        return found
    return work.ranks[rank] if isinstance(work, Messages) else work


def all_parts(work: Schedule | Messages) -> Messages:
    """Return the messages of all ranks."""
    if isinstance(work, Messages):
        return work
    found: Messages = import_module(COMPILER).messages_of(work)
    return found


FILES = {".json", ".npz", ".gz", ".messages", ".txt"}
"""Suffixes of file names, which are no SPECs even if the file is missing."""


def is_spec(given: object) -> bool:
    """Return whether an input is a SPEC: a text that neither names a file nor looks like one."""
    path = Path(given) if isinstance(given, str) else None
    return bool(path and not exists(path) and path.name == given and path.suffix not in FILES)


def schedule_for(
    given: Given, progress: Callable[[str], None] | None = None
) -> Schedule | Messages:
    """Return a schedule or messages: as given, read from a file, or made for a SPEC."""
    if isinstance(given, Schedule | Messages):
        return given
    if is_spec(given):
        told = {} if progress is None else {"progress": progress}
        found: Schedule = import_module(SCHEDULER).schedule(given, **told)
        return found
    return read_schedule(Path(given))


def messages_for(given: Given) -> Messages:
    """Return the messages of the input: as given, read from a file, or made for a SPEC."""
    return all_parts(schedule_for(given))


def least_size(size: int | str) -> int:
    """Return the bytes of a least size such as 4K, 0 if it is empty."""
    if isinstance(size, int):
        return size
    found = parse_sizes(size) if size.strip() not in ("", "0") else (0,)
    if len(found) != 1:
        raise UsageError(f"{size!r}; expected one size, such as 4096 or 64K")
    return found[0]


def read_messages(path: Path) -> Messages:
    """Read messages from the file of a schedule, or of lowered messages."""
    return all_parts(read_schedule(path))


def read_schedule(path: Path) -> Schedule | Messages:
    """Read the file of a schedule, or of the messages that it was lowered to."""
    return _schedule_in(read_bytes(path), str(path))


def _schedule_in(data: bytes, where: str) -> Schedule | Messages:
    if data.startswith(MESSAGES_FORMAT.encode()):
        return messages_from_text(decode(data, where), where)
    return artefact_as(data, where, Schedule)


@dataclass(frozen=True, eq=False)
class RankWork:
    """The messages or program of ranks, and its origin.

    Ranks read a program from its `file`, whose bytes are kept; messages are written for them.
    """

    name: str
    parts: Messages | Program | ExecutionPlan
    file: bytes | None = None


def read_work(path: Path) -> RankWork:
    """Read the file of a schedule, or of anything that it, or another's, was lowered to."""
    data, where = read_bytes(path), str(path)
    kind = _target_of(data, where)
    if kind in (None, "messages"):
        return RankWork(where, all_parts(_schedule_in(data, where)))
    require_size(data, where, MAX_LOWERED_BYTES)
    return rank_work(where, parse_lowered(decode(data, where), where)[1], data)


def rank_work(name: str, found: object, file: bytes | None = None) -> RankWork:
    """Return the ranks' work for a schedule, or for a lowered file of these bytes."""
    if isinstance(found, Schedule):
        return RankWork(name, all_parts(found))
    if not isinstance(found, Messages | Program | ExecutionPlan):
        kind = getattr(found, "kind", None)
        what = kind_in_words(found) if kind is None else f"a file of the target {kind}"
        raise UsageError(
            f"{name}: ranks cannot run {what}; expected a "
            "schedule, its messages, MSCCL XML, an MSCCL++ plan or oneCCL-style XML"
        )
    return RankWork(name, found, None if isinstance(found, Messages) else file)


def _target_of(data: bytes, where: str) -> str | None:
    """Return the target of a lowered file, or None."""
    if is_archive(data):
        return None
    text = decode(data, where)
    kind = kind_of(text)
    is_json = kind is not None and text.lstrip()[:1] == "{"
    return None if is_json and is_saved(parse_json(text, where)) else kind
