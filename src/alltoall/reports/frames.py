"""The frames of the schedule player: busy lines and their loads in each step.

A frame is a step, or several consecutive steps where a page has no room for all. Frames have at
most `MOST_CELLS` busy lines in all.
"""

from typing import Any

import numpy as np

from alltoall.ir.arrays import Floats, Ints
from alltoall.ir.schedule import Schedule
from alltoall.reports.diagram import Diagram
from alltoall.reports.packed import packed_floats, packed_ints

MOST_CELLS = 100_000
"""Busy lines of all frames in a page: at most about 100 kilobytes of text."""


def frames_of(schedule: Schedule, steps_each: int) -> tuple[Ints, Ints]:
    """Return the frame of every send, and the first step of each frame.

    Steps without sends are left out: a file may claim any number of them.
    """
    used, place = np.unique(schedule.step, return_inverse=True)
    return place // steps_each, used[::steps_each]


def player_content(schedule: Schedule, diagram: Diagram, room: int) -> dict[str, Any]:
    """Return the time and the line loads of each frame, for `room` busy lines."""
    step_times, each = schedule.step_times(), 1
    while True:
        frame, first = frames_of(schedule, each)
        times = np.add.reduceat(step_times, np.arange(0, len(step_times), each))
        key, share, count = _cells(schedule, diagram, frame, times)
        if len(key) <= room or each >= len(step_times):
            break
        each *= 2
    last = np.append(first[1:] - 1, schedule.step[-1]) if each > 1 else first
    return {
        "stepsEach": each,
        "steps": schedule.steps,
        "first": (first + 1).tolist(),
        "last": (last + 1).tolist(),
        "times": times.tolist(),
        "start": np.searchsorted(key // diagram.lines, np.arange(len(first) + 1)).tolist(),
        "line": packed_ints(key % diagram.lines),
        "share": packed_floats(share),
        "count": packed_ints(count),
        "sends": np.bincount(frame, minlength=len(first)).tolist(),
    }


def _cells(
    schedule: Schedule, diagram: Diagram, frame: Ints, times: Floats
) -> tuple[Ints, Floats, Ints]:
    """Return the busy lines of all frames, their largest loads, and their sends."""
    links = schedule.problem.topology.links
    used, place = np.unique(frame * links + schedule.link, return_inverse=True)
    at, link = used // links, used % links
    busy = np.bincount(place, schedule.sizes()) / schedule.problem.topology.capacity[link]
    key, cell = np.unique(at * diagram.lines + diagram.line[link], return_inverse=True)
    share = np.zeros(len(key))
    np.maximum.at(share, cell, busy / times[at])
    return key, share, np.bincount(cell, np.bincount(place)).astype(np.int64)
