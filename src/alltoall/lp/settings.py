"""Settings and status of all solvers; without numpy, so that importing them takes no time."""

from collections.abc import Callable
from dataclasses import dataclass
from enum import StrEnum

Report = Callable[[str], None]


def silent(_: str) -> None:
    """Report nothing."""


def never() -> bool:
    """Whether to stop: no."""
    return False


class LPStatus(StrEnum):
    """Status of a solver, common to all solvers."""

    OPTIMAL = "optimal"
    INFEASIBLE = "infeasible"
    UNBOUNDED = "unbounded"
    TIME_LIMIT = "time_limit"
    INTERRUPTED = "interrupted"
    STOPPED = "stopped"
    """The solver gave up: an iteration limit, or trouble with the numbers."""


@dataclass(frozen=True)
class LPSettings:
    """Settings of all solvers.

    `tolerance` is the relative accuracy of interior-point methods; `vertex` asks for a basic
    (sparse) solution where the solver has one; a long solve ends once `stopped` returns True.
    """

    tolerance: float = 1e-9
    time_limit: float | None = None
    threads: int | None = None
    vertex: bool = True
    report: Report = silent
    stopped: Callable[[], bool] = never
