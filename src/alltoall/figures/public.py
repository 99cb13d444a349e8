"""`alltoall.reproduce`: measure the figures of the paper."""

import time
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from os import PathLike
from pathlib import Path

from alltoall.errors import MissingComponentError, UsageError
from alltoall.figures import FIGURES
from alltoall.figures.drawing import require_plots
from alltoall.figures.figure import SIZES, Asked, Figure, Measured, Point
from alltoall.figures.results import write_results
from alltoall.figures.run import STORED, Reproduced, compare, measure_figure, write_figure
from alltoall.flows.workers import Local, require_cluster, run_all, until_late
from alltoall.ir.files.text import is_file, is_folder
from alltoall.ir.program import Program
from alltoall.ir.quantities import parse_seconds
from alltoall.ir.words import ProgressMessage, counted
from alltoall.loading import load
from alltoall.lp.settings import never, silent
from alltoall.settings import SolveSettings
from alltoall.testbed.namespaces import require_testbed

ALL = "all"
"""The name of all figures together."""

FOLDER = Path("reproduced")
"""Default folder."""


def reproduce(
    figure: str,
    *,
    quick: bool = False,
    size: str | None = None,
    output: str | PathLike[str] = FOLDER,
    peers: Sequence[str | PathLike[str]] | None = None,
    testbed: bool = True,
    cluster: str | None = None,
    results: str | PathLike[str] | None = None,
    against: str | PathLike[str] | None = None,
    time_limit: str | float | None = None,
    progress: Callable[[str], None] = silent,
    stop: Callable[[], bool] = never,
) -> tuple[Reproduced, ...]:
    """Measure the figures of the paper again: data, picture, and whether each claim holds.

    A figure saves its rows as CSV, its picture as SVG and PNG, and its claims as JSON. Rows in the
    folder are not measured again, so a second call continues a stopped one. `alltoall reproduce`
    alone lists the figures.

    >>> import alltoall, tempfile
    >>> folder = tempfile.mkdtemp()
    >>> (made,) = alltoall.reproduce("methods", size="sample", output=folder, testbed=False)
    >>> made.complete, made.sentences[0].split(" [")[0]
    (True, 'Link-based MCF with extracted paths is optimal')

    """
    figures = _chosen(figure)
    asked = Asked(_size(quick, size), testbed and _can_emulate(), tuple(map(Path, peers or ())))
    _require_files(asked.peers, against, results)
    require_plots()
    limit = None if time_limit is None else parse_seconds(time_limit)
    settings = SolveSettings(time_limit=limit, cluster=cluster, stopped=stop)
    require_cluster(settings)
    folder, other = Path(output), STORED if against is None else Path(against)
    measure = partial(_measured, settings=settings, progress=progress)
    made = []
    for each in figures:
        rows, new, complete = measure_figure(each, asked, folder, measure, settings.out_of_time)
        compared = compare(each, asked.size, rows, other)
        made.append(write_figure(each, asked, folder, rows, new, complete, compared))
    if results is not None:
        write_results(Path(results), list(FIGURES.values()), folder)
    return tuple(made)


def _measured(
    figure: Figure,
    points: Sequence[Point],
    asked: Asked,
    settings: SolveSettings,
    progress: Callable[[str], None],
) -> Iterator[Measured]:
    """Yield the rows of points, measured on the cluster if possible, else here."""
    if settings.cluster is not None and not figure.alone:
        items = [(figure.name, point, asked) for point in points]
        yield from until_late(
            run_all(measure_point, items, len(items), settings, Local.ONE_BY_ONE, figure.name)
        )
        return
    for index, point in enumerate(points):
        if settings.out_of_time():
            return
        words = ", ".join(f"{name} {value}" for name, value in point.items())
        begun = time.monotonic()
        text = f"{figure.name}: {words}"
        if not figure.alone:  # Else later points depend on this one, and nobody knows how many.
            left = counted(len(points) - index, "point")
            text = ProgressMessage.of_count(f"{text} ({left} left)", index, len(points))
        progress(text)
        yield figure.measure(point, asked)
        progress(f"{figure.name}: {words} took {time.monotonic() - begun:.1f} s")


def measure_point(item: tuple[str, Point, Asked]) -> Measured:
    """Return the rows of a point, in any process."""
    name, point, asked = item
    return FIGURES[name].measure(point, asked)


def _chosen(name: str) -> list[Figure]:
    if name == ALL:
        return list(FIGURES.values())
    if name not in FIGURES:
        raise UsageError(f"no figure {name!r}; expected all, or one of {', '.join(FIGURES)}")
    return [FIGURES[name]]


def _size(quick: bool, size: str | None) -> str:
    found = size or ("quick" if quick else "full")
    if found not in SIZES:
        raise UsageError(f"size {found!r}; expected one of {', '.join(SIZES)}")
    if quick and found != "quick":
        raise UsageError(f"size {found!r} and quick; leave one of them out")
    return found


def _can_emulate() -> bool:
    try:
        require_testbed()
    except MissingComponentError:
        return False
    return True


def _require_files(
    peers: Sequence[Path],
    against: str | PathLike[str] | None,
    results: str | PathLike[str] | None,
) -> None:
    """Refuse wrong files before anything is measured."""
    for path in peers:
        if not is_file(path):
            raise UsageError(f"{path}: no such file; expected MSCCL XML of another tool")
        found = load(path)
        if not isinstance(found, Program):
            kind = type(found).__name__.lower()
            raise UsageError(f"{path}: a {kind}; expected MSCCL XML of another tool")
    if against is not None and not is_folder(against):
        raise UsageError(f"{against}: no such folder; expected one that reproduce wrote to")
    if results is not None and Path(results).suffix != ".md":
        raise UsageError(f"{results}: a page of results is Markdown; expected FILE.md")
