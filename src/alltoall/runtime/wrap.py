"""Environment variables that run an unmodified program with schedules.

The engine's preloaded library intercepts MPI_Alltoall and its variants (`runtime.engine`); a small
file lists the messages, their ranks and the least size.
"""

import hashlib
import os
import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from importlib import import_module
from os import PathLike
from pathlib import Path

import numpy as np

from alltoall.check.program.messages import check_messages
from alltoall.errors import FormatError, UsageError, VerificationError
from alltoall.ir.arrays import Ints
from alltoall.ir.files.artefacts import read_as
from alltoall.ir.files.messages import messages_text
from alltoall.ir.files.node_tables import read_node_values
from alltoall.ir.files.text import exists, write_text
from alltoall.ir.messages import Messages
from alltoall.ir.schedule import Schedule
from alltoall.ir.topology import Topology
from alltoall.runtime.engine.build import build, cache_folder, find_mpicc
from alltoall.runtime.parts import SCHEDULER, all_parts, is_spec, least_size, read_schedule

MARK = "@"
"""Separates a file from its least size."""

TOPOLOGIES = "alltoall.topologies.public"
"""By name, like the scheduler: only a SPEC needs it."""

_HOST = re.compile(r"[A-Za-z0-9._-]*[A-Za-z_-][A-Za-z0-9._-]*")
"""A host name has a letter and no colon."""


@dataclass(frozen=True)
class Wrapped:
    """A schedule for the engine: its label, least shard size, and ranks.

    `hosts` are the names of terminals that are hosts, `world` their ranks in the world.
    """

    label: str
    messages: Messages
    least: int
    hosts: tuple[str, ...] | None = None
    world: tuple[int, ...] | None = None

    def lines(self, file: int) -> Iterator[str]:
        """Yield the lines for the engine: of groups of terminals, then of all terminals."""
        everyone = np.arange(len(self.messages.ranks))
        for members in (*closed_groups(self.messages), everyone):
            part = self.messages.among(members) if len(members) < len(everyone) else self.messages
            path = _kept(messages_text(part), ".messages")
            yield f"file {len(members)} {self.least} {path}"
            yield f"from {file} {self.label}"
            if len(members) < len(everyone):
                yield f"part {len(everyone)} {' '.join(map(str, members))}"
            if self.world is not None:
                yield f"map {' '.join(str(self.world[member]) for member in members)}"
            elif self.hosts is not None:
                yield from (f"name {self.hosts[member]}" for member in members)


def wrap(
    files: Sequence[Schedule | str | PathLike[str]],
    *,
    min_bytes: int | str = "0",
    rank_map: str | PathLike[str] | None = None,
    mpicc: str | None = None,
    launcher: str | None = None,
    report: bool = False,
    quiet: bool = False,
    progress: Callable[[str], None] | None = None,
) -> dict[str, str]:
    """Return the environment in which an unmodified MPI program uses schedules.

    MPI_Alltoall, MPI_Alltoallv and MPI_Ialltoall, in C and Fortran, use the schedule that fits
    their communicator: one rank per terminal, or all ranks of each host. Anything else falls
    through to the MPI library, and one line at the end says how often and why. A SPEC's schedule is
    made once and kept in the user's cache, as is a small C library, built with the program's mpicc.
    `alltoall wrap` exits with the code of the command.

    >>> import alltoall
    >>> sorted(alltoall.wrap([alltoall.schedule("ring:4")]))
    ['ALLTOALL_ENGINE', 'ALLTOALL_LIBMPI', 'ALLTOALL_WRAP', 'LD_PRELOAD']

    """
    if not files:
        raise UsageError("no schedule; expected the file of at least one")
    if report and quiet:
        raise UsageError("--report with --quiet: one prints a line, the other none; leave one out")
    say = progress or (lambda _: None)
    wrapped = [_wrapped(each, least_size(min_bytes), rank_map, say) for each in files]
    engine = build(find_mpicc(mpicc, launcher))
    lines = [word for word, asked in (("report", report), ("quiet", quiet)) if asked]
    lines += [line for index, each in enumerate(wrapped) for line in each.lines(index)]
    before = os.environ.get("LD_PRELOAD")
    return {
        "LD_PRELOAD": f"{engine.preload}:{before}" if before else str(engine.preload),
        "ALLTOALL_ENGINE": str(engine.engine),
        "ALLTOALL_LIBMPI": engine.libmpi,
        "ALLTOALL_WRAP": str(_kept("\n".join(lines) + "\n", ".wrap")),
    }


