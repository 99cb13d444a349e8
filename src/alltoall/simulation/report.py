"""The rows of a simulation, size by size, against the certified bound."""

from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np

from alltoall.ir.arrays import Floats
from alltoall.ir.demand import Demand
from alltoall.ir.fabric import Fabric
from alltoall.ir.routes import Routes
from alltoall.ir.table import Table
from alltoall.simulation.alpha_beta import (
    SHARINGS,
    SYNCS,
    StepMessages,
    seconds_of_fair_messages,
    seconds_of_messages,
)
from alltoall.simulation.fluid import (
    Flows,
    FluidSettings,
    ends_of_jobs,
    flows_of,
    seconds_of_phases,
)


@dataclass(frozen=True)
class Row:
    """The time of shards of `bytes`, in seconds and bytes a second.

    `fraction` is the certified bound over the time, `throughput` the mean rate of a terminal, and
    `bound_throughput` its upper bound: (N-1)fb if demand is uniform.
    """

    bytes: int
    seconds: float
    bound_seconds: float
    fraction: float
    throughput: float
    bound_throughput: float


@dataclass(frozen=True)
class JobRow:
    """The time of one of several jobs for shards of `bytes`, from its start on, in seconds.

    `alone` is without the other jobs, `together` with all of them, each on its own routes.
    """

    job: str
    start: float
    bytes: int
    alone: float
    together: float
    slowdown: float
    bound_seconds: float


@dataclass(frozen=True, repr=False)
class Simulation(Table):
    """Predicted times of one schedule, or of routes, on a fabric.

    With several jobs, `jobs` has the times of each and `together` those of all uncoordinated;
    `rows` are then those of the joint schedule, or equal to `together`.

    `link_rates` are the least and the largest rate of a link, in bytes a second. `resolution` is
    that of the fluid, as a share of the time of the routes; 0 is exact.
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
        """The time of the largest size."""
        return self.rows[-1].seconds

    @property
    def bound_seconds(self) -> float:
        """The lower bound on the time of the largest size, for any schedule."""
        return self.rows[-1].bound_seconds

    @property
    def fraction(self) -> float:
        """The bound over the time of the largest size."""
        return self.rows[-1].fraction

    def to_json(self) -> dict[str, Any]:
        """Return the report as plain values; the numbers beside the rows are the last row's."""
        found = asdict(self)
        rows = found.pop("rows")
        if not self.jobs:
            del found["jobs"], found["together"]
        return {**found, **rows[-1], "rows": rows}


FLUID = "max-min fair fluid"
STEPPED = dict(zip(SYNCS, ("dataflow", "a barrier per step"), strict=True))
SHARED = dict(zip(SHARINGS, ("alpha-beta", "fair messages"), strict=True))
"""Names of the models of routes and of schedules."""


@dataclass(frozen=True)
class JobPart:
    """Routes of one of several jobs, and its start time."""

    name: str
    routes: Routes
    start: float


@dataclass(frozen=True, eq=False)
class Asked:
    """The inputs of a simulation; `bound` is the certified bound of `demand`."""

    fabric: Fabric
    sizes: tuple[int, ...]
    begin: Floats
    demand: Demand
    bound: float
    fluid: FluidSettings
    progress: Callable[[str], None]

    def bound_seconds(self, bound: float, demand: Demand, size: int) -> float:
        """Return a lower bound on the time of a shard size, by links and by injection limits."""
        injected = self.fabric.injection_seconds(demand, size)
        return max(self.fabric.seconds(bound, size), injected)

    def row(self, size: int, seconds: float) -> Row:
        """Return the row of a size."""
        least = self.bound_seconds(self.bound, self.demand, size)
        sent = self.demand.total / self.demand.terminals * size
        return Row(size, seconds, least, least / seconds, sent / seconds, sent / least)

    def flows(self, routes: Routes, size: int, start: float = 0.0) -> Flows:
        """Return the flows of routes, which begin with their terminals and not before `start`."""
        return flows_of(routes, size, np.maximum(self.begin, start), self.fluid)

    def window(self, size: int, *several: Routes) -> float:
        """Return the window between two changes of rates, in seconds, for these routes."""
        share = self.fluid.resolution_for(sum(routes.count for routes in several))
        return share * max(self.fabric.seconds(routes.time, size) for routes in several)


SECONDS = dict(zip(SHARINGS, (seconds_of_messages, seconds_of_fair_messages), strict=True))
"""The simulation of messages, by the sharing of links."""


def messages_alone(
    messages: StepMessages, sync: str, sharing: str, asked: Asked
) -> tuple[Row, ...]:
    """Return the rows of a schedule."""
    return tuple(
        asked.row(size, SECONDS[sharing](messages, asked.fabric, size, sync, asked.begin))
        for size in asked.sizes
    )


def routes_alone(phases: Sequence[Routes], asked: Asked) -> tuple[Row, ...]:
    """Return the rows of routes in consecutive phases."""
    rows = []
    for size in asked.sizes:
        flows, window = [asked.flows(part, size) for part in phases], asked.window(size, *phases)
        rows.append(asked.row(size, seconds_of_phases(flows, asked.fabric, window, asked.progress)))
    return tuple(rows)


def jobs_together(
    parts: Sequence[JobPart], bounds: Sequence[float], asked: Asked
) -> tuple[tuple[Row, ...], tuple[JobRow, ...]]:
    """Return the rows of all jobs together, and of each job alone and with the others."""
    rows: list[Row] = []
    jobs: list[JobRow] = []
    for size in asked.sizes:
        flows = [asked.flows(part.routes, size, part.start) for part in parts]
        window = asked.window(size, *(part.routes for part in parts))
        ends = ends_of_jobs(flows, asked.fabric, window, asked.progress)
        rows.append(asked.row(size, max(ends)))
        for part, bound, own, end in zip(parts, bounds, flows, ends, strict=True):
            (alone,) = ends_of_jobs([own], asked.fabric, window, asked.progress)
            times = alone - part.start, end - part.start
            least = asked.bound_seconds(bound, part.routes.problem.demand, size)
            slower = times[1] / times[0]
            jobs.append(JobRow(part.name, part.start, size, *times, slower, least))
    return tuple(rows), tuple(jobs)
