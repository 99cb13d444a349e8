"""Reports of workloads."""

from dataclasses import dataclass
from typing import Any

from alltoall.ir.table import Table
from alltoall.workloads.spectrum import Pencils


@dataclass(frozen=True)
class FftRow:
    """Medians of one exchange, by the slowest rank of each step; `seconds` is their sum.

    `error` is the largest error of the result, relative to its largest value.
    """

    way: str
    carrier: str
    seconds: float
    fft2d_pack: float
    alltoall: float
    unpack_fft1d: float
    error: float


@dataclass(frozen=True)
class PencilRow:
    """Medians of one way, of the slowest rank in each step, where some ways have pencils."""

    way: str
    carrier: str
    seconds: float
    compute: float
    pack: float
    alltoall: float
    error: float


@dataclass(frozen=True, repr=False)
class FftReport(Table):
    """Times of transforms; `even` says whether all ranks had equal slabs, and `checked` how.

    `links` says which are emulated, None if none is. Rows are `FftRow`, or `PencilRow` if there are
    `pencils`: rows and columns of ranks. The first row is the library's own. `speedup` is its time
    over that of the first other way, the schedule's, in all, and `alltoall_speedup` that of the
    exchange alone; both None without one.
    """

    TITLE = "runtime"

    runtime: str
    links: str | None
    ranks: int
    grid: tuple[int, int, int]
    even: bool
    checked: str
    rows: tuple[Any, ...]
    speedup: float | None
    alltoall_speedup: float | None
    pencils: tuple[int, int] | None = None


def fft_report(cut: Pencils, found: dict[str, Any], links: str | None) -> FftReport:
    """Return the report of the ranks' results."""
    kind = PencilRow if cut.columns > 1 else FftRow
    rows = tuple(kind(**row) for row in found["rows"])
    own = rows[0]
    other = next((row for row in rows if not row.way.startswith(own.way)), None)
    return FftReport(
        runtime=found["runtime"],
        links=links,
        ranks=cut.ranks,
        grid=cut.grid,
        even=cut.even,
        checked=found["checked"],
        rows=rows,
        speedup=own.seconds / other.seconds if other else None,
        alltoall_speedup=own.alltoall / other.alltoall if other else None,
        pencils=(cut.rows, cut.columns) if cut.columns > 1 else None,
    )


@dataclass(frozen=True)
class Predicted:
    """The predicted time of a schedule for one direction, in mean shards.

    `bound` is the certified lower bound, and `loss` the relative excess over it.
    """

    time: float
    bound: float
    loss: float


@dataclass(frozen=True)
class MoeRow:
    """Medians of one exchange, by the slowest rank of each step; `seconds` is their sum.

    `error` is the largest error of the result, which is 0. Predictions are for its schedules;
    `solve_seconds` is the time to solve for both directions, if that was done.
    """

    way: str
    carrier: str
    seconds: float
    dispatch: float
    experts: float
    combine: float
    error: float
    predicted_dispatch: Predicted | None = None
    predicted_combine: Predicted | None = None
    solve_seconds: float | None = None


@dataclass(frozen=True, repr=False)
class MoeReport(Table):
    """Times of a layer. `skew` describes the imbalance; `speedups` are by exchange.

    `prepare_seconds` is the time to prepare the solver, once per topology.
    """

    TITLE = "runtime"

    runtime: str
    on: str
    links: str | None
    ranks: int
    tokens: int
    hidden: int
    experts_per_rank: int
    top_k: int
    skew: dict[str, float]
    rows: tuple[MoeRow, ...]
    speedups: dict[str, float]
    prepare_seconds: float | None
