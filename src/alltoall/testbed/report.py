"""Reports of runs on a fabric: a row per size, or one per job."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TypeAlias

from alltoall.ir.table import Table
from alltoall.testbed.shares import WEIGHTS
from alltoall.topologies.given import Given

DEFAULT_RATE = "20mbit"

RanksPerHost: TypeAlias = int | str | Sequence[int]
"""Ranks of each host: a number for all, or one for each as numbers or a text (`2,2,4`)."""


@dataclass(frozen=True)
class BedSettings:
    """The fabric to run on, and how.

    `fabric` names an existing one; otherwise one is made for the run, with links of `rate` at
    capacity 1, from the topology of the file or from `topology`.
    """

    rate: str = DEFAULT_RATE
    fabric: str | None = None
    topology: Given | None = None
    through: str = "mpi"
    native: bool = True
    weights: str = WEIGHTS[0]
    steering: str = "plain"
    cut: str | None = None
    ranks_per_host: RanksPerHost | None = None


@dataclass(frozen=True)
class BedRow:
    """Measurements for shards of `bytes`.

    `seconds` is the median of the iterations, each by its slowest rank. An idle link sends its
    first burst in no time: `credit_seconds` is the time that this saved. `throughput` is what a
    host sends, over the sum of both; `fraction` is its share of
    `bound_throughput`, which no schedule exceeds: (N - 1) f b. `ratio` is how much faster it is
    than the library's own. `load_fraction` is the share of what the largest link load of routes
    allows. `steal` is the largest share of a processor that others took; `disagreements` name links
    that did not carry what they should have.
    """

    bytes: int
    seconds: float
    least: float
    most: float
    credit_seconds: float
    throughput: float
    bound_throughput: float
    fraction: float
    counters_ok: bool
    steal: float
    retransmits: int
    drops: int
    native_seconds: float | None = None
    native_throughput: float | None = None
    ratio: float | None = None
    load_fraction: float | None = None
    disagreements: tuple[str, ...] = ()


@dataclass(frozen=True)
class Recovery:
    """The recovery from a cut, in seconds since the cut.

    The current run ended with the message `said`; a new answer was solved, then installed, then an
    all-to-all by it was complete and checked.
    """

    cable: str
    said: str
    ended: float
    solved: float
    installed: float
    complete: float


@dataclass(frozen=True, repr=False)
class BedReport(Table):
    """The result of a run on a fabric; valid if all bytes and counters are right."""

    fabric: str
    topology: str
    ranks: int
    rate: float
    runtime: str
    native: str | None
    links_emulated: bool
    rows: tuple[BedRow, ...]
    violations: tuple[str, ...]
    recovery: Recovery | None = None


@dataclass(frozen=True)
class SharedJob:
    """One of the jobs that share a fabric: its median times alone and beside the others.

    `iterations` counts its repetitions beside them: a short job repeats until the longest ends.
    """

    file: str
    alone_seconds: float
    together_seconds: float
    iterations: int


@dataclass(frozen=True, repr=False)
class SharedReport(Table):
    """The result of several jobs on one fabric; valid as a `BedReport` is.

    `together_seconds` is the time of the slowest job while all run uncoordinated. `joint_seconds`
    is the time of one schedule for one all-to-all of every job, at least `bound_seconds`; `ratio`
    is the first over the second. If jobs repeat unequally often, more bytes move during the slowest
    one's all-to-all. `retransmits` and `drops` are of all jobs together, and `rows` those of a
    `BedReport` of the joint schedule.
    """

    ROWS = "jobs"

    fabric: str
    topology: str
    ranks: int
    rate: float
    runtime: str
    links_emulated: bool
    bytes: int
    jobs: tuple[SharedJob, ...]
    together_seconds: float
    joint_seconds: float
    ratio: float
    bound_seconds: float
    counters_ok: bool
    steal: float
    retransmits: int
    drops: int
    rows: tuple[BedRow, ...]
