"""`alltoall.failures`: the cost of every failure for routes or a schedule.

Each failure is solved as `route --from` and `schedule --from` would, and checked. Failures are
independent, so a stopped search keeps the finished ones.
"""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import asdict, dataclass, replace
from os import PathLike
from pathlib import Path
from typing import Any

import numpy as np

from alltoall.check.answers import check_answer
from alltoall.check.routes import check_routes
from alltoall.errors import FormatError, InputError, TimeLimitError, UsageError
from alltoall.ir.files.artefacts import BINARY_SUFFIX, read_artefact, write_artefact
from alltoall.ir.files.json.saved_answers import format_name
from alltoall.ir.files.json.values import json_text
from alltoall.ir.files.text import write_text
from alltoall.ir.names import FileStems
from alltoall.ir.problem import Problem
from alltoall.ir.routes import Routes
from alltoall.ir.schedule import Schedule
from alltoall.ir.table import Table
from alltoall.ir.words import ProgressMessage
from alltoall.lp.settings import never, silent
from alltoall.routes.layers.assign import layers_after
from alltoall.routes.renew import count_moved, renew_routes
from alltoall.schedules.by_list import routes_of
from alltoall.schedules.methods import find_schedule
from alltoall.settings import ScheduleSettings, SolveSettings, search_settings
from alltoall.topologies.failures import Failure, failures_of

INDEX = "index.json"
"""Index file of the folder."""

FAILURES_GAP = 0.01
"""The gap at which rerouting ends by default: near the bound, and few routes move."""

Answer = Routes | Schedule


@dataclass(frozen=True)
class FailureRow:
    """The cost of one failure.

    `lost` is the share of the remaining traffic lost without rerouting; `time` and `bound` hold
    after rerouting; `slower` is the relative increase over the healthy time; `moved` counts routes
    or chunks with a new path. `reason` says why there is no answer.
    """

    failure: str
    lost: float
    time: float | None = None
    slower: float | None = None
    bound: float | None = None
    gap: float | None = None
    moved: int | None = None
    reason: str | None = None
    file: str | None = None


@dataclass(frozen=True, repr=False)
class FailureReport(Table):
    """The failures of routes or a schedule, worst first, next to the healthy answer.

    `not_solved` counts failures left out by the time limit.
    """

    topology: str
    kind: str
    time: float
    bound: float
    rows: tuple[FailureRow, ...]
    not_solved: int = 0

    def to_json(self) -> dict[str, Any]:
        """Return all as plain values."""
        rows = [asdict(row) for row in self.rows]
        return {**asdict(self), "failures": len(rows) + self.not_solved, "rows": rows}


def failures(
    file: Answer | str | PathLike[str],
    *,
    links: int | None = None,
    nodes: int | None = None,
    only: str | Sequence[str] | None = None,
    output: str | PathLike[str] | None = None,
    gap: float = FAILURES_GAP,
    time_limit: str | float | None = None,
    progress: Callable[[str], None] = silent,
    stop: Callable[[], bool] = never,
) -> FailureReport:
    """Show what each failure costs, worst first, and prepare for it.

    For every link or node: the share of the traffic that is lost without rerouting, the time after
    rerouting, and the proven bound. The saved answers can be verified, lowered and run. Failures
    are named by nodes: `a-b` is a link, `a` a node, `a-b+c` both at once.

    >>> import alltoall
    >>> found = alltoall.failures(alltoall.route("ring:4"), only="0-1")
    >>> [(row.failure, round(row.lost, 3), round(row.time, 6)) for row in found.rows]
    [('link 0-1', 0.333, 4.0)]

    """
    healthy = file if isinstance(file, Answer) else _read(Path(file))
    settings = search_settings({}, gap, time_limit, None, progress, stop)
    if only is not None and (links is not None or nodes is not None):
        raise UsageError("--only with --links or --nodes; leave one of them out")
    named = only.split(",") if isinstance(only, str) else tuple(only or ())
    many = (1, 0) if links is None and nodes is None else (links or 0, nodes or 0)
    count, each = failures_of(healthy.problem.topology, *many, named)
    suffix = Path(file).suffix if isinstance(file, str | PathLike) else ""
    folder = None if output is None else _Folder(Path(output), suffix)
    rows = tuple(_rows(healthy, each, count, folder, settings))
    worst = sorted(rows, key=lambda row: (np.inf if row.slower is None else row.slower, row.lost))
    report = FailureReport(
        healthy.problem.topology.name,
        type(healthy).__name__.lower(),
        healthy.time,
        healthy.bound,
        tuple(reversed(worst)),
        count - len(rows),
    )
    if folder is not None:
        write_text(folder.path / INDEX, json_text(report.to_json()))
    return report


