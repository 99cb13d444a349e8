"""What any solver may be asked, and how it ends; no arithmetic here, so that it loads at once."""

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
    """How a solver ended, in the same words for all solvers."""

    OPTIMAL = "optimal"
    INFEASIBLE = "infeasible"
    UNBOUNDED = "unbounded"
    TIME_LIMIT = "time_limit"
    INTERRUPTED = "interrupted"
    STOPPED = "stopped"
    """The solver gave up: an iteration limit, or trouble with the numbers."""


@dataclass(frozen=True)
class LPSettings:
    """What a caller may ask of any solver.

    `tolerance` is the relative accuracy wanted from solvers that approach the optimum from the
    inside; `vertex` asks for a basic (sparse) solution where the solver can give one; a solver that
    runs for long asks `stopped` now and then, and ends if it says so.
    """

    tolerance: float = 1e-9
    time_limit: float | None = None
    threads: int | None = None
    vertex: bool = True
    report: Report = silent
    stopped: Callable[[], bool] = never
