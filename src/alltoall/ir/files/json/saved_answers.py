"""Flows, routes and schedules as JSON, and what their two forms, JSON and .npz, have in common."""

import math
import re
from collections.abc import Callable, Iterable, Iterator
from fractions import Fraction
from itertools import chain, pairwise
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from alltoall.errors import FormatError, VerificationError
from alltoall.ir.answer import Certificate
from alltoall.ir.arrays import Floats, Ints, inner_index, starts_of
from alltoall.ir.chunks import Chunks
from alltoall.ir.files.fields import Json, short, take_int, take_list, take_object, take_text
from alltoall.ir.files.json.demand import demand_from_json, demand_to_json
from alltoall.ir.files.json.problem import (
    provenance_from_json,
    topology_from_json,
    topology_to_json,
)
from alltoall.ir.files.json.values import (
    INTEGERS,
    MAX_INTEGER,
    NATURAL,
    NATURALS,
    NUMBERS,
    Cells,
    Rows,
    fitting,
    format_of,
    is_integer,
    is_number,
    many_objects,
    positive,
    take,
)
from alltoall.ir.flow import Flow, Status
from alltoall.ir.problem import Problem
from alltoall.ir.routes import Routes
from alltoall.ir.schedule import Schedule
from alltoall.ir.topology import Topology

Artefact: TypeAlias = Flow | Routes | Schedule

FLOW_FORMAT = "alltoall.flow/1"
ROUTES_FORMAT = "alltoall.routes/1"
SCHEDULE_FORMAT = "alltoall.schedule/1"
"""As many chunks of every shard, or, in older files, about so many of a shard of size 1."""

UNEVEN_FORMAT = "alltoall.schedule/2"
"""Every pair with its own number of chunks."""

FORMATS: dict[str, type[Artefact]] = {
    FLOW_FORMAT: Flow,
    ROUTES_FORMAT: Routes,
    SCHEDULE_FORMAT: Schedule,
    UNEVEN_FORMAT: Schedule,
}
"""The kind of answer of each format, the same in JSON as in .npz."""

ORDER = (
    *("format", "method", "status", "time", "fractional_time", "bound", "gap", "rate"),
    *("topology", "demand", "chunks_per_shard", "chunks", "steps", "lengths"),
    *("flows", "generators", "routes"),
)
"""The order of the keys in a file."""

FRACTION = re.compile(r"[0-9]{1,15}/[1-9][0-9]{0,14}")


def format_name(answer: Artefact) -> str:
    """Return the format in which an answer is saved."""
    if isinstance(answer, Schedule) and not answer.chunks.uniform:
        return UNEVEN_FORMAT
    return next(name for name, kind in FORMATS.items() if isinstance(answer, kind))


def answer_to_json(answer: Artefact) -> Json:
    """Return the JSON form of an answer, without claims that it does not make."""
    none = {"bound": 0.0, "fractional_time": 0.0, "gap": math.inf}
    with many_objects():
        value = claims_of(answer) | {
            "format": format_name(answer),
            "method": answer.method,
            "time": answer.time,
            "bound": answer.bound,
            "gap": answer.gap,
            "topology": topology_to_json(answer.problem.topology),
            "demand": demand_to_json(answer.problem.demand),
            "lengths": answer.certificate.lengths.tolist(),
            **_rows_of(answer),
        }
    return {key: value[key] for key in ORDER if key in value and value[key] != none.get(key)}


def claims_of(answer: Artefact) -> Json:
    """Return the fields of one kind of answer that are no arrays."""
    if isinstance(answer, Flow):
        return {"rate": float(answer.rate), "status": answer.status.value}
    if isinstance(answer, Routes):
        return {}
    even = answer.chunks.uniform
    return {"fractional_time": float(answer.fractional_time)} | (
        {"chunks_per_shard": answer.chunks_per_shard} if even else {}
    )


