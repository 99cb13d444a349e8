"""The settings of every search, on one page."""

import math
import os
import re
import time
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, Protocol, runtime_checkable

import numpy as np
from numpy.typing import NDArray

from alltoall.errors import UsageError
from alltoall.ir.arguments import read_fields
from alltoall.ir.quantities import parse_seconds
from alltoall.lp import require_solver
from alltoall.lp.settings import LPSettings, never, silent

clock = time.monotonic
"""The clock of every time limit; tests replace it."""


def now() -> float:
    """Return the time of `clock`."""
    return clock()


Late = Callable[[], bool]
"""Returns whether time is up, for loops that need no other setting."""

LEAST_SECONDS = 1e-9
"""Smallest time limit, seconds."""

MOST_SECONDS = 1e8
"""Largest time limit, three years: beyond that clocks and solvers overflow."""


def cores() -> int:
    """Return the number of cores."""
    return os.cpu_count() or 1


@runtime_checkable
class Team(Protocol):
    """Processes that solve one problem together, each for a part of the sources.

    Every process calls every method, in the same order.
    """

    rank: int
    size: int
    neighbours: int
    """Ranks on this machine, which share its cores."""

    def total(self, part: NDArray[np.float64]) -> NDArray[np.float64]:
        """Return the sum of all parts, the same for all to the last bit."""

    def gathered(self, part: Any) -> list[Any] | None:
        """Return all parts in the order of the ranks, on the first of them."""


class Alone:
    """A team of one."""

    rank, size, neighbours = 0, 1, 1

    def total(self, part: NDArray[np.float64]) -> NDArray[np.float64]:
        """Return the only part."""
        return part

    def gathered(self, part: Any) -> list[Any] | None:
        """Return the only part."""
        return [part]


ALONE = Alone()
"""The team of a single process."""


class NotRootRank(Exception):  # noqa: N818 (nothing went wrong)
    """Ends a search on all ranks of a team except the first, which has the answer."""


def _require_least(value: int | None, least: int, what: str) -> None:
    """Raise if a number is below the least; None is any."""
    if value is not None and value < least:
        expected = "0 or more" if least == 0 else f"at least {least}"
        raise UsageError(f"{what.format(value)}; expected {expected}")


def _require_known(kind: str, name: str, known: tuple[str, ...]) -> None:
    if name not in known:
        raise UsageError(f"unknown {kind} {name!r}; expected one of {', '.join(known)}")


