"""Reports of workloads."""

from dataclasses import asdict, dataclass
from typing import Any

from alltoall.workloads.spectrum import Slabs


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
class FftReport:
    """Times of transforms; `even` says whether all ranks had equal slabs, and `checked` how.

    `links` names the emulated links, if any. The first row is the library's own. `speedup` is its
    time over the schedule's, `alltoall_speedup` that of the exchange alone; both None without a
    schedule.
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
    """Return the report of the ranks' results."""
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


@dataclass(frozen=True)
class MoeReport:
    """Times of a layer. `skew` describes the imbalance; `speedups` are by exchange.

    `prepare_seconds` is the time to prepare the solver, once per topology.
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
