"""Artefacts as JSON: exact round trips for our nouns, clear errors for everything else."""

import json
import math
from collections.abc import Callable
from pathlib import Path
from typing import Any, TypeVar, cast

import numpy as np

from a2aflow.errors import DemandError, FormatError, VerificationError
from a2aflow.ir.arrays import Floats, Ints
from a2aflow.ir.demand import Demand
from a2aflow.ir.files import read_text, write_text
from a2aflow.ir.flow import Certificate, Flow, Status
from a2aflow.ir.problem import Problem
from a2aflow.ir.schedule import Schedule
from a2aflow.ir.topology import Topology

TOPOLOGY_FORMAT = "a2aflow.topology/1"
DEMAND_FORMAT = "a2aflow.demand/1"
FLOW_FORMAT = "a2aflow.flow/1"
SCHEDULE_FORMAT = "a2aflow.schedule/1"

MAX_INTEGER = 2**53
"""Integers beyond this are not exact in every JSON reader, and larger than any index here."""

Kind = TypeVar("Kind")
KIND_NAMES = {
    dict: "an object",
    list: "an array",
    str: "a string",
    int: "an integer",
    float: "a number",
}


def parse_json(text: str, where: str) -> object:
    """Parse JSON; NaN, Infinity, bad syntax and absurd nesting are `FormatError`s."""
    try:
        return json.loads(text, parse_constant=_refuse_constant)
    except json.JSONDecodeError as error:
        raise FormatError(
            f"{where}: not valid JSON at line {error.lineno}, column {error.colno}: {error.msg}; "
            "the file may be truncated"
        ) from None
    except RecursionError:
        raise FormatError(f"{where}: nested too deeply to be an a2aflow artefact") from None
    except ValueError as error:
        raise FormatError(f"{where}: {error}") from None


def _refuse_constant(constant: str) -> None:
    raise ValueError(f"the value {constant} is not JSON; expected a finite number")


def read_json(path: Path) -> object:
    """Read and parse one JSON file."""
    return parse_json(read_text(path), str(path))


def write_json(path: Path, value: dict[str, Any]) -> None:
    """Write one artefact, compactly, in one step."""
    write_text(path, json.dumps(value, separators=(",", ":"), allow_nan=False) + "\n")


def format_of(value: object, where: str) -> str:
    """Return the `format` of an artefact."""
    if not isinstance(value, dict) or not isinstance(value.get("format"), str):
        raise FormatError(
            f'{where}: no "format" key; expected an a2aflow artefact such as '
            f'{{"format": "{TOPOLOGY_FORMAT}", ...}}'
        )
    return str(value["format"])


# --- topology -------------------------------------------------------------------------------


def topology_to_json(topology: Topology) -> dict[str, Any]:
    """Return the JSON form of a topology."""
    columns = (topology.tail.tolist(), topology.head.tolist(), topology.capacity.tolist())
    value = {
        "format": TOPOLOGY_FORMAT,
        "name": topology.name,
        "nodes": topology.nodes,
        "links": [list(row) for row in zip(*columns, strict=True)],
        "terminals": topology.terminals.tolist(),
    }
    return value | ({"notes": list(topology.notes)} if topology.notes else {})


def topology_from_json(value: object, where: str) -> Topology:
    """Build a topology from its JSON form; `terminals` may be left out and then means all."""
    obj = _artefact(value, TOPOLOGY_FORMAT, where)
    nodes = _take(obj, "nodes", int, where)
    rows: list[Any] = _take(obj, "links", list, where)
    for index, row in enumerate(rows):
        if not _is_link(row):
            raise FormatError(
                f"{where}: links[{index}] is {_short(row)}; expected [tail, head, capacity] "
                "with two integers and a number"
            )
    terminals = _integers(obj["terminals"], "terminals", where) if "terminals" in obj else None
    notes = obj.get("notes", [])
    if not isinstance(notes, list) or not all(isinstance(note, str) for note in notes):
        raise FormatError(f"{where}: notes is {_short(notes)}; expected an array of strings")
    name = _take(obj, "name", str, where) if "name" in obj else where
    return Topology.from_links(name, nodes, rows, terminals, notes)


def _is_link(row: object) -> bool:
    return (
        isinstance(row, list)
        and len(row) == 3
        and _is_integer(row[0])
        and _is_integer(row[1])
        and _is_number(row[2])
    )


