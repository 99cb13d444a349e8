"""Environment variables that run an unmodified program with schedules.

The engine's preloaded library intercepts MPI_Alltoall and its variants (`runtime.engine`); a small
file lists the messages, their ranks and the least size.
"""

import hashlib
import os
from collections.abc import Sequence
from dataclasses import dataclass
from os import PathLike
from pathlib import Path

from alltoall.check.program.messages import check_messages
from alltoall.errors import FormatError, UsageError, VerificationError
from alltoall.ir.files.artefacts import read_as
from alltoall.ir.files.messages import messages_text
from alltoall.ir.files.node_tables import read_node_values
from alltoall.ir.files.text import write_text
from alltoall.ir.messages import Messages
from alltoall.ir.quantities import parse_sizes
from alltoall.ir.schedule import Schedule
from alltoall.runtime.engine.build import build, cache_folder, find_mpicc
from alltoall.runtime.parts import all_parts, read_messages

MARK = "@"
"""Stands between a file and the size from which on it is used."""


@dataclass(frozen=True)
class Wrapped:
    """Messages, the least bytes of a shard that they are used for, and their ranks in the world."""

    messages: Messages
    least: int
    world: tuple[int, ...] | None = None


def environment_for(
    files: Sequence[Schedule | str | PathLike[str]],
    *,
    min_bytes: int | str = 0,
    rank_map: str | PathLike[str] | None = None,
    mpicc: str | None = None,
    launcher: str | None = None,
    report: bool = False,
    quiet: bool = False,
) -> dict[str, str]:
    """Return the variables that run an MPI program with schedules; see `alltoall.wrap`."""
    if not files:
        raise UsageError("no schedule; expected the file of at least one")
    if report and quiet:
        raise UsageError("--report with --quiet: one prints a line, the other none; leave one out")
    wrapped = [_wrapped(each, _size(min_bytes), rank_map) for each in files]
    engine = build(find_mpicc(mpicc, launcher))
    lines = [word for word, asked in (("report", report), ("quiet", quiet)) if asked]
    for each in wrapped:
        path = _kept(messages_text(each.messages), ".messages")
        lines.append(f"file {len(each.messages.ranks)} {each.least} {path}")
        if each.world is not None:
            lines.append("map " + " ".join(map(str, each.world)))
    before = os.environ.get("LD_PRELOAD")
    return {
        "LD_PRELOAD": f"{engine.preload}:{before}" if before else str(engine.preload),
        "ALLTOALL_ENGINE": str(engine.engine),
        "ALLTOALL_LIBMPI": engine.libmpi,
        "ALLTOALL_WRAP": str(_kept("\n".join(lines) + "\n", ".wrap")),
    }


def _wrapped(
    given: Schedule | str | PathLike[str], least: int, rank_map: str | PathLike[str] | None
) -> Wrapped:
    """Read and check the files, so that a wrong one is found before the program starts."""
    path = None
    if not isinstance(given, Schedule):
        path, size = file_and_size(given)
        least = least if size is None else _size(size)
    messages = all_parts(given) if isinstance(given, Schedule) else read_messages(_file(path))
    judged = check_messages(messages)
    if not judged.correct:
        raise VerificationError(str(path or messages.name), judged.problems())
    if rank_map is None:
        return Wrapped(messages, least)
    schedule = given if isinstance(given, Schedule) else read_as(_file(path), Schedule)
    return Wrapped(messages, least, _world(Path(rank_map), schedule))


def file_and_size(given: str | PathLike[str]) -> tuple[Path, str | None]:
    """Return the path of FILE or FILE@SIZE, and the size."""
    path = Path(given)
    if path.exists() or MARK not in path.name:
        return path, None
    name, _, size = str(given).rpartition(MARK)
    return Path(name), size


def _file(path: Path | None) -> Path:
    if path is None or not path.exists():
        raise UsageError(f"no file {path}; expected a saved schedule, or its messages")
    return path


def _size(size: int | str) -> int:
    if isinstance(size, int):
        return size
    found = parse_sizes(size) if size not in ("", "0") else (0,)
    if len(found) != 1:
        raise UsageError(f"{size!r}; expected one size, such as 4096 or 64K")
    return found[0]


def _world(path: Path, schedule: Schedule) -> tuple[int, ...]:
    """Return the rank in MPI_COMM_WORLD of every terminal."""
    values = read_node_values(path, schedule.problem.topology)
    strange = next((each for each in values if not each.isdecimal()), None)
    if strange is not None or len(set(values)) != len(values):
        found = f"rank {strange!r}" if strange is not None else "one rank for two nodes"
        raise FormatError(f"{path}: {found}; expected another number from 0 on for every node")
    return tuple(map(int, values))


def _kept(text: str, suffix: str) -> Path:
    """Return a file with this text, in the cache: ranks on other machines may read it, too."""
    digest = hashlib.sha256(text.encode()).hexdigest()[:16]
    path = cache_folder() / f"wrap-{digest}{suffix}"
    if not path.exists():
        path.parent.mkdir(parents=True, exist_ok=True)
        write_text(path, text)
    return path
