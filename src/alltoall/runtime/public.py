"""`alltoall.run`, real bytes between real processes, and `alltoall.wrap`, under any MPI program."""

from collections.abc import Callable, Sequence
from dataclasses import replace
from os import PathLike
from pathlib import Path

from alltoall.errors import UsageError
from alltoall.ir.messages import Messages
from alltoall.ir.quantities import parse_sizes
from alltoall.ir.routes import Routes
from alltoall.ir.schedule import Schedule
from alltoall.registry import deferred
from alltoall.runtime.bench import Report
from alltoall.runtime.launch import RunSettings, run_schedule
from alltoall.runtime.parts import rank_work, read_work
from alltoall.runtime.worker import RUNTIMES
from alltoall.runtime.wrap import environment_for
from alltoall.testbed.report import BedReport, BedSettings, SharedReport
from alltoall.topologies.given import Given
from alltoall.verification import verify

TESTBED = "testbed"
"""The runtime whose links are emulated."""

USUAL = {TESTBED: RunSettings(iterations=5, warmup=1)}
"""Where fewer repetitions do: an all-to-all over slow links takes seconds, and varies little."""


run_on_testbed: Callable[..., BedReport] = deferred("alltoall.testbed.public:run_on_testbed")
share_testbed: Callable[..., SharedReport] = deferred("alltoall.testbed.public:share_testbed")
"""These alone need the solvers, which take longer to load than most ranks to run."""


def run(
    subject: Schedule | Routes | str | PathLike[str],
    *,
    on: str = "reference",
    sizes: str | int | Sequence[int] = "1K:64K",
    ranks: int | None = None,
    iterations: int | None = None,
    warmup: int | None = None,
    sync: str = RunSettings.sync,
    mpi: str | None = None,
    timeout: float = RunSettings.timeout,
    rate: str = BedSettings.rate,
    fabric: str | None = None,
    topology: Given | None = None,
    through: str = BedSettings.through,
    native: bool = True,
    weights: str = BedSettings.weights,
    steering: str = BedSettings.steering,
    cut: str | None = None,
    jobs: Sequence[Schedule | str | PathLike[str]] | None = None,
) -> Report | BedReport | SharedReport:
    """Run a schedule on this machine; return a row of times for each size, all bytes checked.

    A program or plan, ours or another's, is verified first; then ranks carry out the instructions
    of its file, thread block by thread block. Ranks are processes; links are emulated on
    `"testbed"` only, by network namespaces, for which one has to be root on Linux. Times are those
    of the slowest rank, beside those of the runtime's own all-to-all. A wrong byte, a rank that
    dies, a link that others crossed than should have, or a time that is up is a
    `VerificationError`.

    Args:
        subject: a `Schedule`, or the path of one, or of the messages that it was lowered to, or of
            MSCCL XML, an MSCCL++ plan or oneCCL-style XML; on a testbed also routes, or what they
            were lowered to.
        on: `"reference"` (one process, no MPI needed), `"mpi"`, `"torch"` or `"testbed"`.
        sizes: bytes of a shard, which is what one rank sends to one other: a number, several, or a
            text such as `"64K"`, or `"1K:16M"` by doubling. With an uneven demand a pair has as
            many bytes as its demand times that, to the nearest.
        ranks: as many as the schedule has terminals; anything else is refused.
        iterations: timed repetitions; 20, on a testbed 5.
        warmup: repetitions before those; 3, on a testbed 1.
        sync: `"dataflow"` forwards what has arrived, `"step"` has a barrier after every step (MPI).
        mpi: `"mpich"`, `"openmpi"`, or the path of an mpiexec.
        timeout: seconds after which all ranks are ended.
        rate: what a link of capacity 1 carries on a testbed that is made for this run.
        fabric: the name of a testbed that exists, to be used instead.
        topology: what a testbed is to be where the file does not say.
        through: whose ranks run on a testbed, those of `"mpi"` or `"torch"`.
        native: whether the runtime's own all-to-all is timed on the testbed, too.
        weights: how routes on a testbed get their shares: `"weights"`, all at once, `"chunks"`,
            `"paced"`, each flow held to its share of the rate, or `"phases"`.
        steering: how a testbed keeps them on their paths: `"plain"`, a route at every hop, or
            `"encap"`, segments that the sender writes.
        cut: two nodes of the testbed, such as `"0-1"`: the cable between them is cut while the file
            runs; then what is left is solved and run, and the report says how long all that took.
        jobs: further schedules for the same links, or their paths, that share the testbed with the
            first: the report has the time of each alone, of all at once, and of one schedule for
            the sum of their demands. There is one size then.

    >>> import alltoall
    >>> report = alltoall.run(alltoall.schedule("ring:4"), sizes=[1000, 4000], iterations=2)
    >>> tuple(row.bytes for row in report.rows), all(row.ours.mean > 0 for row in report.rows)
    ((1000, 4000), True)

    """
    usual = USUAL.get(on, RunSettings())
    settings = replace(
        usual,
        sizes=_sizes(sizes),
        iterations=usual.iterations if iterations is None else iterations,
        warmup=usual.warmup if warmup is None else warmup,
        sync=sync,
        mpi=mpi,
        timeout=timeout,
    )
    if jobs and on != TESTBED:
        raise UsageError(f"jobs that share the links of {on!r}, which has none; expected a testbed")
    asked = BedSettings(rate, fabric, topology, through, native, weights, steering, cut)
    if on in RUNTIMES and asked != BedSettings():
        raise UsageError(f"options of a testbed with {on!r}, which has no links; leave them out")
    if on == TESTBED:
        if jobs:
            return share_testbed([subject, *jobs], settings, asked)
        return run_on_testbed(subject, settings, asked)
    _refuse_testbed_options(
        on,
        rate=rate,
        fabric=fabric,
        topology=topology,
        through=through,
        native=native,
        weights=weights,
        steering=steering,
        cut=cut,
    )
    if isinstance(subject, Schedule | Routes):
        work = rank_work(f"{type(subject).__name__} of {subject.problem.topology.name}", subject)
    else:
        work = read_work(Path(subject))
    if not isinstance(work.parts, Messages):
        verify(work.parts)  # Ranks would wait in vain if it were no all-to-all that ends.
    return run_schedule(work, on, settings, ranks)