def _rows_of(answer: Artefact) -> Json:
    """Return the arrays of an answer as rows, in which sources and destinations are nodes."""
    node = answer.problem.topology.terminals
    if isinstance(answer, Schedule):
        keys = (node[answer.source], node[answer.destination], answer.chunk, answer.link)
        cuts = np.searchsorted(answer.step, np.arange(1, answer.steps))
        steps = [part.tolist() for part in np.split(np.stack(keys, axis=1), cuts)]
        counts = [[int(node[s]), int(node[d]), count] for s, d, count in answer.chunks.rows()]
        return {"steps": steps} | ({} if answer.chunks.uniform else {"chunks": counts})
    columns = {"src": node[answer.source].tolist()}
    if answer.destination is not None:
        columns["dst"] = node[answer.destination].tolist()
    columns["links"] = cut_rows(answer.link, answer.start)
    if isinstance(answer, Routes):
        return {"routes": route_rows({**columns, "weight": weights_as_text(answer)}, answer)}
    columns["amounts"] = cut_rows(answer.amount, answer.start)
    rows = [dict(zip(columns, row, strict=True)) for row in zip(*columns.values(), strict=True)]
    more = {} if answer.generators is None else {"generators": answer.generators.tolist()}
    return {"flows": rows} | more


def cut_rows(values: NDArray[Any], start: Ints) -> list[list[Any]]:
    """Return the rows of a ragged array as lists."""
    entries = values.tolist()
    return [entries[begin:end] for begin, end in pairwise(start.tolist())]


def route_rows(columns: dict[str, list[Any]], routes: Routes) -> list[Json]:
    """Return an object for each route, of columns and its layers, if it has any."""
    rows = [dict(zip(columns, row, strict=True)) for row in zip(*columns.values(), strict=True)]
    for row, layer in zip(rows, layers_as_fields(routes), strict=False):
        row.update(layer)
    return rows


def layers_as_fields(routes: Routes) -> Iterator[Json]:
    """Yield the field of each route: "layer", or "layers" if it changes layer.

    Routes without layers have no fields.
    """
    if routes.layer is not None:
        yield from ({"layer": layer} for layer in routes.layer.tolist())
    if routes.hop_layer is not None:
        rows = cut_rows(routes.hop_layer, routes.start)
        for row, several in zip(rows, routes.changes_layer.tolist(), strict=True):
            yield {"layers": row} if several else {"layer": row[0]}


def layers_from_rows(rows: Rows, hops: list[list[Any]]) -> tuple[Ints | None, Ints | None]:
    """Return the layer of each route, or of each hop if any route changes; None without layers."""
    one = rows.column("layer", NATURAL, optional=True)
    several = rows.column("layers", NATURALS, optional=True)
    for index, (row, path) in enumerate(zip(rows.rows if several else (), hops, strict=False)):
        both = " and a layer" if "layer" in row else ""
        if "layers" in row and (both or len(row["layers"]) != len(path)):
            raise FormatError(
                f"{rows.name}[{index}] has {len(row['layers'])} layers{both}; expected one layer, "
                f"or one per hop, of which it has {len(path)}"
            )
    known = len(one) + len(several)
    if known not in (0, len(hops)):
        raise FormatError(f"{rows.name}: {known} of {len(hops)} routes have a layer; expected all")
    if not several:
        return (np.array(one, dtype=np.int64) if one else None), None
    pairs = zip(rows.rows, hops, strict=True)
    return None, flat(row.get("layers") or [row["layer"]] * len(path) for row, path in pairs)


def flat(rows: Iterable[list[int]]) -> Ints:
    """Return the integers of all rows, one row after the other."""
    return np.array(list(chain.from_iterable(rows)), dtype=np.int64)


def weights_as_text(routes: Routes) -> list[Any]:
    """Return the weights, rational ones as "p/q"."""
    if routes.denominator is None:
        weights: list[Any] = routes.weight.tolist()
        return weights
    units = np.rint(routes.weight * routes.denominator).astype(np.int64)
    return [f"{unit}/{routes.denominator}" for unit in units.tolist()]


