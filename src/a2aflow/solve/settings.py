"""What a caller may ask of any method."""

import os
import re
import time
from collections.abc import Callable
from dataclasses import dataclass, field, replace

from a2aflow.errors import UsageError
from a2aflow.lp import LPSettings, require_solver
from a2aflow.lp.program import never, silent

clock = time.monotonic
"""What every time limit is read from; tests put a clock of their own in its place."""

Late = Callable[[], bool]
"""Whether time is up, as `SolveSettings.out_of_time` tells loops that need nothing else of it."""

LEAST_SECONDS = 1e-9
"""A share of no time is as good as none, but a time limit is above 0."""


@dataclass(frozen=True)
class SolveSettings:
    """Settings shared by all methods; they are passed in, never global.

    `time_limit` counts from the call that the settings are passed to: every public function begins
    with `begin`, and all stages of one call share the clock that it `started`.
    `cluster` is the address of a Dask scheduler, on which the work per source then runs; it runs
    code, so it has to be one that you trust. `symmetry` lets one source stand for all that
    automorphisms map it to. Once `stopped` says so, the time limit is over.
    """

    gap: float = 1e-6
    solver: str = "auto"
    time_limit: float | None = None
    workers: int = field(default_factory=lambda: os.cpu_count() or 1)
    report: Callable[[str], None] = silent
    started: float | None = None
    cluster: str | None = None
    symmetry: bool = True
    stopped: Callable[[], bool] = never

    def __post_init__(self) -> None:
        if not 0 < self.gap < 1:
            raise UsageError(f"gap {self.gap:g}; expected a number above 0 and below 1")
        require_solver(self.solver)
        if self.time_limit is not None and not self.time_limit > 0:
            raise UsageError(f"time limit {self.time_limit:g}; expected seconds above 0")
        if self.workers < 1:
            raise UsageError(f"{self.workers} workers; expected at least 1")
        if self.cluster is not None and not re.fullmatch(r"(tcp|tls)://.+:[0-9]+", self.cluster):
            raise UsageError(
                f"cluster {self.cluster!r}; expected the address of a Dask scheduler, such as "
                "tcp://localhost:8786"
            )

    def begin(self) -> "SolveSettings":
        """Return the settings with their clock running: themselves, if a caller started it."""
        return self if self.started is not None else replace(self, started=clock())

    def sharing(self, share: float) -> "SolveSettings":
        """Return settings that stop after a share of the time left, for what others follow."""
        left = self.seconds_left()
        if left is None:
            return self
        return replace(self, time_limit=max(share * left, LEAST_SECONDS), started=clock())

    def seconds_left(self) -> float | None:
        """Return what is left of the time limit, or None if there is none."""
        if self.stopped():
            return 0.0
        if self.time_limit is None:
            return None
        if self.started is None:
            return self.time_limit
        return max(0.0, self.time_limit - (clock() - self.started))

    def why_late(self) -> str:
        """Name what ended the time, for a message."""
        return "a signal to stop" if self.stopped() else f"the time limit of {self.time_limit:g} s"

    def check_time(self) -> None:
        """Raise TimeoutError if the time limit has passed."""
        if self.out_of_time():
            raise TimeoutError

    def out_of_time(self) -> bool:
        """Whether the time limit has passed."""
        return self.seconds_left() == 0.0

    def lp_settings(self) -> LPSettings:
        """Return what to ask of a solver of linear programs.

        Repaired flows and recomputed bounds both lose a little on the solver's numbers, so it is
        asked for more accuracy than the gap. More threads than cores only cost memory.
        """
        return LPSettings(
            tolerance=min(1e-8, self.gap / 100),
            time_limit=self.seconds_left(),
            threads=min(self.workers, os.cpu_count() or 1),
            report=self.report,
            stopped=self.stopped,
        )
