"""What workloads found, as values that Python programs and the command line show."""

from dataclasses import asdict, dataclass
from typing import Any

from alltoall.workloads.spectrum import Slabs


@dataclass(frozen=True)
class FftRow:
    """Medians of one way, of the slowest rank in each step; `seconds` is the three in all.

    `error` is the largest of the result, as a share of its largest value.
    """

    way: str
    carrier: str
    seconds: float
    fft2d_pack: float
    alltoall: float
    unpack_fft1d: float
    error: float


@dataclass(frozen=True)
class FftReport:
    """What transforms took; `even` is whether all ranks had as much, and `checked` how.

    `links` says which are emulated, None if none is. The first row is the library's own. `speedup`
    is its time over that of the next way, the schedule's, in all, and `alltoall_speedup` that of
    the exchange alone; both None without one.
    """

    runtime: str
    links: str | None
    ranks: int
    grid: tuple[int, int, int]
    even: bool
    checked: str
    rows: tuple[FftRow, ...]
    speedup: float | None
    alltoall_speedup: float | None

    def to_json(self) -> dict[str, Any]:
        """Return the report as plain values."""
        return asdict(self)


def fft_report(slabs: Slabs, found: dict[str, Any], links: str | None) -> FftReport:
    """Return the report of what ranks wrote."""
    rows = tuple(FftRow(**row) for row in found["rows"])
    own, other = rows[0], rows[:2][-1]
    compared = len(rows) > 1
    return FftReport(
        runtime=found["runtime"],
        links=links,
        ranks=slabs.ranks,
        grid=slabs.grid,
        even=slabs.even,
        checked=found["checked"],
        rows=rows,
        speedup=own.seconds / other.seconds if compared else None,
        alltoall_speedup=own.alltoall / other.alltoall if compared else None,
    )


@dataclass(frozen=True)
class Predicted:
    """What a schedule takes for the rows of one direction, by links and steps, in mean shards.

    `bound` is what no schedule is below, certified, and `loss` how far above it this one is.
    """

    time: float
    bound: float
    loss: float


@dataclass(frozen=True)
class MoeRow:
    """Medians of one way, of the slowest rank in each step; `seconds` is the three in all.

    `error` is the largest of the result, which is 0. The predictions are those of its schedules,
    and `solve_seconds` what it took to solve for both directions, where that was done.
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


@dataclass(frozen=True)
class MoeReport:
    """What a layer took. `skew` says how uneven the load was; `speedups` are by way.

    `prepare_seconds` is what it took to get ready to solve, which is done once for a topology.
    """

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

    def to_json(self) -> dict[str, Any]:
        """Return the report as plain values."""
        return asdict(self)