@dataclass(frozen=True)
class SolveSettings:
    """Settings shared by all methods; they are passed in, never global.

    The clock `started` starts when a public function makes its settings, and all stages share it.
    `cluster` is the address of a trusted Dask scheduler, which runs the work per
    source. `symmetry` lets one source stand for all sources that automorphisms map to it. The time
    limit is over once `stopped()` is true. A long solve saves a `checkpoint` now and then, and
    continues from an existing one. A `team` shares the sources.
    """

    gap: float = 1e-6
    solver: str = "auto"
    time_limit: float | None = None
    workers: int = field(default_factory=cores)
    report: Callable[[str], None] = silent
    started: float = field(default_factory=now)
    cluster: str | None = None
    symmetry: bool = True
    stopped: Callable[[], bool] = never
    checkpoint: Path | None = None
    team: Team = ALONE

    def __post_init__(self) -> None:
        read_fields(self)
        if not 0 < self.gap < 1:
            raise UsageError(f"gap {self.gap:g}; expected a number above 0 and below 1")
        require_solver(self.solver)
        if self.time_limit is not None and not 0 < self.time_limit <= MOST_SECONDS:
            raise UsageError(
                f"time limit {self.time_limit:g}; expected seconds above 0, at most "
                f"{MOST_SECONDS:g}; leave it out for none"
            )
        _require_least(self.workers, 1, "{} workers")
        if self.cluster is not None and not re.fullmatch(r"(tcp|tls)://.+:[0-9]+", self.cluster):
            raise UsageError(
                f"cluster {self.cluster!r}; expected the address of a Dask scheduler, such as "
                "tcp://localhost:8786"
            )

    def limited(self, seconds: float | None) -> "SolveSettings":
        """Return settings with a clock of their own, for a part that has these seconds."""
        limit = None if seconds is None else max(seconds, LEAST_SECONDS)
        return replace(self, time_limit=limit, started=now())

    def sharing(self, share: float = 0.5) -> "SolveSettings":
        """Return settings for an early stage, with a share of the remaining time."""
        left = self.seconds_left()
        return self if left is None else self.limited(share * left)

    def known(self) -> dict[str, str | float]:
        """Return provenance fields."""
        seconds = round(now() - self.started, 3)
        return {"solver": self.solver, "gap": self.gap, "seconds": seconds}

    def seconds_left(self) -> float | None:
        """Return the remaining seconds, or None without a time limit."""
        if self.stopped():
            return 0.0
        if self.time_limit is None:
            return None
        return max(0.0, self.time_limit - (now() - self.started))

    def why_late(self) -> str:
        """Name the reason to stop, for a message."""
        return "a signal to stop" if self.stopped() else f"the time limit of {self.time_limit:g} s"

    def check_time(self) -> None:
        """Raise TimeoutError if the time limit has passed."""
        if self.out_of_time():
            raise TimeoutError

    def out_of_time(self) -> bool:
        """Whether the time limit has passed."""
        return self.seconds_left() == 0.0

    def lp_settings(self) -> LPSettings:
        """Return the settings of the LP solver.

        Repairing flows and recomputing bounds lose a little accuracy, so the solver gets a tighter
        tolerance than the gap. More threads than cores only cost memory.
        """
        return LPSettings(
            tolerance=min(1e-8, self.gap / 100),
            time_limit=self.seconds_left(),
            threads=min(self.workers, cores()),
            report=self.report,
            stopped=self.stopped,
        )


