"""`alltoall workload`: programs that an all-to-all decides, and that check their own answer."""

from typing import Annotated

import typer

from alltoall.cli.options import AsJson, time_option
from alltoall.cli.progress import progress
from alltoall.cli.show import columns, show
from alltoall.workloads.launch import RUNTIMES
from alltoall.workloads.public import fft3d, moe
from alltoall.workloads.ranks import Turns
from alltoall.workloads.reports import FftReport, MoeReport, MoeRow

NOT_EMULATED = "ranks share this machine, and no link is emulated: this times software"
"""Caveat printed above timing tables."""

CHECKED = {"fftn": "equal to numpy's fftn", "sums": "random sums over all points are right"}
"""How a transform was checked, in words."""

FFT_HEADER = ("way", "2D FFT + pack", "all-to-all", "unpack + 1D FFT", "total", "error")
MOE_HEADER = ("way", "dispatch", "experts", "combine", "total", "predicted", "solved in")
"""The columns of the tables."""

ScheduleFile = Annotated[
    str | None,
    typer.Option(
        metavar="FILE",
        help="Saved schedule or messages, or a SPEC to schedule.",
    ),
]
RanksAsked = Annotated[
    int | None,
    typer.Option(metavar="N", help="Number of ranks; needed without --schedule."),
]
MpiAsked = Annotated[
    str | None, typer.Option(metavar="MPI", help="mpich, openmpi, or path of an mpiexec.")
]
Iterations = Annotated[int, typer.Option(metavar="K", help="Timed iterations.")]
Warmup = Annotated[int, typer.Option(metavar="W", help="Untimed iterations first.")]
Rate = Annotated[
    str | None,
    typer.Option(
        metavar="RATE",
        help="Emulate links, a capacity-1 link of this bandwidth.",
    ),
]
OnFabric = Annotated[
    str | None, typer.Option(metavar="NAME", help="Run on the testbed that `testbed up` made.")
]
RoutesFiles = Annotated[
    list[str] | None,
    typer.Option(metavar="FILE", help="Also time these routes on the testbed; repeatable."),
]
Timeout = Annotated[float, time_option("End all ranks after this time.")]


def workload_verb() -> None:
    """Benchmark a real workload: schedule against library.

    Each checks its own answer; exit code 4 if that is wrong, a rank dies, or the time is up.
    """


def fft3d_verb(
    grid: Annotated[
        str,
        typer.Option(
            metavar="SIDE|AxBxC",
            help="Grid points of each side: 64, or 64x48x32.",
            show_default=False,
        ),
    ],
    schedule: ScheduleFile = None,
    ranks: RanksAsked = None,
    mpi: MpiAsked = None,
    iterations: Iterations = Turns.iterations,
    warmup: Warmup = Turns.warmup,
    seed: Annotated[int, typer.Option(metavar="S", help="Seed of the grid's numbers.")] = 0,
    timeout: Timeout = 600.0,
    rate: Rate = None,
    fabric: OnFabric = None,
    routes: RoutesFiles = None,
    as_json: AsJson = False,
) -> None:
    """Time a distributed 3D FFT over MPI ranks.

    Each rank has a slab of planes. 2D FFT and packing, all-to-all, and 1D FFT are timed separately:
    medians of the slowest rank. Results up to 2 million points are compared with numpy's fftn,
    larger ones by random sums over all points.

    Example: alltoall workload fft3d --grid 216 --schedule torus.schedule.json
    """
    with progress() as report:
        found = fft3d(
            grid,
            schedule=schedule,
            ranks=ranks,
            mpi=mpi,
            iterations=iterations,
            warmup=warmup,
            seed=seed,
            timeout=timeout,
            rate=rate,
            fabric=fabric,
            routes=routes,
            progress=report,
        )
    show({"workload": "fft3d", **found.to_json()}, as_json, {"": fft_table(found)})