def answer_from_json(value: object, where: str) -> Any:
    """Build an answer from its JSON form, by its format, unchecked (see `check`).

    Other tools may omit the demand (uniform), the bound with its lengths (hops), and the method of
    routes and schedules, and the layers of all routes.
    """
    found = format_of(value, where)
    if found not in FORMATS:
        known = ", ".join(FORMATS)
        raise FormatError(f"{where}: format is {short(found)}; expected one of {known}")
    obj, kind = take_object(value, where), FORMATS[found]
    topology = topology_from_json(obj.get("topology"), f"{where}: topology")
    if "demand" in obj or kind is Flow:
        demand = demand_from_json(obj.get("demand"), topology, f"{where}: demand")
        problem = Problem(topology, demand)
    else:
        problem = Problem.all_to_all(topology)
    lengths = np.ones(topology.links)
    if "lengths" in obj or kind is Flow:
        lengths = np.array(take(obj, "lengths", NUMBERS, where), dtype=np.float64)
    fields = _READERS[kind](obj, problem, where)
    answer = answer_of(kind, problem, lengths, obj, where, **fields)
    # Refuse a file whose summary contradicts its content. A gap is a share, and may be off by one
    # of rounding; a time has any unit.
    gap = answer.time / answer.bound - 1 if answer.bound > 0 else math.inf
    wrong = [
        f"{key} is {short(obj[key])}, but what the file holds gives {true:.12g}"
        for key, true, slack in (("time", answer.time, 0.0), ("gap", gap, 1e-9))
        if obj.get(key) is not None
        and not (is_number(obj[key]) and math.isclose(obj[key], true, rel_tol=1e-9, abs_tol=slack))
    ]
    if wrong:
        raise VerificationError(where, wrong)
    return answer


def answer_of(
    kind: Any, problem: Problem, lengths: Floats, obj: Json, where: str, **fields: Any
) -> Any:
    """Return an answer with its claims in an object, where only a flow has to make them all."""
    if kind is Flow:
        fields |= {"rate": positive(obj, "rate", where), "status": _status(obj, where)}
    elif kind is Schedule:
        fields["fractional_time"] = claimed(obj, "fractional_time", where)
        if "chunks" not in fields:
            per_shard = take_int(obj, "chunks_per_shard", where)
            fields["chunks"] = Chunks.of_demand(problem.demand, per_shard)
    bound = positive(obj, "bound", where) if kind is Flow else claimed(obj, "bound", where)
    known = "method" in obj or kind is Flow
    return kind(
        problem=problem,
        certificate=Certificate(lengths, bound),
        method=take_text(obj, "method", where) if known else "unknown",
        provenance=provenance_from_json(obj, where),
        **fields,
    )


def claimed(obj: Json, key: str, where: str) -> float:
    """Return the positive number at `key`, 0 if it is left out."""
    return positive(obj, key, where) if key in obj else 0.0


def _status(obj: Json, where: str) -> Status:
    try:
        return Status(obj.get("status", ""))
    except ValueError:
        names = ", ".join(Status)
        raise FormatError(
            f"{where}: status is {short(obj.get('status'))}; expected one of {names}"
        ) from None


def _flow_fields(obj: Json, problem: Problem, where: str) -> Json:
    rows = Rows.of(obj, "flows", where)
    links, amounts = rows.column("links", INTEGERS), rows.column("amounts", NUMBERS)
    for index, (on, each) in enumerate(zip(links, amounts, strict=True)):
        if len(on) != len(each):
            raise FormatError(
                f"{rows.name}[{index}] has {len(on)} links and {len(each)} amounts; "
                "expected as many"
            )
    commodities = sum("dst" in row for row in rows.rows)
    if commodities not in (0, len(links)):
        raise FormatError(f"{where}: {commodities} of {len(links)} flows have a dst; expected all")
    return _paths(rows, links, problem.topology, ends=commodities > 0) | {
        "amount": np.array(list(chain.from_iterable(amounts)), dtype=np.float64),
        "generators": _generators(obj, problem.topology.nodes, where),
    }


def _paths(rows: Rows, links: list[list[int]], topology: Topology, ends: bool = True) -> Json:
    """Return the ends and the links of flows or routes."""

    def positions(end: str) -> Ints:
        nodes = [row.get(end) for row in rows.rows]
        name = f"{rows.name}[{{}}].{end} is {{}}"
        return _positions(nodes, topology, lambda at: name.format(at, short(nodes[at])))

    return {
        "source": positions("src"),
        "destination": positions("dst") if ends else None,
        "start": starts_of(list(map(len, links))),
        "link": flat(links),
    }


def _positions(nodes: list[Any], topology: Topology, found: Callable[[int], str]) -> Ints:
    """Return the positions of terminals, given as nodes."""
    position = {node: index for index, node in enumerate(topology.terminals.tolist())}
    for index, node in enumerate(nodes):
        if type(node) is not int or node not in position:
            raise FormatError(f"{found(index)}; expected terminals of {topology.name}")
    return np.array([position[node] for node in nodes], dtype=np.int64)