def _wrapped(
    given: Schedule | str | PathLike[str],
    least: int,
    rank_map: str | PathLike[str] | None,
    say: Callable[[str], None],
) -> Wrapped:
    """Read and check the files, before the program starts."""
    work: Schedule | Messages
    if isinstance(given, Schedule):
        label, work = given.problem.topology.name, given
    else:
        path, size = file_and_size(given)
        label = path.name if exists(path) else str(path)
        least = least if size is None else least_size(size)
        work = kept_schedule(str(path), say) if is_spec(str(path)) else read_schedule(_file(path))
    messages = all_parts(work)
    judged = check_messages(messages)
    if not judged.correct:
        raise VerificationError(label, judged.problems())
    topology = work.problem.topology if isinstance(work, Schedule) else None
    if rank_map is None:
        return Wrapped(label, messages, least, None if topology is None else _hosts(topology))
    if topology is None:
        raise UsageError(f"{label} has messages and no nodes; --rank-map needs the schedule")
    return Wrapped(label, messages, least, world=_world(Path(rank_map), topology))


def kept_schedule(spec: str, say: Callable[[str], None]) -> Schedule:
    """Return the schedule for a SPEC, from the cache if possible."""
    topology: Topology = import_module(TOPOLOGIES).topology(spec)
    columns = (topology.tail, topology.head, topology.capacity, topology.terminals)
    content = repr((topology.nodes, topology.names, *(each.tolist() for each in columns)))
    path = _cached(content, "schedule-", ".json")
    if path.exists():
        say(f"schedule of {spec} from {path}")
        return read_as(path, Schedule)
    path.parent.mkdir(parents=True, exist_ok=True)
    found: Schedule = import_module(SCHEDULER).schedule(topology)
    found.save(path)
    say(f"schedule of {spec} made, and kept in {path}")
    return found


def closed_groups(messages: Messages) -> list[Ints]:
    """Return groups of ranks that only exchange chunks within, if there are several."""
    counts = messages.chunks.counts
    if counts is None:
        return []
    linked = (counts > 0) | (counts.T > 0) | np.eye(len(counts), dtype=np.bool_)
    before, group = np.arange(0), np.arange(len(counts))
    while not np.array_equal(before, group):
        before, group = group, np.where(linked, group, len(counts)).min(axis=1)
    if any(np.any(group[part.peer] != group[part.rank]) for part in messages.ranks):
        return []
    groups = [np.flatnonzero(group == first) for first in np.unique(group)]
    return [members for members in groups if 1 < len(members) < len(counts)]


def _hosts(topology: Topology) -> tuple[str, ...] | None:
    """Return the names of terminals if they may be host names."""
    names = [topology.node_name(node) for node in topology.terminals.tolist()]
    return tuple(names) if all(map(_HOST.fullmatch, names)) else None


def file_and_size(given: str | PathLike[str]) -> tuple[Path, str | None]:
    """Return the path of FILE or FILE@SIZE, and the size."""
    path = Path(given)
    if exists(path) or MARK not in path.name:
        return path, None
    name, _, size = str(given).rpartition(MARK)
    return Path(name), size


def _file(path: Path) -> Path:
    if not exists(path):
        raise UsageError(f"no file {path}; expected a saved schedule, or its messages")
    return path


def _world(path: Path, topology: Topology) -> tuple[int, ...]:
    """Return the rank in MPI_COMM_WORLD of every terminal."""
    values = read_node_values(path, topology)
    strange = next((each for each in values if not each.isdecimal()), None)
    if strange is not None or len(set(values)) != len(values):
        found = f"rank {strange!r}" if strange is not None else "one rank for two nodes"
        raise FormatError(f"{path}: {found}; expected another number from 0 on for every node")
    return tuple(map(int, values))


def _kept(text: str, suffix: str) -> Path:
    """Return a cached file with this text, which ranks on other machines may read, too."""
    path = _cached(text, "wrap-", suffix)
    if not path.exists():
        path.parent.mkdir(parents=True, exist_ok=True)
        write_text(path, text)
    return path


def _cached(content: str, prefix: str, suffix: str) -> Path:
    digest = hashlib.sha256(content.encode()).hexdigest()[:16]
    return cache_folder() / f"{prefix}{digest}{suffix}"
