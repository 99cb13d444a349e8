"""Schedules in files, for the ranks of tests to read."""

from dataclasses import replace
from pathlib import Path

import numpy as np

from alltoall.ir.arrays import Ints
from alltoall.ir.files.json.saved_answers import answer_to_json
from alltoall.ir.files.json.values import write_json
from alltoall.ir.schedule import Schedule
from alltoall.topologies.spec import build
from hop_schedules import hop_schedule

TOPOLOGIES = ("hypercube:3", "twisted-hypercube:3", "bipartite:4x4")
CHUNKS = (1, 2, 3)
RANKS = 8


def save(folder: Path, topology: str = "hypercube:3", chunks: int = 2) -> Path:
    """Save a correct schedule and return where."""
    path = folder / f"{topology.replace(':', '_')}.{chunks}.schedule.json"
    write_json(path, answer_to_json(hop_schedule(build(topology), chunks)))
    return path


def save_all(folder: Path) -> list[str]:
    """Save a schedule of every topology and number of chunks."""
    return [str(save(folder, topology, chunks)) for topology in TOPOLOGIES for chunks in CHUNKS]


def with_sends(schedule: Schedule, which: Ints) -> Schedule:
    """Return a schedule of only some of the sends."""
    return replace(
        schedule,
        step=schedule.step[which],
        source=schedule.source[which],
        destination=schedule.destination[which],
        chunk=schedule.chunk[which],
        link=schedule.link[which],
    )


def without_last_send(schedule: Schedule) -> Schedule:
    """Return a schedule that does not deliver one chunk."""
    return with_sends(schedule, np.arange(schedule.sends - 1))
