"""`alltoall workload`: programs that an all-to-all decides, and that check their own answer."""

from collections.abc import Callable
from functools import partial
from typing import Any

from alltoall.cli.options import VerbCall, verb_of
from alltoall.cli.run import NOT_EMULATED
from alltoall.cli.show import columns, show
from alltoall.workloads.public import fft3d, moe
from alltoall.workloads.reports import FftReport, FftRow, MoeReport, MoeRow, PencilRow

CHECKED = {"fftn": "equal to numpy's fftn", "sums": "random sums over all points are right"}
"""How a transform was checked, in words."""

FFT_HEADER = ("way", "2D FFT + pack", "all-to-all", "unpack + 1D FFT", "total", "error")
PENCIL_HEADER = ("way", "compute", "pack", "all-to-all", "total", "error")
MOE_HEADER = ("way", "dispatch", "experts", "combine", "total", "predicted", "solved in")
"""The columns of the tables."""


def workload_verb() -> None:
    """Benchmark a real workload: schedule against library.

    Each checks its own answer; exit code 4 if that is wrong, a rank dies, or the time is up.
    """


def _tell(table: Callable[[Any], list[str]], found: Any, call: VerbCall) -> None:
    name = call.context.info_name
    show({"workload": name, **found.to_json()}, call.json, {"": table(found)})


def fft_table(report: FftReport) -> list[str]:
    """Return the lines of the table for people."""
    grid, cuts = "x".join(map(str, report.grid)), "slabs"
    if report.pencils:
        cuts = f"pencils in {report.pencils[0]} rows and {report.pencils[1]} columns"
    header = PENCIL_HEADER if report.pencils else FFT_HEADER
    rows = [
        (row.way, *map(_in_ms, (*_bands(row), row.seconds)), f"{row.error:.0e}")
        for row in report.rows
    ]
    lines = [
        f"# {grid} on {report.ranks} ranks, {'even' if report.even else 'uneven'} {cuts}, "
        f"{report.runtime}; "
        f"{CHECKED[report.checked]}",
        f"# {report.links or NOT_EMULATED}",
        "# medians of the slowest rank of each step",
        *columns([header, *rows], words=[0]),
    ]
    if report.speedup is None:
        return lines
    own = report.rows[0].way
    other = next(row.way for row in report.rows if not row.way.startswith(own))
    return [
        *lines,
        f"# {other}: {report.speedup:.2f} times as fast as {own} in "
        f"all, its all-to-all {report.alltoall_speedup:.2f} times",
    ]


def _bands(row: FftRow | PencilRow) -> tuple[float, ...]:
    if isinstance(row, PencilRow):
        return row.compute, row.pack, row.alltoall
    return row.fft2d_pack, row.alltoall, row.unpack_fft1d


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


fft3d_verb = verb_of(fft3d, partial(_tell, fft_table), "json")
moe_verb = verb_of(moe, partial(_tell, moe_table), "json")
