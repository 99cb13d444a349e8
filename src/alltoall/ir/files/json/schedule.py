"""Schedules as JSON."""

from typing import Any

import numpy as np

from alltoall.errors import FormatError
from alltoall.ir.answer import Certificate
from alltoall.ir.arrays import Ints
from alltoall.ir.chunks import Chunks
from alltoall.ir.demand import Demand
from alltoall.ir.files.fields import short, take_int, take_list, take_text
from alltoall.ir.files.json.demand import demand_from_json, demand_to_json
from alltoall.ir.files.json.problem import (
    provenance_from_json,
    topology_from_json,
    topology_to_json,
)
from alltoall.ir.files.json.values import (
    artefact,
    check_claims,
    is_integer,
    numbers,
    positive,
    without_unclaimed,
)
from alltoall.ir.problem import Problem
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
    value = {
        "format": schedule_format(schedule),
        "method": schedule.method,
        "time": schedule.time,
        "fractional_time": schedule.fractional_time,
        "bound": schedule.bound,
        "gap": schedule.gap,
        "topology": topology_to_json(schedule.problem.topology),
        "demand": demand_to_json(schedule.problem.demand),
        **({"chunks_per_shard": chunks.per_shard} if chunks.uniform else _counts(schedule)),
        "steps": [part.tolist() for part in np.split(rows, cuts)],
        "lengths": schedule.certificate.lengths.tolist(),
    }
    return without_unclaimed(value)


def schedule_from_json(value: object, where: str) -> Schedule:
    """Build a schedule from its JSON form; `check.schedule` says whether it is true.

    A schedule from elsewhere may leave out the demand (uniform), and the bound with its lengths
    (hops, which prove the distance bound).
    """
    uneven = isinstance(value, dict) and value.get("format") == UNEVEN_FORMAT
    obj = artefact(value, UNEVEN_FORMAT if uneven else SCHEDULE_FORMAT, where)
    topology = topology_from_json(obj.get("topology"), f"{where}: topology")
    demand = Demand(len(topology.terminals))
    if "demand" in obj:
        demand = demand_from_json(obj["demand"], topology, f"{where}: demand")
    steps = take_list(obj, "steps", where)
    rows = _sends(steps, topology, where)
    lengths = numbers(obj["lengths"], "lengths", where) if "lengths" in obj else None
    schedule = Schedule(
        problem=Problem(topology, demand),
        chunks=_uneven_chunks(obj, topology, where)
        if uneven
        else Chunks.of_demand(demand, take_int(obj, "chunks_per_shard", where)),
        steps=len(steps),
        step=rows[:, 0],
        source=rows[:, 1],
        destination=rows[:, 2],
        chunk=rows[:, 3],
        link=rows[:, 4],
        certificate=Certificate(
            np.ones(topology.links) if lengths is None else np.array(lengths, dtype=np.float64),
            positive(obj, "bound", where) if "bound" in obj else 0.0,
        ),
        fractional_time=positive(obj, "fractional_time", where)
        if "fractional_time" in obj
        else 0.0,
        method=take_text(obj, "method", where) if "method" in obj else "unknown",
        provenance=provenance_from_json(obj, where),
    )
    check_claims(obj, where, schedule.time, schedule.bound)
    return schedule


def _counts(schedule: Schedule) -> dict[str, Any]:
    """Return the pairs that have chunks, as nodes, and how many."""
    node = schedule.problem.topology.terminals.tolist()
    return {"chunks": [[node[s], node[d], count] for s, d, count in schedule.chunks.rows()]}


def _uneven_chunks(obj: dict[str, Any], topology: Topology, where: str) -> Chunks:
    """Build chunks from rows of source node, destination node and count; other pairs have none."""
    position = {int(node): index for index, node in enumerate(topology.terminals)}
    found = take_list(obj, "chunks", where)
    rows: list[tuple[int, int, int]] = []
    for index, row in enumerate(found):
        if not isinstance(row, list) or len(row) != 3 or not all(map(is_integer, row)):
            raise FormatError(
                f"{where}: chunks[{index}] is {short(row)}; expected [src, dst, count], integers"
            )
        if row[0] not in position or row[1] not in position:
            raise FormatError(
                f"{where}: chunks[{index}] is {short(row)}; expected src and dst to be terminals "
                f"of {topology.name}"
            )
        rows.append((position[row[0]], position[row[1]], row[2]))
    return Chunks.from_rows(len(topology.terminals), rows)


def _sends(steps: list[Any], topology: Topology, where: str) -> Ints:
    """Return rows of step, source and destination position, chunk and link."""
    position = {int(node): index for index, node in enumerate(topology.terminals)}
    rows = []
    for step, sends in enumerate(steps):
        if not isinstance(sends, list):
            raise FormatError(f"{where}: steps[{step}] is {short(sends)}; expected an array")
        for index, row in enumerate(sends):
            if not isinstance(row, list) or len(row) != 4 or not all(map(is_integer, row)):
                raise FormatError(
                    f"{where}: steps[{step}][{index}] is {short(row)}; "
                    "expected [src, dst, chunk, link], all integers"
                )
            if row[0] not in position or row[1] not in position:
                raise FormatError(
                    f"{where}: steps[{step}][{index}] is {short(row)}; expected src and dst to be "
                    f"terminals of {topology.name}"
                )
            rows.append((step, position[row[0]], position[row[1]], row[2], row[3]))
    return np.array(rows, dtype=np.int64).reshape(-1, 5)
