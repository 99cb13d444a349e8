"""The job file of a rank in C: the lines that `rank.c` reads."""

from collections.abc import Iterator
from math import ceil

from alltoall.ir.chunks import PerShard, shards_of
from alltoall.ir.demand import Demand
from alltoall.runtime.engine.binding import LARGEST_SHARD
from alltoall.runtime.worker import GRACE_SECONDS, RunJob


def fits(job: RunJob, demand: Demand) -> bool:
    """Return whether a rank in C can run a job: it meters messages of small shards."""
    plain = job.on == "mpi" and not job.program and job.metered
    largest = max(shards_of(demand, size).most for size in job.sizes)
    paths = (job.messages, job.results, *job.gates)
    return bool(plain) and largest <= LARGEST_SHARD and not any("\n" in path for path in paths)


def job_text(job: RunJob, demand: Demand) -> str:
    """Return the lines of a job."""
    return "".join(f"{line}\n" for line in _lines(job, demand))


def _lines(job: RunJob, demand: Demand) -> Iterator[str]:
    yield f"messages {job.messages}"
    yield f"results {job.results}"
    yield f"way {job.metered}"
    yield f"native {'MPI_Alltoall' if demand.uniform else 'MPI_Alltoallv'}"
    yield f"by_step {int(job.sync == 'step')}"
    yield f"iterations {job.iterations}"
    yield f"warmup {job.warmup}"
    yield f"timeout {ceil(job.timeout + GRACE_SECONDS)}"
    yield f"gates {len(job.gates)}"
    yield from (f"gate {each}" for each in job.gates)
    yield f"sizes {len(job.sizes)}"
    yield from (_size(size, shards_of(demand, size)) for size in job.sizes)


def _size(size: int, shard: PerShard) -> str:
    """Return the bytes of a unit, then the bytes of every shard, or -1 and those of every pair."""
    if shard.counts is None:
        return f"{size} {shard.most}"
    return f"{size} -1 {' '.join(map(str, shard.counts.ravel().tolist()))}"