def search_settings(
    words: dict[str, Any],
    gap: float,
    time_limit: str | float | None,
    threads: int | None,
    progress: Callable[[str], None],
    stop: Callable[[], bool],
    team: Team = ALONE,
) -> SolveSettings:
    """Return the settings of a search, and take the shared keys out of `words`."""
    if not isinstance(team, Team):
        raise UsageError(f"a {type(team).__name__} instead of a team; leave it out")
    checkpoint = words.pop("checkpoint", None)
    shared = {key: words.pop(key) for key in ("solver", "symmetry", "cluster") if key in words}
    return SolveSettings(
        gap=gap,
        time_limit=None if time_limit is None else parse_seconds(time_limit),
        workers=max(1, cores() // team.neighbours) if threads is None else threads,
        report=progress if team.rank == 0 else silent,
        stopped=stop,
        checkpoint=None if checkpoint is None else Path(checkpoint),
        team=team,
        **shared,
    )


MOST_CHUNKS = 4096
"""Largest denominator of weights of routes."""

PATH_SETS = ("disjoint", "shortest", "bounded", "k-shortest", "columns")
"""Path sets of pmcf; `columns` generates paths as needed."""


@dataclass(frozen=True)
class RouteSettings:
    """Settings of all routing methods; each uses its own.

    `paths` names the candidate paths of pmcf and the ILPs; `slack` is the extra length of bounded
    paths in hops; `k` is the number of k-shortest paths; `max_routes` limits the routes of a pair,
    at a cost of `loss` at most; `epsilon` is the accuracy of the FPTAS, `published` its published
    stop; `raw` keeps the paths that extp extracted; `max_layers` limits the layers of deadlock-free
    routes, which change layers with `layer_change`; `destination_based` merges routes to a terminal
    where they meet; `shape` has the sides of the grid for dimension order, if they cannot be found;
    `robust` names the demands of robust routes, families of `routes.robust` or files.

    Routes are then changed in this order (`routes.search`): `max_routes`; `chunks`, the common
    denominator of the weights; `layers`, the algorithm that assigns them, or None.
    """

    paths: str = "disjoint"
    slack: int = 1
    k: int = 8
    max_routes: int | None = None
    loss: float = 0.01
    epsilon: float = 0.05
    published: bool = False
    raw: bool = False
    seed: int = 0
    max_layers: int | None = None
    layer_change: bool = False
    destination_based: bool = False
    shape: tuple[int, ...] | None = None
    chunks: int | None = None
    layers: str | None = "lash-sequential"
    robust: tuple[str, ...] | None = None
    solve: SolveSettings = field(default_factory=SolveSettings)

    def __post_init__(self) -> None:
        read_fields(self)
        _require_known("paths", self.paths, PATH_SETS)
        if self.slack < 0 or self.k < 1:
            raise UsageError(f"slack {self.slack}, k {self.k}; expected slack >= 0 and k >= 1")
        _require_least(self.max_routes, 1, "{} routes per pair")
        _require_least(self.max_layers, 1, "{} virtual layers")
        if not 0 <= self.loss < 1:
            raise UsageError(f"loss {self.loss:g}; expected a share from 0 to below 1")
        if not 0 < self.epsilon < 1:
            raise UsageError(f"epsilon {self.epsilon:g}; expected a number above 0 and below 1")
        _require_least(self.seed, 0, "seed {}")


STEP_TOLERANCE = 1e-3
"""Default share by which a further step must lower the time."""

USUAL_MOST_CHUNKS = 16
"""Default limit on chunks per shard of mean size, if many pairs send."""

WORST_LOSS = 1.0
"""The largest allowed loss: twice the fractional time."""


@dataclass(frozen=True)
class ScheduleSettings:
    """Settings of a schedule.

    `steps` and `chunks` fix what is otherwise searched for; `latency` is the cost of a step in
    shard times; a further step must save more than the share `step_tolerance`; `loss` limits how
    much longer than the fractional optimum whole chunks may take; `max_chunks` limits the chunks of
    a mean shard (`USUAL_MOST_CHUNKS` by default, more if few pairs send). `operation_cost` is the
    cost of a message for its sender and its receiver, in shard times: with it, fewer relays, steps
    and chunks are tried too. `robust` names the demands that a template serves.
    """

    steps: int | None = None
    chunks: int | None = None
    latency: float = 0.0
    step_tolerance: float = STEP_TOLERANCE
    loss: float = 0.01
    max_chunks: int | None = None
    robust: tuple[str, ...] | None = None
    solve: SolveSettings = field(default_factory=SolveSettings)
    operation_cost: float = 0.0

    def __post_init__(self) -> None:
        read_fields(self)
        for name in ("latency", "operation_cost"):
            cost = getattr(self, name)
            if not 0 <= cost < math.inf:
                said = name.replace("_", " ")
                raise UsageError(f"{said} {cost:g}; expected shard times of at least 0")
        if not 0 < self.step_tolerance < 1:
            raise UsageError(f"step tolerance {self.step_tolerance:g}; expected a share below 1")
        if not 0 <= self.loss <= WORST_LOSS:
            raise UsageError(f"loss {self.loss:g}; expected a share from 0 to {WORST_LOSS:g}")
        for chunks in (self.chunks, self.max_chunks):
            if chunks is not None and not 1 <= chunks <= MOST_CHUNKS:
                raise UsageError(f"{chunks} chunks per shard; expected 1 to {MOST_CHUNKS}")
        _require_least(self.steps, 1, "{} steps")


OBJECTIVES = ("alltoall", "alltoall+failures", "alltoall+diameter")
"""Design objectives: time, time after the worst failure, or diameter first."""

DESIGN_GAP = 1e-3
"""Default certified gap of candidates."""


@dataclass(frozen=True)
class DesignSettings:
    """Settings of a design.

    `objective` is one of `OBJECTIVES`; `layers` limits the virtual layers of the chosen network;
    `failures` is the number of single failures solved for each of the best candidates; `solve.gap`
    is the gap of every certified time.
    """

    objective: str = "alltoall"
    layers: int | None = None
    failures: int = 0
    seed: int = 0
    solve: SolveSettings = field(default_factory=lambda: SolveSettings(gap=DESIGN_GAP))

    def __post_init__(self) -> None:
        read_fields(self)
        _require_known("objective", self.objective, OBJECTIVES)
        _require_least(self.layers, 1, "{} virtual layers")
        _require_least(self.failures, 0, "{} failures")
        _require_least(self.seed, 0, "seed {}")
