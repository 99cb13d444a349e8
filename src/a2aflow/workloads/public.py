"""`a2aflow.fft3d` and `a2aflow.moe`: programs that an all-to-all decides, checked and timed."""

from collections.abc import Callable, Sequence
from os import PathLike
from pathlib import Path
from typing import TypeAlias

import numpy as np

from a2aflow.errors import UsageError
from a2aflow.ir.messages import Messages
from a2aflow.ir.schedule import Schedule
from a2aflow.loading import load
from a2aflow.lp.settings import silent
from a2aflow.runtime.mpiexec import Mpi
from a2aflow.runtime.parts import all_parts, is_spec
from a2aflow.schedules.public import schedule as make_schedule
from a2aflow.workloads.fft3d import GATHERED_POINTS, needed_bytes
from a2aflow.workloads.launch import (
    Launch,
    WaySpec,
    library_way,
    require_memory,
    run_ranks,
    schedule_way,
)
from a2aflow.workloads.reports import FftReport, fft_report
from a2aflow.workloads.slabs import Slabs, parse_grid
from a2aflow.workloads.turns import Turns

Scheduled: TypeAlias = Schedule | Messages | str | PathLike[str]
"""What a schedule is given as: itself, its messages, the path of either, or a SPEC."""


def fft3d(
    grid: str | int | tuple[int, int, int],
    *,
    schedule: Scheduled | None = None,
    ranks: int | None = None,
    mpi: str | Mpi | None = None,
    iterations: int = Turns.iterations,
    warmup: int = Turns.warmup,
    seed: int = 0,
    timeout: float = 600.0,
    others: Sequence[WaySpec] = (),
    progress: Callable[[str], None] = silent,
) -> FftReport:
    """Transform a grid over MPI by a schedule and by the library's own all-to-all, in turns.

    Every rank has a slab of planes: it transforms them along two sides and packs them, exchanges
    them, and transforms what it received along the third. Each of the three steps is timed. What
    comes out is compared with numpy's `fftn`; above 2 million points with random sums that every
    point is in. Every shard is compared with what was sent, to the bit. A wrong result, a rank that
    dies, or a time that is up is a `VerificationError`.

    Args:
        grid: the side of a cube, or three sides as numbers or as a text such as `"64x48x32"`; sides
            need not be multiples of the number of ranks, but the first two not less than it.
        schedule: a `Schedule`, its messages, the path of either, or a SPEC for which one is made;
            if left out, only the library's own all-to-all is timed.
        ranks: as many as the schedule has terminals; needed if there is no schedule.
        mpi: `"mpich"`, `"openmpi"`, the path of an mpiexec, or what starts ranks in its place.
        iterations: timed repetitions of each way.
        warmup: repetitions before those.
        seed: of the numbers in the grid.
        timeout: seconds after which all ranks are ended.
        others: further ways to move shards, as `workloads.launch` has them.
        progress: called with a line now and then.

    >>> import a2aflow
    >>> report = a2aflow.fft3d("10x9x7", schedule="ring:4", iterations=1)
    >>> report.ranks, report.checked, [row.way for row in report.rows]
    (4, 'fftn', ['library', 'schedule'])

    """
    _require_seed(seed)
    sides, turns = parse_grid(grid), Turns(iterations, warmup)
    messages = None if schedule is None else _messages(_opened(schedule, progress))
    slabs = Slabs(sides, _ranks_of(messages, ranks))
    require_memory(needed_bytes(slabs, GATHERED_POINTS), slabs.ranks, "take a smaller grid")
    ways = [library_way("mpi")]
    if messages is not None:
        ways.append(schedule_way("mpi", "schedule", [messages]))
    ways += others
    parameters = {"grid": sides, "seed": seed, "gathered_points": GATHERED_POINTS}
    progress(f"{slabs.ranks} ranks at work")
    found = run_ranks(Launch("fft3d", parameters, slabs.ranks, ways, turns, timeout), mpi)
    return fft_report(slabs, found)


def _opened(given: Scheduled, progress: Callable[[str], None]) -> Schedule | Messages:
    """Return a schedule or messages: as given, read from a file, or made for a SPEC."""
    if isinstance(given, Schedule | Messages):
        return given
    if is_spec(given):
        return make_schedule(str(given), progress=progress)
    found = load(Path(given))
    if not isinstance(found, Schedule | Messages):
        raise UsageError(
            f"{given}: a {type(found).__name__}; expected a schedule, or the messages that it was "
            "lowered to"
        )
    return found


def _messages(work: Schedule | Messages) -> Messages:
    """Return messages that all pairs of ranks can send by."""
    found = all_parts(work)
    counts = found.chunks.counts
    if counts is not None and np.count_nonzero(counts == 0) > np.count_nonzero(np.diag(counts) == 0):
        raise UsageError(
            "the schedule has no chunks for some pairs of ranks, and in a workload all pairs may "
            "have something to send; expected a schedule of the uniform all-to-all"
        )
    return found


def _ranks_of(messages: Messages | None, ranks: int | None) -> int:
    if messages is None:
        if ranks is None or ranks < 1:
            raise UsageError(
                f"{'no' if ranks is None else ranks} ranks and no schedule; expected a schedule, "
                "or how many ranks are to use the library's own all-to-all"
            )
        return ranks
    found = len(messages.ranks)
    if ranks is not None and ranks != found:
        raise UsageError(
            f"a schedule for {found} ranks, one per terminal, and {ranks} were asked for; leave "
            f"out the number, or ask for {found}"
        )
    return found


def _require_seed(seed: int) -> None:
    if not 0 <= seed < 2**63:
        raise UsageError(f"seed {seed}; expected 0 or more, below 2**63")
