"""Start the ranks of a workload on this machine, and return the first rank's result."""

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

from alltoall.errors import UsageError, VerificationError
from alltoall.ir.files.messages import messages_text
from alltoall.ir.files.text import write_text
from alltoall.ir.messages import Messages
from alltoall.runtime.launch import (
    HERE,
    LONGEST,
    RESULTS,
    LaunchContext,
    start_ranks,
    worker_command,
)
from alltoall.runtime.mpiexec import find_mpi
from alltoall.runtime.needs import RANK_BYTES, require_free
from alltoall.runtime.processes import grouped
from alltoall.workloads.ranks import Turns

RUNTIMES = ("mpi", "torch")
"""Runtimes of workloads, each in `over_NAME.py`."""


LIBRARY = "library"
"""Name of the library's own exchange."""


@dataclass(frozen=True)
class ExchangeSpec:
    """The factory of an exchange in a rank: a `module:function` of the ranks and these options.

    Messages, if any, are saved, and the function gets their path as `messages`.
    """

    make: str
    options: Mapping[str, Any] = field(default_factory=dict)
    messages: Messages | None = None


@dataclass(frozen=True)
class WaySpec:
    """A named exchange: one for both directions, or one for each."""

    name: str
    exchanges: Sequence[ExchangeSpec]


@dataclass(frozen=True)
class Launch:
    """A workload with its parameters, ranks and exchanges, which take turns."""

    workload: str
    parameters: Mapping[str, Any]
    ranks: int
    ways: Sequence[WaySpec]
    turns: Turns
    timeout: float
    on: str = "mpi"

    def __post_init__(self) -> None:
        if self.on not in RUNTIMES:
            raise UsageError(f"no runtime {self.on!r}; expected one of {', '.join(RUNTIMES)}")
        if not 0 < self.timeout <= LONGEST:
            raise UsageError(
                f"a time limit of {self.timeout:g} seconds; expected above 0, at most {LONGEST:g}"
            )


def library_way(on: str, name: str = LIBRARY) -> WaySpec:
    """Return the exchange by the runtime's own all-to-all."""
    return WaySpec(name, [ExchangeSpec(f"alltoall.workloads.over_{on}:ByLibrary")])


def schedule_way(on: str, name: str, messages: Sequence[Messages]) -> WaySpec:
    """Return the exchange by a schedule, or by one for each direction."""
    make = f"alltoall.workloads.over_{on}:BySchedule"
    return WaySpec(name, [ExchangeSpec(make, messages=each) for each in messages])


def run_ranks(
    launch: Launch, mpi: str | None = None, place: LaunchContext = HERE
) -> dict[str, Any]:
    """Start the ranks, wait for them, and return their result; raise its violations.

    `mpi` is for ranks of MPI: its kind, or the path of its mpiexec.
    """
    subject = f"the workload {launch.workload} on {launch.on}"
    with grouped() as group:
        job = {
            "workload": launch.workload,
            "on": launch.on,
            "ranks": launch.ranks,
            "ways": [_way_job(way, index, group.folder) for index, way in enumerate(launch.ways)],
            "parameters": dict(launch.parameters),
            "turns": asdict(launch.turns),
            "timeout": launch.timeout,
            "results": str(group.folder / RESULTS),
        }
        worker = worker_command("alltoall.workloads.ranks:run_workload", job, group.folder)
        chosen = find_mpi(mpi) if launch.on == "mpi" else None
        if chosen and any(each.messages for way in launch.ways for each in way.exchanges):
            chosen.engine()  # once, not by all ranks
        end = (launch.timeout, subject, place, chosen)
        found = start_ranks(group, worker, launch.on, launch.ranks, *end)
        violations = found.pop("violations")
        if chosen:
            said = (group.folder / "mpi.log").read_text(encoding="utf-8", errors="replace")
            # What `wrap` says of calls that were the library's own.
            violations += [line for line in said.splitlines() if "used the schedule" in line]
    if violations:
        raise VerificationError(subject, violations)
    return found


def require_memory(needed: int, ranks: int, remedy: str) -> None:
    """Refuse a workload that exceeds the memory of this machine."""
    require_free(needed + ranks * RANK_BYTES, f"{ranks} ranks", remedy)


def _way_job(way: WaySpec, index: int, folder: Path) -> dict[str, Any]:
    """Return the job of an exchange, with its messages saved."""
    exchanges = []
    for number, each in enumerate(way.exchanges):
        options = dict(each.options)
        if each.messages is not None:
            path = folder / f"{index}.{number}.messages"
            write_text(path, messages_text(each.messages))
            options["messages"] = str(path)
        exchanges.append({"make": each.make, "options": options})
    return {"name": way.name, "exchanges": exchanges}
