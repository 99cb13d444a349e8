"""The routed fabric's table, as JSON: the egress port at each traversed node, and the layer.

The schema is ours: docs/formats.md. The table holds its topology, demand and proof of
the bound, so it can be checked alone.
"""

import json
import re
from itertools import chain
from typing import Any

import numpy as np

from alltoall.errors import FormatError
from alltoall.ir.answer import Certificate
from alltoall.ir.arrays import Ints, inner_index, starts_of
from alltoall.ir.files.fields import MAX_INT, short, take_int, take_list, take_object, take_text
from alltoall.ir.files.json.demand import demand_from_json, demand_to_json
from alltoall.ir.files.json.problem import topology_from_json, topology_to_json
from alltoall.ir.files.json.saved_answers import (
    cut_rows,
    layers_from_fields,
    route_rows,
    weights_as_text,
)
from alltoall.ir.files.json.values import artefact, numbers, parse_json, positive
from alltoall.ir.problem import Problem
from alltoall.ir.routes import Routes
from alltoall.lowering.options import TABLE_ROUTES, Options
from alltoall.lowering.tables.routed_file import (
    RoutedFile,
    check_room,
    in_file_order,
    pair_sizes,
    ports_of,
    require_layers,
    require_order,
)

TABLE_FORMAT = "alltoall.routes-table/1"
KEYS = ("src", "dst", "id", "weight", "nodes", "ports")
TABLE_KEYS = {
    "format", "method", "bound", "lengths", "topology", "demand",
    "max_routes_per_destination", "layers", "denominator", "routes",
}  # fmt: skip
MOST_ROUTES = 50_000_000
MOST_DENOMINATOR = 1 << 31
FRACTION = re.compile(r"([0-9]{1,15})/([1-9][0-9]{0,14})")


def emit_routes_table(routes: Routes, options: Options) -> str:
    """Return the table of routes that have layers."""
    require_layers(routes)
    ordered, _ = in_file_order(routes)
    check_room(ordered, options.max_routes or TABLE_ROUTES)
    topology = ordered.problem.topology
    columns = {
        "src": topology.terminals[ordered.source].tolist(),
        "dst": topology.terminals[ordered.destination].tolist(),
        "id": inner_index(pair_sizes(ordered.source, ordered.destination)).tolist(),
        "weight": weights_as_text(ordered),
        "nodes": cut_rows(topology.tail[ordered.link], ordered.start),
        "ports": cut_rows(ports_of(topology)[ordered.link], ordered.start),
    }
    table = {
        "format": TABLE_FORMAT,
        "method": routes.method,
        "bound": routes.bound,
        "lengths": routes.certificate.lengths.tolist(),
        "topology": topology_to_json(routes.problem.topology),
        "demand": demand_to_json(routes.problem.demand),
        "max_routes_per_destination": options.max_routes or TABLE_ROUTES,
        "layers": routes.layers,
        "denominator": routes.denominator,
        "routes": route_rows(columns, ordered),
    }
    return json.dumps(table, separators=(",", ":"), allow_nan=False) + "\n"


