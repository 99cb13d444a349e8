"""The routed fabric's table, as JSON: the egress port at each traversed node, and the layer.

The schema is ours: docs/formats.md. The table holds its topology, demand and proof of
the bound, so it can be checked alone.
"""

import json
from typing import Any

import numpy as np

from alltoall.errors import FormatError
from alltoall.ir.answer import Certificate
from alltoall.ir.arrays import inner_index, starts_of
from alltoall.ir.files.fields import MAX_INT, take_int, take_text
from alltoall.ir.files.json.demand import demand_from_json, demand_to_json
from alltoall.ir.files.json.problem import topology_from_json, topology_to_json
from alltoall.ir.files.json.saved_answers import (
    WEIGHT,
    cut_rows,
    flat,
    layers_from_rows,
    route_rows,
    weights_as_text,
    weights_from_text,
)
from alltoall.ir.files.json.values import (
    NATURAL,
    NATURALS,
    NUMBERS,
    Cells,
    Rows,
    artefact,
    parse_json,
    positive,
    take,
)
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

POSITIVE = Cells(
    lambda values: (
        WEIGHT.fit(values) and all(isinstance(each, str) or 0 < each < MAX_INT for each in values)
    ),
    'a positive number or "p/q"',
)
"""The weights of a table."""


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
    lengths = take(obj, "lengths", NUMBERS, where)
    if len(lengths) != topology.links:
        raise FormatError(f"{where}: {len(lengths)} lengths; expected one per link")
    bound = 0.0 if obj["bound"] == 0 else positive(obj, "bound", where)
    rows = Rows.of(obj, "routes", where, MOST_ROUTES)
    for index, row in enumerate(rows.rows):
        kind = "layers" if "layers" in row else "layer"
        _require_keys(row, {*KEYS, kind}, f"{rows.name}[{index}]")
    nodes, ports = (rows.column(key, NATURALS) for key in ("nodes", "ports"))
    for index, (path, out) in enumerate(zip(nodes, ports, strict=True)):
        if not path or len(path) != len(out):
            found = f"{len(path)} nodes and {len(out)} ports"
            expected = "expected one or more, and a port per node that is left"
            raise FormatError(f"{rows.name}[{index}] has {found}; {expected}")
    weight, _ = weights_from_text(rows.column("weight", POSITIVE), where)
    layer, hop_layer = layers_from_rows(rows, nodes)
    source, destination, ids = (
        np.array(rows.column(key, NATURAL), dtype=np.int64) for key in ("src", "dst", "id")
    )
    file = RoutedFile(
        kind="routes",
        name=where,
        source=source,
        destination=destination,
        start=starts_of(list(map(len, nodes))),
        node=flat(nodes),
        port=flat(ports),
        weight=weight,
        layer=layer,
        hop_layer=hop_layer,
        denominator=None
        if obj["denominator"] is None
        else take_int(obj, "denominator", where, MOST_DENOMINATOR, 1),
        problem=problem,
        certificate=Certificate(np.array(lengths, dtype=np.float64), bound),
        facts={"method": take_text(obj, "method", where)},
    )
    require_order(file, ids, where)
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