def _generators(obj: Json, nodes: int, where: str) -> Ints | None:
    """Return the automorphisms of a flow that stands for its images under them."""
    if "generators" not in obj:
        return None
    rows = take_list(obj, "generators", where)
    for index, row in enumerate(rows):
        if len(fitting(row, INTEGERS, f"{where}: generators[{index}]")) != nodes:
            raise FormatError(
                f"{where}: generators[{index}] has {len(row)} entries; expected one for each of "
                f"the {nodes} nodes"
            )
    return np.array(rows, dtype=np.int64).reshape(len(rows), nodes)


def _routes_fields(obj: Json, problem: Problem, where: str) -> Json:
    rows = Rows.of(obj, "routes", where)
    links = rows.column("links", INTEGERS)
    layer, hop_layer = layers_from_rows(rows, links)
    weight, denominator = weights_from_text(rows.column("weight", WEIGHT), rows.name)
    fields = {"weight": weight, "denominator": denominator, "layer": layer, "hop_layer": hop_layer}
    return fields | _paths(rows, links, problem.topology)


def _are_weights(values: list[Any]) -> bool:
    texts = {value for value in values if isinstance(value, str)}
    plain = (value for value in values if not isinstance(value, str))
    return all(map(FRACTION.fullmatch, texts)) and all(map(is_number, plain))


WEIGHT = Cells(_are_weights, 'a number or "p/q"')


def weights_from_text(weights: list[Any], where: str) -> tuple[Floats, int | None]:
    """Return the weights, and the common denominator if all of them are fractions."""
    if set(map(type, weights)) != {str}:
        mixed = [float(Fraction(each) if isinstance(each, str) else each) for each in weights]
        return np.array(mixed, dtype=np.float64), None
    parts = {weight: tuple(map(int, weight.split("/"))) for weight in set(weights)}
    common = math.lcm(*{below for _, below in parts.values()})
    if common > MAX_INTEGER:
        raise FormatError(f"{where}: the weights have no common denominator below {MAX_INTEGER:,}")
    units = {weight: above * (common // below) for weight, (above, below) in parts.items()}
    return np.array([units[weight] for weight in weights], dtype=np.float64) / common, common


def _schedule_fields(obj: Json, problem: Problem, where: str) -> Json:
    steps = take_list(obj, "steps", where)
    for index, each in enumerate(steps):
        if not isinstance(each, list):
            raise FormatError(f"{where}: steps[{index}] is {short(each)}; expected an array")
    counts = np.array(list(map(len, steps)), dtype=np.int64)
    step, inner = np.repeat(np.arange(len(steps)), counts), inner_index(counts)
    sends = _rows(
        list(chain.from_iterable(steps)),
        ("src", "dst", "chunk", "link"),
        problem.topology,
        lambda row: f"{where}: steps[{step[row]}][{inner[row]}]",
    )
    keys = ("source", "destination", "chunk", "link")
    fields: Json = {"steps": len(steps), "step": step, **dict(zip(keys, sends.T, strict=True))}
    if obj["format"] == UNEVEN_FORMAT:
        pairs, names = take_list(obj, "chunks", where), ("src", "dst", "count")
        table = _rows(pairs, names, problem.topology, lambda row: f"{where}: chunks[{row}]")
        fields["chunks"] = Chunks.from_rows(problem.demand.terminals, table.tolist())
    return fields


def _rows(
    rows: list[Any], keys: tuple[str, ...], topology: Topology, name: Callable[[int], str]
) -> Ints:
    """Return rows of integers, the first two of them terminals, which become their positions."""

    def found(index: int) -> str:
        return f"{name(index)} is {short(rows[index])}"

    for index, row in enumerate(rows):
        if not isinstance(row, list) or len(row) != len(keys) or not all(map(is_integer, row)):
            raise FormatError(f"{found(index)}; expected [{', '.join(keys)}], all integers")
    table = np.array(rows, dtype=np.int64).reshape(-1, len(keys))
    for end in (0, 1):
        table[:, end] = _positions(table[:, end].tolist(), topology, found)
    return table


_READERS: dict[type[Artefact], Callable[[Json, Problem, str], Json]] = {
    Flow: _flow_fields,
    Routes: _routes_fields,
    Schedule: _schedule_fields,
}
"""The reader of the rows of each kind."""