def _read(path: Path) -> Answer:
    """Read routes or a schedule, and check them."""
    found = read_artefact(path)
    if not isinstance(found, Answer):
        raise FormatError(
            f"{path}: format is {format_name(found)!r}; expected routes or a schedule. After a "
            "failure a flow is solved anew, with --remove-link or --remove-node"
        )
    check_answer(found)
    return found


def _rows(
    healthy: Answer,
    each: Iterator[Failure],
    count: int,
    folder: "_Folder | None",
    settings: SolveSettings,
) -> Iterator[FailureRow]:
    """Yield a row for each failure until the time limit; save each answer in the folder."""
    routes = routes_of(healthy) if isinstance(healthy, Schedule) else healthy
    for done, failure in enumerate(each):
        settings.report(ProgressMessage.of_count(f"failures: {done} of {count}", done, count))
        row = FailureRow(failure.name, _lost(routes, failure))
        try:
            now, moved = _reroute(failure.left_of(healthy.problem), healthy, settings)
        except (TimeoutError, TimeLimitError):
            return
        except InputError as error:  # Some pair is cut off.
            yield replace(row, reason=str(error).partition(";")[0])
            continue
        if settings.out_of_time():
            return
        yield replace(
            row,
            time=now.time,
            slower=now.time / healthy.time - 1,
            bound=now.bound,
            gap=now.gap,
            moved=moved,
            file=None if folder is None else folder.save(failure.name, now),
        )


def _lost(healthy: Routes, failure: Failure) -> float:
    """Return the share of the remaining traffic whose routes cross a failed link or node."""
    topology = healthy.problem.topology
    left = failure.links_left(topology)
    cut = np.bincount(healthy.path_of_link, ~np.isin(healthy.link, left), healthy.count) > 0
    ends = (topology.terminals[each] for each in (healthy.source, healthy.destination))
    stays = ~np.logical_or(*(np.isin(each, failure.nodes) for each in ends))
    total = healthy.weight[stays].sum()
    return float(healthy.weight[cut & stays].sum() / total) if total > 0 else 0.0


def _reroute(left: Problem, healthy: Answer, settings: SolveSettings) -> tuple[Answer, int]:
    """Return a checked answer for the surviving network, and the number of moved paths."""
    if isinstance(healthy, Schedule):
        found = find_schedule(left, "auto", ScheduleSettings(solve=settings), healthy)
        return found.schedule, 0 if found.renewed is None else found.renewed.moved
    routes = renew_routes(left, healthy, settings).routes
    if healthy.layers is not None:
        routes, _ = layers_after(routes, healthy, settings)
    check_routes(routes)
    return routes, count_moved(routes, healthy)


class _Folder:
    """A folder with a file for each failure, named after the failed links and nodes."""

    def __init__(self, path: Path, suffix: str) -> None:
        self.path, self._stems = path, FileStems()
        self._suffix = BINARY_SUFFIX if suffix.lower() == BINARY_SUFFIX else ".json"
        if str(path) == "-":
            raise UsageError("-o - for several files; name a folder")
        try:
            path.mkdir(parents=True, exist_ok=True)
        except OSError as error:
            raise UsageError(
                f"{path}: files cannot be written there: {error.strerror}; name another folder"
            ) from None

    def save(self, failure: str, answer: Answer) -> str:
        """Save an answer; return the name of its file."""
        name = self._stems.stem_of(failure.replace(" ", "-")) + self._suffix
        write_artefact(self.path / name, answer, provenance=False)
        return name
