"""Schedules as JSON."""

from collections.abc import Callable
from itertools import chain
from typing import Any

import numpy as np

from alltoall.errors import FormatError
from alltoall.ir.arrays import Ints, inner_index
from alltoall.ir.chunks import Chunks
from alltoall.ir.files.fields import short, take_int, take_list, take_text
from alltoall.ir.files.json.demand import demand_to_json
from alltoall.ir.files.json.problem import (
    certificate_of_answer,
    problem_of_answer,
    provenance_from_json,
    topology_to_json,
)
from alltoall.ir.files.json.values import (
    artefact,
    check_claims,
    drop_unclaimed,
    is_integer,
    positions_of,
    positive,
)
from alltoall.ir.schedule import Schedule
from alltoall.ir.topology import Topology

SCHEDULE_FORMAT = "alltoall.schedule/1"
"""As many chunks of every shard, or, in older files, about so many of a shard of size 1."""

UNEVEN_FORMAT = "alltoall.schedule/2"
"""Every pair with its own number of chunks."""


def schedule_format(schedule: Schedule) -> str:
    """Return the format in which a schedule is saved."""
    return SCHEDULE_FORMAT if schedule.chunks.uniform else UNEVEN_FORMAT


def schedule_to_json(schedule: Schedule) -> dict[str, Any]:
    """Return the JSON form of a schedule; sources and destinations are nodes."""
    node = schedule.problem.topology.terminals
    rows = np.stack(
        (node[schedule.source], node[schedule.destination], schedule.chunk, schedule.link), axis=1
    )
    cuts = np.searchsorted(schedule.step, np.arange(1, schedule.steps))
    chunks = schedule.chunks
    counts = [[int(node[s]), int(node[d]), count] for s, d, count in chunks.rows()]
    value = {
        "format": schedule_format(schedule),
        "method": schedule.method,
        "time": schedule.time,
        "fractional_time": schedule.fractional_time,
        "bound": schedule.bound,
        "gap": schedule.gap,
        "topology": topology_to_json(schedule.problem.topology),
        "demand": demand_to_json(schedule.problem.demand),
        **({"chunks_per_shard": chunks.per_shard} if chunks.uniform else {"chunks": counts}),
        "steps": [part.tolist() for part in np.split(rows, cuts)],
        "lengths": schedule.certificate.lengths.tolist(),
    }
    return drop_unclaimed(value)


def schedule_from_json(value: object, where: str) -> Schedule:
    """Build a schedule from its JSON form, unchecked (see `check.schedule`).

    Other tools may omit the demand (uniform), and the bound with its lengths (hops).
    """
    uneven = isinstance(value, dict) and value.get("format") == UNEVEN_FORMAT
    obj = artefact(value, UNEVEN_FORMAT if uneven else SCHEDULE_FORMAT, where)
    problem = problem_of_answer(obj, where)
    steps = take_list(obj, "steps", where)
    for index, each in enumerate(steps):
        if not isinstance(each, list):
            raise FormatError(f"{where}: steps[{index}] is {short(each)}; expected an array")
    counts = np.array(list(map(len, steps)), dtype=np.int64)
    step, inner = np.repeat(np.arange(len(steps)), counts), inner_index(counts)
    sends = _rows(
        list(chain.from_iterable(steps)),
        "[src, dst, chunk, link]",
        problem.topology,
        lambda row: f"{where}: steps[{step[row]}][{inner[row]}]",
    )
    if uneven:
        pairs, name = take_list(obj, "chunks", where), "[src, dst, count]"
        counts = _rows(pairs, name, problem.topology, lambda row: f"{where}: chunks[{row}]")
        chunks = Chunks.from_rows(len(problem.topology.terminals), counts.tolist())
    else:
        chunks = Chunks.of_demand(problem.demand, take_int(obj, "chunks_per_shard", where))
    claimed = "fractional_time" in obj
    schedule = Schedule(
        problem=problem,
        chunks=chunks,
        steps=len(steps),
        step=step,
        source=sends[:, 0],
        destination=sends[:, 1],
        chunk=sends[:, 2],
        link=sends[:, 3],
        certificate=certificate_of_answer(obj, problem.topology, where),
        fractional_time=positive(obj, "fractional_time", where) if claimed else 0.0,
        method=take_text(obj, "method", where) if "method" in obj else "unknown",
        provenance=provenance_from_json(obj, where),
    )
    check_claims(obj, where, schedule.time, schedule.bound)
    return schedule


def _rows(rows: list[Any], expected: str, topology: Topology, name: Callable[[int], str]) -> Ints:
    """Return rows of integers, the first two of them terminals, which become their positions."""
    position, width = positions_of(topology), expected.count(",") + 1
    for index, row in enumerate(rows):
        if not isinstance(row, list) or len(row) != width or not all(map(is_integer, row)):
            raise FormatError(f"{name(index)} is {short(row)}; expected {expected}, all integers")
        if row[0] not in position or row[1] not in position:
            raise FormatError(
                f"{name(index)} is {short(row)}; expected src and dst to be terminals of "
                f"{topology.name}"
            )
    table = np.array(rows, dtype=np.int64).reshape(-1, width)
    table[:, :2] = topology.position[table[:, :2]]
    return table