def moe_verb(
    tokens: Annotated[int, typer.Option(metavar="T", help="Tokens per rank.")] = 1024,
    hidden: Annotated[
        int, typer.Option(metavar="H", help="Hidden size: 4-byte numbers per token.")
    ] = 256,
    experts_per_rank: Annotated[int, typer.Option(metavar="E", help="Experts per rank.")] = 2,
    top_k: Annotated[int, typer.Option(metavar="K", help="Experts per token.")] = 2,
    skew: Annotated[
        float,
        typer.Option(metavar="SIGMA", help="Lognormal skew of the experts' popularity; 0: even."),
    ] = 1.0,
    seed: Annotated[int, typer.Option(metavar="S", help="Seed of tokens, router and experts.")] = 0,
    on: Annotated[str, typer.Option(help=f"{' or '.join(RUNTIMES)}.")] = "mpi",
    schedule: ScheduleFile = None,
    resolve: Annotated[
        bool,
        typer.Option("--resolve", help="Also time schedules for the actual counts."),
    ] = False,
    ranks: RanksAsked = None,
    mpi: MpiAsked = None,
    iterations: Iterations = Turns.iterations,
    warmup: Warmup = Turns.warmup,
    timeout: Timeout = 600.0,
    rate: Rate = None,
    fabric: OnFabric = None,
    routes: RoutesFiles = None,
    as_json: AsJson = False,
) -> None:
    """Time a mixture-of-experts layer: dispatch, experts, combine.

    A seeded router of a given skew decides how much ranks send each other. The library's own uneven
    all-to-all is timed against the schedule as a template, and with --resolve against schedules for
    the actual counts. Every rank compares its result, to the bit, with one computed alone.

    Example: alltoall workload moe --tokens 4096 --skew 0.8 --schedule hypercube:3 --resolve
    """
    with progress() as report:
        found = moe(
            tokens,
            hidden=hidden,
            experts_per_rank=experts_per_rank,
            top_k=top_k,
            skew=skew,
            seed=seed,
            on=on,
            schedule=schedule,
            resolve=resolve,
            ranks=ranks,
            mpi=mpi,
            iterations=iterations,
            warmup=warmup,
            timeout=timeout,
            rate=rate,
            fabric=fabric,
            routes=routes,
            progress=report,
        )
    show({"workload": "moe", **found.to_json()}, as_json, {"": moe_table(found)})


def fft_table(report: FftReport) -> list[str]:
    """Return the lines of the table for people."""
    grid, slabs = "x".join(map(str, report.grid)), "even" if report.even else "uneven"
    rows = [
        (
            row.way,
            *map(_in_ms, (row.fft2d_pack, row.alltoall, row.unpack_fft1d, row.seconds)),
            f"{row.error:.0e}",
        )
        for row in report.rows
    ]
    lines = [
        f"# {grid} on {report.ranks} ranks, {slabs} slabs, {report.runtime}; "
        f"{CHECKED[report.checked]}",
        f"# {report.links or NOT_EMULATED}",
        "# medians of the slowest rank of each step",
        *columns([FFT_HEADER, *rows], words=[0]),
    ]
    if report.speedup is None:
        return lines
    return [
        *lines,
        f"# {report.rows[1].way}: {report.speedup:.2f} times as fast as {report.rows[0].way} in "
        f"all, its all-to-all {report.alltoall_speedup:.2f} times",
    ]


def moe_table(report: MoeReport) -> list[str]:
    """Return the lines of the table for people."""
    skew = report.skew
    rows = [
        (
            row.way,
            *map(_in_ms, (row.dispatch, row.experts, row.combine, row.seconds)),
            _predicted(row),
            "" if row.solve_seconds is None else _in_ms(row.solve_seconds),
        )
        for row in report.rows
    ]
    return [
        f"# {report.tokens} tokens of {report.hidden} to {report.top_k} of "
        f"{report.experts_per_rank * report.ranks} experts on {report.ranks} ranks, "
        f"{report.runtime}; every result is as without distribution, to the bit",
        f"# skew {skew['sigma']:g}: the fullest rank receives {skew['rank_max_over_mean']:.2f} of "
        f"the mean, the fullest pair {skew['pair_max_over_mean']:.2f}",
        f"# {report.links or NOT_EMULATED}",
        "# medians of the slowest rank of each step; predicted: of dispatch and combine on links, "
        "over their certified bounds",
        *columns([MOE_HEADER, *rows], words=[0]),
    ]


def _predicted(row: MoeRow) -> str:
    both = (row.predicted_dispatch, row.predicted_combine)
    return ", ".join(f"{1 + each.loss:.2f}" for each in both if each is not None)


def _in_ms(seconds: float) -> str:
    return f"{seconds * 1e3:.2f} ms"
