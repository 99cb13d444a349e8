"""A schedule to be played: frame by frame, what crosses which link.

A frame is a step. Of a schedule with more steps and links than a page can hold, a frame is several
consecutive steps, so that there are at most `MOST_CELLS` lines of frames in which anything crosses.
"""

from typing import Any

import numpy as np

from alltoall.ir.arrays import Floats, Ints
from alltoall.ir.schedule import Schedule
from alltoall.reports.drawn import Drawn
from alltoall.reports.packed import packed_floats, packed_ints

MOST_CELLS = 100_000
"""Lines of frames in a page: at most about 100 kilobytes of text."""


def frames_of(schedule: Schedule, steps_each: int) -> tuple[Ints, Ints]:
    """Return the frame of every send, and the number of the first step of each frame.

    Only steps in which anything is sent are shown: a file may claim any number of others.
    """
    used, place = np.unique(schedule.step, return_inverse=True)
    return place // steps_each, used[::steps_each]


def player_content(schedule: Schedule, drawn: Drawn, room: int) -> dict[str, Any]:
    """Return the frames: how long each takes, and how full each line is; so many fit at most."""
    times, each = schedule.step_times(), 1
    while True:
        frame, first = frames_of(schedule, each)
        cells = _cells(schedule, drawn, frame, _sums(times, each))
        if len(cells[0]) <= room or each >= len(times):
            break
        each *= 2
    key, share, count = cells
    last = np.append(first[1:] - 1, schedule.step[-1]) if each > 1 else first
    return {
        "stepsEach": each,
        "steps": schedule.steps,
        "first": (first + 1).tolist(),
        "last": (last + 1).tolist(),
        "times": _sums(times, each).tolist(),
        "start": np.searchsorted(key // drawn.lines, np.arange(len(first) + 1)).tolist(),
        "line": packed_ints(key % drawn.lines),
        "share": packed_floats(share),
        "count": packed_ints(count),
        "sends": np.bincount(frame, minlength=len(first)).tolist(),
    }


def _sums(times: Floats, each: int) -> Floats:
    """Return the time of every frame."""
    return np.add.reduceat(times, np.arange(0, len(times), each))


def _cells(
    schedule: Schedule, drawn: Drawn, frame: Ints, times: Floats
) -> tuple[Ints, Floats, Ints]:
    """Return which line of which frame is used, the busy share of its fullest link, and sends."""
    links = schedule.problem.topology.links
    used, place = np.unique(frame * links + schedule.link, return_inverse=True)
    at, link = used // links, used % links
    busy = np.bincount(place, schedule.sizes()) / schedule.problem.topology.capacity[link]
    key, cell = np.unique(at * drawn.lines + drawn.line[link], return_inverse=True)
    share = np.zeros(len(key))
    np.maximum.at(share, cell, busy / times[at])
    return key, share, np.bincount(cell, np.bincount(place)).astype(np.int64)
