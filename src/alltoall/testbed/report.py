"""What a run on a fabric is reported as: a row for every size, or one for every job."""

from dataclasses import asdict, dataclass
from typing import Any

from alltoall.testbed.shares import WEIGHTS
from alltoall.topologies.given import Given

DEFAULT_RATE = "20mbit"


@dataclass(frozen=True)
class BedSettings:
    """Which fabric to run on, and how.

    An existing one by the name `fabric`; else one made for the run, with links of `rate` at
    capacity 1, of the topology of the file, or of `topology` if the file does not say.
    """

    rate: str = DEFAULT_RATE
    fabric: str | None = None
    topology: Given | None = None
    through: str = "mpi"
    native: bool = True
    weights: str = WEIGHTS[0]
    steering: str = "plain"
    cut: str | None = None


@dataclass(frozen=True)
class BedRow:
    """What was measured for shards of `bytes`.

    `seconds` is the median of the iterations, each by its slowest rank. A link that was idle sends
    its burst at once, so that some bytes took no time: `credit_seconds` is what they would have
    taken. `throughput` is what a rank sends, over the sum of both; `fraction` is its share of
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
    """What became of a cut, in seconds since it was made.

    Until the run under way had ended with `said`, until there was an answer for what is left of the
    fabric, until the nodes knew it, and until an all-to-all by it was complete and checked.
    """

    cable: str
    said: str
    ended: float
    solved: float
    installed: float
    complete: float


@dataclass(frozen=True)
class BedReport:
    """What one run on a fabric found; valid if no byte was wrong and no counter disagrees."""

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

    def to_json(self) -> dict[str, Any]:
        """Return the report as plain values."""
        return asdict(self)


@dataclass(frozen=True)
class SharedJob:
    """One of the jobs that share a fabric: its median times by itself, and beside the others.

    `iterations` is how often it was repeated beside them: a short job often, so that it is under
    way for as long as the longest.
    """

    file: str
    alone_seconds: float
    together_seconds: float
    iterations: int


@dataclass(frozen=True)
class SharedReport:
    """What several jobs on one fabric found; valid as a `BedReport` is.

    `together_seconds` is the slowest job's while all run as they are. `joint_seconds` is the time
    of one schedule that moves what one all-to-all of every job does, which takes at least
    `bound_seconds`; `ratio` is how many times as long the first is. Where jobs were repeated
    unequally often, more bytes than those were moved during the slowest one's all-to-all.
    `retransmits` and `drops` are of all jobs together, and `rows` those of a `BedReport` of the
    joint schedule.
    """

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

    def to_json(self) -> dict[str, Any]:
        """Return the report as plain values."""
        return asdict(self)