def read_routes_table(text: str, where: str) -> RoutedFile:
    """Read a table strictly; `routed_file.rebuild` resolves its routes."""
    obj = artefact(parse_json(text, where), TABLE_FORMAT, where)
    _require_keys(obj, TABLE_KEYS, where)
    topology = topology_from_json(obj["topology"], f"{where}: topology")
    problem = Problem(topology, demand_from_json(obj["demand"], topology, f"{where}: demand"))
    lengths = numbers(obj["lengths"], "lengths", where)
    if len(lengths) != topology.links:
        raise FormatError(f"{where}: {len(lengths)} lengths; expected one per link")
    bound = 0.0 if obj["bound"] == 0 else positive(obj, "bound", where)
    rows = take_list(obj, "routes", where, MOST_ROUTES)
    for index, row in enumerate(rows):
        here = f"{where}: routes[{index}]"
        kind = "layers" if "layers" in take_object(row, here) else "layer"
        _require_keys(row, {*KEYS, kind}, here)
    hops = _hops(rows, where)
    weights = [parse_weight(row["weight"], f"{where}: routes[{k}]") for k, row in enumerate(rows)]
    # Refuse layers that are no integers.
    one, several = ([row for row in rows if key in row] for key in ("layer", "layers"))
    _column(one, "layer", where)
    for row in several:
        take_list(row, "layers", where)
    _flat(several, "layers", where)
    layer, hop_layer = layers_from_fields(rows, "nodes", where)
    file = RoutedFile(
        kind="routes",
        name=where,
        source=_column(rows, "src", where),
        destination=_column(rows, "dst", where),
        start=starts_of(hops),
        node=_flat(rows, "nodes", where),
        port=_flat(rows, "ports", where),
        weight=np.array(weights, dtype=np.float64),
        layer=layer,
        hop_layer=hop_layer,
        denominator=None
        if obj["denominator"] is None
        else take_int(obj, "denominator", where, MOST_DENOMINATOR, 1),
        problem=problem,
        certificate=Certificate(np.array(lengths, dtype=np.float64), bound),
        facts={"method": take_text(obj, "method", where)},
    )
    require_order(file, _column(rows, "id", where), where)
    # Hold the limits in the table against its routes.
    sizes = pair_sizes(file.source, file.destination)
    most = take_int(obj, "max_routes_per_destination", where)
    if sizes.max() > most:
        name = file.route(int(sizes[: int(np.argmax(sizes))].sum()))
        found = f"{sizes.max()} routes per destination ({name}, and on)"
        raise FormatError(f"{where}: {found}; it states at most {most}")
    assigned = file.hop_layer if file.layer is None else file.layer
    layers = 1 + int(assigned.max()) if assigned is not None else 0
    if take_int(obj, "layers", where) != layers:
        raise FormatError(f"{where}: layers is {obj['layers']}; its routes have {layers}")
    return file


def _require_keys(obj: dict[str, Any], keys: set[str], where: str) -> None:
    if obj.keys() != keys:
        wrong = min(obj.keys() ^ keys)
        state = "missing" if wrong in keys else "unknown"
        advice = "see the format's description"
        raise FormatError(f"{where}: the key {wrong[:60]!r} is {state}; {advice}")


def _hops(rows: list[Any], where: str) -> Ints:
    for index, row in enumerate(rows):
        here, nodes, ports = f"{where}: routes[{index}]", row["nodes"], row["ports"]
        if not isinstance(nodes, list) or not isinstance(ports, list) or not nodes:
            raise FormatError(f"{here}: nodes and ports must be arrays of hops")
        if len(nodes) != len(ports):
            found = f"{len(nodes)} nodes and {len(ports)} ports"
            raise FormatError(f"{here} has {found}; expected a port per node that is left")
    return np.array([len(row["nodes"]) for row in rows], dtype=np.int64)


def _column(rows: list[Any], key: str, where: str) -> Ints:
    values = [row[key] for row in rows]
    if not _are_ints(values):
        for index, row in enumerate(rows):
            take_int(row, key, f"{where}: routes[{index}]")
    return np.array(values, dtype=np.int64)


def _flat(rows: list[Any], key: str, where: str) -> Ints:
    values = list(chain.from_iterable(row[key] for row in rows))
    if not _are_ints(values):
        for index, row in enumerate(rows):
            for position, value in enumerate(row[key]):
                here = f"{where}: routes[{index}].{key}[{position}]"
                take_int({"entry": value}, "entry", here)
    return np.array(values, dtype=np.int64)


def _are_ints(values: list[Any]) -> bool:
    """Check all values at once: a message for each would take long to prepare."""
    return set(map(type, values)) <= {int} and all(0 <= value <= MAX_INT for value in values)


def parse_weight(value: object, where: str) -> float:
    """Return a weight: a positive number, or "p/q"."""
    if isinstance(value, str) and (found := FRACTION.fullmatch(value)):
        return int(found[1]) / int(found[2])
    if type(value) in (int, float) and 0 < float(value) < MAX_INT:  # type: ignore[arg-type]
        return float(value)  # type: ignore[arg-type]
    raise FormatError(f'{where}: weight is {short(value)}; expected a positive number or "p/q"')
