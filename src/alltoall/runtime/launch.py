"""Start the ranks of a saved schedule, or its messages, on this machine; return their report."""

import importlib.util
import os
import sys
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

from alltoall.errors import MissingComponentError, UsageError, VerificationError, how_to_install
from alltoall.ir.files.json.values import read_json, write_json
from alltoall.ir.files.messages import messages_text
from alltoall.ir.files.text import write_bytes, write_text
from alltoall.ir.messages import Messages
from alltoall.runtime.bench import Report, report_from_json
from alltoall.runtime.engine.job import fits, job_text
from alltoall.runtime.mpiexec import Mpi, find_mpi
from alltoall.runtime.needs import demand_of, require_memory
from alltoall.runtime.parts import RankWork, read_work
from alltoall.runtime.processes import Command, ProcessGroup, grouped
from alltoall.runtime.worker import RUNTIMES, RunJob

SYNCS = ("dataflow", "step")
LONGEST = 1e6
"""Largest timeout in seconds, a limit of the system."""


@dataclass(frozen=True)
class RunSettings:
    """Settings of a run: shard sizes in bytes, repetitions, order, MPI, and timeout in seconds."""

    sizes: tuple[int, ...] = (1024,)
    iterations: int = 20
    warmup: int = 3
    sync: str = "dataflow"
    mpi: str | None = None
    timeout: float = 300.0

    def __post_init__(self) -> None:
        if not self.sizes or min(self.sizes) < 1:
            raise UsageError(f"shard sizes {list(self.sizes)}; expected at least one byte each")
        if self.iterations < 1 or self.warmup < 0 or not 0 < self.timeout <= LONGEST:
            raise UsageError(
                f"{self.iterations} iterations after {self.warmup}, for {self.timeout:g} seconds; "
                f"expected at least 1 after at least 0, and a time above 0, at most {LONGEST:g}"
            )
        if self.sync not in SYNCS:
            raise UsageError(f"sync {self.sync!r}; expected one of {', '.join(SYNCS)}")


@dataclass(frozen=True)
class LaunchContext:
    """Where ranks run: a prefix of their commands, and environment variables.

    `watch` returns a reason to end them all, or None.
    """

    prefix: tuple[str, ...] = ()
    environment: dict[str, str] = field(default_factory=dict)
    watch: Callable[[], str | None] | None = None


RESULTS = "report.json"
"""File of a group's folder with the first rank's result."""

HERE = LaunchContext()
"""This machine, without a prefix or variables."""


def run_schedule(
    given: Path | RankWork, on: str, settings: RunSettings | None = None, ranks: int | None = None
) -> Report:
    """Run a schedule with real bytes and return times; raise if any byte is wrong.

    The file may hold a schedule, its messages, or a program or plan of any target, whose
    instructions the ranks execute. `on` is one of `RUNTIMES`; `ranks`, if given, must be the number
    of terminals.
    """
    settings = settings or RunSettings()
    if on not in RUNTIMES:
        raise UsageError(f"no runtime {on!r}; expected one of {', '.join(RUNTIMES)}, testbed")
    work = given if isinstance(given, RankWork) else read_work(given)
    require_runnable(work, on, ranks, settings)
    subject = f"the run of {work.name} on {on}"
    report = report_from_json(run_ranks(work, on, settings, subject))
    if report.violations:
        raise VerificationError(subject, report.violations)
    return report


def run_ranks(
    work: RankWork,
    on: str,
    settings: RunSettings,
    subject: str,
    place: LaunchContext = HERE,
    metered: str | None = None,
    gates: Sequence[Path] = (),
) -> dict[str, Any]:
    """Start the ranks of some work; return their report.

    `gates` are the files by which metered runs begin together, the first for this run.
    """
    with grouped() as group:
        job = _job(work, on, settings, group.folder, metered, gates)
        mpi = find_mpi(settings.mpi) if on == "mpi" else None
        worker = worker_command("alltoall.runtime.worker:run_rank", asdict(job), group.folder)
        if mpi and not job.program:
            engine = mpi.engine()
            if fits(job, demand_of(work.parts)):
                write_text(group.folder / "job.txt", job_text(job, demand_of(work.parts)))
                worker = [str(engine.rank), str(group.folder / "job.txt")]
        ranks = len(work.parts.ranks)
        return start_ranks(group, worker, on, ranks, settings.timeout, subject, place, mpi)


