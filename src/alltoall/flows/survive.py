"""`solve --survive`: a flow ready for every failure, found before it happens.

For each link or node that may fail, the healthy flow is the start of a solve of what is left
(`flows.warm`), and the answer is checked. What is kept of each is a file of it, and how much longer
than the healthy one it takes. Routes do the same (`routes.survive`).
"""

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from alltoall.errors import InputError, UsageError
from alltoall.flows.warm import solve_from, unserved
from alltoall.flows.workers import Local, run_all, until_late
from alltoall.ir.files.artefacts import file_bytes
from alltoall.ir.files.text import write_bytes
from alltoall.ir.flow import Flow
from alltoall.settings import LEAST_SECONDS, SolveSettings
from alltoall.topologies.failures import Failure, failures_of


@dataclass(frozen=True)
class Survivor:
    """A failure, the time and bound after it, and what the healthy answer would lose.

    Where some pair is cut off, `time` is infinite and there is no `file`.
    """

    failure: Failure
    time: float
    bound: float = 0.0
    unserved: float = 1.0
    moved: int = 0
    file: bytes = b""


@dataclass(frozen=True)
class Survival:
    """The outcome of all failures, next to the healthy time.

    `not_solved` counts failures that a time limit left without an answer.
    """

    healthy: float
    survivors: tuple[Survivor, ...]
    not_solved: int = 0

    def summary(self) -> dict[str, Any]:
        """Return the worst and the mean loss, as plain values."""
        left = [each for each in self.survivors if each.time < np.inf]
        loss = {each.failure.name: each.time / self.healthy - 1 for each in left}
        worst = max(loss, key=lambda name: loss[name], default=None)
        return {
            "failures": len(self.survivors) + self.not_solved,
            "not_solved": self.not_solved,
            "cut_off": [each.failure.name for each in self.survivors if each.time == np.inf],
            "worst": worst,
            "worst_loss": None if worst is None else loss[worst],
            "mean_loss": float(np.mean(list(loss.values()))) if loss else None,
            "worst_gap": max((each.time / each.bound - 1 for each in left), default=None),
            "worst_unserved": max((each.unserved for each in left), default=None),
        }


def survive_failures(
    flow: Flow, what: str, settings: SolveSettings, folder: Path | None = None
) -> Survival:
    """Solve for every failure, from the healthy flow; leave a file of each in a folder, if given.

    Each is solved to the gap of the settings. Those solved when the time limit comes are kept.
    """
    settings = settings.begin()
    failures = failures_of(flow.problem.topology, what)
    items = ((flow, each, for_one_failure(settings)) for each in failures)
    found = run_all(_solved, items, len(failures), settings, Local.ONE_BY_ONE, "failures")
    survivors = tuple(kept(until_late(found), folder))
    return Survival(flow.time, survivors, len(failures) - len(survivors))


def for_one_failure(settings: SolveSettings) -> SolveSettings:
    """Return settings for one failure: the gap, and the time that is left."""
    left = settings.seconds_left()
    return SolveSettings(
        settings.gap,
        time_limit=None if left is None else max(left, LEAST_SECONDS),
        workers=settings.workers,
        stopped=settings.stopped,
    )


def refuse_switch_over(survive: str | None, folder: Path | None) -> None:
    """Raise if there is a folder for files of failures, and no failures."""
    if folder is not None and survive is None:
        raise UsageError("--switch-over without --survive; add which failures, as links:1")


def kept(
    found: Iterator[Survivor], folder: Path | None, suffix: str = ".npz"
) -> Iterator[Survivor]:
    """Write the files as they come, and keep all but their bytes."""
    for each in found:
        if folder is not None and each.file:
            write_bytes(folder / f"{each.failure.file}{suffix}", each.file)
        yield Survivor(each.failure, each.time, each.bound, each.unserved, each.moved)


def _solved(item: tuple[Flow, Failure, SolveSettings]) -> Survivor:
    """Solve what is left after one failure; where a pair is cut off there is no flow."""
    healthy, failure, settings = item
    try:
        problem = failure.left_of(healthy.problem)
        flow = solve_from(problem, healthy, settings)
    except InputError:
        return Survivor(failure, np.inf)
    file = file_bytes(Path("flow.npz"), flow, False)
    return Survivor(failure, flow.time, flow.bound, unserved(problem, healthy), 0, file)