# --- demand ---------------------------------------------------------------------------------


def demand_to_json(demand: Demand) -> dict[str, Any]:
    """Return the JSON form of a demand."""
    shape = {"matrix": demand.matrix.tolist()} if demand.matrix is not None else {"uniform": True}
    return {"format": DEMAND_FORMAT, "terminals": demand.terminals, **shape}


def demand_from_json(value: object, topology: Topology, where: str) -> Demand:
    """Build a demand from a bare matrix, or from an object with `uniform`, `matrix` or `entries`.

    A matrix has one row and column per terminal, or one per node with nothing for the others;
    `entries` are `[source node, destination node, amount]`, and what is not listed is zero.
    """
    if isinstance(value, list):
        return demand_from_matrix(_matrix(value, where), topology, where)
    obj = _artefact(value, DEMAND_FORMAT, where)
    if obj.get("uniform") is True:
        return Demand(len(topology.terminals))
    if "matrix" in obj:
        return demand_from_matrix(_matrix(obj["matrix"], where), topology, where)
    if "entries" in obj:
        return _demand_from_entries(_take(obj, "entries", list, where), topology, where)
    raise FormatError(f'{where}: expected one of the keys "uniform", "matrix" and "entries"')


def demand_from_matrix(matrix: Floats, topology: Topology, where: str) -> Demand:
    """Build a demand from a matrix over the terminals, or over all nodes."""
    terminals = topology.terminals
    if matrix.shape == (topology.nodes, topology.nodes) and topology.nodes != len(terminals):
        other = np.ones(topology.nodes, dtype=np.bool_)
        other[terminals] = False
        stray = np.argwhere((matrix != 0) & (other[:, None] | other[None, :]))
        if len(stray):
            raise _not_terminals(int(stray[0][0]), int(stray[0][1]), other, where)
        matrix = matrix[np.ix_(terminals, terminals)]
    try:
        return Demand(len(terminals), matrix)
    except DemandError as error:
        raise DemandError(f"{where}: {error}") from None


def _demand_from_entries(entries: list[object], topology: Topology, where: str) -> Demand:
    matrix = np.zeros((len(topology.terminals),) * 2)
    position = {int(node): index for index, node in enumerate(topology.terminals)}
    for index, row in enumerate(entries):
        if not _is_link(row):
            raise FormatError(
                f"{where}: entries[{index}] is {_short(row)}; "
                "expected [source, destination, amount]"
            )
        source, destination, amount = cast(list[Any], row)
        for node in (source, destination):
            if node not in position:
                raise DemandError(
                    f"{where}: entries[{index}] names node {node}, which is not a terminal of "
                    f"{topology.name}; demand goes between terminals only"
                )
        matrix[position[source], position[destination]] += amount
    return demand_from_matrix(matrix, topology, where)


def _not_terminals(source: int, destination: int, other: Any, where: str) -> DemandError:
    culprit = source if other[source] else destination
    return DemandError(
        f"{where}: demand from node {source} to node {destination}, but node {culprit} is not a "
        "terminal; demand goes between terminals only"
    )


def _matrix(value: object, where: str) -> Floats:
    if not isinstance(value, list) or not value:
        raise FormatError(f"{where}: matrix is {_short(value)}; expected an array of rows")
    for index, row in enumerate(value):
        if not isinstance(row, list) or not all(map(_is_number, row)):
            raise FormatError(f"{where}: matrix row {index} is not an array of numbers")
        if len(row) != len(value[0]):
            raise FormatError(
                f"{where}: matrix row {index} has {len(row)} cells, row 0 has {len(value[0])}"
            )
    return np.array(value, dtype=np.float64)


# --- flow -----------------------------------------------------------------------------------


def flow_to_json(flow: Flow) -> dict[str, Any]:
    """Return the JSON form of a flow with its problem and certificate: all that a check needs."""
    node = flow.problem.topology.terminals.tolist()
    destination = flow.destination.tolist() if flow.destination is not None else None
    start, link, amount = flow.start.tolist(), flow.link.tolist(), flow.amount.tolist()
    flows = [
        {"src": node[source]}
        | ({"dst": node[destination[group]]} if destination is not None else {})
        | {
            "links": link[start[group] : start[group + 1]],
            "amounts": amount[start[group] : start[group + 1]],
        }
        for group, source in enumerate(flow.source.tolist())
    ]
    return {
        "format": FLOW_FORMAT,
        "method": flow.method,
        "status": flow.status.value,
        "time": flow.time,
        "bound": flow.bound,
        "gap": flow.gap,
        "rate": flow.rate,
        "topology": topology_to_json(flow.problem.topology),
        "demand": demand_to_json(flow.problem.demand),
        "lengths": flow.certificate.lengths.tolist(),
        "flows": flows,
    }


