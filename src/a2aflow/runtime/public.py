"""`a2aflow.run`: real bytes between real processes, checked and timed."""

import tempfile
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from os import PathLike
from pathlib import Path

from a2aflow.ir.messages import Messages
from a2aflow.ir.schedule import Schedule
from a2aflow.runtime.bench import Report
from a2aflow.runtime.launch import RunSettings, run_schedule
from a2aflow.runtime.parts import read_work
from a2aflow.runtime.sizes import parse_sizes
from a2aflow.verification import verify


def run(
    subject: Schedule | str | PathLike[str],
    *,
    on: str = "reference",
    sizes: str | int | Sequence[int] = "1K:64K",
    ranks: int | None = None,
    iterations: int = RunSettings.iterations,
    warmup: int = RunSettings.warmup,
    sync: str = RunSettings.sync,
    mpi: str | None = None,
    timeout: float = RunSettings.timeout,
) -> Report:
    """Run a schedule on this machine; return a row of times for each size, all bytes checked.

    A program or plan, ours or another's, is verified first; then ranks carry out the instructions
    of its file, thread block by thread block. Ranks are processes, and no link is emulated. Times
    are those of the slowest rank, beside those of the runtime's own all-to-all. A wrong byte, a
    rank that dies, or a time that is up is a `VerificationError`.

    Args:
        subject: a `Schedule`, or the path of one, or of the messages that it was lowered to, or of
            MSCCL XML, an MSCCL++ plan, oneCCL-style XML or nccl-put lists.
        on: `"reference"` (one process, no MPI needed), `"mpi"` or `"torch"`.
        sizes: bytes of a shard, which is what one rank sends to one other: a number, several, or a
            text such as `"64K"`, or `"1K:16M"` by doubling. With an uneven demand a pair has as
            many bytes as its demand times that, to the nearest.
        ranks: as many as the schedule has terminals; anything else is refused.
        iterations: timed repetitions.
        warmup: repetitions before those.
        sync: `"dataflow"` forwards what has arrived, `"step"` has a barrier after every step (MPI).
        mpi: `"mpich"`, `"openmpi"`, or the path of an mpiexec.
        timeout: seconds after which all ranks are ended.

    >>> import a2aflow
    >>> report = a2aflow.run(a2aflow.schedule("ring:4"), sizes=[1000, 4000], iterations=2)
    >>> [(row.bytes, row.ours.mean > 0) for row in report.rows]
    [(1000, True), (4000, True)]

    """
    settings = RunSettings(_sizes(sizes), iterations, warmup, sync, mpi, timeout)
    with _saved(subject) as path:
        if not isinstance(subject, Schedule):
            _require_all_to_all(path)
        return run_schedule(path, on, settings, ranks)


def _require_all_to_all(path: Path) -> None:
    """Raise if a program is no all-to-all that ends: ranks would wait for each other in vain."""
    work = read_work(path)
    if not isinstance(work, Messages):
        verify(work)


def _sizes(sizes: str | int | Sequence[int]) -> tuple[int, ...]:
    if isinstance(sizes, str):
        return parse_sizes(sizes)
    return (sizes,) if isinstance(sizes, int) else tuple(sizes)


@contextmanager
def _saved(subject: Schedule | str | PathLike[str]) -> Iterator[Path]:
    """Give the file of a schedule, which is what ranks read."""
    if not isinstance(subject, Schedule):
        yield Path(subject)
        return
    with tempfile.TemporaryDirectory(prefix="a2aflow-") as folder:
        path = Path(folder) / "schedule.npz"
        subject.save(path)
        yield path
