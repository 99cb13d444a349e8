"""One rank of a workload: `python -m alltoall.workloads.worker JOB.json [RANK]`.

Ends with the exit code of what went wrong, as a rank of `run` does.
"""

import json
import sys
from dataclasses import asdict, dataclass
from importlib import import_module
from pathlib import Path
from typing import Any

from alltoall.ir.files.json.values import write_json
from alltoall.registry import load
from alltoall.runtime.worker import end_with_code
from alltoall.workloads.ranks import Ranks, Way
from alltoall.workloads.turns import Turns

PROGRAMS = {
    "fft3d": "alltoall.workloads.fft3d:transform",
    "moe": "alltoall.workloads.moe:dispatch_and_combine",
}
"""What ranks do in each workload: `(ranks, ways, parameters, turns)` to rows and violations."""


@dataclass(frozen=True)
class Job:
    """What every rank is told; of a way, its name and what makes each of its exchanges."""

    workload: str
    on: str
    ranks: int
    ways: list[dict[str, Any]]
    parameters: dict[str, Any]
    iterations: int
    warmup: int
    timeout: float
    results: str

    def save(self, path: Path) -> None:
        """Write the job to a file."""
        write_json(path, asdict(self))


def connected(job: Job, rank: int | None) -> Ranks:
    """Meet the other ranks, in the runtime that the job names."""
    # By name, so that a rank loads the one runtime that it runs on.
    module = import_module(f"alltoall.workloads.over_{job.on}")
    found: Ranks
    if job.on == "mpi":
        found = module.MpiRanks()
    else:
        found = module.TorchRanks(rank, job.ranks, Path(job.results).with_suffix(".store"))
    return found


def work(job: Job, rank: int | None) -> None:
    """Do this rank's part; the first rank writes what came out."""
    ranks = connected(job, rank)
    ways = [Way(way["name"], [_made(ranks, each) for each in way["exchanges"]]) for way in job.ways]
    program: Any = load(PROGRAMS[job.workload])
    found = program(ranks, ways, job.parameters, Turns(job.iterations, job.warmup))
    if ranks.rank == 0:
        write_json(Path(job.results), {"runtime": ranks.name, **found})
    for way in ways:
        for exchange in way.exchanges:
            exchange.close()
    ranks.close()


def _made(ranks: Ranks, told: dict[str, Any]) -> Any:
    make: Any = load(told["make"])
    return make(ranks, **told["options"])


def main(arguments: list[str]) -> None:
    """Read the job and do it."""
    job = Job(**json.loads(Path(arguments[0]).read_text(encoding="utf-8")))
    rank = int(arguments[1]) if len(arguments) > 1 else None
    end_with_code(lambda: work(job, rank), job.timeout)


if __name__ == "__main__":
    main(sys.argv[1:])
