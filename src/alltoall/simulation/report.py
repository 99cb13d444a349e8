"""What a simulation found: a row for each size, against what no all-to-all can beat."""

from dataclasses import asdict, dataclass
from typing import Any


@dataclass(frozen=True)
class Row:
    """What shards of `bytes` take, in seconds and bytes a second.

    `fraction` is the share of the certified bound that is reached, `throughput` what a terminal
    sends on average, and `bound_throughput` what it could at most: (N-1)fb if demand is uniform.
    """

    bytes: int
    seconds: float
    bound_seconds: float
    fraction: float
    throughput: float
    bound_throughput: float


@dataclass(frozen=True)
class JobRow:
    """What one of several jobs takes for shards of `bytes`, from its start on, in seconds.

    `alone` is without the others, `together` with all of them at once, each by its own routes.
    """

    job: str
    start: float
    bytes: int
    alone: float
    together: float
    slowdown: float
    bound_seconds: float


@dataclass(frozen=True)
class Simulation:
    """Predicted times of one schedule, or of routes, on a fabric.

    With several jobs, `jobs` has what each of them takes, and `together` what all of them take
    uncoordinated; `rows` are then those of the joint schedule, or the same if there is none.

    `link_rates` are the least and the largest of a link, in bytes a second.
    `resolution` is that of the fluid, as a share of the time of the routes; 0 is exact.
    """

    topology: str
    terminals: int
    link_rates: tuple[float, float]
    model: str
    rows: tuple[Row, ...]
    resolution: float | None = None
    together: tuple[Row, ...] = ()
    jobs: tuple[JobRow, ...] = ()

    @property
    def seconds(self) -> float:
        """What the largest size takes."""
        return self.rows[-1].seconds

    @property
    def bound_seconds(self) -> float:
        """What the largest size takes at least, whatever the schedule."""
        return self.rows[-1].bound_seconds

    @property
    def fraction(self) -> float:
        """The share of the bound that the largest size reaches."""
        return self.rows[-1].fraction

    def to_json(self) -> dict[str, Any]:
        """Return the report as plain values; the numbers beside the rows are the last row's."""
        found = asdict(self)
        rows = found.pop("rows")
        if not self.jobs:
            del found["jobs"], found["together"]
        return {**found, **rows[-1], "rows": rows}


def row_of(size: int, seconds: float, bound_seconds: float, sent: float) -> Row:
    """Return the row of a size of which a terminal sends so many shards on average."""
    return Row(
        bytes=size,
        seconds=seconds,
        bound_seconds=bound_seconds,
        fraction=bound_seconds / seconds,
        throughput=sent * size / seconds,
        bound_throughput=sent * size / bound_seconds,
    )
