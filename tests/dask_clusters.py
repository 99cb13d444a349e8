"""A real Dask cluster on this machine, as processes that are ended in any case."""

import os
import subprocess
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import alltoall

SOURCES = (Path(alltoall.__file__).parents[1], Path(__file__).parent)
"""Where workers find the package, and the functions of the tests."""

PATIENCE = 300
"""Seconds for what takes a moment, on however busy a machine."""


@dataclass(frozen=True)
class Cluster:
    """A scheduler, its address, and its workers."""

    scheduler: subprocess.Popen[bytes]
    address: str
    workers: list[subprocess.Popen[bytes]]


@contextmanager
def running_cluster(
    folder: Path, workers: int = 2, failures: int = 3, sources: Sequence[Path] = SOURCES
) -> Iterator[Cluster]:
    """Give a cluster of so many workers, whose tasks may lose `failures` workers each.

    `sources` are the folders in which its processes find modules.
    """
    processes: list[subprocess.Popen[bytes]] = []
    where = folder / "scheduler.json"
    environment = os.environ | {
        "DASK_DISTRIBUTED__SCHEDULER__ALLOWED_FAILURES": str(failures),
        "PYTHONPATH": os.pathsep.join(map(str, sources)),
    }

    def start(verb: str, *words: str) -> None:
        command = [sys.executable, "-m", f"distributed.cli.dask_{verb}", "--no-dashboard"]
        command += ["--scheduler-file", str(where), "--dashboard-address", "127.0.0.1:0", *words]
        with (folder / f"{verb}{len(processes)}.log").open("wb") as log:
            processes.append(
                subprocess.Popen(command, env=environment, stdout=log, stderr=log, cwd=folder)
            )

    try:
        start("scheduler", "--host", "127.0.0.1", "--port", "0")
        for _ in range(workers):
            start("worker", "--no-nanny", "--nthreads", "1", "--host", "127.0.0.1")
        yield Cluster(processes[0], _address(where, workers), processes[1:])
    finally:
        for process in processes:
            process.kill()
        for process in processes:
            process.wait(PATIENCE)


def _address(where: Path, workers: int) -> str:
    """Return the address of the scheduler once it has all its workers."""
    import distributed

    # The client waits for the file by itself, and so do the workers.
    with distributed.Client(
        scheduler_file=str(where), timeout=PATIENCE, set_as_default=False
    ) as client:
        if workers:
            client.wait_for_workers(workers, timeout=PATIENCE)
        return str(client.scheduler.address)
