"""`a2aflow run`: real bytes between real processes, checked and timed."""

import re
from pathlib import Path
from typing import Annotated, Any

import typer

from a2aflow.cli.options import AsJson
from a2aflow.cli.show import show
from a2aflow.errors import UsageError
from a2aflow.runtime.bench import Report, Row
from a2aflow.runtime.launch import SYNCS, RunSettings, run_schedule
from a2aflow.runtime.worker import RUNTIMES

DEFAULTS = RunSettings()
MAX_BYTES = 1 << 40
_SIZE = re.compile(r"\s*([0-9]+)\s*([KMG]?)(?:i?B)?\s*", re.IGNORECASE)
_SHIFT = {"": 0, "K": 10, "M": 20, "G": 30}


def run_verb(
    file: Annotated[
        Path, typer.Argument(metavar="FILE", help="A saved schedule.", show_default=False)
    ],
    on: Annotated[str, typer.Option(help=f"One of {', '.join(RUNTIMES)}.")] = "reference",
    ranks: Annotated[
        int | None, typer.Option(metavar="N", help="As many as the schedule has terminals.")
    ] = None,
    sizes: Annotated[
        str,
        typer.Option(
            "--bytes",
            metavar="SIZE[:SIZE]",
            help="Size of a shard, which is what one rank sends to one other: a size such as 1000 "
            "or 64K (K, M, G are powers of 1024), or a range that doubles, such as 1K:16M.",
        ),
    ] = "1K:64K",
    iterations: Annotated[
        int, typer.Option(metavar="K", help="Timed repetitions.")
    ] = DEFAULTS.iterations,
    warmup: Annotated[
        int, typer.Option(metavar="W", help="Repetitions before those.")
    ] = DEFAULTS.warmup,
    sync: Annotated[
        str,
        typer.Option(
            help=f"One of {', '.join(SYNCS)}: forward what has arrived, or a barrier after every "
            "step (MPI only)."
        ),
    ] = DEFAULTS.sync,
    mpi: Annotated[
        str | None,
        typer.Option(metavar="MPI", help="mpich, openmpi, or the path of an mpiexec."),
    ] = None,
    timeout: Annotated[
        float, typer.Option(metavar="SECONDS", help="End all ranks then.")
    ] = DEFAULTS.timeout,
    as_json: AsJson = False,
) -> None:
    """Run a schedule: start its ranks, check every byte, time it beside the runtime's own.

    Times are those of the slowest rank. Throughput is (N-1) times the shard size over the mean
    time. Exit code 4 if a byte is wrong, a rank dies, or the time is up.

    Example: a2aflow run torus.schedule.json --on mpi --bytes 1K:1M
    """
    settings = RunSettings(parse_sizes(sizes), iterations, warmup, sync, mpi, timeout)
    report = run_schedule(file, on, settings, ranks)
    show(_summary(file, on, settings, report), as_json, {"": "\n".join(table(report))})


def parse_sizes(text: str) -> tuple[int, ...]:
    """Return the sizes of `64K`, or of `1K:1M` by doubling; the end is included if it is met."""
    first, colon, last = text.partition(":")
    begin = _bytes(first, text)
    end = _bytes(last, text) if colon else begin
    if end < begin:
        raise UsageError(f"sizes {text!r}; expected the smaller one first, such as 1K:16M")
    found: list[int] = []
    while begin <= end:
        found.append(begin)
        begin *= 2
    return tuple(found)


def _bytes(size: str, text: str) -> int:
    match = _SIZE.fullmatch(size)
    value = int(match[1]) << _SHIFT[match[2].upper()] if match else 0
    if not 0 < value <= MAX_BYTES:
        raise UsageError(f"sizes {text!r}; expected such as 1000, 64K or 1K:16M")
    return value


def table(report: Report) -> list[str]:
    """Return the lines of the table for people."""
    lines = [
        f"# {report.ranks} ranks, {report.runtime}; every byte of every size is as it must be",
        f"# times in microseconds, of the slowest rank; ratio: throughput over {report.native}'s",
        f"{'bytes/shard':>12} {'mean':>10} {'min':>10} {'max':>10} {'throughput':>12} "
        f"{report.native + ' mean':>22} {'throughput':>12} {'ratio':>6}",
    ]
    return lines + [_line(row) for row in report.rows]


def _line(row: Row) -> str:
    ours, native = row.ours, row.native
    return (
        f"{row.bytes:>12} {ours.mean * 1e6:>10.1f} {ours.least * 1e6:>10.1f} "
        f"{ours.most * 1e6:>10.1f} {_rate(ours.throughput):>12} "
        f"{native.mean * 1e6:>22.1f} {_rate(native.throughput):>12} {row.ratio:>6.2f}"
    )


def _rate(bytes_per_second: float) -> str:
    if bytes_per_second >= 1e9:
        return f"{bytes_per_second / 1e9:.3f} GB/s"
    return f"{bytes_per_second / 1e6:.3f} MB/s"


def _summary(file: Path, on: str, settings: RunSettings, report: Report) -> dict[str, Any]:
    return {
        "schedule": str(file),
        "on": on,
        "valid": True,
        "sync": settings.sync,
        "iterations": settings.iterations,
        **report.to_json(),
    }