def flow_from_json(value: object, where: str) -> Flow:
    """Build a flow from its JSON form; `ir.verify` says whether it is true."""
    obj = _artefact(value, FLOW_FORMAT, where)
    topology = topology_from_json(obj.get("topology"), f"{where}: topology")
    demand = demand_from_json(obj.get("demand"), topology, f"{where}: demand")
    rows: list[Any] = _take(obj, "flows", list, where)
    for index, row in enumerate(rows):
        if not isinstance(row, dict):
            raise FormatError(f"{where}: flows[{index}] is {_short(row)}; expected an object")
    position = {int(node): index for index, node in enumerate(topology.terminals)}
    links = [_integers(row.get("links"), f"flows[{i}].links", where) for i, row in enumerate(rows)]
    amounts = [
        _numbers(row.get("amounts"), f"flows[{i}].amounts", where) for i, row in enumerate(rows)
    ]
    per_commodity = bool(rows) and "dst" in rows[0]
    rate, time = _positive(obj, "rate", where), _positive(obj, "time", where)
    if abs(rate * time - 1) > 1e-9:
        raise VerificationError(
            where, [f"the time {time:g} is not the reciprocal of rate {rate:g}"]
        )
    return Flow(
        problem=Problem(topology, demand),
        rate=rate,
        source=np.array(_terminals(rows, "src", position, where), dtype=np.int64),
        destination=np.array(_terminals(rows, "dst", position, where), dtype=np.int64)
        if per_commodity
        else None,
        start=np.cumsum([0, *(len(row) for row in links)], dtype=np.int64),
        link=np.array([link for row in links for link in row], dtype=np.int64),
        amount=np.array([amount for row in amounts for amount in row], dtype=np.float64),
        certificate=Certificate(
            np.array(_numbers(obj.get("lengths"), "lengths", where), dtype=np.float64),
            _positive(obj, "bound", where),
        ),
        method=_take(obj, "method", str, where),
        status=_status(obj, where),
    )


def _status(obj: dict[str, Any], where: str) -> Status:
    try:
        return Status(obj.get("status", ""))
    except ValueError:
        names = ", ".join(Status)
        raise FormatError(
            f"{where}: status is {_short(obj.get('status'))}; expected one of {names}"
        ) from None


def _terminals(rows: list[Any], key: str, position: dict[int, int], where: str) -> list[int]:
    for index, row in enumerate(rows):
        if type(row.get(key)) is not int or row[key] not in position:
            raise FormatError(
                f"{where}: flows[{index}].{key} is {_short(row.get(key))}; expected a terminal"
            )
    return [position[row[key]] for row in rows]


# --- schedule -------------------------------------------------------------------------------


def schedule_to_json(schedule: Schedule) -> dict[str, Any]:
    """Return the JSON form of a schedule; sources and destinations are nodes."""
    node = schedule.problem.topology.terminals
    rows = np.stack(
        (node[schedule.source], node[schedule.destination], schedule.chunk, schedule.link), axis=1
    )
    cuts = np.searchsorted(schedule.step, np.arange(1, schedule.steps))
    return {
        "format": SCHEDULE_FORMAT,
        "method": schedule.method,
        "time": schedule.time,
        "fractional_time": schedule.fractional_time,
        "bound": schedule.bound,
        "gap": schedule.gap,
        "topology": topology_to_json(schedule.problem.topology),
        "demand": demand_to_json(schedule.problem.demand),
        "chunks_per_shard": schedule.chunks_per_shard,
        "steps": [part.tolist() for part in np.split(rows, cuts)],
        "lengths": schedule.certificate.lengths.tolist(),
    }


