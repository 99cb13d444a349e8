"""One process of a run or a workload: `python -m alltoall.runtime.worker JOB.json [RANK]`.

On an error it exits at once with its code, without the runtime's shutdown, which would wait for
other ranks; the launcher then ends them.
"""

import faulthandler
import importlib
import json
import os
import sys
import time
import traceback
from collections.abc import Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

from alltoall.errors import AlltoallError, VerificationError
from alltoall.ir.files.json.values import write_json
from alltoall.registry import load
from alltoall.runtime.bench import Endpoint, measure
from alltoall.runtime.metered import meter
from alltoall.runtime.parts import read_messages, read_work

GRACE_SECONDS = 10.0
"""Time beyond the launcher's timeout after which an orphaned rank ends itself."""

GATE_SECONDS = 0.01
"""Polling interval for other runs to be ready, short compared with an all-to-all over slow
links."""


@dataclass(frozen=True)
class RunJob:
    """The job of every process of a run.

    If `metered` names an exchange, ours or the native one, only that one is timed, with the
    counters of this network's devices. `gates` are files, the first of them its own, of runs whose
    timed parts begin together.
    """

    messages: str
    program: bool
    on: str
    sizes: list[int]
    iterations: int
    warmup: int
    sync: str
    timeout: float
    results: str
    metered: str | None = None
    gates: list[str] = field(default_factory=list)


def endpoint_of(job: RunJob, rank: int | None) -> Endpoint:
    """Connect this process to the others, in the runtime that the job names."""
    messages = Path(job.messages)
    # By name, so that a rank loads the one runtime that it runs on.
    module = importlib.import_module(f"alltoall.runtime.{RUNTIMES[job.on]}")
    found: Endpoint
    if job.program:
        streams = importlib.import_module(PROGRAM_RUNTIMES[job.on])
        found = streams.StreamsEndpoint(read_work(messages).parts)
    elif job.on == "mpi":
        found = module.Endpoint(messages, job.sync)
    elif job.on == "torch":
        found = module.Endpoint(messages, rank, Path(job.results).with_suffix(".store"))
    else:
        found = module.Endpoint(read_messages(messages))
    return found


RUNTIMES = {"reference": "in_process", "mpi": "mpi", "torch": "torch"}
"""The module of each runtime."""

PROGRAM_RUNTIMES = {"reference": "alltoall.runtime.streams", "mpi": "alltoall.runtime.mpi.endpoint"}
"""The modules whose ranks execute programs."""


def run_rank(told: dict[str, Any], rank: int | None) -> None:
    """Execute a run's job; the first rank writes the report."""
    job = RunJob(**told)
    endpoint = endpoint_of(job, rank)
    if job.metered is None:
        found = measure(endpoint, job.sizes, job.iterations, job.warmup).to_json()
    else:
        readings = meter(
            endpoint,
            job.metered,
            job.sizes,
            job.iterations,
            job.warmup,
            ready=lambda: pass_gates(job.gates, job.timeout),
        )
        names = {"runtime": endpoint.name, "native": endpoint.native_name}
        found = {**names, "readings": [asdict(each) for each in readings]}
    if endpoint.here[0] == 0:
        write_json(Path(job.results), found)
    endpoint.close()


def pass_gates(gates: Sequence[str], seconds: float) -> None:
    """Create the first of the files and return when all exist; raise at the timeout."""
    if not gates:
        return
    Path(gates[0]).touch()
    deadline = time.monotonic() + seconds
    while missing := [gate for gate in gates if not Path(gate).exists()]:
        if time.monotonic() > deadline:
            raise VerificationError(
                "runs that were to begin at once",
                [
                    f"{len(missing)} of {len(gates)} were not ready within {seconds:g} seconds; "
                    "expected all: give them longer (--timeout)"
                ],
            )
        time.sleep(GATE_SECONDS)


def main(arguments: list[str]) -> None:
    """Read a job and execute it; if it fails or takes too long, end the process at once."""
    saved = json.loads(Path(arguments[0]).read_text(encoding="utf-8"))
    rank = int(arguments[1]) if len(arguments) > 1 else None
    faulthandler.dump_traceback_later(saved["job"]["timeout"] + GRACE_SECONDS, exit=True)
    try:
        execute: Any = load(saved["execute"])
        execute(saved["job"], rank)
    except AlltoallError as error:
        sys.stderr.write(f"{error}\n")
        _leave(error.exit_code)
    except BaseException:
        traceback.print_exc()
        _leave(AlltoallError.exit_code)


def _leave(code: int) -> None:
    sys.stderr.flush()
    os._exit(code)


if __name__ == "__main__":
    main(sys.argv[1:])