def wrap(
    files: Sequence[Schedule | str | PathLike[str]],
    *,
    min_bytes: int | str = "0",
    rank_map: str | PathLike[str] | None = None,
    mpicc: str | None = None,
    launcher: str | None = None,
    report: bool = False,
    quiet: bool = False,
) -> dict[str, str]:
    """Return the environment in which an unmodified MPI program uses schedules.

    A process that is started with these variables has its MPI_Alltoall, MPI_Alltoallv and
    MPI_Ialltoall, in C and in Fortran, carried out by the schedule that has as many ranks as their
    communicator; anything else falls through to the MPI library, and a line at the end of the
    program says what, how often and why. A small C library is built with
    the program's own mpicc, once, and kept in the user's cache.

    Args:
        files: schedules, or the paths of them or of the messages that they were lowered to;
            `"PATH@64K"` is used for shards of 64 KiB and above.
        min_bytes: shards that are smaller are left to the library.
        rank_map: the path of lines of a node and the rank in MPI_COMM_WORLD that runs there; else
            rank r is terminal r, or, in a communicator smaller than the world, its own rank r.
        mpicc: the compiler of the program's MPI.
        launcher: the command beside which it is looked for otherwise, before the PATH.
        report: print that line also if every all-to-all used a schedule, with bytes and seconds.
        quiet: never print it.

    >>> import alltoall
    >>> sorted(alltoall.wrap([alltoall.schedule("ring:4")]))
    ['ALLTOALL_ENGINE', 'ALLTOALL_LIBMPI', 'ALLTOALL_WRAP', 'LD_PRELOAD']

    """
    return environment_for(
        files,
        min_bytes=min_bytes,
        rank_map=rank_map,
        mpicc=mpicc,
        launcher=launcher,
        report=report,
        quiet=quiet,
    )


def _refuse_testbed_options(on: str, **given: object) -> None:
    """Raise if an option that only a testbed has would change nothing."""
    usual = BedSettings()
    idle = [name for name, value in given.items() if value != getattr(usual, name)]
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