def schedule_from_json(value: object, where: str) -> Schedule:
    """Build a schedule from its JSON form; `ir.verify` says whether it is true.

    A schedule from elsewhere may leave out the demand (uniform), and the bound with its lengths
    (hops, which prove the distance bound).
    """
    obj = _artefact(value, SCHEDULE_FORMAT, where)
    topology = topology_from_json(obj.get("topology"), f"{where}: topology")
    demand = Demand(len(topology.terminals))
    if "demand" in obj:
        demand = demand_from_json(obj["demand"], topology, f"{where}: demand")
    steps: list[Any] = _take(obj, "steps", list, where)
    rows = _sends(steps, topology, where)
    lengths = _numbers(obj["lengths"], "lengths", where) if "lengths" in obj else None
    schedule = Schedule(
        problem=Problem(topology, demand),
        chunks_per_shard=_take(obj, "chunks_per_shard", int, where),
        steps=len(steps),
        step=rows[:, 0],
        source=rows[:, 1],
        destination=rows[:, 2],
        chunk=rows[:, 3],
        link=rows[:, 4],
        certificate=Certificate(
            np.ones(topology.links) if lengths is None else np.array(lengths, dtype=np.float64),
            _positive(obj, "bound", where) if "bound" in obj else 0.0,
        ),
        fractional_time=_positive(obj, "fractional_time", where)
        if "fractional_time" in obj
        else 0.0,
        method=_take(obj, "method", str, where) if "method" in obj else "unknown",
    )
    if "time" in obj and abs(_positive(obj, "time", where) / schedule.time - 1) > 1e-9:
        claim = f"the time {obj['time']:g} is not that of its steps, {schedule.time:g}"
        raise VerificationError(where, [claim])
    return schedule


def _sends(steps: list[Any], topology: Topology, where: str) -> Ints:
    """Return rows of step, source and destination position, chunk and link."""
    position = {int(node): index for index, node in enumerate(topology.terminals)}
    rows = []
    for step, sends in enumerate(steps):
        if not isinstance(sends, list):
            raise FormatError(f"{where}: steps[{step}] is {_short(sends)}; expected an array")
        for index, row in enumerate(sends):
            if not isinstance(row, list) or len(row) != 4 or not all(map(_is_integer, row)):
                raise FormatError(
                    f"{where}: steps[{step}][{index}] is {_short(row)}; "
                    "expected [src, dst, chunk, link], all integers"
                )
            if row[0] not in position or row[1] not in position:
                raise FormatError(
                    f"{where}: steps[{step}][{index}] is {_short(row)}; expected src and dst to be "
                    f"terminals of {topology.name}"
                )
            rows.append((step, position[row[0]], position[row[1]], row[2], row[3]))
    return np.array(rows, dtype=np.int64).reshape(-1, 5)


# --- shared checks --------------------------------------------------------------------------


def _artefact(value: object, expected: str, where: str) -> dict[str, Any]:
    found = format_of(value, where)
    if found != expected:
        raise FormatError(f"{where}: format is {_short(found)}; expected {expected!r}")
    return cast(dict[str, Any], value)


def _take(obj: dict[str, Any], key: str, kind: Callable[..., Kind], where: str) -> Kind:
    if type(obj.get(key)) is not kind:
        names = KIND_NAMES[cast(type, kind)]
        raise FormatError(f"{where}: {key} is {_short(obj.get(key))}; expected {names}")
    return cast(Kind, obj[key])


def _positive(obj: dict[str, Any], key: str, where: str) -> float:
    found = obj.get(key)
    if not _is_number(found) or not 0 < cast(float, found) < math.inf:
        raise FormatError(f"{where}: {key} is {_short(found)}; expected a positive number")
    return float(cast(float, found))


def _is_integer(value: object) -> bool:
    """Whether a value is an integer (a bool is not) that fits the arrays."""
    return type(value) is int and -MAX_INTEGER <= value <= MAX_INTEGER


def _is_number(value: object) -> bool:
    return type(value) is float or _is_integer(value)


def _integers(value: object, key: str, where: str) -> list[int]:
    if not isinstance(value, list) or not all(map(_is_integer, value)):
        raise FormatError(f"{where}: {key} is {_short(value)}; expected an array of integers")
    return value


def _numbers(value: object, key: str, where: str) -> list[float]:
    if not isinstance(value, list) or not all(map(_is_number, value)):
        raise FormatError(f"{where}: {key} is {_short(value)}; expected an array of numbers")
    return value


def _short(value: object) -> str:
    """Show a value in a message without flooding it; missing keys come here as None."""
    text = "missing" if value is None else json.dumps(value, default=str)
    return text if len(text) <= 60 else text[:57] + "..."