def require_runnable(work: RankWork, on: str, ranks: int | None, settings: RunSettings) -> None:
    """Raise unless a runtime can execute the work on the requested number of ranks."""
    found = len(work.parts.ranks)
    if not isinstance(work.parts, Messages) and (on == "torch" or settings.sync == "step"):
        raise UsageError(
            f"{work.name}: the instructions of a program on {on}, by {settings.sync}; expected mpi "
            "or reference, and dataflow: a program has no steps. Lower the schedule to messages"
        )
    if settings.sync == "step" and on != "mpi":
        raise UsageError(f"sync 'step' on {on!r}; expected mpi, whose ranks have a barrier")
    if ranks is not None and ranks != found:
        raise UsageError(
            f"{work.name}: a schedule for {found} ranks, one per terminal, and {ranks} were asked "
            f"for; leave out the number, or ask for {found}"
        )
    require_memory([work.parts], settings.sizes)


def _job(
    work: RankWork,
    on: str,
    settings: RunSettings,
    folder: Path,
    metered: str | None,
    gates: Sequence[Path],
) -> RunJob:
    path = folder / "run.messages"
    if isinstance(work.parts, Messages):
        write_text(path, messages_text(work.parts))
    else:
        assert work.file is not None
        write_bytes(path, work.file)
    told = {key: value for key, value in vars(settings).items() if key != "mpi"}
    return RunJob(
        messages=str(path),
        program=not isinstance(work.parts, Messages),
        on=on,
        results=str(folder / RESULTS),
        metered=metered,
        gates=[str(each) for each in gates],
        **{**told, "sizes": list(settings.sizes)},
    )


def worker_command(execute: str, job: dict[str, Any], folder: Path) -> list[str]:
    """Save the job that `execute` (`module:function`) takes; return the command of its ranks."""
    path = folder / "job.json"
    write_json(path, {"execute": execute, "job": job})
    return [sys.executable, "-m", "alltoall.runtime.worker", str(path)]


def start_ranks(
    group: ProcessGroup,
    worker: list[str],
    on: str,
    ranks: int,
    timeout: float,
    subject: str,
    place: LaunchContext,
    mpi: Mpi | None,
) -> dict[str, Any]:
    """Start ranks by mpiexec, each by itself for torch, or as one; return the first's result."""
    worker = [*place.prefix, *worker]
    if mpi is not None:
        variables = {**mpi.variables(ranks), **place.environment}
        commands = [Command(mpi.command(ranks, worker), variables, group.folder / "mpi.log")]
    elif on == "torch":
        variables = {**torch_variables(), **place.environment}
        commands = [
            Command(
                [*worker, str(rank)],
                {**variables, "RANK": str(rank)},
                group.folder / f"{rank}.log",
            )
            for rank in range(ranks)
        ]
    else:
        commands = [Command(worker, os.environ, group.folder / "reference.log")]
    group.run(commands, timeout, subject, place.watch)
    path = group.folder / RESULTS
    if not path.exists():
        log = commands[0].log.read_text(encoding="utf-8", errors="replace")
        told = log[-2000:].splitlines()
        raise VerificationError(subject, ["all ranks ended without a report; they said:"], told)
    value = read_json(path)
    return value if isinstance(value, dict) else {}


def torch_variables() -> dict[str, str]:
    """Return the environment of ranks of gloo on this machine; raise if there is no torch."""
    if importlib.util.find_spec("torch") is None:
        raise MissingComponentError(
            f"torch is not installed; install it with: {how_to_install('torch')}"
        )
    # All ranks are on this machine, so its name need not resolve to an address.
    return {"OMP_NUM_THREADS": "1", "GLOO_SOCKET_IFNAME": "lo", **os.environ}
