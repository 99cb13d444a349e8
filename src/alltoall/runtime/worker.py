"""One process of `alltoall run`: `python -m alltoall.runtime.worker JOB.json [RANK]`.

Ends with the exit code of what went wrong, at once and without the runtime's own goodbye, which
would wait for ranks that wait for this one; the launcher then ends the others.
"""

import faulthandler
import importlib
import json
import os
import sys
import traceback
from collections.abc import Callable
from dataclasses import asdict, dataclass, field
from pathlib import Path

from alltoall.errors import AlltoallError
from alltoall.ir.files.json.values import write_json
from alltoall.runtime.bench import Endpoint, measure
from alltoall.runtime.gates import pass_gates
from alltoall.runtime.metered import meter
from alltoall.runtime.parts import read_messages, read_work

GRACE_SECONDS = 10.0
"""How much longer than the launcher a rank waits before it ends itself, should it be orphaned."""


@dataclass(frozen=True)
class Job:
    """What every process of a run is told.

    If `metered` names a way to exchange, ours or the native one, it is that alone that is timed,
    with what the devices of this network counted. `gates` are files, the first of them its own, of
    runs whose timed parts begin at once.
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

    def save(self, path: Path) -> None:
        """Write the job to a file."""
        write_json(path, asdict(self))


def endpoint_of(job: Job, rank: int | None) -> Endpoint:
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

PROGRAM_RUNTIMES = {"reference": "alltoall.runtime.streams", "mpi": "alltoall.runtime.mpi.streams"}
"""The modules whose ranks carry out the instructions of programs."""


def work(job: Job, rank: int | None) -> None:
    """Do this process's part; the first rank writes the report."""
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


def main(arguments: list[str]) -> None:
    """Read the job and do it."""
    job = Job(**json.loads(Path(arguments[0]).read_text(encoding="utf-8")))
    rank = int(arguments[1]) if len(arguments) > 1 else None
    end_with_code(lambda: work(job, rank), job.timeout)


def end_with_code(rank_program: Callable[[], None], timeout: float) -> None:
    """Run what a rank has to do; if it fails or takes too long, end the process at once."""
    faulthandler.dump_traceback_later(timeout + GRACE_SECONDS, exit=True)
    try:
        rank_program()
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
