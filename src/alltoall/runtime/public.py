"""`alltoall.run`: real bytes between real processes."""

from collections.abc import Callable, Sequence
from dataclasses import replace
from os import PathLike
from pathlib import Path

from alltoall.errors import UsageError
from alltoall.ir.messages import Messages
from alltoall.ir.quantities import parse_seconds, parse_sizes
from alltoall.ir.routes import Routes
from alltoall.ir.schedule import Schedule
from alltoall.registry import deferred
from alltoall.runtime.bench import Report
from alltoall.runtime.launch import RunSettings, run_schedule
from alltoall.runtime.parts import rank_work, read_work
from alltoall.runtime.worker import RUNTIMES
from alltoall.testbed.report import BedReport, BedSettings, RanksPerHost, SharedReport
from alltoall.topologies.given import Given
from alltoall.verification import verify

TESTBED = "testbed"
"""The runtime whose links are emulated."""

USUAL = {TESTBED: RunSettings(iterations=5, warmup=1)}
"""Defaults of the testbed: an all-to-all over slow links takes seconds and varies little."""


run_on_testbed: Callable[..., BedReport] = deferred("alltoall.testbed.public:run_on_testbed")
share_testbed: Callable[..., SharedReport] = deferred("alltoall.testbed.public:share_testbed")
"""These alone need the solvers, which take longer to load than most ranks to run."""


def run(
    subject: Schedule | Routes | str | PathLike[str],
    *,
    on: str = "reference",
    bytes: str | int | Sequence[int] = "1K:64K",
    ranks: int | None = None,
    iterations: int | None = None,
    warmup: int | None = None,
    sync: str = RunSettings.sync,
    mpi: str | None = None,
    timeout: str | float = RunSettings.timeout,
    rate: str = BedSettings.rate,
    fabric: str | None = None,
    topology: Given | None = None,
    through: str = BedSettings.through,
    native: bool = True,
    weights: str = BedSettings.weights,
    steering: str = BedSettings.steering,
    cut: str | None = None,
    ranks_per_host: RanksPerHost | None = None,
    jobs: Sequence[Schedule | str | PathLike[str]] | None = None,
) -> Report | BedReport | SharedReport:
    """Execute a schedule on ranks, check every byte, and time it beside the library's own.

    Ranks are processes on this machine. Only the testbed emulates links: it needs root on Linux,
    and compares times with the certified bound. A program or plan, ours or another's, is verified
    before it runs. Times are those of the slowest rank: algbw is a rank's buffer over the mean
    time, busbw (N-1)/N of that, the paper's throughput. A wrong byte, a dead rank, a link that
    carried unexpected bytes, or a timeout is a `VerificationError` (exit code 4).

    >>> import alltoall
    >>> report = alltoall.run(alltoall.schedule("ring:4"), bytes=[1000, 4000], iterations=2)
    >>> tuple(row.bytes for row in report.rows), all(row.ours.mean > 0 for row in report.rows)
    ((1000, 4000), True)

    """
    usual = USUAL.get(on, RunSettings())
    settings = replace(
        usual,
        sizes=_sizes(bytes),
        iterations=usual.iterations if iterations is None else iterations,
        warmup=usual.warmup if warmup is None else warmup,
        sync=sync,
        mpi=mpi,
        timeout=parse_seconds(timeout),
    )
    if jobs and on != TESTBED:
        raise UsageError(
            f"jobs share links, and {on!r} has none; run them on the testbed (--on testbed)"
        )
    asked = BedSettings(
        rate, fabric, topology, through, native, weights, steering, cut, ranks_per_host
    )
    if on == TESTBED:
        if jobs:
            return share_testbed([subject, *jobs], settings, asked)
        return run_on_testbed(subject, settings, asked)
    _refuse_testbed_options(on, asked)
    if mpi is not None and on != "mpi":
        raise UsageError(f"an MPI on {on!r}, which has none; expected --on mpi, or leave --mpi out")
    if isinstance(subject, Schedule | Routes):
        work = rank_work(f"{type(subject).__name__} of {subject.problem.topology.name}", subject)
    else:
        work = read_work(Path(subject))
    if not isinstance(work.parts, Messages):
        verify(work.parts)  # Ranks would wait in vain if it were no all-to-all that ends.
    return run_schedule(work, on, settings, ranks)


def _refuse_testbed_options(on: str, asked: BedSettings) -> None:
    """Raise if a testbed option is set for another runtime."""
    usual = vars(BedSettings())
    # A topology may be an array, which has no one truth.
    idle = [
        name
        for name, value in vars(asked).items()
        if value is not usual[name] and not (isinstance(value, str) and value == usual[name])
    ]
    if idle and on in RUNTIMES:
        names = ", ".join("no_native" if each == "native" else each for each in idle)
        raise UsageError(
            f"{names.replace('_', '-')} on {on!r}, which emulates no links; leave it out, or run "
            "on the testbed (--on testbed)"
        )


def _sizes(sizes: str | int | Sequence[int]) -> tuple[int, ...]:
    if isinstance(sizes, str):
        return parse_sizes(sizes)
    return (sizes,) if isinstance(sizes, int) else tuple(sizes)
